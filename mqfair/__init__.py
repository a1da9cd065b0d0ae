# SPDX-License-Identifier: GPL-2.0
"""mqfair: share one fast SSD between cgroups by weight."""

__version__ = "0.2.0"

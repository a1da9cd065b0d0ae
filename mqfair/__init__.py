# SPDX-License-Identifier: GPL-2.0
"""mqfair: share one fast SSD between cgroups by weight."""

# The version's only source in Python; tests/cli/test_version.py compares the other places.
__version__ = "0.3.0"

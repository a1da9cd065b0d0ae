# SPDX-License-Identifier: GPL-2.0
"""Published figures of the drives that flash/ models."""

# SPDX-License-Identifier: GPL-2.0
"""Figures of the interference-fairness paper (Sui et al.), the source of ifq."""

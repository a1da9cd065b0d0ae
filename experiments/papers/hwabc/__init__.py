# SPDX-License-Identifier: GPL-2.0
"""Figures of the budget compensation paper (Lee, Han, Shin), the source of hwabc."""

# SPDX-License-Identifier: GPL-2.0
"""Figures of the dynamic throttling paper (Ahn, La, Kim), the source of wdt."""

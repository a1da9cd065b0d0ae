# SPDX-License-Identifier: GPL-2.0
"""Figures of the Kyber-fairness paper (Son, Oh, Ahn), the source of kyber-fair."""

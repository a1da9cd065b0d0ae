# SPDX-License-Identifier: GPL-2.0
"""Figures of papers and data sheets, measured here; one folder for each source."""

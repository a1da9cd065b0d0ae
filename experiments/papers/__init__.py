# SPDX-License-Identifier: GPL-2.0
"""Figures of the papers that the schedulers come from, measured here; one folder for each source."""

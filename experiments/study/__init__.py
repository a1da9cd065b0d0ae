# SPDX-License-Identifier: GPL-2.0
"""The study of doc/study.md: the cost of proportional sharing of an SSD, one module a figure."""

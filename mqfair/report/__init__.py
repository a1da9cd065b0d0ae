# SPDX-License-Identifier: GPL-2.0
"""The verbs report and compare: recordings and results of bench, as plots and as a table."""

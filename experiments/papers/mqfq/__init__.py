# SPDX-License-Identifier: GPL-2.0
"""Figures of the multi-queue fair queueing paper (Hedayati et al.), the source of mqfq."""

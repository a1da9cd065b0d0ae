# SPDX-License-Identifier: GPL-2.0
"""Measurements of the schedulers, one file each: jobs, device, schedulers and what must hold."""

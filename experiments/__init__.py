# SPDX-License-Identifier: GPL-2.0
"""Measurements of the schedulers. Each file has one: jobs, device, schedulers and checks."""

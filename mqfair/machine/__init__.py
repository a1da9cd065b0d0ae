# SPDX-License-Identifier: GPL-2.0
"""The machine that the command runs on: /sys and /proc, disks, cgroups, the module, locks, signals.

fs.py is the only door to /sys, /proc and the cgroup file system.
"""

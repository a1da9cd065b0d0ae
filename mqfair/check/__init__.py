# SPDX-License-Identifier: GPL-2.0
"""The verb check: findings about a device, a cgroup, the service and other programs."""

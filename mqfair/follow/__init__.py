# SPDX-License-Identifier: GPL-2.0
"""The service mqfair follow, which carries weights and keeps /etc/mqfair.conf in force.

config.py, config_mend.py   /etc/mqfair.conf, and mends for names of disks
carried_weights.py          from io.weight, and from rules, to io.mqfair.weight
rules_in_force.py           schedulers and tunables of the rules
starving.py                 cgroups whose requests wait too long
"""

# SPDX-License-Identifier: GPL-2.0
"""What a user sets: the verbs enable, disable, weight and latency.

calibrate.py, knee.py       the depth and the threshold that a device needs
chosen_by_hand.py           disks whose scheduler a user chose, so that rules leave them alone
"""

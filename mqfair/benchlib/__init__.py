# SPDX-License-Identifier: GPL-2.0
"""The bench: one fio job file under several schedulers, and who got what.

host                                     guest, or the same host
  jobfile, device -> plan  --plan.json-->  runner: cgroups, iocost, fio
  window, fairness, result <--raw files--  fio's own JSON and one log line per I/O
  report, picture

The runner only records; everything that is computed is computed from its files
afterwards. It needs nothing but Python's standard library and fio.
"""

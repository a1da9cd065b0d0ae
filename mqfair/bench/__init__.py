# SPDX-License-Identifier: GPL-2.0
"""The bench: runs one fio job file under several schedulers and computes shares and latencies.

    host                                     guest, or the same host
      jobfile, device -> plan  --plan.json-->  runner: cgroups, iocost, fio
      window, fairness, result <--raw files--  fio's own JSON and one log line per I/O
      report, picture

The runner only records; all figures are computed from its files afterwards. It needs Python's
standard library and fio, nothing else.
"""

# SPDX-License-Identifier: GPL-2.0
"""Drives and cgroups over time: the verbs status, top, record and metrics.

sample.py                   one sample, and the rates between two
drives.py                   which drives, and how often
top_lines.py, top_screen.py the picture of top: its lines, and a terminal that shows them
recording.py                a file of samples
exposition.py               samples as metrics for Prometheus
openmetrics.py              the two formats of metrics as text, and their answer over HTTP
"""

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Writes mqfair.json, a dashboard for Grafana, beside this file.

Usage: contrib/grafana/make.py. The dashboard is long, and its panels differ in a title, a unit and
an expression.
"""

import json
from pathlib import Path
from typing import Any

PICKED = '{instance=~"$instance", disk=~"$disk", cgroup=~"$cgroup"}'
DRIVE = '{instance=~"$instance", disk=~"$disk"}'
RATE = "[$__rate_interval]"
OF_CGROUP = "{{disk}} {{cgroup}}"
OF_DRIVE = "{{disk}}"

# Title, unit, legend, expression.
PANELS = (
    ("Scheduler", "short", "{{disk}} {{scheduler}}", f"mqfair_disk_scheduler{DRIVE}"),
    ("Achieved share", "percentunit", OF_CGROUP,
     f"rate(mqfair_cgroup_cost_total{PICKED}{RATE}) / on (instance, disk) group_left"
     f" sum by (instance, disk) (rate(mqfair_cgroup_cost_total{DRIVE}{RATE}))"),
    ("Due share", "percentunit", OF_CGROUP, f"mqfair_cgroup_due_ratio{PICKED}"),
    ("Throughput", "binBps", OF_CGROUP, f"rate(mqfair_cgroup_bytes_total{PICKED}{RATE})"),
    ("Requests", "iops", OF_CGROUP, f"rate(mqfair_cgroup_requests_total{PICKED}{RATE})"),
    ("99th percentile of the latency", "s", OF_CGROUP,
     'mqfair_cgroup_latency_seconds{quantile="0.99", ' + PICKED[1:]),
    ("Median latency", "s", OF_CGROUP,
     'mqfair_cgroup_latency_seconds{quantile="0.5", ' + PICKED[1:]),
    ("Mean wait outside the drive", "s", OF_CGROUP,
     f"rate(mqfair_cgroup_wait_seconds_total{PICKED}{RATE})"
     f" / (rate(mqfair_cgroup_requests_total{PICKED}{RATE}) > 0)"),
    ("Mean time in the drive", "s", OF_CGROUP,
     f"rate(mqfair_cgroup_drive_seconds_total{PICKED}{RATE})"
     f" / (rate(mqfair_cgroup_done_total{PICKED}{RATE}) > 0)"),
    ("Requests that wait outside", "short", OF_CGROUP, f"mqfair_cgroup_waiting_requests{PICKED}"),
    ("Requests in the drive", "short", OF_CGROUP, f"mqfair_cgroup_inside_requests{PICKED}"),
    ("Slowdown in the drive", "short", OF_CGROUP, f"mqfair_cgroup_slowdown_ratio{PICKED}"),
    ("Part of the time short", "percentunit", OF_CGROUP,
     f"rate(mqfair_cgroup_short_seconds_total{PICKED}{RATE})"),
    ("Depth (D)", "short", OF_DRIVE, f"mqfair_disk_depth{DRIVE}"),
    ("Window: most requests in the drive", "short", OF_DRIVE, f"mqfair_disk_window{DRIVE}"),
    ("Throughput given up", "percentunit", OF_DRIVE, f"mqfair_disk_loss_ratio{DRIVE}"),
    ("Least part of what a cgroup asks for that it gets", "percentunit", OF_DRIVE,
     f"mqfair_disk_met_ratio{DRIVE}"),
)  # fmt: skip
SOURCE = {"type": "prometheus", "uid": "${source}"}
WIDTH, HEIGHT = 12, 8


def panel(number: int) -> dict[str, Any]:
    title, unit, legend, expression = PANELS[number]
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": title,
        "datasource": SOURCE,
        "gridPos": {
            "h": HEIGHT, "w": WIDTH, "x": number % 2 * WIDTH, "y": number // 2 * HEIGHT,
        },
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "options": {"tooltip": {"mode": "multi", "sort": "desc"}},
        "targets": [
            {"refId": "A", "expr": expression, "legendFormat": legend, "datasource": SOURCE}
        ],
    }  # fmt: skip


def variable(name: str, of: str) -> dict[str, Any]:
    query = f"label_values({of}, {name})"
    return {
        "name": name, "type": "query", "datasource": SOURCE, "query": query, "definition": query,
        "multi": True, "includeAll": True, "allValue": ".*", "refresh": 2, "sort": 1,
        "current": {"text": "All", "value": "$__all"},
    }  # fmt: skip


def dashboard() -> dict[str, Any]:
    return {
        "title": "mqfair",
        "uid": "mqfair",
        "tags": ["storage"],
        "schemaVersion": 36,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "type": "datasource", "query": "prometheus"},
                variable("instance", "mqfair_disk_ours"),
                variable("disk", "mqfair_disk_ours"),
                variable("cgroup", "mqfair_cgroup_weight"),
            ]
        },
        "panels": [panel(number) for number in range(len(PANELS))],
    }


def main() -> None:
    place = Path(__file__).with_name("mqfair.json")
    place.write_text(json.dumps(dashboard(), indent=1) + "\n")


if __name__ == "__main__":
    main()

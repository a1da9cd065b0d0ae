# SPDX-License-Identifier: GPL-2.0
"""The tests of a Debian machine that has booted with the units of mqfair enabled.

    in_boot.py FOLDER [TEST...]

The administrator has enabled UNITS before the boot, so no test of this file starts them. Each test
writes one line of JSON, as those of in_machine.py do, and they run in the order of this file.
"""

from __future__ import annotations

import socket
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from in_machine import DISK, SLICE, becomes, call, read, run_tests, scheduler, weight

# An emulated processor runs all services of the boot at once.
BOOT_S = 300.0
PAUSE_S = 3
IDLE_S = 5
PORT = 9917
URL = f"http://127.0.0.1:{PORT}/metrics"
CONF = "/etc/mqfair.conf"
UNITS = ("mqfair.service", "mqfair-metrics.socket", "nginx.service", "batch.service")
SERVICE = """\
[Service]
ExecStart=/usr/bin/sleep infinity
{weight}
[Install]
WantedBy=multi-user.target
"""
FILES = {
    CONF: f"""\
[[device]]
match = "{DISK}"
scheduler = "ifq"
tunables = {{ depth = 48 }}

[[weight]]
unit = "batch.service"
weight = 50
""",
    "/etc/systemd/system/nginx.service": SERVICE.format(weight="IOWeight=900\n"),
    "/etc/systemd/system/batch.service": SERVICE.format(weight=""),
    # The unit of the package waits for ten minutes.
    "/etc/systemd/system/mqfair-metrics.service.d/idle.conf": f"""\
[Service]
ExecStart=
ExecStart=/usr/bin/mqfair metrics --listen systemd --idle-exit {IDLE_S}
""",
}


def prepare(root: Path) -> None:
    """Writes the files into the machine's @root; its administrator enables UNITS after that."""
    for name, text in FILES.items():
        file = root / name.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def state(unit: str) -> str:
    return call("systemctl", "is-active", unit, expected=None).strip()


def reaches(unit: str, wanted: str) -> float:
    """Waits for a state of @unit, and returns the seconds that it took. Each question costs an
    emulated processor seconds, which the boot needs too."""

    def asked() -> bool:
        found = state(unit) == wanted
        if not found:
            time.sleep(PAUSE_S)
        return found

    return becomes(asked, f"{unit}: {wanted}", BOOT_S)


# --- the service -----------------------------------------------------------------------------


def test_the_service_is_active_after_the_boot() -> None:
    reaches("mqfair.service", "active")
    shown = call("systemctl", "show", "-P", "ActiveEnterTimestampMonotonic", "mqfair")
    print(f"FIGURE mqfair.service is active {int(shown) / 1e6:.0f} s after the kernel's start")
    assert call("systemctl", "is-enabled", "mqfair").strip() == "enabled"
    assert "follows " in call("journalctl", "-b", "-u", "mqfair", "-o", "cat")


def test_the_rule_of_the_configuration_is_in_force() -> None:
    """No command has loaded the module: the kernel does so for the scheduler of the rule."""
    becomes(lambda: scheduler() == "ifq", "the scheduler", BOOT_S)
    becomes(lambda: read(f"/sys/block/{DISK}/queue/iosched/depth").split()[0] == "48", "depth")


def test_the_weights_of_services_have_arrived() -> None:
    for unit, value in (("nginx.service", "900"), ("batch.service", "50")):
        reaches(unit, "active")
        becomes(lambda unit=unit, value=value: weight(unit) == value, f"the weight of {unit}")


def test_nothing_failed_or_complained() -> None:
    assert "mqfair" not in call("systemctl", "list-units", "--failed", "--no-legend")
    assert call("journalctl", "-b", "-u", "mqfair", "-p", "warning", "-o", "cat").strip() in (
        "",
        "-- No entries --",
    )
    assert "mqfair follow" not in call("journalctl", "-b", "-t", "(udev-worker)", "-o", "cat")
    call("mqfair", "check", DISK, "nginx.service")


def test_a_mistake_in_the_configuration_is_told_and_changes_nothing() -> None:
    Path(CONF).write_text(FILES[CONF].replace("ifq", "ifqq"))
    call("systemctl", "restart", "mqfair", expected=1)
    assert state("mqfair") == "failed"
    said = call("journalctl", "-b", "-u", "mqfair", "-o", "cat")
    assert f'{CONF}:3: scheduler = "ifqq": did you mean ifq?' in said
    assert (scheduler(), weight("nginx.service")) == ("ifq", "900")
    Path(CONF).write_text(FILES[CONF])
    call("systemctl", "restart", "mqfair")
    assert state("mqfair") == "active"


# --- metrics ---------------------------------------------------------------------------------


def fetch() -> tuple[str, str]:
    kind = "application/openmetrics-text; version=1.0.0"
    request = urllib.request.Request(URL, headers={"Accept": kind})
    with urllib.request.urlopen(request, timeout=BOOT_S) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def families() -> dict[str, Any]:
    """The figures of one request, by name. The package is one of the machine."""
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    began = time.monotonic()
    kind, text = fetch()
    print(f"FIGURE an answer of mqfair-metrics: {time.monotonic() - began:.1f} s")
    assert kind.startswith("application/openmetrics-text")
    assert text.endswith("# EOF\n")
    return {one.name: one for one in text_string_to_metric_families(text)}


def value(family: Any, **labels: str) -> float:
    (found,) = [one.value for one in family.samples if labels.items() <= one.labels.items()]
    return float(found)


def test_the_socket_waits_without_a_service() -> None:
    reaches("mqfair-metrics.socket", "active")
    assert state("mqfair-metrics.service") == "inactive"


def test_the_socket_is_for_this_machine_alone() -> None:
    listening = [line for line in call("ss", "-ltnH").splitlines() if f":{PORT} " in line]
    assert len(listening) == 1 and f"127.0.0.1:{PORT} " in listening[0]


def test_a_request_starts_the_service() -> None:
    join = f"echo $$ > {SLICE}/nginx.service/cgroup.procs"
    call("sh", "-c", f"{join}; exec dd if=/dev/{DISK} of=/dev/null bs=64k count=64 iflag=direct")
    found = families()
    assert state("mqfair-metrics.service") == "active"
    assert value(found["mqfair_module_loaded"]) == 1
    assert value(found["mqfair_disk_scheduler"], disk=DISK, scheduler="ifq") == 1
    own = {"disk": DISK, "cgroup": "system.slice/nginx.service"}
    assert value(found["mqfair_cgroup_weight"], **own) == 900
    assert value(found["mqfair_cgroup_bytes"], **own) == 64 * 65536
    # This figure is in debugfs, which the unit must not hide.
    assert value(found["mqfair_disk_watchdog"], disk=DISK) == 0


def test_the_service_of_metrics_ends_when_idle_and_comes_back() -> None:
    unit = "mqfair-metrics.service"
    took = reaches(unit, "inactive")
    print(f"FIGURE the end of an idle mqfair-metrics: {took:.1f} s")
    assert call("systemctl", "show", "-P", "Result", unit).strip() == "success"
    assert state("mqfair-metrics.socket") == "active"
    # A client that sends nothing does not keep it from the next one.
    with socket.create_connection(("127.0.0.1", PORT), timeout=BOOT_S):
        assert value(families()["mqfair_disk_ours"], disk=DISK) == 1


TESTS = {name: one for name, one in list(globals().items()) if name.startswith("test_")}

if __name__ == "__main__":
    sys.exit(run_tests(TESTS, sys.argv[2:]))

# SPDX-License-Identifier: GPL-2.0
"""mqfair metrics: its errors, its addresses, and the dashboard; tests/people has the figures."""

import json
import os
import stat
import sys

import pytest
from conftest import loaded
from test_main import CHECKOUT

from mqfair.text.errors import UsageError
from mqfair.watch import metrics


@pytest.fixture
def host(machine):
    machine.install_module()
    machine.disk(active="mqfq")
    machine.stacked("dm-0", "253:0", "dm", slaves=("nvme0n1",))
    return machine


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["sdz"], 2, "unknown device 'sdz'"),
        (["dm-0"], 2, "dm-0 takes no scheduler"),
        (
            ["--textfile", "/nosuch/x.prom"],
            2,
            "--textfile /nosuch/x.prom: No such file or directory",
        ),
        (["--textfile", "/tmp/x"], 2, "--textfile /tmp/x: node_exporter reads files named *.prom"),
        (["--textfile", "/dev/full"], 2, "--textfile /dev/full: node_exporter reads files named"),
        (["--idle-exit", "5"], 2, "--idle-exit needs --listen"),
        (["--listen", ":1", "--idle-exit", "0"], 2, "--idle-exit 0: use a number of seconds"),
        (["--listen", "9917", "--json"], 2, "not allowed with"),
    ],
)
def test_errors_are_one_line(host, run, argv, code, said):
    result = run("metrics", *argv)
    assert (result.code, result.out, result.err.count("\n")) == (code, "", 1)
    assert said in result.err


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9917", ("127.0.0.1", 9917)),
        ("localhost:0", ("127.0.0.1", 0)),
        ("[::1]:80", ("::1", 80)),
    ],
)
def test_addresses_of_this_machine(text, address):
    assert metrics.address_of(text) == address


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0.0.0.0:9917", "not for other machines"),
        ("[::]:9917", "not for other machines"),
        ("192.0.2.1:9917", "not for other machines"),
        ("9917", "'' is no address: write 127.0.0.1:9917"),
        ("web:9917", "'web' is no address"),
        ("127.0.0.1", "write ADDRESS:PORT"),
        ("127.0.0.1:99999", "write ADDRESS:PORT"),
        ("127.0.0.1:٣", "write ADDRESS:PORT"),
    ],
)
def test_other_addresses_are_refused(text, said):
    with pytest.raises(UsageError, match=f"--listen {text.replace('[', '.').replace(']', '.')}: "):
        metrics.address_of(text)
    with pytest.raises(UsageError) as refused:
        metrics.address_of(text)
    assert said in str(refused.value)


def test_no_package_beyond_the_standard_library_is_needed(host, run, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    file = tmp_path / "mqfair.prom"
    for argv in ([], ["--json"], ["--textfile", str(file)]):
        result = run("metrics", *argv)
        assert (result.code, result.err) == (0, "")
    assert "mqfair_module_loaded 1.0\n" in file.read_text()


def test_the_pressure_of_cgroups_is_a_counter(host, run):
    host.cgroup(
        "prod", stat="259:0 mqfair.ios=1 mqfair.bytes=4096",
        io_pressure="some avg10=1.00 avg60=0.00 avg300=0.00 total=2500000\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=500000",
    )  # fmt: skip
    lines = run("metrics").out.splitlines()
    name = "mqfair_cgroup_pressure_seconds"
    assert [line for line in lines if line.startswith(name)] == [
        f'{name}_total{{cgroup="prod",kind="some"}} 2.5',
        f'{name}_total{{cgroup="prod",kind="full"}} 0.5',
    ]


def test_the_textfile_is_for_a_collector_of_another_user(host, run, tmp_path):
    file = tmp_path / "mqfair.prom"
    before = os.umask(0o077)
    try:
        assert run("metrics", "--textfile", str(file)).code == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert list(tmp_path.glob("*.prom*")) == [file]


def test_the_dashboard_is_the_one_that_its_program_writes():
    place = CHECKOUT / "contrib/grafana/make.py"
    written = loaded(place, "dashboard").dashboard()
    assert json.loads(place.with_name("mqfair.json").read_text()) == written

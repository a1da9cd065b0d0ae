# SPDX-License-Identifier: GPL-2.0
"""Cgroups by the name of a systemd unit, and by the id of a container."""

import pytest

DOCKER = "4f5e" + "0" * 59 + "a"
PODMAN = "4f5e" + "1" * 59 + "b"
CONTAINERD = "9ac3" + "2" * 60
PLAIN = "77bb" + "3" * 60


@pytest.fixture
def host(machine):
    machine.install_module()
    machine.disk()
    for path in (
        "system.slice",
        "system.slice/nginx.service",
        "system.slice/postgresql.service",
        f"system.slice/docker-{DOCKER}.scope",
        "machine.slice",
        f"machine.slice/libpod-{PODMAN}.scope",
        f"machine.slice/libpod-conmon-{PODMAN}.scope",
        "kubepods.slice",
        f"kubepods.slice/cri-containerd-{CONTAINERD}.scope",
        "docker",
        f"docker/{PLAIN}",
        "user.slice",
        "user.slice/syncthing.service",
        "user.slice/user@1000.service",
        "user.slice/user@1000.service/syncthing.service",
        "prod",
        "prod/db",
    ):
        machine.cgroup(path, subtree="io")
    return machine


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("nginx.service", "system.slice/nginx.service"),
        ("machine.slice", "machine.slice"),
        ("user@1000.service", "user.slice/user@1000.service"),
        (DOCKER, f"system.slice/docker-{DOCKER}.scope"),
        (f"docker-{DOCKER}.scope", f"system.slice/docker-{DOCKER}.scope"),
        (PODMAN[:12], f"machine.slice/libpod-{PODMAN}.scope"),
        (CONTAINERD[:12], f"kubepods.slice/cri-containerd-{CONTAINERD}.scope"),
        (PLAIN[:6], f"docker/{PLAIN}"),
    ],
)
def test_a_unit_or_a_container_is_found(host, run, name, path):
    result = run("weight", name, "900", "--json")
    assert (result.code, result.err) == (0, "")
    assert result.json["cgroup"] == path
    assert host.stores == [f"write 'default 900' to '/sys/fs/cgroup/{path}/io.mqfair.weight'"]


def test_check_and_latency_know_the_names_too(host, run):
    host.put("/sys/block/nvme0n1/queue/scheduler", "[mqfq] none")
    result = run("check", "nvme0n1", "nginx.service", "--json")
    assert result.json["cgroup"] == "system.slice/nginx.service"
    assert run("latency", DOCKER[:12], "--json").code == 0


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "syncthing.service",
            "'syncthing.service' is the name of 2 cgroups: use one of"
            " user.slice/syncthing.service, user.slice/user@1000.service/syncthing.service",
        ),
        ("ngnix.service", "no cgroup 'ngnix.service': did you mean system.slice/nginx.service?"),
        ("nginx", "did you mean system.slice/nginx.service?"),
        ("postgres", "did you mean system.slice/postgresql.service?"),
        ("db", "did you mean prod/db?"),
        ("pord/db", "did you mean prod/db?"),
        ("prod/nginx.service", "did you mean system.slice/nginx.service?"),
        ("new one", "does not exist: mkdir '/sys/fs/cgroup/new one'"),
        ("apache2.service", "makes it when the unit runs: systemctl start apache2.service"),
        ("deadbeefdeadbeef", "no running container has this id"),
        ("4f5e", "mkdir /sys/fs/cgroup/4f5e"),
    ],
)
def test_a_name_that_is_unknown_or_ambiguous(host, run, name, said):
    result = run("weight", name, "900")
    assert result.code == 2
    assert said in result.err
    assert result.err.count("\n") == 1
    assert host.stores == []


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("db1", r"machine.slice/machine-qemu\x2d3\x2ddb1.scope"),
        ("db-1", r"machine.slice/machine-qemu\x2d4\x2ddb\x2d1.scope"),
        ("web1", "lxc.payload.web1"),
        ("box", "machine.slice/systemd-nspawn@box.service"),
        ("vm7", "machine/qemu-7-vm7.libvirt-qemu"),
        ("guest", r"machine.slice/machine-lxc\x2d12\x2dguest.scope"),
    ],
)
def test_a_machine_is_proposed_by_the_name_that_its_manager_shows(host, run, name, path):
    host.cgroup("lxc.monitor.web1")
    host.cgroup("machine", subtree="io")
    for one in (path, r"machine.slice/machine-qemu\x2d5\x2ddb1\x2dold.scope", "lxc.payload.web10"):
        host.cgroup(one)
    said = run("weight", name, "900")
    assert said.code == 2
    assert f"no cgroup '{name}': did you mean " in said.err
    assert path in said.err
    assert "monitor" not in said.err
    assert "old" not in said.err and "web10" not in said.err


def test_the_start_of_two_ids_is_ambiguous(host, run):
    host.cgroup(f"system.slice/docker-4f5e00ff{'5' * 56}.scope")
    result = run("weight", "4f5e00", "900")
    assert result.code == 2
    assert "'4f5e00' is the name of 2 cgroups" in result.err

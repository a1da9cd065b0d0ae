# SPDX-License-Identifier: GPL-2.0
"""The mends for a missing io controller, by the owner of each level; threaded cgroups."""

import os

import pytest

from mqfair.machine.cgroup import root_cgroup
from mqfair.machine.controllers import domain_of, enabling_all
from mqfair.machine.fs import Fs
from mqfair.machine.group_name import find_cgroup

ROOT = "/sys/fs/cgroup/cgroup.subtree_control"


@pytest.fixture
def host(machine):
    machine.install_module()
    machine.disk(active="mqfq")
    return machine


def tree(host, path, without, controllers=""):
    """The cgroups down to @path; those of @without do not enable io for their children."""
    names = path.split("/")
    for end in range(1, len(names) + 1):
        own = "/".join(names[:end])
        above = "/".join(names[: end - 1])
        has = "memory" if above in without or controllers == "none" else "io memory"
        subtree = "memory" if own in without else "io memory"
        host.cgroup(own, controllers=has, subtree=subtree if end < len(names) else "", procs="")
    if "" in without:
        host.put(ROOT, "memory")


USER = "user.slice/user-1000.slice/user@1000.service"


@pytest.mark.parametrize(
    ("path", "without", "mend"),
    [
        ("prod/db", {"prod"}, "echo +io > /sys/fs/cgroup/prod/cgroup.subtree_control"),
        (
            "prod/db",
            {"", "prod"},
            f"echo +io > {ROOT} && echo +io > /sys/fs/cgroup/prod/cgroup.sub",
        ),
        ("system.slice/a.service", {"", "system.slice"}, "systemctl set-property a.service IOAcc"),
        ("a.slice/a-b.slice", {"a.slice"}, "systemctl set-property a-b.slice IOAccounting=yes"),
        ("machine.slice/x.scope", {"machine.slice"}, "systemctl set-property --runtime x.scope IO"),
        (
            "system.slice/a.service/worker",
            {"system.slice/a.service"},
            "systemctl edit a.service, with Delegate=yes, and restart it; then echo +io > ",
        ),
        (
            "system.slice/a.service/worker",
            {"system.slice"},
            "systemctl set-property a.service IOAccounting=yes",
        ),
        (
            f"{USER}/app.slice/x.service",
            {USER, f"{USER}/app.slice"},
            "systemctl edit user@.service, with the lines [Service] and Delegate=cpu cpuset io",
        ),
    ],
)
def test_the_mend_is_that_of_the_owner(host, run, path, without, mend):
    tree(host, path, without)
    host.host(f"/sys/fs/cgroup/{path}/io.mqfair.weight").unlink(missing_ok=True)
    said = run("weight", path, "500")
    assert said.code == 1
    assert f"the io controller is not enabled for {path}: {mend}" in said.err
    findings = run("check", "nvme0n1", path, "--json").json["findings"]
    mends = [one["mend"] for one in findings if one["topic"] == "io controller"]
    assert len(mends) == len(without)
    assert all(one in said.err for one in mends)
    assert host.stores == []


def test_systemd_owns_the_root_where_it_runs(host):
    tree(host, "prod", {""})
    group = find_cgroup(Fs(), "prod")
    assert enabling_all(group, "io") == f"echo +io > {ROOT}"
    host.put("/run/systemd/system/x", "")
    assert enabling_all(group, "io") == "systemctl set-property system.slice IOAccounting=yes"


def test_a_delegated_unit_enables_its_own_levels(host, monkeypatch):
    path = "system.slice/a.service"
    tree(host, f"{path}/worker", {path})
    host.put(f"/sys/fs/cgroup/{path}/cgroup.procs", "17")
    monkeypatch.setattr(os, "getxattr", lambda *_: b"1")
    assert enabling_all(find_cgroup(Fs(), f"{path}/worker"), "io") == (
        "move its processes into a child, then"
        f" echo +io > /sys/fs/cgroup/{path}/cgroup.subtree_control"
    )


@pytest.mark.parametrize("depth", [1, 2])
def test_a_threaded_cgroup_names_its_domain(host, run, depth):
    path = "prod/" + "/".join(f"t{number}" for number in range(depth))
    tree(host, path, {path.rpartition("/")[0]})
    for number in range(depth):
        own = "prod/" + "/".join(f"t{one}" for one in range(number + 1))
        host.put(f"/sys/fs/cgroup/{own}/cgroup.type", "threaded")
        host.host(f"/sys/fs/cgroup/{own}/io.mqfair.weight").unlink(missing_ok=True)
    assert domain_of(find_cgroup(Fs(), path)).path == "prod"
    said = run("weight", path, "500")
    assert said.code == 1
    assert f"{path} is threaded, and its I/O is charged to prod: name it: prod" in said.err
    assert "echo" not in said.err
    findings = run("check", "nvme0n1", path, "--json").json["findings"]
    (thread,) = [one for one in findings if one["topic"] == "threads"]
    assert thread["mend"] == "mqfair weight prod N"
    assert not [
        one for one in findings if one["topic"] == "io controller" and one["severity"] == "problem"
    ]
    # The command of the mend works.
    assert run("weight", "prod", "500").code == 0


def test_a_thread_of_the_root_has_no_weight_to_set(host, run):
    host.cgroup("t", controllers="memory", procs="17", cgroup_type="threaded")
    assert "charged to the root, which has no weight: use a" in run("weight", "t", "500").err
    assert domain_of(find_cgroup(Fs(), "t")).path == root_cgroup(Fs()).path

# SPDX-License-Identifier: GPL-2.0
"""/etc/mqfair.conf: its rules, its mistakes, and how follow keeps it in force."""

import errno
import fcntl
import re
import signal

import pytest
from conftest import ROOT
from test_follow import PATIENCE_S, becomes, following, weight

from mqfair.follow import config
from mqfair.follow.follow import Service
from mqfair.follow.rules_in_force import Keeper
from mqfair.machine.fs import Fs

CONF = "/etc/mqfair.conf"
SCHEDULER = "/sys/block/nvme0n1/queue/scheduler"
RULES = """\
# A comment
[[device]]
match = "nvme*n1"
scheduler = "ifq"
tunables = { depth = 64, cost = "iops" }
nr_requests = 512

[[weight]]
unit = "nginx.service"
weight = 700

[[weight]]
cgroup = "prod/*"
weight = 300
device = "/dev/disk/by-id/nvme-*"
"""


@pytest.fixture
def host(machine):
    machine.install_module()
    machine.host("/run").mkdir()
    machine.disk()
    machine.put("/sys/block/nvme0n1/diskseq", "7")
    machine.disk("sda", "8:0", queues=1)
    machine.link("/dev/disk/by-id/nvme-eui.1", "/dev/nvme0n1")
    machine.cgroup("system.slice", subtree="io")
    machine.cgroup("system.slice/nginx.service", io_weight="default 900")
    machine.cgroup("prod", subtree="io")
    machine.cgroup("prod/a", io_weight="default 50")
    machine.put(CONF, RULES)
    return machine


def active(host, path=SCHEDULER):
    return host.get(path).split("[")[1].split("]")[0]


def test_check_shows_the_rules(host, run):
    result = run("follow", "--check")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        f"{CONF}:2: ifq on nvme0n1",
        f"{CONF}:8: weight 700 for system.slice/nginx.service",
        f"{CONF}:12: weight 300 for prod/a, on nvme0n1",
        f"{CONF}: no mistake; rules for devices: 1, for weights: 2",
    ]
    found = run("follow", "--check", "--json").json
    assert found["weights"][0] == {
        "place": f"{CONF}:8",
        "weight": 700,
        "cgroups": ["system.slice/nginx.service"],
    }
    assert found["weights"][1] == {
        "place": f"{CONF}:12",
        "weight": 300,
        "cgroups": ["prod/a"],
        "disks": ["nvme0n1"],
    }
    assert host.stores == []


def test_once_brings_everything_to_the_rules(host, run):
    result = run("follow", "--once")
    assert (result.code, result.err) == (0, "")
    assert f"nvme0n1: ifq (was none), depth 64, cost iops ({CONF}:2)" in result.out
    assert active(host) == "ifq"
    assert host.get("/sys/block/nvme0n1/queue/iosched/depth") == "64"
    assert host.get("/sys/block/nvme0n1/queue/nr_requests") == "512"
    assert active(host, "/sys/block/sda/queue/scheduler") == "none"
    assert weight(host, "system.slice/nginx.service") == "default 700"
    assert weight(host, "prod/a") == "default 50\n259:0 300"
    host.stores.clear()
    assert run("follow", "--once").code == 0
    assert host.stores == []


def test_a_tunable_that_adapts_is_in_force(host, run):
    host.put(CONF, '[[device]]\nmatch = "nvme0n1"\ntunables = { depth = "32 auto" }')
    run("follow", "--once")
    host.put("/sys/block/nvme0n1/queue/iosched/depth", "77 auto")
    host.stores.clear()
    assert run("follow", "--once").code == 0
    assert host.stores == []


def test_the_file_of_the_package(host, run):
    """It has no rule, and its examples are correct if a user takes the # off all of them."""
    text = (ROOT / "mqfair/system/mqfair.conf").read_text()
    host.put(CONF, text)
    assert run("follow", "--check").code == 0
    rules = re.sub(r"^#(?=\S)", "", text, flags=re.M)
    assert rules.count("[[weight]]") == 2 and rules.count("[[device]]") == 1
    host.put(CONF, rules)
    done = run("follow", "--check")
    assert (done.code, done.err) == (0, "")


def test_the_first_rule_counts(host, run):
    host.put(
        CONF, '[[weight]]\ncgroup = "prod/a"\nweight = 5\n[[weight]]\ncgroup = "**"\nweight = 9'
    )
    run("follow", "--once")
    assert weight(host, "prod/a") == "default 5"
    assert weight(host, "prod") == "default 9"


def test_without_mirror_io_weight_is_not_read(host, run):
    host.put(CONF, 'mirror = false\n[[weight]]\ncgroup = "prod"\nweight = 9')
    run("follow", "--once")
    assert weight(host, "system.slice/nginx.service") == "default 100"
    assert weight(host, "prod") == "default 9"


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("prod", "prod", True),
        ("/sys/fs/cgroup/prod", "prod", True),
        ("prod", "prod/a", False),
        ("prod/*", "prod/a", True),
        ("prod/*", "prod/a/b", False),
        ("prod/**", "prod/a/b", True),
        ("prod/**", "prod", False),
        ("**/db", "db", True),
        ("**/db", "a/b/db", True),
        ("a?", "ab", True),
        ("a?", "a/", False),
        ("[ab]x", "bx", True),
        ("[!ab]x", "bx", False),
        ("a.b", "axb", False),
    ],
)
def test_patterns(pattern, path, matches):
    rules = config.parse(f'[[weight]]\ncgroup = "{pattern}"\nweight = 5').weights
    assert bool(rules[0].pattern.fullmatch(path)) == matches


DEVICE = '[[device]]\nmatch = "nvme*"\n'
WEIGHT = '\n\n[[weight]]\ncgroup = "prod"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[device]]\nmatch = nvme*n1", ":2: 'match = nvme*n1' is no TOML"),
        ("[[device]]\nmatch = nvme*n1", 'write match = "nvme*n1", in quotes'),
        ("[[device", ":1: '[[device' is no TOML"),
        ("[[devize]]", ":1: 'devize' is no key of the top of the file: did you mean device?"),
        ("a = 1\n", ":1: 'a' is no key of the top of the file: use mirror, device, weight"),
        ("\nmirror = 1", ":2: mirror = 1: use true or false"),
        ("[device]\nmatch = 'a'", ":1: 'device' has no list of tables: write [[device]]"),
        ("[[device]]\n", ":1: [[device]] has no match: add match = "),
        ("[[device]]\nmatch = 3", ":2: match = 3: use a text in quotes"),
        ("[[device]]\nmatch = 'by-id/x'", ':2: match = "by-id/x": use a kernel name such as'),
        (f"{DEVICE}scheduler = 'mqfqq'", ':3: scheduler = "mqfqq": did you mean mqfq?'),
        (f"{DEVICE}scheduler = 'none'", ':3: scheduler = "none": use one of mqfq, ifq'),
        (f"{DEVICE}sheduler = 'ifq'", ":3: 'sheduler' is no key of [[device]]: did you mean sched"),
        (f"{DEVICE}nr_requests = 1", ":3: nr_requests = 1: use a whole number in 4..2048"),
        (f"{DEVICE}nr_requests = true", ":3: nr_requests = true: use a whole number"),
        (f"{DEVICE}tunables = 5", ":3: tunables = 5: write tunables = {"),
        (f"{DEVICE}tunables = {{ depth = 0 }}", ":3: depth = 0: use a number in 1..65536"),
        (f"{DEVICE}tunables = {{ depth = 1.5 }}", ":3: depth = 1.5: use a number, or a text"),
        (f"{DEVICE}[device.tunables]\n\ndepth = 'max'", ':5: depth = "max": use a number in'),
        (f"{DEVICE}tunables.threshold_kb = '4 auto'", ':3: threshold_kb = "4 auto": use a number'),
        (f"{DEVICE}tunables = {{ 'Depth/../x' = 1 }}", "a tunable's name has letters and _"),
        (f"{DEVICE}{WEIGHT}", ":5: [[weight]] has no weight: add weight = 900"),
        (f"{DEVICE}{WEIGHT}weight = 0", ":7: weight = 0: use a whole number in 1..10000"),
        (f"{WEIGHT}weight = 7{WEIGHT}weight = '9'", ':9: weight = "9": use a whole number'),
        ("[[weight]]\nweight = 7", ":1: [[weight]] needs one of cgroup and unit: add"),
        (f"{WEIGHT}unit = 'a.service'\nweight = 7", ":3: [[weight]] needs one of cgroup and unit"),
        ("[[weight]]\nunit = 'nginx'\nweight = 7", ':2: unit = "nginx": use the name of a unit'),
        ("[[weight]]\ncgroup = '/'\nweight = 7", ':2: cgroup = "/": use a path below'),
        ("[[weight]]\ncgroup = '../a'\nweight = 7", ':2: cgroup = "../a": use a path below'),
        ("[[weight]]\ncgroup = 'a'\nwieght = 7", ":3: 'wieght' is no key of [[weight]]: did you"),
    ],
)
def test_mistakes(host, run, text, said):
    host.put(CONF, text)
    for argv in (["--check"], ["--once"], ["--device", "nvme0n1"]):
        result = run("follow", *argv)
        assert result.code == 2
        assert f"mqfair: {CONF}{said}" in result.err or said in result.err
        assert result.err.startswith(f"mqfair: {CONF}:")
        assert result.err.count("\n") == 1
    assert host.stores == []


def test_files_that_cannot_be_read(host, run):
    assert "--config /nosuch: no such file" in run("follow", "--once", "--config", "/nosuch").err
    host.host(CONF).unlink()
    assert f"{CONF} does not exist" in run("follow", "--check").err
    assert run("follow", "--once").code == 0


@pytest.mark.parametrize("words", [["--check"], ["--once"], ["--dry-run"], ["--device", "sda"]])
@pytest.mark.parametrize("name", ["own.conf", "etc/own.conf", "./own.conf"])
def test_a_relative_path_is_one_of_the_users_folder(host, run, words, name, monkeypatch):
    """The machine's own root has a file of that name, which is not meant."""
    folder = host.host("/home")
    (folder / "etc").mkdir(parents=True)
    monkeypatch.chdir(folder)
    host.put(f"/{name}", "no rule")
    said = run("follow", *words, "--config", name).err
    assert "no such file" in said or "does not exist" in said
    (folder / name).write_text(RULES)
    assert run("follow", *words, "--config", name).code == 0
    assert run("follow", *words, "--config", "").err.startswith("mqfair: --config '': name a file")


def test_one_device_for_udev(host, run):
    assert run("follow", "--device", "sda").out == ""
    assert run("follow", "--device", "/dev/nvme0n1").code == 0
    assert active(host) == "ifq"
    assert weight(host, "system.slice/nginx.service") == "default 100"


def test_the_users_choice_stays(host, run):
    """`disable` and `enable` of another scheduler win, until the rule's scheduler is chosen."""
    run("follow", "--once")
    for argv in (["disable", "nvme0n1"], ["enable", "nvme0n1", "--scheduler", "wdt"]):
        assert run(*argv).code == 0
        chosen = active(host)
        result = run("follow", "--once")
        assert f"note: nvme0n1: {chosen} was chosen by hand: `mqfair enable nvme0n1" in result.out
        assert active(host) == chosen
    assert run("enable", "nvme0n1", "--scheduler", "ifq").code == 0
    host.put(SCHEDULER, "[none] mqfq ifq")
    run("follow", "--once")
    assert active(host) == "ifq"


def test_a_choice_ends_with_its_disk(host, run):
    run("disable", "nvme0n1")
    host.put("/sys/block/nvme0n1/diskseq", "8")
    run("follow", "--once")
    assert active(host) == "ifq"


def test_a_disk_that_another_program_changes_is_left_for_later(host, run):
    folder = host.host("/run/mqfair")
    folder.mkdir()
    with (folder / "nvme0n1.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        result = run("follow", "--once")
    assert "is changing nvme0n1" in result.out
    assert active(host) == "none"


def test_a_tunable_that_the_scheduler_does_not_have(host, run):
    host.put(CONF, DEVICE + "tunables = { banana = 3 }")
    result = run("follow", "--once")
    assert result.code == 1
    assert f"error: {CONF}:1: mqfq has no tunable banana on nvme0n1: use cost" in result.out
    assert active(host) == "none"


def test_a_switch_by_another_program_in_between(host, run, monkeypatch):
    """The rival switches right after the first switch, before the tunables are written."""
    store, rivals = host.store, ["mq-deadline", "mqfq"]

    def with_a_rival(path, value):
        store(path, value)
        if path == SCHEDULER and value == "ifq" and rivals:
            store(path, rivals.pop())

    monkeypatch.setattr(host, "store", with_a_rival)
    result = run("follow", "--once")
    assert (result.code, active(host)) == (0, "ifq")
    assert host.get("/sys/block/nvme0n1/queue/iosched/depth") == "64"


def test_a_rival_that_does_not_give_up_wins(host, run, monkeypatch):
    store = host.store

    def with_a_rival(path, value):
        store(path, "none" if path == SCHEDULER else value)

    monkeypatch.setattr(host, "store", with_a_rival)
    result = run("follow", "--once")
    assert (result.code, active(host)) == (1, "none")
    assert len([line for line in host.stores if SCHEDULER in line]) <= 12
    assert "error: /etc/mqfair.conf:2: " in result.out


def test_a_lost_scheduler_is_a_warning(host):
    keeper = Keeper(Fs(), config.load(Fs(), CONF))
    keeper.keep()
    assert [word for word in keeper.words if "lost" in word] == []
    host.store(SCHEDULER, "none")
    keeper.keep()
    assert active(host) == "ifq"
    lost = "warning: nvme0n1 lost ifq to none: `mqfair check nvme0n1` names rivals"
    assert keeper.words[1:] == [lost, keeper.words[0]]


def test_another_rule_takes_no_scheduler_away(host):
    keeper = Keeper(Fs(), config.load(Fs(), CONF))
    keeper.keep()
    host.put(CONF, DEVICE)
    keeper.config = config.load(Fs(), CONF)
    keeper.words.clear()
    keeper.keep()
    assert active(host) == "mqfq"
    assert "lost" not in " ".join(keeper.words)


@pytest.mark.parametrize(
    ("journal", "said"), [("8:1234", "<4>warning: a\nb\n"), ("", "warning: a\nb\n")]
)
def test_the_journal_gets_priorities(host, monkeypatch, capsys, journal, said):
    monkeypatch.setenv("JOURNAL_STREAM", journal)
    service = Service(Fs())
    service._say("warning: a")
    service._say("b")
    assert capsys.readouterr().out == said


def test_a_kernel_that_refuses(host, run):
    host.refuse["/sys/block/nvme0n1/queue/scheduler"] = [errno.EINVAL] * 2
    result = run("follow", "--device", "nvme0n1")
    assert result.code == 1
    assert f"{CONF}:2: cannot write 'ifq' to {SCHEDULER}" in result.err


# -- the program


@pytest.fixture
def service(host):
    """The service on a tree of plain files: the kernel sets no scheduler back."""
    host.put(CONF, '[[weight]]\nunit = "nginx.service"\nweight = 700')
    with following(host.root) as program:
        yield program


def reload_until(service, condition):
    service.send_signal(signal.SIGHUP)
    becomes(condition)


def test_a_configuration_is_read_again(host, service):
    path = "system.slice/nginx.service"
    assert weight(host, path).startswith("default 700")
    host.put(CONF, "mirror = banana")
    service.send_signal(signal.SIGHUP)
    for line in service.stdout:
        if line.startswith("error: "):
            assert line.startswith(f"error: {CONF}:1: 'mirror = banana' is no TOML")
            assert line.endswith("; the old configuration stays\n")
            break
    host.put(CONF, '[[weight]]\nunit = "nginx.service"\nweight = 800')
    reload_until(service, lambda: weight(host, path).startswith("default 800"))
    host.host(CONF).unlink()
    reload_until(service, lambda: weight(host, path).startswith("default 900"))
    service.terminate()
    assert service.wait(PATIENCE_S) == 0


# -- names that no disk and no unit can have


def rule(section, line):
    return f"[[{section}]]\n{line}\n" + (
        "unit = 'a.service'\nweight = 5\n" if section == "weight" else ""
    )


@pytest.mark.parametrize("place", [("device", "match"), ("weight", "device")])
@pytest.mark.parametrize(
    ("name", "mend"),
    [
        ("259:0", "numbers change at a restart: use the kernel's name of the disk, see readlink"),
        ("nvme0n1|nvme1n1", "write a [[{}]] for each of nvme0n1, nvme1n1"),
        ("sda, sdb", "write a [[{}]] for each of sda, sdb"),
        ("UUID=2f9e-11", "write {1} = '/dev/disk/by-uuid/2f9e-11'"),
        ("LABEL=my disk", r"write {1} = '/dev/disk/by-label/my\\x20disk'"),
        ("nvme0n1p2", 'a partition has no scheduler: use "nvme0n1"'),
        ("nvme*n*p*", 'a partition has no scheduler: use "nvme*n*"'),
        ("sda1", 'a partition has no scheduler: use "sda"'),
        ("sd*1", 'a partition has no scheduler: use "sd*"'),
        ("loop0p1", 'a partition has no scheduler: use "loop0"'),
        ("/dev/disk/by-id/nvme-S_1-part1", 'use "/dev/disk/by-id/nvme-S_1"'),
        ("nvme0", 'this is a controller: use "nvme0n*" for its disks'),
        ("/sys/block/nvme0n1", "use a kernel name such as nvme*n1"),
        ("by-id/x", "use a kernel name such as nvme*n1"),
        ("/var/lib/*", "use the path of one file system, without * and ?"),
        ("disk #1", "write a [[{}]] for each of disk, #1"),
        ("nvme0n1;", "no disk has such a name: use one of /sys/block"),
    ],
)  # fmt: skip
def test_a_name_that_no_disk_can_have_is_refused(host, run, place, name, mend):
    section, key = place
    host.put(CONF, rule(section, f"{key} = '{name}'"))
    for argv in (["--check"], ["--once"]):
        result = run("follow", *argv)
        assert result.code == 2
        assert result.err.startswith(f'mqfair: {CONF}:2: {key} = "{name}": ')
        assert mend.format(section, key).replace("\\\\", "\\") in result.err
    assert host.stores == []


@pytest.mark.parametrize(
    "name",
    [
        "nvme*n1",
        "nvme0c0n1",
        "sd[a-z]",
        "cciss!c0d0",
        "dm-0",
        "md*",
        "loop*",
        "vd?",
        "zd0",
        "sd[!0-9]",
        "xvda1",
    ],
)
def test_names_that_disks_have_are_taken(host, run, name):
    host.put(CONF, rule("device", f"match = '{name}'"))
    assert run("follow", "--check").code == 0


@pytest.mark.parametrize(
    ("unit", "mend"),
    [
        ("getty@.service", 'a template has no cgroup: use "getty@*.service" for its instances'),
        ("my app.service", "systemd writes such a name in another way: see systemd-escape"),
        ("café.service", "systemd writes such a name in another way: see systemd-escape"),
    ],
)
def test_a_name_that_no_unit_can_have_is_refused(host, run, unit, mend):
    host.put(CONF, f"[[weight]]\nunit = '{unit}'\nweight = 5")
    result = run("follow", "--check")
    assert result.code == 2
    assert mend in result.err


ESCAPED = r"""[[weight]]
unit = "system-serial\x2dgetty.slice"
weight = 300"""


def test_the_advised_line_for_a_backslash_is_taken(host, run):
    host.cgroup(r"system.slice/system-serial\x2dgetty.slice")
    host.put(CONF, ESCAPED)
    said = run("follow", "--check").err
    advised = re.search(r"write (unit = '.*'), in single quotes", said)[1]
    host.put(CONF, ESCAPED.replace(ESCAPED.splitlines()[1], advised))
    assert run("follow", "--once").code == 0
    assert weight(host, r"system.slice/system-serial\x2dgetty.slice") == "default 300"


def test_the_path_of_a_file_system_means_the_disk_below(host, run):
    host.put("/proc/self/mountinfo", "28 1 8:0 / /var/lib/mysql rw - xfs /dev/sda rw")
    host.host("/var/lib/mysql").mkdir(parents=True)
    host.put(CONF, rule("weight", "device = '/var/lib/mysql'").replace("a.serv", "nginx.serv"))
    result = run("follow", "--check")
    assert f"{CONF}:1: weight 5 for system.slice/nginx.service, on sda\n" in result.out
    assert run("follow", "--once").code == 0
    assert weight(host, "system.slice/nginx.service") == "default 900\n8:0 5"
    host.put(CONF, rule("device", "match = '/var/lib/mysql'"))
    assert f"{CONF}:1: mqfq on sda\n" in run("follow", "--check").out
    host.put(CONF, rule("device", "match = '/srv'"))
    assert f"{CONF}:1: mqfq on no disk that is here now\n" in run("follow", "--check").out


@pytest.mark.parametrize("link", ["uuid/2f9e", r"label/my\x20disk", "partuuid/11"])
def test_a_link_to_a_content_means_the_disk_below(host, run, link):
    host.partition("nvme0n1", "nvme0n1p2", "259:2")
    host.link(f"/dev/disk/by-{link}", "/dev/nvme0n1p2")
    host.put(CONF, rule("device", f"match = '/dev/disk/by-{link}'"))
    assert f"{CONF}:1: mqfq on nvme0n1\n" in run("follow", "--check").out


# -- classes of Kubernetes

PODS = """\
[kubernetes]
guaranteed = 900
burstable = 300
besteffort = 20
"""
POD = "pod0a1b2c3d_4e5f"


@pytest.mark.parametrize("top", ["kubepods.slice", "a.slice/kubelet.slice/kubelet-kubepods.slice"])
def test_classes_of_pods_get_weights_by_systemds_names(host, run, top):
    name = top.rpartition("/")[2].removesuffix(".slice")
    paths = {
        f"{top}/{name}-burstable.slice": 300,
        f"{top}/{name}-besteffort.slice": 20,
        f"{top}/{name}-{POD}.slice": 900,
        f"{top}/{name}-burstable.slice/{name}-burstable-{POD}.slice": 100,
    }
    check_pods(host, run, paths)


def test_classes_of_pods_get_weights_by_the_names_of_cgroupfs(host, run):
    paths = {
        "kubepods/burstable": 300,
        "kubepods/besteffort": 20,
        f"kubepods/{POD}": 900,
        f"kubepods/burstable/{POD}": 100,
    }
    check_pods(host, run, paths)


def check_pods(host, run, paths):
    for path in paths:
        host.cgroup(path, io_weight="default 100")
    host.put(CONF, PODS)
    assert run("follow", "--check").code == 0
    assert run("follow", "--once").code == 0
    for path, expected in paths.items():
        assert weight(host, path) == f"default {expected}", path


def test_an_annotation_and_a_rule_come_before_the_class(host, run):
    """An annotation is a weight in io.weight."""
    host.cgroup("kubepods.slice/kubepods-podA.slice", io_weight="default 500")
    host.cgroup("kubepods.slice/kubepods-podB.slice", io_weight="default 100")
    host.cgroup("kubepods.slice/kubepods-podC.slice")
    host.put(CONF, f"[[weight]]\ncgroup = '**/kubepods-podB.slice'\nweight = 7\n{PODS}")
    assert run("follow", "--once").code == 0
    for pod, expected in (("A", 500), ("B", 7), ("C", 900)):
        assert weight(host, f"kubepods.slice/kubepods-pod{pod}.slice") == f"default {expected}"
    out = run("follow", "--check").out
    assert "weight 7 for kubepods.slice/kubepods-podB.slice" in out
    host.put(CONF, "")
    assert run("follow", "--once").code == 0
    assert weight(host, "kubepods.slice/kubepods-podC.slice") == "default 100"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[kubernetes]\nburst = 5", ":2: 'burst' is no key of [kubernetes]: did you mean burst"),
        ("[kubernetes]\nburstable = 0", ":2: burstable = 0: use a whole number in 1..10000"),
        ("[[kubernetes]]\nburstable = 5", ":1: 'kubernetes' is no table: write [kubernetes], once"),
    ],
)  # fmt: skip
def test_mistakes_in_the_table_of_classes(host, run, text, said):
    host.put(CONF, text)
    result = run("follow", "--check")
    assert result.code == 2
    assert f"{CONF}{said}" in result.err

# SPDX-License-Identifier: GPL-2.0
"""mqfair bench: its command line, its devices, and its writes to the kernel."""

import argparse
import dataclasses
import io
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from rich.console import Console
from test_main import CHECKOUT

from mqfair.bench import cgroups, command, device, iocost, iomax, session, variant
from mqfair.bench import options as bench
from mqfair.bench.device import parse_device
from mqfair.bench.kernel_log import splat
from mqfair.bench.plan import Case, PlannedGroup, PlannedJob
from mqfair.bench.result import CaseResult, RunResult
from mqfair.machine.cgroup import Cgroup
from mqfair.machine.fs import Fs
from mqfair.text.errors import Failure, UsageError

JOB = "[a]\ncgroup=a\nrw=randread\n[b]\ncgroup=b\nrw=randread\ncgroup_weight=300\n"


@pytest.fixture
def job(tmp_path):
    path = tmp_path / "j.fio"
    path.write_text(JOB)
    return str(path)


def request(job, *words):
    parser = argparse.ArgumentParser()
    bench.set_argparser(parser)
    (one,) = command.requests(parser.parse_args([job, "--schedulers", "none,bfq", *words]))
    return one


def refused(job, *words):
    with pytest.raises(UsageError) as caught:
        session.check(request(job, *words))
    return str(caught.value)


def test_defaults(job):
    asked = request(job)
    assert asked.on == "vm"
    assert asked.device == parse_device(device.DEFAULT_DEVICE)
    assert (asked.repeat, asked.cpus, asked.solo) == (1, 2, False)


def test_counted_time_has_one_cpu_and_a_drive_with_one_queue(job):
    asked = request(job, "--icount")
    assert asked.cpus == 1
    assert asked.device.parameters["submit_queues"] == 1


def test_a_drive_of_this_host_implies_on_host(job):
    assert request(job, "--device", "/dev/nvme0n1").on == "host"


def test_several_drives_are_named_as_in_enable(job, machine, run, monkeypatch):
    """Each drive once, and a pattern stands for those of this host."""
    for number in range(3):
        machine.disk(f"nvme{number}n1", f"259:{number}")
    parser = argparse.ArgumentParser()
    bench.set_argparser(parser)

    def drives(*words):
        asked = command.requests(parser.parse_args([job, "--schedulers", "none", *words]))
        return [(one.on, one.device.text) for one in asked]

    every = [("host", f"/dev/nvme{number}n1") for number in range(3)]
    assert drives("--device", "nvme*n1") == every
    assert drives("--device", "/dev/nvme[01]n1", "--device", "nvme*n1") == every
    assert drives("--device", "null:gb=1", "--device", "null:gb=2") == [
        ("vm", "null:gb=1"),
        ("vm", "null:gb=2"),
    ]
    said = run("bench", job, "--device", "sd*")
    assert said.code == 2
    known = "nvme0n1 nvme1n1 nvme2n1"
    assert said.err == f"mqfair: no device matches 'sd*': disks here: {known}\n"


def test_a_mistake_about_the_last_drive_is_found_before_the_first_runs(job, run, monkeypatch):
    monkeypatch.setattr(session, "_run_in_guest", lambda *_: pytest.fail("the bench has begun"))
    words = ["--schedulers", "none", "--icount", "--device", "null:gb=1"]
    said = run("bench", job, *words, "--device", "/dev/sda", "--on", "vm")
    assert said.code == 2
    assert "/dev/sda is a drive of this host" in said.err


def test_fast_is_a_first_look(job):
    parser = argparse.ArgumentParser()
    bench.set_argparser(parser)
    (asked,) = command.requests(parser.parse_args([job, "--fast"]))
    assert asked.schedulers == ("none", "mqfq")
    assert asked.jobs[0].window_s == command.FAST_S
    assert request(job, "--fast").schedulers == ("none", "bfq")
    with pytest.raises(UsageError, match="--fast and --runtime exclude each other: leave out one"):
        request(job, "--fast", "--runtime", "5")


def test_the_least_time_is_told_before_the_runs(job, capsys):
    """Two schedulers, three repeats, with each of two cgroups alone as well."""
    asked = request(job, "--runtime", "10", "--repeat", "3", "--solo")
    each = asked.jobs[0].ramp_s + asked.jobs[0].window_s
    with command.show_progress([asked]):
        pass
    minutes = round(18 * each / 60)
    assert f"18 runs: at least {minutes} min, and the starts" in capsys.readouterr().err
    assert "2 runs: at least" in command._estimate([request(job, "--runtime", "10")])


@pytest.mark.parametrize(("on", "shown"), [("vm", True), ("sim", False)])
def test_a_terminal_shows_the_progress_inside_a_run(job, monkeypatch, on, shown):
    """A run of a simulator has no length of its own."""
    words = ["--runtime", "10", "--schedulers", "none", "--on", on]
    out = io.StringIO()
    terminal = Console(file=out, force_terminal=True, width=120)
    monkeypatch.setattr(command.report, "console_for", lambda stderr=False: terminal)
    with command.show_progress([request(job, *words)]) as progress:
        progress({"event": "boot"})
        progress(
            {"event": "run", "number": 0, "runs": 1, "case": "j", "scheduler": "none", "repeat": 0,
             "only": None}
        )  # fmt: skip
    assert "run 1 of 1: j" in out.getvalue()
    assert (" of 11 s" in out.getvalue()) == shown


@pytest.mark.parametrize(
    ("now", "shown"), [(100, "0 of 6 s"), (104, "4 of 6 s"), (190, "6 of 6 s")]
)
def test_the_progress_inside_a_run_ends_with_its_length(now, shown):
    task = argparse.Namespace(fields={"began": 100.0, "seconds": 6.0}, get_time=lambda: now)
    assert command.InsideRun().render(task).plain == shown


def test_runtime_and_tunables(job):
    asked = request(job, "--runtime", "1.5", "--tunable", "bfq.slice_idle=0")
    assert asked.jobs[0].longest_s == 1.5
    assert asked.tunables == {"bfq": {"slice_idle": "0"}}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--schedulers", "none,noop"], "unknown scheduler 'noop': use none"),
        (["--schedulers", "noop"], "in the simulator also flashfq"),
        (["--schedulers", "none,mqfq-serial"], "mqfq-serial sends requests in the order of mqfq"),
        (["--schedulers", "none,none"], "none is given twice"),
        (["--schedulers", ""], "unknown scheduler ''"),
        (["--schedulers", "none,wdt:"], "wdt:: '' is not TUNABLE=VALUE"),
        (["--schedulers", "none,wdt:single_lock"], "'single_lock' is not TUNABLE=VALUE"),
        (["--schedulers", "none,wdt:single_lock="], "'single_lock=' is not TUNABLE=VALUE"),
        (["--schedulers", "none,wdt:../x=1"], "'../x=1' is not TUNABLE=VALUE"),
        (["--schedulers", "none,wdt:caps=1:caps=2"], "caps is given twice"),
        (["--schedulers", "wdt:caps=1,wdt:caps=1"], "wdt:caps=1 is given twice"),
        (["--schedulers", "none:depth=1"], "none has no tunables: write none"),
        (["--schedulers", "iocost:min=1"], "iocost has no tunables"),
        (["--calibrate"], "--calibrate measures for mqfq: add mqfq to --schedulers"),
        (["--calibrate-time", "30"], "--calibrate-time needs --calibrate"),
        (["--calibrate", "--calibrate-time", "1"], "--calibrate-time 1: use a number in 10.."),
        (["--repeat", "0"], "--repeat 0"),
        (["--repeat", "x"], "--repeat x"),
        (["--cpus", "9"], "--cpus 9: use a number in 1..8"),
        (["--runtime", "-1"], "--runtime -1"),
        (["--runtime", "nan"], "--runtime nan"),
        (["--runtime", "inf"], "--runtime inf"),
        (["--runtime", "1e9"], "--runtime 1e9: use a number of seconds greater than 0, at most"),
        (["--on", "host"], "--on host needs a drive of this host: add --device /dev/NAME"),
        (["--nr-requests", "2"], "--nr-requests 2: use a number in 4.."),
        (["--tunable", "depth=1"], "write SCHEDULER.NAME=VALUE"),
        (["--tunable", "mqfq.depth=1"], "'mqfq' is not a scheduler with tunables in"),
        (["--tunable", "none.depth=1"], "'none' is not a scheduler with tunables in"),
        (["--tunable", "bfq.../x=1"], "write SCHEDULER.NAME=VALUE"),
        (["--device", "disk"], "not a device"),
        (["--device", "null:speed=1"], "unknown parameter 'speed'"),
        (["--device", "null:gb=x"], "gb=x: use a number in"),
        (["--device", "null:gb"], "gb=: use a number in"),
        (["--device", "null:gb=0"], "gb=0: use a number in 1.."),
        (["--device", "null:gb=1,gb=2"], "gb is given twice"),
        (["--device", "null:no_sched=1"], "unknown parameter 'no_sched'"),
        (["--device", "null:queue_mode=0"], "queue_mode=0: use a number in 2..2"),
        (["--device", "nvme:size=many"], "size"),
        (["--device", "nvme:speed=1"], "speed"),
        (["--device", "null:gb=1", "--on", "host"], "exists only in a guest"),
        (["--on", "uml", "--kernel", "7.2"], "names another guest's kernel"),
        (["--on", "uml", "--device", "nvme:size=1G"], "user-mode Linux has no such drive"),
        (["--on", "uml", "--icount"], "--icount counts emulated instructions"),
        (["--device", "/dev/sda", "--kernel", "7.2"], "names a guest's kernel"),
        (["--device", "/dev/sda", "--on", "vm"], "a drive of this host"),
        (["--icount", "--cpus", "2"], "one CPU: add --cpus 1"),
        (["--schedulers", "mqfq", "--module", "/nowhere/mqfair.ko"], "no such file: run `make"),
    ],
)
def test_refusals(job, words, says):
    assert says in refused(job, *words)


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("rw = bogus", ":3: fio does not accept 'rw=bogus': use read, write, trim, randread"),
        ("rw=read\nnosuch=3", ":4: fio does not accept 'nosuch=3': see `fio --cmdhelp=all`"),
        ("rw=read\nbs=x  # big", ":4: fio does not accept 'bs=x': see"),
    ],
)
def test_options_that_fio_refuses_are_found_before_the_guest_boots(tmp_path, option, says):
    if session.shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    path = tmp_path / "j.fio"
    path.write_text(f"[a]\ncgroup=a\n{option}\n")
    assert refused(str(path)).startswith(f"{path}{says}")


def test_the_examples_are_accepted():
    """A fio that reads an example waits most of its time."""
    paths = sorted((session.ROOT / "examples").glob("*.fio"))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda path: session.check(request(str(path))), paths))


@pytest.fixture
def checkout(monkeypatch, tmp_path):
    """An empty checkout, and a function that makes a module in it with the given schedulers."""
    monkeypatch.setattr(session, "ROOT", tmp_path)
    monkeypatch.setattr(
        session.kernel, "ensure", lambda _name=None: argparse.Namespace(release="6.1.0")
    )

    def built(*names):
        module = tmp_path / "build/module/6.1.0/mqfair.ko"
        module.parent.mkdir(parents=True, exist_ok=True)
        module.write_bytes(
            b"\x7fELF"
            + b"depth\0caps\0"
            + b"".join(b"alias=%b-iosched\0" % n.encode() for n in names)
        )
        return module

    return built


def test_our_schedulers_without_a_module_are_refused_at_once(job, checkout):
    asked = session.with_built_module(request(job, "--schedulers", "none,mqfq"))
    with pytest.raises(UsageError, match="scheduler mqfq: no module: run `make module`"):
        session.check(asked)
    module = checkout("mqfq", "ifq")
    asked = session.with_built_module(request(job, "--schedulers", "none,mqfq:depth=8"))
    assert asked.module == module
    session.check(asked)
    asked = session.with_built_module(request(job, "--schedulers", "none,wdt:caps=1"))
    with pytest.raises(UsageError, match=r"has no scheduler wdt: use mqfq, ifq"):
        session.check(asked)


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ([], "make module"),
        (["--kernel", "6.12"], "make module KERNEL=6.12"),
        (["--on", "uml"], "make uml"),
    ],
)
def test_the_message_names_the_command_that_builds_the_missing_module(job, words, command):
    asked = request(job, "--schedulers", "mqfq", *words)
    with pytest.raises(UsageError, match=f"no module: run `{command}`"):
        session.check(asked)


def test_a_host_without_a_module_is_told_how_to_install_one(job, machine):
    """The verb qualify, too, asks for such a request, and has no --module."""
    asked = request(job, "--schedulers", "mqfq", "--device", "/dev/nvme0n1")
    with pytest.raises(UsageError, match="scheduler mqfq: module mqfair is neither loaded") as said:
        session._check_module(asked)
    assert "--module" not in str(said.value) and "make module" not in str(said.value)
    machine.install_module(loaded=False)
    session._check_module(asked)


def test_a_tunable_that_the_module_lacks_is_found_before_the_guest_boots(job, checkout):
    module = checkout("mqfq", "wdt")
    module.write_bytes(module.read_bytes() + b"\0caps_mbps\0")
    for words in (["--schedulers", "mqfq:depht=4"], ["--schedulers", "mqfq", "--tunable"]):
        more = ["mqfq.depht=4"] if "--tunable" in words else []
        asked = session.with_built_module(request(job, *words, *more))
        with pytest.raises(UsageError, match=r"mqfair\.ko has no tunable depht: use one of"):
            session.check(asked)
    words = ["--schedulers", "none,mqfq:depth=4,bfq:low_latency=0,wdt:caps_mbps=1"]
    session.check(session.with_built_module(request(job, *words)))


def test_the_default_is_all_schedulers_of_the_module(job, checkout):
    asked = session.with_built_module(dataclasses.replace(request(job), schedulers=()))
    with pytest.raises(UsageError, match="no module"):
        session.check(asked)
    checkout("kyber-fair", "mqfq")
    asked = session.with_built_module(dataclasses.replace(request(job), schedulers=()))
    assert asked.schedulers == (
        "none", "kyber", "bfq", "mq-deadline", "iocost", "mqfq", "kyber-fair",
    )  # fmt: skip


def test_an_example_runs_only_if_it_is_named(job, checkout):
    checkout("mqfq", "drr")
    asked = session.with_built_module(request(job, "--schedulers", "none,drr"))
    session.check(asked)
    assert asked.ours == ("drr",)
    asked = session.with_built_module(dataclasses.replace(request(job), schedulers=()))
    assert "drr" not in asked.schedulers and "mqfq" in asked.schedulers


def test_a_scheduler_can_be_in_a_table_several_times(job):
    words = ["--schedulers", "none,wdt, wdt:caps=5:period_ms=20", "--tunable", "wdt.caps=9"]
    asked = request(job, *words)
    assert asked.schedulers == ("none", "wdt", "wdt:caps=5:period_ms=20")
    assert asked.names == ("none", "wdt")
    assert [variant.merged_tunables(label, asked.tunables) for label in asked.schedulers] == [
        {}, {"caps": "9"}, {"caps": "5", "period_ms": "20"},
    ]  # fmt: skip


def test_devices():
    null = parse_device("null:irqmode=2,completion_nsec=4000000")
    assert (null.kind, dict(null.parameters)) == (
        "null",
        {"irqmode": 2, "completion_nsec": 4_000_000},
    )
    nvme = parse_device("nvme:size=2G,queues=4")
    assert (nvme.drive.size, nvme.drive.queues) == (2 << 30, 4)


@pytest.mark.parametrize(
    ("text", "iops"),
    [
        ("null:irqmode=2,completion_nsec=8000000,submit_queues=2,hw_queue_depth=16", 4000),
        ("null:irqmode=2,completion_nsec=1000000", 64000),
        ("null:irqmode=0,completion_nsec=1000000", None),
        ("nvme:size=1G", None),
    ],
)
def test_capacity_of_a_null_blk_drive(text, iops):
    assert device.null_capacity_iops(parse_device(text)) == iops


@pytest.mark.parametrize(
    ("reached", "threads", "notes"), [(3900, 4, 0), (2000, 4, 1), (2000, 3, 0)]
)
def test_a_drive_that_was_not_the_bottleneck_is_reported(reached, threads, notes):
    drive = parse_device("null:irqmode=2,completion_nsec=8000000,submit_queues=2,hw_queue_depth=16")
    runs = (
        RunResult("none", 0, reached, 0.0, 1.0, ()),
        RunResult("bfq", 0, 100, 0.0, 1.0, ()),
    )
    options = ("rw=read", "iodepth=8", f"numjobs={threads}", "norandommap")
    groups = (PlannedGroup("a", (PlannedJob("a", options, 4.0),)),)
    case = Case("j", groups, {}, 1.0, 2.0)
    found = list(session._processor_bound(drive, [CaseResult(case, runs, (), {})]))
    assert len(found) == notes
    assert all("reached 2,000 of the drive's 4,000 requests" in note for note in found)


@pytest.mark.parametrize(
    ("depth", "tags", "advised"),
    [(64, 128, 256), (64, 256, None), (4000, 128, 2048), ("2*k", 1, None)],
)
def test_bfq_with_fewer_tags_than_requests_is_reported(tmp_path, depth, tags, advised):
    options = ("rw=read", f"iodepth={depth}", "numjobs=4")
    groups = (PlannedGroup("a", (PlannedJob("a", options, 4.0),)),)
    cases = [Case(name, groups, {}, 1.0, 2.0) for name in ("j", "other")]
    for number, scheduler in enumerate(("none", "bfq", "mqfq")):
        record = {"case": "j", "scheduler": scheduler, "repeat": 1, "only": None, "groups": ["a"]}
        record |= {"started_ms": 0}
        record |= {"sched_tags": tags} if scheduler == "bfq" else {}
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "run.json").write_text(json.dumps(record))
    found = list(session._short_of_tags(tmp_path, [CaseResult(c, (), (), {}) for c in cases]))
    assert len(found) == (advised is not None)
    assert all(f"j: bfq had {tags} scheduler tags for" in note for note in found)
    assert all(f"--nr-requests {advised} gives it more" in note for note in found)


def test_a_split_io_counts_as_several_requests():
    drive = parse_device("null:irqmode=2,gb=4")
    assert device.null_requests(drive, 444, 444 * 2**20) == 444 * 9
    assert device.null_requests(drive, 0, 0) == 0
    assert device.null_requests(drive, 4000, 4000 * 4096) == 4000
    whole = parse_device("null:irqmode=2,max_sectors=2048")
    assert device.null_requests(whole, 444, 444 * 2**20) == 444


def test_a_drive_that_does_not_exist(job):
    if session.os.geteuid() != 0:
        pytest.skip("only root is asked for the drive")
    assert "unknown device '/dev/nowhere'" in refused(job, "--device", "/dev/nowhere")


def fake_lsblk(monkeypatch, *, mountpoints=(), children=(), signatures=""):
    tree = {
        "blockdevices": [
            {
                "name": "/dev/x",
                "mountpoints": [None, *mountpoints],
                "children": [{"name": name, "mountpoints": [None]} for name in children],
            }
        ]
    }
    answers = {"lsblk": json.dumps(tree), "wipefs": signatures}
    monkeypatch.setattr(device, "_output", lambda *argv: answers[argv[0]])
    monkeypatch.setattr(device, "_open_exclusively", lambda path: None)


class FakeDisk:
    partition = None
    name = "x"

    def require_selector(self):
        return None


@pytest.mark.parametrize("destroy", [False, True])
def test_a_mounted_drive_is_always_refused(monkeypatch, destroy):
    fake_lsblk(monkeypatch, mountpoints=["/srv"])
    monkeypatch.setattr(device, "find_disk", lambda fs, path: FakeDisk())
    with pytest.raises(UsageError, match="in use at /srv: unmount it"):
        device.check_drive("/dev/x", destroy_data=destroy)


@pytest.mark.parametrize(
    "contents",
    [{"signatures": "ext4\n"}, {"children": ["/dev/x1"]}],
    ids=["signature", "partition"],
)
def test_a_drive_with_contents_needs_destroy_data(monkeypatch, contents):
    fake_lsblk(monkeypatch, **contents)
    monkeypatch.setattr(device, "find_disk", lambda fs, path: FakeDisk())
    with pytest.raises(UsageError, match="is not empty"):
        device.check_drive("/dev/x", destroy_data=False)
    device.check_drive("/dev/x", destroy_data=True)


def test_an_empty_drive_is_accepted(monkeypatch):
    fake_lsblk(monkeypatch)
    monkeypatch.setattr(device, "find_disk", lambda fs, path: FakeDisk())
    device.check_drive("/dev/x", destroy_data=False)


def test_bfq_weights_are_scaled_only_if_one_is_too_great():
    fits = {"a": 1, "b": 1000}
    assert cgroups.scheduler_weights("bfq", fits) == fits
    assert cgroups.scheduler_weights("bfq", {"a": 1, "b": 2500, "c": 10000}) == {
        "a": 1,
        "b": 250,
        "c": 1000,
    }
    assert cgroups.scheduler_weights("mqfq", {"a": 10000}) == {"a": 10000}


@pytest.mark.parametrize(
    ("scheduler", "file"),
    [
        ("mqfq", "io.mqfair.weight"),
        ("wdt", "io.mqfair.weight"),
        ("iocost", "io.weight"),
        ("bfq", "io.bfq.weight"),
    ],
)
def test_each_scheduler_has_its_weight_file(scheduler, file):
    fs = Fs("/", dry_run=True)
    cgroups.set_weight(Cgroup(fs, "/cg", "mqfair-bench/a"), scheduler, 250)
    assert [str(write) for write in fs.writes] == [f"write '250' to '/cg/mqfair-bench/a/{file}'"]


@pytest.mark.parametrize("scheduler", ["none", "kyber", "mq-deadline"])
def test_a_scheduler_without_weights_gets_none(scheduler):
    fs = Fs("/", dry_run=True)
    cgroups.set_weight(Cgroup(fs, "/cg", "a"), scheduler, 250)
    assert fs.writes == []


def test_throttle_limits_a_cgroup_by_its_weight(tmp_path):
    file = tmp_path / "cg/mqfair-bench/a/io.max"
    file.parent.mkdir(parents=True)
    group = Cgroup(Fs(str(tmp_path)), "/cg", "mqfair-bench/a")
    with pytest.raises(Failure, match=r"no io\.max: leave throttle out"):
        iomax.limit(group, "8:0", 250, {})
    for tunables, rate in (({}, 256_000_000), ({"kib_per_weight": "8"}, 2_048_000)):
        file.write_text("")
        iomax.limit(group, "8:0", 250, tunables)
        assert file.read_text() == f"8:0 rbps={rate} wbps={rate}"


@pytest.mark.parametrize(
    ("tunables", "message"),
    [
        ({"rate": "1"}, "no tunable 'rate': use kib_per_weight"),
        ({"kib_per_weight": "0"}, "kib_per_weight '0': use a number from 1 to 10000000"),
        ({"kib_per_weight": "8k"}, "kib_per_weight '8k': use a number"),
    ],
)
def test_wrong_rate_of_throttle(tunables, message):
    with pytest.raises(Failure, match=message):
        iomax.kib_per_weight(tunables)


def test_rate_of_throttle_is_that_of_the_simulator():
    text = (CHECKOUT / "sim" / "throttle.c").read_text()
    numbers = f"1, {iomax.MOST}, 1, {iomax.DEFAULT})"
    assert f'"{iomax.TUNABLE}"' in text
    assert numbers in " ".join(text.split())


def fio_result(**rates):
    jobs = []
    for probe in iocost.PROBES:
        idle = {"bw_bytes": 0, "iops": 0.0}
        busy = {**idle, probe.figure: rates.get(probe.coefficient, 1000.4)}
        other = "write" if probe.direction == "read" else "read"
        jobs.append({"jobname": probe.coefficient, probe.direction: busy, other: idle})
    return {"jobs": jobs}


def test_iocost_model_has_the_figures_of_fio():
    found = iocost.coefficients(fio_result(rbps=5e9, wrandiops=700))
    assert list(found) == ["rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops"]
    assert (found["rbps"], found["wrandiops"], found["rseqiops"]) == (5_000_000_000, 700, 1000)


def test_iocost_refuses_a_drive_that_cannot_be_measured():
    with pytest.raises(Failure, match="did no I/O for wbps"):
        iocost.coefficients(fio_result(wbps=0))


def test_iocost_is_enabled_with_its_model_and_disabled_again():
    fs = Fs("/", dry_run=True)
    with iocost.switched_on(fs, Cgroup(fs, "/cg"), "8:0", {"rbps": 5, "rseqiops": 6}):
        assert len(fs.writes) == 2
    assert [str(write) for write in fs.writes] == [
        "write '8:0 ctrl=user model=linear rbps=5 rseqiops=6' to '/cg/io.cost.model'",
        f"write '8:0 {iocost.qos_on(1)}' to '/cg/io.cost.qos'",
        "write '8:0 enable=0 ctrl=auto' to '/cg/io.cost.qos'",
        "write '8:0 ctrl=auto' to '/cg/io.cost.model'",
    ]


def test_iocost_parameters_are_restored(tmp_path):
    fs = Fs(str(tmp_path), dry_run=True)
    (tmp_path / "cg").mkdir()
    (tmp_path / "cg/io.cost.qos").write_text("8:16 enable=1\n8:0 enable=0 ctrl=user min=50.00\n")
    (tmp_path / "cg/io.cost.model").write_text("8:0 ctrl=user model=linear rbps=9\n")
    with iocost.switched_on(fs, Cgroup(fs, "/cg"), "8:0", {"rbps": 5}):
        pass
    assert [str(write) for write in fs.writes[2:]] == [
        "write '8:0 enable=0 ctrl=user min=50.00' to '/cg/io.cost.qos'",
        "write '8:0 ctrl=user model=linear rbps=9' to '/cg/io.cost.model'",
    ]


def test_an_active_iocost_is_refused(tmp_path):
    (tmp_path / "cg").mkdir()
    (tmp_path / "cg/io.cost.qos").write_text("8:16 enable=1 ctrl=auto\n8:0 enable=0\n")
    root = Cgroup(Fs(str(tmp_path)), "/cg")
    iocost.require_off(root, "8:0")
    with pytest.raises(Failure, match="iocost is active on 8:16"):
        iocost.require_off(root, "8:16")


@pytest.mark.parametrize(
    "line",
    [
        "WARNING: CPU: 1 PID: 9 at block/blk-mq.c:1 x+0x1/0x2",
        "BUG: kernel NULL pointer dereference, address: 0000000000000000",
        "INFO: task fio:123 blocked for more than 120 seconds.",
        "rcu: INFO: rcu_sched self-detected stall on CPU",
        "refcount_t: underflow; use-after-free.",
    ],
)
def test_errors_in_the_kernel_log_are_found(line):
    found = splat(f"[ 1.0] null_blk: module loaded\n[ 2.0] {line}\n[ 2.1]  detail\n")
    assert found is not None
    assert line in found
    assert "detail" in found


STALL = """\
[  213.2] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:
[  213.2] rcu:  0-...!: (0 ticks this GP) idle=1e04/0/0x0 softirq=2151/2151 fqs=0
[  213.3] RIP: 0010:native_safe_halt+0xb/0x10
[  213.3] RAX: 0000000000000000 RBX: ffffffff9ae1a940 RCX: 0000000000000001
"""


@pytest.fixture
def guest_of(monkeypatch, tmp_path):
    """A function that runs the bench of a job in a guest with a given kernel log."""

    def run(job, dmesg):
        result = argparse.Namespace(
            trouble=lambda: None, dmesg=dmesg, status=0, stderr="", accel="tcg"
        )
        monkeypatch.setattr(session.guest, "run", lambda *_, **__: result)
        asked = request(job)
        return session._run_in_guest(asked, session.plan_for(asked), tmp_path, lambda _: None)

    return run


def test_a_starved_guest_is_named_and_its_registers_are_not(job, guest_of, tmp_path):
    with pytest.raises(Failure) as failure:
        guest_of(job, f"[    1.0] booted\n{STALL}")
    text = str(failure.value)
    assert text.startswith("the guest's processors stood still ([  213.2] rcu: INFO: rcu_preempt")
    assert "reduce the host's load or use --icount" in text
    assert "RAX" not in text and "\n" not in text
    assert "RAX" in (tmp_path / "kernel.log").read_text()


def test_a_bug_before_the_stall_is_shown_whole(job, guest_of):
    with pytest.raises(Failure, match=r"(?s)^\[ 1.0\] BUG: bad page.*stalls on CPUs"):
        guest_of(job, f"[ 1.0] BUG: bad page\n{STALL}")


def test_an_ordinary_kernel_log_has_no_errors():
    log = (
        "[    0.1] Warning: unmaintained driver\n[    1.0] mqfair: loading out-of-tree module"
        " taints kernel.\n[    2.0] io scheduler bfq registered\n"
        "[    3.0] null_blk: disk nullb0 created\n"
    )
    assert splat(log) is None


def test_messages_are_found_in_any_pieces():
    seen = []
    messages = session._Messages(seen.append)
    text = f"noise\n{session.PROGRESS}" + '{"event": "run", "number": 0}\nmore'
    for letter in text:
        messages.add(letter)
    assert seen == [{"event": "run", "number": 0}]


@pytest.mark.parametrize(("usage", "kind"), [(True, UsageError), (False, Failure)])
def test_an_error_of_the_runner_is_raised_again(usage, kind):
    messages = session._Messages(lambda message: None)
    error = {"event": "error", "message": "no", "usage": usage}
    messages.add(session.PROGRESS + json.dumps(error) + "\n")
    with pytest.raises(kind, match="no"):
        messages.raise_error()

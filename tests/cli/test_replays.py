# SPDX-License-Identifier: GPL-2.0
"""Job files that replay traces: in the simulator exactly, and as fio gets them in a bench."""

import json
import shutil
import subprocess

import pytest
from test_traces import as_native, mixed

from mqfair.bench import jobfile, replays
from mqfair.bench.device import parse_device
from mqfair.bench.session import Request as BenchRequest
from mqfair.bench.session import _with_replays, plan_for
from mqfair.bench.simulated import drive, options
from mqfair.text.errors import UsageError
from mqfair.traces.reader import Trace
from mqfair.traces.replay import Replay, measured
from mqfair.traces.request import OPS, READ, REPLAYED_MOST, TRIM, Request

FAST = "null:irqmode=2,completion_nsec=10000,submit_queues=2,hw_queue_depth=64,gb=1"
SSD = "ssd:model=980pro,size_mb=1024"
HEAD = "[global]\ndirect=1\nioengine=psync\nramp_time=0\nruntime=1s\n"


@pytest.fixture
def trace(tmp_path):
    return as_native(tmp_path / "in.trace", mixed(3000))


def job_file(tmp_path, more="", name="in.trace"):
    path = tmp_path / "j.fio"
    path.write_text(f"{HEAD}[a]\ncgroup=a\nread_iolog={name}\nnumjobs=32\n{more}")
    return str(path)


def section(path):
    return jobfile.load(path).groups[0].jobs[0]


@pytest.mark.parametrize("device", [FAST, SSD])
def test_the_simulator_replays_each_request_once(trace, run, tmp_path, device):
    job_file(tmp_path)
    raw = tmp_path / "raw"
    got = run(
        "sim", str(tmp_path / "j.fio"), "--device", device, "--schedulers", "none,mqfq",
        "--raw", str(raw),
    )  # fmt: skip
    assert got.code == 0, got.err
    expected = {"ios": 3000, "bytes": sum(one.bytes for one in mixed(3000))}
    for number in ("000", "001"):
        found = json.loads((raw / number / "run.json").read_text())["totals"]
        assert {name: found[name] for name in expected} == expected
    assert "the last request of" in got.out + got.err


def test_arrivals_are_exact(run, tmp_path):
    """One request every 10 ms; each interval of the series has as many as arrive in it."""
    gaps = [Request(number * 10_000_000, READ, 0, 4096, "a") for number in range(100)]
    as_native(tmp_path / "in.trace", gaps)
    raw = tmp_path / "raw"
    job_file(tmp_path)
    path = str(tmp_path / "j.fio")
    assert run("sim", path, "--device", FAST, "--schedulers", "mqfq", "--raw", str(raw)).code == 0
    flow = json.loads((raw / "000" / "run.json").read_text())["flows"]["g0"]
    step = 1000 // len(flow["series"])
    assert {one["ios"] for one in flow["series"]} == {step // 10}
    assert flow["max_ns"] < 30_000


def test_a_run_can_be_repeated_from_its_folder(trace, run, tmp_path):
    raw = tmp_path / "raw"
    path = job_file(tmp_path)
    assert run("sim", path, "--device", FAST, "--schedulers", "mqfq", "--raw", str(raw)).code == 0
    from mqfair.bench.simulated import program

    text = (raw / "000" / "description").read_text()
    again = program.play(program.ensure(), text, folder=raw)
    assert again["totals"] == json.loads((raw / "000" / "run.json").read_text())["totals"]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("", Replay("{}", 32)),
        ("replay_time_scale=200\n", Replay("{}", 32, 200)),
        ("replay_no_stall=1\nnumjobs=2\n", Replay("{}", 2, no_stall=True)),
        ("replay_no_stall\nrw=read\nbs=4k\n", Replay("{}", 32, no_stall=True)),
    ],
)
def test_options_of_a_replay(tmp_path, more, expected):
    path = job_file(tmp_path, more)
    found = replays.replay_of(section(path), path)
    assert found == Replay(
        str(tmp_path / "in.trace"), expected.processes, expected.scale, expected.no_stall
    )


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("ioengine=libaio\n", ":10: ioengine=libaio: fio measures a replay with a synchronous"),
        ("rate_iops=5\n", ":10: rate_iops=5: not beside read_iolog: remove it"),
        ("replay_time_scale=0\n", ":10: replay_time_scale=0: use a number in 1..1000000"),
        ("replay_no_stall=2\n", ":10: replay_no_stall=2: use a number in 0..1"),
        ("numjobs=129\n", ":10: numjobs=129: use a number in 1..128"),
        ("read_iolog\n", ":10: read_iolog: name a trace file"),
        ("read_iolog=none\n", "none: No such file or directory: name a trace file"),
    ],
)
def test_a_wrong_option_is_named(trace, tmp_path, more, message):
    path = job_file(tmp_path, more)
    with pytest.raises(UsageError) as caught:
        where = drive.drive(parse_device(FAST), 2, {})
        options.loads(jobfile.load(path), where)
    assert message in str(caught.value)


def test_a_trace_beyond_the_drive_or_shorter_than_the_processes(tmp_path):
    as_native(tmp_path / "in.trace", [Request(0, READ, 1 << 30, 512, "a")])
    path = job_file(tmp_path)
    where = drive.drive(parse_device(FAST), 2, {})
    with pytest.raises(UsageError, match=r"in\.trace:2: it ends at byte 1073742336, and the drive"):
        options.loads(jobfile.load(path), where)
    as_native(tmp_path / "in.trace", [Request(0, READ, 0, 512, "a")])
    with pytest.raises(UsageError, match=r"j\.fio:9: numjobs=32: .* has 1 requests: use at most 1"):
        options.loads(jobfile.load(path), where)


def test_the_trace_is_read_once_before_the_runs(trace, tmp_path):
    """The notes come after the runs, and the trace may be gone then."""
    job = jobfile.load(job_file(tmp_path))
    options.loads(job, drive.drive(parse_device(FAST), 2, {}))
    (tmp_path / "in.trace").unlink()
    assert "the last request of" in next(options.notes(job))


def planned(path, folder):
    request = BenchRequest((jobfile.load(path),), ("none",), device=parse_device(FAST))
    plan = _with_replays(plan_for(request), request, folder)
    return plan.cases[0].groups[0].jobs[0].options


def test_a_bench_gets_logs_of_fio_with_all_requests(trace, tmp_path):
    folder = tmp_path / "raw"
    folder.mkdir()
    found = dict(one.partition("=")[::2] for one in planned(job_file(tmp_path), folder))
    names = found["read_iolog"].split(":")
    assert (found["numjobs"], len(names)) == ("32", 32)
    logs = [list(Trace(str(folder / name)).requests()) for name in names]
    assert sorted(one[1:4] for log in logs for one in log) == sorted(
        one[1:4] for one in mixed(3000)
    )


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_replays_each_request_once_and_waits_for_its_time(tmp_path):
    """Four reads with 200 ms between them."""
    gaps = [Request(number * 200_000_000, READ, number * 4096, 4096, "a") for number in range(4)]
    as_native(tmp_path / "in.trace", gaps)
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 20))
    lines = ["[a]", *planned(job_file(tmp_path, "numjobs=1\n"), tmp_path)]
    lines += [f"filename={image}", f"replay_redirect={image}", "direct=0"]
    (tmp_path / "run.fio").write_text("\n".join(lines))
    done = subprocess.run(
        ["fio", "--output-format=json", "run.fio"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    read = json.loads(done.stdout)["jobs"][0]["read"]
    assert (read["total_ios"], read["io_bytes"]) == (4, 4 * 4096)
    assert read["runtime"] >= 590


def test_split_writes_a_job_that_runs(trace, run, tmp_path):
    folder = tmp_path / "parts"
    assert run("trace", trace, "--split", str(folder)).code == 0
    job = jobfile.load(str(folder / "replay.fio"))
    assert sorted(group.name for group in job.groups) == ["lun1", "lun3"]
    assert len(simulated(job)) == 64


def simulated(job):
    """The loads of @job, if the simulator accepts them."""
    return options.loads(job, drive.drive(parse_device(FAST), 2, {}))


LONG = "pod" * 100
NAMES = (
    "global",
    "globals",
    "Global",
    "cgroup.procs",
    "/.cgroup.procs",
    LONG,
    f"{LONG}2",
    "é" * 200,
)


@pytest.mark.parametrize("count", [1, 31, 32, 100])
@pytest.mark.parametrize(
    "names", [("a", "b"), NAMES, [f"disk{one}" for one in range(256)]], ids=len
)
def test_split_keeps_each_source_and_the_simulator_accepts_its_job(run, tmp_path, names, count):
    source = [Request(at, READ, 0, 512, name) for at in range(count) for name in names]
    path, folder = as_native(tmp_path / "in", source), tmp_path / "parts"
    assert run("trace", path, "--split", str(folder)).code == 0
    job = jobfile.load(str(folder / "replay.fio"))
    found = [one for group in job.groups for one in group.jobs]
    parts = [replays.replay_of(one, job.path) for one in found]
    assert len(job.groups) == len(found) == len(names)
    assert {one.source for part in parts for one in part.requests()} == set(names)
    assert len(simulated(job)) == min(count, 32, 2048 // len(names)) * len(names)
    # fio's own rule.
    assert not any(one.name.lower().startswith("global") for one in found)


@pytest.mark.parametrize(
    ("op", "size", "need"),
    [
        (TRIM, 512, "1 trims: a replay needs --without trim"),
        (READ, 100, "use --align 512"),
        (
            READ,
            REPLAYED_MOST + 512,
            "1 requests have more than 1.0 GiB: a replay needs their lines",
        ),
    ],
)
def test_split_names_no_command_that_would_be_refused(run, tmp_path, op, size, need):
    path = as_native(tmp_path / "in", [Request(0, op, 0, size, "a")])
    said = run("trace", path, "--split", str(tmp_path / "parts")).out
    assert need in said
    assert "run it" not in said


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("size", [100, 512, REPLAYED_MOST, REPLAYED_MOST + 512])
def test_split_names_the_command_if_a_replay_takes_the_trace(run, tmp_path, op, size):
    path = as_native(tmp_path / "in", [Request(0, op, 0, size, "a")])
    said = run("trace", path, "--split", str(tmp_path / "parts")).out
    try:
        measured(Replay(path))
    except UsageError:
        assert "run it" not in said
    else:
        assert "run it" in said

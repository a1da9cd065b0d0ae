# SPDX-License-Identifier: GPL-2.0
"""mqfair sim: job files on the simulated host. Some tests build and run sim-run."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest
from test_main import CHECKOUT

from mqfair.__main__ import EXIT_BROKEN_PIPE, main
from mqfair.bench import fio_keys, fiocheck, jobfile, variant
from mqfair.bench.device import parse_device
from mqfair.bench.simulated import drive, options, program, session
from mqfair.bench.simulated import prices as prices_of
from mqfair.bench.variant import scheduler_of
from mqfair.text.errors import Failure, UsageError

HEAD = "[global]\ndirect=1\nioengine=libaio\n[a]\ncgroup=a\n"
NULL = "null:irqmode=2,completion_nsec=100000,submit_queues=2,hw_queue_depth=16,gb=1"
JOB = f"{HEAD}rw=randread\niodepth=16\nnorandommap\nruntime=200ms\nramp_time=50ms\n"
TWO = (
    f"{JOB}[b]\ncgroup=b/c\ncgroup_weight=300\nrw=randrw\niodepth=32\nnorandommap\nruntime=200ms\n"
)


@pytest.fixture
def job(tmp_path):
    path = tmp_path / "j.fio"
    path.write_text(TWO)
    return str(path)


@pytest.fixture(scope="session")
def built():
    return program.ensure()


def loads(text, device=NULL):
    where = drive.drive(parse_device(device), 2, {})
    return options.loads(jobfile.parse(text, "j.fio"), where)


def words(more, device=NULL):
    return loads(f"{HEAD}rw=randread\n{more}\n", device)[0].words


def run(capsys, *argv):
    code = main(["sim", *argv])
    got = capsys.readouterr()
    return code, got.out, got.err


# ------------------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("", "depth 1 bytes 4096 write 0"),
        ("iodepth=32\nbs=64k", "depth 32 bytes 65536 write 0"),
        ("iodepth=32\nioengine=psync", "depth 1 bytes 4096 write 0"),
        ("rw=write", "depth 1 bytes 4096 write 1000 order sequential"),
        ("rw=randrw", "depth 1 bytes 4096 write 500"),
        ("rwmixread=70\nrw=rw", "depth 1 bytes 4096 write 300 order sequential"),
        ("rw=randrw\nrwmixwrite=20", "depth 1 bytes 4096 write 200"),
        ("rwmixread=70", "depth 1 bytes 4096 write 0"),
        ("bssplit=4k/60:64k/40", "depth 1 sizes 4096/6000,65536/4000 write 0"),
        ("bssplit=4k/50:8k:16k", "depth 1 sizes 4096/5000,8192/2500,16384/2500 write 0"),
        ("rate_iops=200", "depth 1 bytes 4096 write 0 pace_ns 5000000 arrivals even"),
        (
            "rate=4m\nrate_process=poisson",
            "depth 1 bytes 4096 write 0 pace_ns 976562 arrivals random",
        ),
        ("thinktime=500", "depth 1 bytes 4096 write 0 think_us 500 burst_ios 1"),
        (
            "thinktime=2ms\nthinktime_blocks=8",
            "depth 1 bytes 4096 write 0 think_us 2000 burst_ios 8",
        ),
        (
            "thinktime=2s\nthinktime_iotime=3",
            "depth 1 bytes 4096 write 0 think_us 2000000 burst_us 3000000",
        ),
        ("startdelay=1", "depth 1 bytes 4096 write 0 start_ms 1000"),
        ("bs=4KiB", "depth 1 bytes 4096 write 0"),
        ("bs=8k,64k", "depth 1 bytes 8192 write 0"),
        ("bs=8k,64k\nrw=randwrite", "depth 1 bytes 65536 write 1000"),
        ("bs=,64k\nrw=randread", "depth 1 bytes 4096 write 0"),
        ("bs=8k,8k\nrw=randrw", "depth 1 bytes 8192 write 500"),
        ("bssplit=4k/100,8k/100\nrw=randwrite", "depth 1 sizes 8192/10000 write 1000"),
        ("bssplit=4k/100\nbs=64k", "depth 1 sizes 4096/10000 write 0"),
        ("bsrange=4k-4k", "depth 1 bytes 4096 write 0"),
        ("bsrange=4k-12k", "depth 1 sizes 4096/1,8192/1,12288/1 write 0"),
        ("rw=trim\nbs=1m", "depth 1 bytes 1048576 write 0 discard 1 order sequential"),
        ("rw=randtrim\nbs=4k,8k,1m", "depth 1 bytes 1048576 write 0 discard 1"),
        ("rw=read:8k", "depth 1 bytes 4096 write 0 order sequential"),
        ("rate_iops=200,200", "depth 1 bytes 4096 write 0 pace_ns 5000000 arrivals even"),
        ("ioengine=null\nioengine=libaio\niodepth=2", "depth 2 bytes 4096 write 0"),
    ],
)
def test_options_of_fio_become_words_of_a_load(more, expected):
    assert words(more) == expected


@pytest.mark.parametrize("off", ["direct=1", "buffered=0", "direct=0\nbuffered=0"])
def test_direct_and_buffered_are_one_switch(off):
    text = f"[a]\ncgroup=a\nrw=randread\n{off}\n"
    assert loads(text)[0].words == "depth 1 bytes 4096 write 0"


NEUTRAL = [
    *(f"{key}={value}" for key, values in options._NEUTRAL.items() for value in values),
    *(f"{key}=1" for key in sorted(options._DEPENDENT)),
    *(f"{key}=1" for key in sorted(fio_keys.WITHOUT_EFFECT)),
    *(f"{key}=1" for key in sorted(fio_keys.REPLACED)),
    *("zonemode=none\nzonesize=256m", "gtod_reduce=1\nverify=md5\nthread"),
]


@pytest.mark.parametrize("more", NEUTRAL)
def test_keys_and_values_that_change_no_request_pass(more):
    ssd = "ssd:model=980pro,size_mb=100"
    assert words(more, ssd) == words("", ssd)


@pytest.mark.parametrize(
    "line",
    [
        *("random_distribution=zipf:1.2", "zonemode=strided\nzonesize=1m", "blockalign=64k"),
        *("rw=randread:8", "percentage_random=50", "offset_align=8k"),
    ],
)
def test_places_count_on_a_drive_that_has_places_alone(line):
    assert words(line) == words("")
    with pytest.raises(UsageError):
        words(line, "ssd:model=980pro,size_mb=100")


def test_priorities_are_noted_and_change_no_request():
    for line in ("prio=3", "prioclass=1", "nice=5", "cmdprio_percentage=20", "numa_cpu_nodes=0"):
        text = f"{HEAD}rw=read\n{line}\n"
        assert loads(text)[0].words == loads(f"{HEAD}rw=read\n")[0].words
        (note,) = options.notes(jobfile.parse(text, "j.fio"))
        assert note.startswith(f"j.fio:7: {line} not followed: ")


def test_processes_take_the_cpus_that_the_job_names(tmp_path, capsys):
    path = tmp_path / "j.fio"
    path.write_text(f"{JOB}numjobs=3\ncpus_allowed=1,0\n[b]\ncgroup=b\nrw=read\ncpus_allowed=1\n")
    raw = tmp_path / "raw"
    argv = [str(path), "--schedulers", "none", "--device", NULL, "--raw", str(raw)]
    code, _, _ = run(capsys, *argv)
    assert code == 0
    (description,) = raw.glob("*/description")
    queues = [line.split()[3] for line in description.read_text().splitlines() if "queue " in line]
    assert queues == ["1", "0", "1", "1"]
    path.write_text(f"{JOB}cpus_allowed=2\n")
    code, _, said = run(capsys, str(path), "--schedulers", "none", "--device", NULL)
    assert code == 2
    assert "j.fio:11: cpus_allowed=2: the host has the CPUs 0 to 1: add --cpus 3" in said


def test_one_section_of_a_file_with_stages_is_played(tmp_path, capsys):
    path = tmp_path / "j.fio"
    path.write_text(f"{JOB}[b]\ncgroup=b\nstonewall\nrw=randread\nruntime=200ms\nramp_time=0\n")
    argv = [str(path), "--schedulers", "none", "--device", NULL, "--json", "-"]
    code, _, said = run(capsys, *argv)
    assert code == 2
    assert "stonewall is not supported" in said
    code, out, _ = run(capsys, *argv, "--section", "b")
    assert code == 0
    assert [one["name"] for one in json.loads(out)["runs"][0]["cgroups"]] == ["b"]


def test_a_run_without_a_counted_request_is_an_error(tmp_path, capsys):
    path = tmp_path / "j.fio"
    path.write_text(f"{HEAD}rw=randread\nruntime=10ms\nramp_time=10ms\n")
    slow = "null:irqmode=2,completion_nsec=900000000,submit_queues=1,hw_queue_depth=1,gb=1"
    code, _, said = run(capsys, str(path), "--schedulers", "none", "--device", slow)
    assert code == 1
    assert "j, none: no request was completed in the time that is counted: raise runtime" in said


def test_a_cgroup_that_its_own_cpu_limits_is_noted(tmp_path, capsys):
    """One process beside four, each on its own CPU: weights are 9 : 1, and the drive is fast."""
    path = tmp_path / "j.fio"
    shared = "[global]\ndirect=1\nioengine=libaio\nrw=randread\nnorandommap\niodepth=64\n"
    times = "runtime=100ms\nramp_time=20ms\n"
    path.write_text(
        f"{shared}{times}[gold]\ncgroup=gold\ncgroup_weight=900\n"
        "[silver]\ncgroup=silver\nnumjobs=4\n"
    )
    fast = "null:irqmode=2,completion_nsec=10000,submit_queues=5,hw_queue_depth=64,gb=1"
    argv = [str(path), "--schedulers", "none,mqfq", "--cpus", "5", "--json", "-"]
    code, out, _ = run(capsys, *argv, "--device", fast)
    assert code == 0
    (note,) = json.loads(out)["notes"]
    assert note.startswith("j: gold is limited by its own CPU under none, mqfq: no scheduler can")
    code, out, _ = run(capsys, *argv, "--device", fast, "--request-ns", "1000")
    assert code == 0
    slow = fast.replace("=10000,", "=900000,")
    code, out, _ = run(capsys, *argv, "--device", slow)
    assert json.loads(out)["notes"] == []


def test_a_scheduler_takes_its_time_and_two_have_a_lock(built, tmp_path, capsys):
    """On one CPU the prices add to the 10 us of a request. On four the lock is the limit under BFQ
    and mq-deadline."""
    fast = "null:irqmode=2,completion_nsec=1000,submit_queues=4,hw_queue_depth=64,gb=1"
    labels = ("none", "mqfq", "kyber", "bwf2q:idle_us=0", "mq-deadline")

    def rates(readers: int) -> list[float]:
        path = tmp_path / "j.fio"
        path.write_text(
            f"{HEAD}iodepth=32\nrw=randread\nnorandommap\nruntime=1\nnumjobs={readers}\n"
        )
        words = ("--schedulers", ",".join(labels), "--cpus", "4", "--device", fast, "--priced")
        code, out, _ = run(capsys, str(path), *words, "--request-ns", "10000", "--json", "-")
        assert code == 0
        found = {one["scheduler"]: one["cgroups"][0]["iops"] for one in json.loads(out)["runs"]}
        return [found[label] for label in labels]

    prices = [prices_of.price(scheduler_of(label), priced=True) for label in labels]
    alone = [1e9 / (10_000 + price.own_ns(10_000)) for price in prices]
    assert rates(1) == pytest.approx(alone, rel=0.01)
    locked = [1e9 / price.locked_ns(10_000) for price in prices[3:]]
    assert rates(4) == pytest.approx([*(4 * rate for rate in alone[:3]), *locked], rel=0.02)


def test_range_matters_on_a_drive_with_places_only():
    ssd = "ssd:model=980pro,size_mb=100"
    text = f"{HEAD}rw=read\nnumjobs=2\noffset=10%\nsize=40%\noffset_increment=50m\n"
    first, second = (load.words for load in loads(text, ssd))
    assert "first_kib 10240 kib 40960" in first
    assert "first_kib 61440 kib 40960" in second
    assert "kib" not in loads(text)[0].words


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("zonemode=zbd", "j.fio:7: zonemode=zbd: the simulator has no option zonemode"),
        ("iodepth_batch=4", "the simulator has no option iodepth_batch: remove it, or use --on vm"),
        ("rw=trimwrite", "j.fio:7: rw=trimwrite: use read, write, rw,"),
        ("buffered=1", "j.fio:4: no direct=1: the simulator has no page cache: add direct=1"),
        ("fsync=1", "j.fio:7: fsync=1: the simulator has no option fsync"),
        ("bsrange=4k-1m", "bsrange=4k-1m: use a range FROM-TO of at most 32 whole multiples"),
        ("bsrange=8k-4k", "bsrange=8k-4k: use a range FROM-TO"),
        ("bs=4k,8k,16k,4k", "give one value for reads, one for writes, one for trims"),
        ("cpus_allowed=a", "j.fio:7: cpus_allowed=a: write the numbers of CPUs, such as 0,2-3"),
        ("cpus_allowed=3-1", "cpus_allowed=3-1: write a range of CPUs with the lesser number"),
        ("sync_file_range=write:8", "the simulator has no option sync_file_range"),
        ("ioengine=mmap", "ioengine=mmap: use libaio, io_uring,"),
        ("iodepth=0", "j.fio:7: iodepth=0: use a number in 1..65536"),
        ("iodepth=4k", "iodepth=4k: use a number in 1..65536"),
        ("numjobs=-1", "numjobs=-1: use a number in 1..2048"),
        (
            "rw=randrw\nbs=4k,8k",
            "j.fio:8: bs=4k,8k: one size for reads and another for writes is not simulated",
        ),
        ("bs=100", "bs=100: a request has a multiple of 512 bytes"),
        ("bs=4QB", "bs=4QB: a request has a multiple of 512 bytes"),
        ("bs=2g", "bs=2g: a request has a multiple of 512 bytes, at most 1g"),
        ("bssplit=4k/50:8k/60", "the percentages add up to 110: make it 100"),
        ("bssplit=4k/x", "bssplit=4k/x: write SIZE/PERCENT"),
        ("rwmixread=101", "rwmixread=101: use a number in 0..100"),
        ("direct=0", "j.fio:4: no direct=1: the simulator has no page cache: add direct=1"),
        ("size=200%", "size=200%: write bytes, such as 512m, or a percentage up to 100%"),
        ("size=2g", "j.fio:7: process 1 ends at byte 2147483648, and the drive at 1073741824"),
        ("offset=1g", "j.fio:7: process 1 begins at byte 1073741824, and the drive ends at"),
        ("size=1m\nbs=2m", "requests of 2097152 bytes in 1048576 bytes: raise size, or lower bs"),
        ("rate=fast", "rate=fast: write one number of bytes per second, such as 20m"),
        ("rate_iops=0", "rate_iops=0: use a number in 1..1000000000"),
        ("rate_process=bursty", "rate_process=bursty: use linear or poisson"),
        ("rate_iops=9\nrate=1m", "rate=1m: rate beside rate_iops: give one of them"),
        ("rate=1m\nbssplit=4k/50:8k/50", "rate=1m: rate beside bssplit is not simulated"),
        ("rw=randrw\nrate_iops=9", "j.fio:8: rate_iops=9: a rate of reads and writes together"),
        ("thinktime=soon", "thinktime=soon: not a duration"),
        ("startdelay=1us", "startdelay=1us: the simulator counts whole milliseconds"),
    ],
)
def test_wrong_option_is_named_with_file_and_line(line, message):
    with pytest.raises(UsageError) as caught:
        words(line)
    assert message in str(caught.value)
    assert str(caught.value).startswith("j.fio:")


def test_random_places_without_a_map_are_noted():
    text = f"{HEAD}rw=randread\n"
    assert list(options.notes(jobfile.parse(text, "j.fio")))
    assert not list(options.notes(jobfile.parse(f"{text}norandommap\n", "j.fio")))
    assert not list(options.notes(jobfile.parse(f"{HEAD}rw=read\n", "j.fio")))


# -------------------------------------------------------------------------- drives


def statements(device, cpus=2, flows=None):
    return drive.drive(drive.unstretched(parse_device(device)), cpus, flows or {}).statements


def test_slots_and_maps_of_null_blk():
    assert statements(NULL)[:3] == ("device 32 100000 0", "tags 16", "tag_maps 2")
    assert statements(NULL, 1)[:3] == ("device 16 100000 0", "tags 16", "tag_maps 1")
    assert statements(f"{NULL},shared_tag_bitmap=1")[:3] == (
        "device 16 100000 0",
        "tags 16",
        "tag_maps 1",
    )
    assert "most_bytes 130560" in statements(NULL)
    assert "most_bytes 8192" in statements(f"{NULL},max_sectors=16")


@pytest.mark.parametrize(
    ("device", "cpus", "label", "depth", "tags"),
    [
        # A map of 16 driver tags for each of two queues; without a scheduler these alone count.
        (NULL, 2, "none", None, 16),
        (NULL, 2, "mqfq", None, 64),
        (NULL, 2, "mqfq", "auto", 64),
        (NULL, 2, "mqfq", "8", 32),
        (NULL, 2, "mqfq", "24 auto", 64),
        (NULL, 1, "mqfq", None, 64),
        (NULL, 2, "stf", "64", 32),
        (f"{NULL},shared_tag_bitmap=1", 2, "wdt", None, 32),
        # The kernel counts 128 of 256 slots at a switch, and has at most 2048 scheduler tags.
        ("ssd:model=980pro", 1, "none", None, 256),
        ("ssd:model=980pro", 1, "ifq", None, 512),
        ("ssd:model=980pro", 1, "ifq", "1000", 2048),
        ("ssd:model=980pro", 1, "throttle", None, 0),
        ("ssd:model=980pro", 1, "iocost", None, 0),
        ("ssd:model=980pro", 1, "cfq", None, 0),
        ("ssd:model=980pro", 16, "mqfq", None, 256),
    ],
)
def test_scheduler_tags_are_those_of_a_real_host(device, cpus, label, depth, tags):
    assert drive.drive(parse_device(device), cpus, {}).sched_tags(label, depth) == tags


def test_virtual_ssd():
    found = statements("ssd:model=980pro,size_mb=256,fill=85,fill_pattern=random,queues=8", 4)
    assert found[0] == "drive 980pro 256 random 85"
    assert {"ftl device", "time_scale 1", "tags 256", "tag_maps 4"} <= set(found)
    assert statements("ssd:model=p4500")[0] == "drive p4500 1024 empty"
    parts = statements("ssd:fill_parts=a:40:0+b:45:3", flows={"a": "g0", "b": "g1"})
    assert parts[0] == "drive p3700 1024 steady"
    assert parts[-2:] == ("part g0 40 0", "part g1 45 3")


def test_virtual_ssd_is_as_fast_as_its_model_unless_it_is_stretched():
    plain, slow = "ssd:model=980pro", "ssd:model=980pro,time_scale=100"
    assert "time_scale 1" in statements(plain)
    assert "time_scale 100" in statements(slow)
    assert drive.unstretched(parse_device(plain)).text == f"{plain},time_scale=1"
    assert drive.unstretched(parse_device("ssd:")).text == "ssd:time_scale=1"


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("null:gb=1", "the simulator has no processor time"),
        (f"{NULL},mbps=100", "mbps=100 is not simulated: leave it out, or use --on vm"),
        ("nvme:size=1G", "the simulator has no such drive: use null:... or ssd:model=NAME"),
        ("/dev/sda", "the simulator has no such drive"),
    ],
)
def test_drive_that_is_not_simulated(device, message):
    with pytest.raises(UsageError) as caught:
        statements(device)
    assert message in str(caught.value)
    assert f"--device {device}" in str(caught.value)


# --------------------------------------------------------------------------- sweep


def test_sweep_multiplies_labels():
    labels = ("none", "mqfq", "ifq:cost=iops")
    assert variant.sweep("mqfq.depth=8,16", labels) == (
        "none",
        "mqfq:depth=8",
        "mqfq:depth=16",
        "ifq:cost=iops",
    )
    both = variant.sweep("depth=8,16", labels)
    assert len(both) == 5
    assert len(variant.sweep("mqfq.threshold_kb=1,2,3", both)) == 9


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("depth", "write NAME=VALUE,VALUE"),
        ("depth=", "write NAME=VALUE,VALUE"),
        ("depth=8,", "write NAME=VALUE,VALUE"),
        (".depth=8", "write NAME=VALUE,VALUE"),
        ("depth=8,8", "a value is given twice"),
        ("wdt.depth=8", "no scheduler of none,mqfq:cost=iops has it"),
        ("cost=bytes,iops", "mqfq:cost=iops has a value of cost: give it once"),
    ],
)
def test_wrong_sweep(word, message):
    with pytest.raises(UsageError) as caught:
        variant.sweep(word, ("none", "mqfq:cost=iops"))
    assert message in str(caught.value)
    assert f"--sweep {word}" in str(caught.value)


# ---------------------------------------------------------------------------- runs


def test_one_command_prints_tables_and_writes_all_files(built, job, tmp_path, capsys):
    json_file, timeline, raw = tmp_path / "r.json", tmp_path / "t.json", tmp_path / "raw"
    code, out, err = run(
        capsys,
        job,
        *("--device", NULL, "--schedulers", "none,mqfq", "--solo", "--raw", str(raw)),
        *("--json", str(json_file), "--timeline", str(timeline)),
    )
    assert code == 0
    assert "b/c" in out
    assert "run 6 of 6: j, repeat 1 of 1, mqfq, b/c alone" in err
    found = json.loads(json_file.read_text())
    assert found["schema"] == "mqfair.bench/2"
    assert (found["where"]["accel"], found["where"]["seed"]) == ("sim", 1)
    mqfq = found["runs"][1]
    assert [one["name"] for one in mqfq["cgroups"]] == ["a", "b/c"]
    # Each asks for half of the total, but for the requests in flight at the end of its solo run.
    assert [one["due"] for one in mqfq["cgroups"]] == pytest.approx([0.5, 0.5], abs=1e-3)
    assert sum(one["share"] for one in mqfq["cgroups"]) == pytest.approx(1)
    assert len(found["solo"]) == 4
    assert [run["seed"] for run in found["runs"]] == [1, 1]
    assert found["runs"][0]["tunables"] == {}
    assert mqfq["tunables"]["cost"] == "bytes"
    assert "window" not in found["runs"][0]["depth"]
    steps = json.loads(timeline.read_text())["runs"][0]["cgroups"][0]["bytes"]
    assert len(steps) == 3
    for name in ("inside", "window"):
        assert len(mqfq["depth"][name]) == 3
    assert all(0 < one <= 128 for one in mqfq["depth"]["inside"])
    for group in mqfq["cgroups"]:
        assert sum(group["lat_histogram"]["requests"]) == pytest.approx(group["iops"] * 0.2, abs=32)
        assert group["lat_ns"]["p99"] <= max(group["lat_histogram"]["end_ns"])
    assert (raw / "003" / "description").read_text().startswith("scheduler mqfq\nseed 1\n")


def test_a_run_of_an_older_simulator_is_not_resumed(built, job, tmp_path, capsys):
    raw = tmp_path / "raw"
    argv = (job, "--device", NULL, "--schedulers", "none", "--raw", str(raw))
    assert run(capsys, *argv)[0] == 0
    record = raw / "000" / "run.json"
    figures = json.loads(record.read_text())
    assert run(capsys, *argv, "--resume")[0] == 0
    del figures["pressure"]
    record.write_text(json.dumps(figures))
    code, _, err = run(capsys, *argv, "--resume")
    assert code == 2
    assert f"--resume: the run in {raw / '000'} is of an older simulator" in err


def test_description_has_the_scheduler_tags_of_each_scheduler(built, job, tmp_path, capsys):
    labels = "none,mqfq:depth=8,mqfq,ifq,throttle"
    code, _, _ = run(
        capsys,
        job,
        *("--device", NULL, "--schedulers", labels, "--tunable", "ifq.depth=64"),
        *("--raw", str(tmp_path / "raw")),
    )
    assert code == 0
    texts = [path.read_text() for path in sorted((tmp_path / "raw").glob("*/description"))]
    found = [int(text.partition("\nsched_tags ")[2].split()[0]) for text in texts]
    assert found == [16, 32, 64, 128, 0]


def test_latency_of_a_task_that_waits_for_tags_contains_the_waits(built, tmp_path, capsys):
    """By Little's law the 64 requests of two tasks that fill the drive are all outstanding."""
    path = tmp_path / "two.fio"
    path.write_text(f"{JOB}iodepth=32\nnumjobs=2\n")
    scarce = NULL.replace("queues=2", "queues=1")
    code, out, _ = run(
        capsys, str(path), "--device", scarce, "--schedulers", "none", "--cpus", "1", "--json", "-"
    )
    assert code == 0
    found = json.loads(out)["runs"][0]
    mean_s = found["cgroups"][0]["lat_ns"]["mean"] / 1e9
    assert mean_s * found["total_iops"] == pytest.approx(64, rel=0.02)


def test_tasks_are_spread_over_the_sockets(built, job, tmp_path, capsys):
    code, out, _ = run(
        capsys,
        job,
        *("--device", "ssd:model=980pro,size_mb=64", "--cpus", "64", "--sockets", "4"),
        *("--schedulers", "mqfq", "--raw", str(tmp_path / "raw"), "--json", "-"),
    )
    assert code == 0
    assert json.loads(out)["where"]["sockets"] == 4
    text = (tmp_path / "raw" / "000" / "description").read_text()
    assert "\nqueues 64\nsockets 4\n" in text
    cpus = [int(line.split()[3]) for line in text.splitlines() if line.startswith("load ")]
    assert cpus == [0, 16]
    assert [session._cpu(n, 8, 4) for n in range(9)] == [0, 2, 4, 6, 1, 3, 5, 7, 0]
    assert [session._cpu(n, 3, 1) for n in range(4)] == [0, 1, 2, 0]


def test_weights_of_an_example_are_kept(built, capsys):
    code, out, _ = run(
        capsys,
        str(CHECKOUT / "examples" / "nested.fio"),
        *("--schedulers", "mqfq", "--cpus", "1", "--runtime", "1", "--json", "-"),
    )
    assert code == 0
    shares = [one["share"] for one in json.loads(out)["runs"][0]["cgroups"]]
    assert shares == pytest.approx([0.45, 0.45, 0.1], rel=0.03)


def test_comparators_run_in_the_simulator_only(built, job, capsys):
    code, out, _ = run(
        capsys, job, "--device", NULL, "--schedulers", "stf:depth=8,throttle", "--json", "-"
    )
    assert code == 0
    found = [one["scheduler"] for one in json.loads(out)["runs"]]
    assert found == ["stf:depth=8", "throttle"]
    for where in ((), ("--on", "host", "--device", "/dev/null")):
        assert main(["bench", job, "--schedulers", "none,stf", *where]) == 2
        message = "--schedulers: stf is in the simulator only: add --on sim, or leave it out"
        assert message in capsys.readouterr().err


def test_iocost_has_a_model_of_the_drive(built, job, tmp_path, capsys):
    """32 slots of 100 us: 320,000 requests a second. One of 1 MiB has nine parts."""
    argv = (job, "--device", NULL, "--schedulers", "none,iocost", "--request-ns", "0")
    code, out, _ = run(capsys, *argv, "--raw", str(tmp_path / "raw"), "--json", "-")
    assert code == 0
    text = (tmp_path / "raw" / "001" / "description").read_text()
    words = [line.split() for line in text.splitlines() if line.startswith("set ")]
    rates = {name: int(value) for _, name, value in words}
    assert len(rates) == 6
    for name, rate in rates.items():
        each = 1024 / 9 if name.endswith("kib") else 1
        assert rate == pytest.approx(320_000 * each, rel=0.05), name
    assert "set " not in (tmp_path / "raw" / "000" / "description").read_text()
    total = {one["scheduler"]: one["total_iops"] for one in json.loads(out)["runs"]}
    assert total["iocost"] <= 0.96 * total["none"]
    _, out, _ = run(capsys, *argv)
    assert "iocost's model of this drive, measured under none: rbps=" in " ".join(out.split())


def test_same_seed_gives_the_same_bytes_on_any_number_of_cores(built, job, tmp_path, capsys):
    texts = {}
    for name, more in {
        "one": ("--jobs", "1"),
        "four": ("--jobs", "4"),
        "other": ("--seed", "9"),
    }.items():
        file = tmp_path / name
        code, _, _ = run(
            capsys,
            job,
            *("--device", "ssd:model=980pro,size_mb=64,fill=50", "--repeat", "2", "--cpus", "3"),
            *("--schedulers", "mqfq,wdt", "--json", str(file), *more),
        )
        assert code == 0
        texts[name] = file.read_bytes()
    assert texts["one"] == texts["four"]
    runs = {name: json.loads(text)["runs"] for name, text in texts.items()}
    assert runs["one"] != runs["other"]
    assert runs["one"][0]["cgroups"] != runs["one"][2]["cgroups"]


def test_every_example_runs(built):
    for path in sorted((CHECKOUT / "examples").glob("*.fio")):
        job_file = jobfile.load(str(path))
        where = drive.drive(parse_device("ssd:model=980pro,size_mb=1024,fill=10"), 2, {})
        assert options.loads(job_file, where), path


def test_picture_has_the_caption_of_a_simulation(built, job, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "p.svg"
    code, _, _ = run(
        capsys, job, "--device", NULL, "--schedulers", "none,mqfq", "--picture", str(picture)
    )
    assert code == 0
    assert "simulated, 2 CPUs" in picture.read_text()
    code, _, err = run(
        capsys, job, "--device", NULL, "--schedulers", "none", "--picture", f"{picture}.x"
    )
    assert code == 2
    assert "--picture" in err
    assert "use .png, .svg or .pdf" in err


def test_cdf_has_a_panel_for_each_cgroup(built, job, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "c.svg"
    argv = (job, "--device", NULL, "--schedulers", "none,mqfq")
    assert run(capsys, *argv, "--cdf", str(picture))[0] == 0
    comments = re.findall(r"<!-- (.*?) -->", picture.read_text())
    assert {"a, weight 100", "b/c, weight 300", "none", "mqfq", "99.9 %"} <= set(comments)
    code, _, err = run(capsys, *argv, "--cdf", f"{picture}.x")
    assert (code, "--cdf" in err and "use .png, .svg or .pdf" in err) == (2, True)
    code, _, err = run(capsys, *argv, "--device", "null:irqmode=2", "--cdf", str(picture))
    assert code == 2
    assert f"--cdf {picture}: a picture has one drive: name one with --device" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--schedulers", "bfq"), "--schedulers: bfq is not in the simulator: use none, mqfq,"),
        (("--schedulers", "mqfq:depht=1"), "--schedulers mqfq:depht=1: no tunable 'depht': mqfq"),
        (("--schedulers", "mqfq:depth=0"), "depth '0': use a number from 1 to 65536"),
        (("--sweep", "mqfq.depth=8,many"), "--schedulers mqfq:depth=many: depth 'many': use"),
        (("--cpus", "0"), "--cpus 0: use a number in 1..1024"),
        (("--cpus", "64", "--sockets", "3"), "--sockets 3: 64 CPUs are not that many equal parts"),
        (("--sockets", "4"), "--sockets 4: use a number in 1..2"),
        (("--sockets", "0"), "--sockets 0: use a number in 1..2"),
        (("--seed", "x"), "--seed x: use a number in 0.."),
        (("--jobs", "0"), "--jobs 0: use a number in 1..1024"),
        (("--request-ns", "-5"), "--request-ns -5: use a number in 0..1000000000"),
        (("--json", "/nowhere/r.json"), "--json /nowhere/r.json: No such file or directory"),
        (("--picture", "/nowhere/r.png"), "--picture /nowhere/r.png: No such file or directory"),
        (("--device", "ssd:fill_parts=x:5:1"), "j.fio has no cgroup 'x': use a, b, b/c"),
        (
            ("--device", "ssd:size_mb=1"),
            "--device ssd:size_mb=1,time_scale=1: drive p3700 of 1 MiB: the",
        ),
    ],
)
def test_wrong_command_line(built, job, capsys, words, message):
    code, out, err = run(capsys, job, *words)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1 or "--device ssd" in " ".join(words) or "run 1" in err


def test_options_of_the_simulator_need_it_and_those_of_a_guest_do_not_fit(job, capsys):
    for words in (
        ("--seed", "2"),
        ("--jobs", "2"),
        ("--request-ns", "5"),
        ("--priced",),
        ("--sockets", "2"),
    ):
        assert main(["bench", job, *words]) == 2
        assert f"{words[0]} is for the simulator: add --on sim" in capsys.readouterr().err
    for words in (
        ("--kernel", "7.2"),
        ("--icount",),
        ("--calibrate",),
        ("--module", "x.ko"),
        ("--nr-requests", "64"),
    ):
        assert main(["bench", job, "--on", "sim", "--schedulers", "mqfq", *words]) == 2
        assert f"{words[0]} is for a guest: leave it out" in capsys.readouterr().err
    assert main(["bench", job, "--sweep", "depth=1,2"]) == 2
    assert "--sweep needs --schedulers" in capsys.readouterr().err


# -------------------------------------------------------------------------- program


def test_installation_without_the_program_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(program, "ROOT", tmp_path)
    places = (tmp_path / "sim-run", tmp_path / "wheel" / "sim-run")
    monkeypatch.setattr(program, "INSTALLED", places)
    with pytest.raises(Failure, match="make install-sim"):
        program.ensure()
    places[1].parent.mkdir()
    for place in reversed(places):
        place.touch()
        assert program.ensure() == place


def test_missing_tool_and_failed_build_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(program.shutil, "which", lambda name: None)
    monkeypatch.setattr(program.sys, "executable", str(tmp_path / "python"))
    with pytest.raises(Failure, match="meson is missing: install the package meson"):
        program.ensure(tmp_path / "build")
    tool = tmp_path / "meson"
    tool.write_text("#!/bin/sh\necho no compiler >&2\nexit 1\n")
    tool.chmod(0o755)
    with pytest.raises(Failure, match=r"cannot be built: .*: no compiler"):
        program.ensure(tmp_path / "build")


def test_build_folder_of_another_place_is_set_up_anew(tmp_path, monkeypatch):
    done = []
    (tmp_path / "meson-private").mkdir()
    (tmp_path / "build.ninja").touch()

    def build(argv):
        done.append(Path(argv[0]).name)
        if done[-1] == "ninja" and len(done) == 1:
            raise Failure("manifest still dirty")
        if done[-1] == "meson":
            assert not (tmp_path / "meson-private").exists()
            (tmp_path / "build.ninja").touch()

    monkeypatch.setattr(program, "_build", build)
    assert program.ensure(tmp_path) == tmp_path / "sim" / "sim-run"
    assert done == ["ninja", "meson", "ninja"]


def test_building_is_told_when_there_is_something_to_build(tmp_path, monkeypatch):
    """ninja is a script that has work until a file is there."""
    (tmp_path / "sim").mkdir()
    (tmp_path / "build.ninja").touch()
    ninja = tmp_path / "ninja"
    ninja.write_text(
        f"""#!/bin/sh
        [ -e {tmp_path}/built ] && echo ninja: no work to do. && exit
        [ "$3" = -n ] || touch {tmp_path}/built
        """
    )
    ninja.chmod(0o755)
    monkeypatch.setattr(program.sys, "executable", str(tmp_path / "python"))
    told = []
    for _ in range(2):
        program.ensure(tmp_path, lambda: told.append("building"))
    assert told == ["building"]
    (tmp_path / "built").unlink()
    program.ensure(tmp_path, lambda: told.append("building"))
    assert len(told) == 2


def test_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(Failure, match="use a checkout that can be written"):
        program.ensure(tmp_path / "file" / "build")


def test_program_that_dies_is_told(tmp_path):
    dead = tmp_path / "dead"
    dead.write_text("#!/bin/sh\nkill -9 $$\n")
    dead.chmod(0o755)
    with pytest.raises(Failure, match="signal 9 ended the program"):
        program.play(dead, "")


def test_run_that_begins_after_the_end_is_ended(tmp_path):
    sleeper = tmp_path / "sleeper"
    sleeper.write_text("#!/bin/sh\nexec sleep 60\n")
    sleeper.chmod(0o755)
    processes = program.Processes()
    processes.end()
    with pytest.raises(Failure, match="signal 9"):
        program.play(sleeper, "", processes)


def ended_by(number, begun, *argv):
    """The command as a process that gets a signal after the begin of a run."""
    with subprocess.Popen(
        [sys.executable, "-m", "mqfair", "sim", *argv, "--schedulers", "none,mqfq", "--jobs", "1"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=CHECKOUT,
    ) as process:  # fmt: skip
        assert any(f"run {begun} of" in line for line in process.stderr)
        process.send_signal(number)
        _, said = process.communicate(timeout=20)
    return process.returncode, said.splitlines()[-1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_leaves_the_finished_runs(built, job, tmp_path, number):
    file = tmp_path / "out.json"
    status, said = ended_by(number, 3, job, "--repeat", "1000", "--json", str(file))
    assert status == 130
    assert said.startswith("mqfair: interrupted; ") and "of 2000 runs were finished" in said
    document = json.loads(file.read_text())
    assert len(document["runs"]) >= 2
    assert document["notes"][0].startswith("interrupted: ")


def test_signal_does_not_wait_for_the_end_of_a_long_run(built, job):
    status, said = ended_by(signal.SIGTERM, 1, job, "--runtime", "36000")
    assert (status, said) == (130, "mqfair: interrupted; 0 of 2 runs were finished")


def test_signal_while_runs_are_handed_out_leaves_the_finished_ones(run, job, monkeypatch):
    submit, handed = ThreadPoolExecutor.submit, []

    def interrupted_at_the_third(pool, *argv, **keywords):
        if len(handed) == 2:
            wait(handed)
            signal.raise_signal(signal.SIGINT)
        handed.append(submit(pool, *argv, **keywords))
        return handed[-1]

    monkeypatch.setattr(ThreadPoolExecutor, "submit", interrupted_at_the_third)
    got = run("sim", job, "--schedulers", "none,mqfq", "--repeat", "2")
    assert (got.code, got.err.splitlines()[-1]) == (
        130,
        "mqfair: interrupted; 2 of 4 runs were finished",
    )


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("gone", ["a full disk", "no reader"])
def test_the_files_are_written_if_the_text_cannot_be(built, job, tmp_path, stream, gone):
    file = tmp_path / "out.json"
    argv = [sys.executable, "-m", "mqfair", "sim", job, "--schedulers", "none", "--json", str(file)]
    reader, writer = os.pipe()
    os.close(reader)
    target = writer if gone == "no reader" else os.open("/dev/full", os.O_WRONLY)
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: target}
    done = subprocess.run(argv, cwd=CHECKOUT, check=False, **streams)
    assert len(json.loads(file.read_text())["runs"]) == 1
    expected = {"a full disk": 1, "no reader": EXIT_BROKEN_PIPE} if stream == "stdout" else {}
    assert done.returncode == expected.get(gone, 0)


@pytest.mark.parametrize(
    ("place", "argv"),
    [
        ("--repeat", ("--repeat", "9" * 5000)),
        ("--cpus", ("--cpus", "9" * 5000)),
        ("--device", ("--device", f"ssd:size_mb={'9' * 5000}")),
        ("--device", ("--device", f"null:submit_queues={'9' * 5000}")),
        ("{job}:3: cgroup_weight", ()),
    ],
)
def test_a_number_of_any_length_is_refused_by_its_range(tmp_path, capsys, place, argv):
    job = tmp_path / "j.fio"
    job.write_text(f"[a]\ncgroup=a\ncgroup_weight={100 if argv else '9' * 5000}\nrw=randread\n")
    code, _, said = run(capsys, str(job), *argv)
    assert code == 2
    assert said.startswith(f"mqfair: {place.format(job=job)}")
    assert said.count("\n") == 1


def test_a_full_disk_names_the_file(built, job, capsys, monkeypatch, tmp_path):
    open_file = Path.open

    def full(path, *args, **options):
        if path.name == "plan.json" and "w" in args:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return open_file(path, *args, **options)

    monkeypatch.setattr(fiocheck, "check", lambda _job: None)
    monkeypatch.setattr(Path, "open", full)
    code, _, said = run(capsys, job, "--schedulers", "none", "--raw", str(tmp_path / "raw"))
    assert (code, said.splitlines()[-1]) == (
        1, f"mqfair: cannot write {tmp_path}/raw/plan.json: No space left on device: nothing is"
        " written: free space, or name another place",
    )  # fmt: skip


# -------------------------------------------------------------------------- scenes

SCENE = """\
# The heavy one is inside.
scheduler hwabc
set depth 3
seed 7
device 2 80000 500
queues 2
warm_ms 100
run_ms 400
flow g weight 300
flow a weight 100 parent g
flow b weight 100
load a depth 32 bytes 4096 queues 2
load b depth 32 bytes 4096 queues 2 start_ms 50
"""


@pytest.fixture
def scene(tmp_path):
    path = tmp_path / "scene.txt"
    path.write_text(SCENE)
    return str(path)


def test_scene_is_played_as_sim_run_plays_it(scene, built, capsys):
    _, out, _ = run(capsys, scene, "--schedulers", "none,mqfq", "--solo", "--json", "-")
    document = json.loads(out)
    text = SCENE.replace("scheduler hwabc\nset depth 3\n", "scheduler mqfq\n")
    figures = program.play(built, text + "audit end\n")["flows"]
    found = {one["name"]: one for one in document["runs"][1]["cgroups"]}
    assert {name: one["bytes_per_s"] for name, one in found.items()} == {
        "g/a": figures["a"]["bytes_per_s"],
        "b": figures["b"]["bytes_per_s"],
    }
    assert found["g/a"]["due"] == pytest.approx(0.75, rel=0.01)
    assert document["where"]["seed"] == 7
    assert document["where"]["device"] == scene
    alone = {
        one["cgroup"]: one["slowdown"] for one in document["solo"] if one["scheduler"] == "mqfq"
    }
    assert alone["g/a"] == pytest.approx(4 / 3, rel=0.01)
    assert alone["b"] == pytest.approx(4, rel=0.01)


def test_the_trace_of_a_scene_is_beside_it(built, tmp_path, capsys):
    trace = "mqfair trace 1\n" + "".join(f"{i}000000 read 0 4096 b\n" for i in range(200, 300))
    (tmp_path / "db.trace").write_text(trace)
    path = tmp_path / "scene.txt"
    path.write_text("\ufeff" + SCENE.replace("start_ms 50", "trace db.trace"))
    _, out, _ = run(capsys, str(path), "--schedulers", "none", "--json", "-")
    (played,) = json.loads(out)["runs"]
    rates = {one["name"]: one["bytes_per_s"] for one in played["cgroups"]}
    # 100 requests in 0.4 s.
    assert rates["b"] == 100 * 4096 / 0.4


@pytest.mark.parametrize(
    ("change", "argv", "said"),
    [
        (("", ""), ("--cpus", "4"), "--cpus: {path} is a scene, which has its own: leave it out"),
        (("", ""), ("--device", NULL), "--device: {path} is a scene"),
        (("", ""), ("--schedulers", "iocost"), "iocost needs a drive of --device: use a job file"),
        (("depth 32", "depth x"), (), "{path}: line 12: depth 'x': use a number from"),
        (("load", "# load"), (), "{path}: no load of a flow: add load FLOW depth N bytes N"),
        (("load b", "load c"), (), "{path}: line 13: no flow 'c'"),
        (("load b depth", "load\nload b depth"), (), "{path}: line 13: the flow is missing"),
        (("seed 7", "seed x"), (), "{path}: line 4: seed 'x': use a number from"),
        (("start_ms 50", "trace no.trace"), (), "{path}:13: trace no.trace: "),
    ],
)
def test_scene_that_cannot_be_played_is_named(tmp_path, capsys, change, argv, said):
    path = tmp_path / "scene.txt"
    path.write_text(SCENE.replace(*change))
    code, _, err = run(capsys, str(path), *argv)
    assert code == 2
    assert said.format(path=path) in err

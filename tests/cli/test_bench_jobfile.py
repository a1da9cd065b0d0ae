# SPDX-License-Identifier: GPL-2.0
"""fio job files with cgroups: options that are removed, kept, and refused."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mqfair.bench import fio_keys, jobfile, replays
from mqfair.bench.simulated import options
from mqfair.due import due_of_cgroups
from mqfair.text.errors import UsageError

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.fio"))

TWO = """\
; two tenants
[global]
ioengine=libaio
direct=1
rw=randread
runtime=4

[a]           # the first
cgroup=a
cgroup_weight=250
iodepth=8

[b]
cgroup=b
time_based
"""


def parse(text, runtime_s=None):
    return jobfile.parse(text, "j.fio", runtime_s)


def refused(text):
    with pytest.raises(UsageError) as caught:
        parse(text)
    return str(caught.value)


def test_weights_and_defaults():
    job = parse(TWO)
    assert dict(job.weights) == {"a": 250, "b": 100}
    assert [group.name for group in job.groups] == ["a", "b"]


def test_fio_gets_its_own_options_only():
    job = parse(TWO)
    assert job.groups[0].jobs[0].options == (
        "ioengine=libaio",
        "direct=1",
        "rw=randread",
        "iodepth=8",
    )
    assert job.groups[1].jobs[0].options == ("ioengine=libaio", "direct=1", "rw=randread")


def test_global_applies_to_later_sections_only():
    job = parse("[a]\ncgroup=a\nrw=read\n[global]\niodepth=4\n[b]\ncgroup=b\nrw=read\n")
    assert job.groups[0].jobs[0].options == ("rw=read",)
    assert job.groups[1].jobs[0].options == ("iodepth=4", "rw=read")


def test_sections_of_one_cgroup_are_its_jobs():
    job = parse("[x]\ncgroup=a\nrw=read\ncgroup_weight=7\n[x]\ncgroup=a\nrw=write\n")
    assert len(job.groups) == 1
    assert [one.options for one in job.groups[0].jobs] == [("rw=read",), ("rw=write",)]
    assert job.weights["a"] == 7


NESTED = """\
[global]
{shared}
[prod]
cgroup=prod
cgroup_weight=900
[db]
cgroup=prod/db
cgroup_weight=500
{own}
[web]
cgroup=prod/web
cgroup_weight=500
{own}
[batch]
cgroup=batch
{own}
"""


@pytest.mark.parametrize(("shared", "own"), [("", "rw=read"), ("rw=read", "")])
def test_a_section_without_its_own_rw_carries_an_inner_weight(shared, own):
    job = parse(NESTED.format(shared=shared, own=own))
    assert [group.name for group in job.groups] == ["prod/db", "prod/web", "batch"]
    assert job.weights["prod"] == 900


def test_an_inner_cgroup_without_a_section_has_weight_100():
    job = parse("[a]\ncgroup=x/y/a\nrw=read\n")
    assert dict(job.weights) == {"x": 100, "x/y": 100, "x/y/a": 100}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_parse_and_their_dues_add_up(path):
    job = jobfile.load(str(path))
    due = due_of_cgroups(job.weights, {group.name: 1.0 for group in job.groups})
    assert sum(due.values()) == pytest.approx(1)
    assert job.notes == ()


def test_there_are_examples():
    assert len(EXAMPLES) >= 9


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("4", 4), ("1500ms", 1.5), ("2s", 2), ("1m", 60), ("250000us", 0.25), ("0.5", 0.5)],
)
def test_durations(text, seconds):
    job = parse(f"[a]\ncgroup=a\nrw=read\nruntime={text}\nramp_time={text}\n")
    assert job.window_s == pytest.approx(seconds)
    assert job.ramp_s == pytest.approx(seconds)


def test_the_window_is_as_long_as_the_shortest_job():
    text = "[a]\ncgroup=a\nrw=read\nruntime=10\n[b]\ncgroup=b\nrw=read\nruntime=4\n"
    assert (parse(text).window_s, parse(text).longest_s) == (4, 10)
    shorter = parse(text, runtime_s=5)
    assert (shorter.window_s, shorter.longest_s) == (2, 5)


def test_a_delayed_job_is_recognised():
    job = parse("[a]\ncgroup=a\nrw=read\nstartdelay=2\n[b]\ncgroup=b\nrw=read\n")
    assert [group.jobs[0].delayed for group in job.groups] == [True, False]


def test_replaced_options_are_reported_once():
    job = parse("[global]\nfilename=/dev/sda\n[a]\ncgroup=a\nrw=read\n[b]\ncgroup=b\nrw=read\n")
    assert len(job.notes) == 1
    assert job.notes[0].startswith("j.fio:2: filename=/dev/sda not used")
    assert job.groups[0].jobs[0].options == ("rw=read",)


def test_environment_variables_are_those_of_the_caller(monkeypatch):
    monkeypatch.setenv("DEPTH", "16")
    assert parse("[a]\ncgroup=a\nrw=read\niodepth=${DEPTH}\n").groups[0].jobs[0].options == (
        "rw=read",
        "iodepth=16",
    )
    monkeypatch.delenv("DEPTH")
    assert "j.fio:4: environment variable DEPTH" in refused(
        "[a]\ncgroup=a\nrw=read\niodepth=${DEPTH}\n"
    )


@pytest.mark.parametrize("weight", ["0", "-1", "10001", "abc", "1.5", "1e3"])
def test_bad_weights_name_their_line(weight):
    message = refused(f"[a]\ncgroup=a\nrw=read\ncgroup_weight={weight}\n")
    assert message.startswith(f"j.fio:4: cgroup_weight={weight}")
    assert "1..10000" in message


@pytest.mark.parametrize("weight", ["1", "10000"])
def test_the_limits_of_the_range_are_valid(weight):
    text = f"[a]\ncgroup=a\nrw=read\ncgroup_weight={weight}\n"
    assert parse(text).weights["a"] == int(weight)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "j.fio: no job section"),
        ("[global]\nrw=read\n", "j.fio: no job section: add one such as [a] with cgroup=a"),
        ("[a]\nrw=read\n", "j.fio:1: section [a] has no cgroup="),
        ("rw=read\n[a]\ncgroup=a\n", "j.fio:1: 'rw=read' is before the first"),
        ("[a\ncgroup=a\n", "j.fio:1: '[a' is not a section header"),
        ("[]\n", "j.fio:1: '[]' is not a section header"),
        ("[a]\ncgroup=\nrw=read\n", "j.fio:2: cgroup has no value"),
        ("[a]\ncgroup\nrw=read\n", "j.fio:1: section [a] has no cgroup="),
        ("[a]\ncgroup=a\n", "j.fio: no section does I/O"),
        ("[a]\ncgroup=a\nrw=read\n[b]\ncgroup=b\n", "j.fio:4: no section in cgroup b does I/O"),
        ("[a]\ncgroup=../a\nrw=read\n", "j.fio:2: cgroup=../a"),
        ("[a]\ncgroup=/a\nrw=read\n", "j.fio:2: cgroup=/a"),
        ("[a]\ncgroup=a//b\nrw=read\n", "j.fio:2: cgroup=a//b"),
        ("[a]\ncgroup=a'b\nrw=read\n", "j.fio:2: cgroup=a'b"),
        ("[a]\ncgroup=cgroup.procs\nrw=read\n", "j.fio:2: cgroup=cgroup.procs"),
        (
            "[a]\ncgroup=a\nrw=read\n[b]\ncgroup=b\nrw=read\nstonewall\n",
            "j.fio:7: stonewall is not supported: all sections run at the same time: remove it, or"
            " choose one section by --section",
        ),
        (
            "[global]\nrw=read\nwait_for_previous\n[a]\ncgroup=a\n[b]\ncgroup=b\n",
            "j.fio:3: wait_for_previous is not supported",
        ),
        (
            "[a]\ncgroup=a\nrw=read\nioscheduler=none\n",
            "j.fio:4: ioscheduler is not supported: the bench sets the scheduler: remove it, and"
            " name it in --schedulers",
        ),
        ("[a]\ncgroup=a\nrw=read\nlatency_target=500\n", "j.fio:4: latency_target is not"),
        ("[a]\ncgroup=a\nrw=read\nprofile=act\n", "j.fio:4: profile is not supported"),
        ("[a]\ncgroup=a\nrw=read\nioengine=null\n", "it sends no request to a block device"),
        ("[a]\ncgroup=a\nrw=read\nioengine=sg\n", "its requests pass every scheduler by"),
        ("[a]\ncgroup=a\nrw=read\nexec_prerun=x\n", "j.fio:4: exec_prerun is not supported"),
        ("include other.fio\n[a]\ncgroup=a\n", "is before the first"),
        ("[a]\ninclude other.fio\n", "j.fio:2: include is not supported"),
        ("[a]\ncgroup=a\nrw=read\nruntime=soon\n", "j.fio:4: runtime=soon"),
        ("[a]\ncgroup=a\nrw=read\nruntime=0\n", "j.fio:4: runtime=0"),
        ("[a]\ncgroup=a\nrw=read\nruntime=300h\n", "j.fio:4: runtime=300h: use at most 604800"),
        (
            "[a]\ncgroup=p\nrw=read\n[b]\ncgroup=p/b\nrw=read\n",
            "j.fio:1: cgroup p does I/O and contains p/b",
        ),
        (
            "[a]\ncgroup=a\nrw=read\ncgroup_weight=1\n[b]\ncgroup=a\nrw=read\ncgroup_weight=2\n",
            "j.fio:8: cgroup a has weight 2 here and 1 on line 4",
        ),
    ],
)
def test_refusals_name_place_and_hint(text, says):
    assert says in refused(text)


def test_a_missing_file_and_a_binary_one_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"gone\.fio: No such file or directory: name a fio job"):
        jobfile.load(str(tmp_path / "gone.fio"))
    (tmp_path / "binary.fio").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not text"):
        jobfile.load(str(tmp_path / "binary.fio"))


KEY = "[a]\ncgroup=a\nrw=read\n{}\n"


@pytest.mark.parametrize("key", sorted(fio_keys.REPLACED))
def test_each_key_that_would_change_the_measurement_is_replaced_with_a_note(key):
    for line in (f"{key}=7", key):
        job = parse(KEY.format(line))
        assert job.notes == (f"j.fio:4: {line} not used: {fio_keys.REPLACED[key]}",)
        assert job.groups[0].jobs[0].options == ("rw=read",)


@pytest.mark.parametrize(
    "line",
    [
        *("gtod_reduce=0", "verify=0", "verify=none", "thread=0", "number_ios=0", "io_size=0"),
        *("loops=1", "nrfiles=1", "stats=1", "exitall=0", "stonewall=0", "wait_for_previous=0"),
        *("disable_lat=0", "log_avg_msec=0", "latency_window=5000", "steadystate=0", "unlink=0"),
        *("unified_rw_reporting=none", "continue_on_error=none", "create_serialize=1"),
    ],
)
def test_a_value_that_means_the_absence_of_a_key_needs_no_note(line):
    job = parse(f"[b]\ncgroup=b\nrw=read\n{KEY.format(line)}")
    assert job.notes == ()
    assert job.groups[1].jobs[0].options == ("rw=read",)


@pytest.mark.parametrize("key", sorted(fio_keys.REFUSED))
def test_each_refused_key_names_its_place_and_the_mend(key):
    needed = fio_keys.NEEDS.get(key)
    more = f"\n{needed}=3" if needed else ""
    text = f"[b]\ncgroup=b\nrw=read\n{KEY.format(f'{key}=3{more}')}"
    said = refused(text)
    assert said.startswith(f"j.fio:{7 + bool(needed) if said.split(' ')[1] != key else 7}: ")
    assert "is not supported: " in said


@pytest.mark.parametrize(
    "line", ["log_prio=1", "log_offset=1", "prioclass=1", "nice=5", "cpus_allowed=0", "fsync=8"]
)
def test_all_other_keys_reach_fio(line):
    job = parse(KEY.format(line))
    assert job.notes == ()
    assert job.groups[0].jobs[0].options == ("rw=read", line)


STAGES = """\
[global]
rw=write
thread=0
[fill]
cgroup=a
[age]
stonewall
cgroup=a
[read]
stonewall
rw=randread
cgroup=b
"""


def test_a_section_that_waits_for_others_can_be_chosen_alone():
    for name, line in (("fill", "rw=write"), ("age", "rw=write"), ("read", "rw=randread")):
        job = jobfile.parse(STAGES, "j.fio", None, [name])
        (one,) = [one for group in job.groups for one in group.jobs]
        assert (one.name, one.options[-1]) == (name, line)
    both = ["fill", "read"]
    with pytest.raises(UsageError, match=r"j\.fio:10: stonewall is not supported"):
        jobfile.parse(STAGES, "j.fio", None, both)
    with pytest.raises(UsageError, match=r"--section raed: j\.fio has no section .*: did you mean"):
        jobfile.parse(STAGES, "j.fio", None, ["raed"])


def test_each_option_of_fio_has_its_place_in_the_tables():
    """A new option of fio is judged before a bench passes it on."""
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    said = subprocess.run(["fio", "--cmdhelp=all"], capture_output=True, text=True, check=True)
    found = re.findall(r"^([a-z][\w-]*) *:", said.stdout, re.MULTILINE)
    assert len(found) > 100
    judged = {*fio_keys.REPLACED, *fio_keys.REFUSED, *fio_keys.ABSORBED, *fio_keys.WITHOUT_EFFECT}
    judged |= {*options._NEUTRAL, *options._DEPENDENT, *options._PLACES, *options._NOT_FOLLOWED}
    judged |= {*options._Reader("", None)._handlers, *replays._OWN}
    assert set(found) - judged == {"sync_file_range"}

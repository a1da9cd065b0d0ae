# SPDX-License-Identifier: GPL-2.0
"""Mistakes that an operator made in a trial: each gets one line with a mend.

test_mends.py has those of a newcomer, and test_config.py those of /etc/mqfair.conf.
"""

import errno
import json
import os
import pty
import select
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from test_compare import bench
from test_main import CHECKOUT

from mqfair import __main__ as command
from mqfair.follow.follow import SHOWN, Service
from mqfair.machine.fs import Fs
from mqfair.text.errors import Failure
from mqfair.text.output import quoted, visible
from mqfair.watch import metrics

JOB = CHECKOUT / "examples/four-cgroups.fio"
PATIENCE_S = 30
CONF = "/etc/mqfair.conf"
DEVICE = '[[device]]\nmatch = "nvme0n1"\n'
WEIGHT = '[[weight]]\ncgroup = "prod/db"\nweight = 5\n'
BYTES = os.fsdecode(b"caf\xe9")
SCHEDULER = "/sys/block/nvme0n1/queue/scheduler"
STAT = "259:0 rbytes=1 wbytes=0 rios=1 wios=0 dbytes=0 dios=0 mqfair.weight=100 mqfair.ios=1"


@pytest.fixture
def host(machine):
    machine.install_module()
    machine.disk(active="mqfq")
    machine.partition("nvme0n1", "nvme0n1p1", "259:2")
    machine.cgroup("prod", subtree="cpu io memory")
    machine.cgroup("prod/db")
    return machine


def one_line(result, code):
    assert (result.code, result.out, result.err.count("\n")) == (code, "", 1)
    return result.err


# --- /etc/mqfair.conf ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "mend"),
    [
        (
            "[[device]]\nmatch = \u201cnvme0n1\u201d\n",
            'write match = "nvme0n1", in straight quotes',
        ),
        ("[[device]]\nmatch: nvme0n1\n", 'write match = "nvme0n1", in quotes'),
        ("[[weight]]\nweight: 900\n", "write weight = 900"),
        (DEVICE + 'match = "sda"\n', "a table has each key once: remove one, or begin another"),
        ("; mine\n" + DEVICE, "a comment begins with #"),
        ('[[device]]\nmatch = "nvme0n1" // mine\n', "a comment begins with #"),
        ("a = " + "[" * 9999 + "\n", "brackets are nested too deep"),
        ('match = "nvme0n1"\n', "write it below a line [[device]]"),
        ('unit = "a.service"\n', "write it below a line [[weight]]"),
        (DEVICE + "[tunables]\ndepth = 64\n", "write tunables = { … } below [[device]]"),
        (DEVICE + "depth = 64\n", "it is a tunable: write tunables = { depth = … }"),
        (DEVICE + "mirror = false\n", "move it above the first [[device]]"),
        (DEVICE + 'scheduler = "MQFQ"\n', "did you mean mqfq?"),
        ('[[device]]\nmatch = ["sda", "sdb"]\n', "use one text in quotes, and a [[device]] for"),
        ('[[device]]\nmatch = "nvme0n1p1"\n', 'a partition has no scheduler: use "nvme0n1"'),
        ('[[device]]\nmatch = "/dev/nvme0n1p1"\n', 'use "/dev/nvme0n1"'),
        ('[[weight]]\ncgroup = "a[z-b]"\nweight = 5\n', "write [a-z] with the lesser character"),
        ('[[weight]]\nunit = "-.slice"\nweight = 5\n', "is the root cgroup, which has no weight"),
    ],
)
def test_a_mistake_in_the_configuration(host, run, text, mend):
    host.put(CONF, text)
    assert mend in one_line(run("follow", "--check"), 2)


@pytest.mark.parametrize(
    ("content", "mend"),
    [
        (DEVICE.encode("utf-16"), f"cannot read {CONF}: no text in UTF-8: save it as UTF-8"),
        (b"# caf\xe9\n" + DEVICE.encode(), "no text in UTF-8: save it as UTF-8"),
        (None, "Is a directory: remove the folder, and write a file"),
    ],
)
def test_a_configuration_that_is_no_text(host, run, content, mend):
    file = host.put(CONF, "")
    if content is None:
        file.unlink()
        file.mkdir()
    else:
        file.write_bytes(content)
    assert mend in one_line(run("follow", "--check"), 2)


@pytest.mark.parametrize("mark", ["\ufeff", "\t"])
def test_the_files_of_other_editors_are_read(host, run, mark):
    host.put(CONF, mark + DEVICE.replace("\n", "\r\n"))
    assert run("follow", "--check").code == 0


def test_without_a_configuration_the_help_has_an_example(host, run, capsys):
    assert "mqfair follow --help shows an example" in one_line(run("follow", "--check"), 2)
    with pytest.raises(SystemExit):
        command.main(["follow", "--help"])
    text = capsys.readouterr().out
    example = text[text.index("  [[device]]") :]
    lines = [line.strip() for line in example.splitlines() if line.strip()]
    host.put(CONF, "\n".join(line.split("   ")[0] for line in lines))
    assert run("follow", "--check").code == 0


def test_the_service_names_a_rule_without_a_disk(host, capsys):
    host.put(CONF, DEVICE.replace("nvme0n1", "nvmeOn1"))
    service = Service(Fs())
    service._complain()
    service._reload_config()
    assert capsys.readouterr().out.count(f"note: {CONF}:1: no disk 'nvmeOn1' is here now\n") == 2


def test_a_rule_that_an_earlier_one_hides_is_told(host, run):
    host.put(CONF, DEVICE + DEVICE + WEIGHT + WEIGHT.replace("prod/db", "prod/*"))
    out = run("follow", "--check").out.splitlines()
    assert out[1] == f"{CONF}:3: mqfq on no disk: an earlier rule has nvme0n1"
    assert out[3] == f"{CONF}:8: weight 5 for no cgroup: an earlier rule has prod/db"
    found = run("follow", "--check", "--json").json
    assert [one["disks"] for one in found["devices"]] == [["nvme0n1"], []]


# --- names -----------------------------------------------------------------------------------


def test_names_are_shown_as_a_shell_takes_them():
    assert visible("my app ünï") == "my app ünï"
    assert (visible("a\nb"), visible(BYTES)) == (r"a\x0ab", r"caf\xe9")
    assert visible("\ud800") == r"\xed\xa0\x80"
    for name in ("my app", "a\nb", "it's\x1b", "back\\slash\n", BYTES):
        shell = subprocess.run(
            ["bash", "-c", f"printf %s {quoted(name)}"], capture_output=True, check=True
        )
        assert os.fsdecode(shell.stdout) == name


def test_a_terminal_obeys_no_name(host, run):
    for name in ("new\nline", "red\x1b[31m", BYTES):
        host.cgroup(name, stat=STAT, weight="default 7")
        outputs = [
            run("weight", name), run("status"), run("check", "nvme0n1", name),
            run("weight", f"{name}x", "5"), run("weight", name, "0"), run("follow", "--once"),
        ]  # fmt: skip
        assert run("weight", name).out == f"{visible(name)}  default  7\n"
        text = "".join(one.out + one.err for one in outputs)
        assert all(one.isprintable() for one in text.replace("\n", "")), ascii(text)
        assert outputs[3].err.count("\n") == 1


def called(host, *words, **env):
    """The command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "mqfair", *words], cwd=CHECKOUT, capture_output=True, text=True,
        check=False, env={**os.environ, "MQFAIR_ROOT": str(host.root), **env},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_name_that_is_no_text_does_not_stop_the_metrics(host):
    host.cgroup(BYTES, stat=STAT)
    assert r'cgroup="caf\\xe9"' in called(host, "metrics")


def test_an_encoding_without_the_characters_of_a_name(host):
    host.cgroup("ünï", weight="default 7")
    assert called(host, "weight", "ünï", PYTHONIOENCODING="ascii") == "\\xfcn\\xef  default  7\n"


@pytest.mark.parametrize(
    ("name", "mend"),
    [
        ("y" * 300, "300 bytes, and a name has at most 255: check the name"),
        ("/".join("y" * 3000), "no cgroup has a path of 3000 names: check the path"),
        ("-.slice", "a name with - in front goes behind --"),
    ],
)
def test_a_bad_name(host, run, name, mend):
    assert mend in one_line(run("weight", name, "5"), 2)
    assert host.stores == []


def test_the_root_slice_is_the_root(host, run):
    said = one_line(run("weight", "--", "-.slice", "5"), 2)
    assert "the root cgroup has no weight: name a cgroup below it" in said


def test_a_refusal_of_all_weights_is_told_for_some(host, run):
    """As in a container with cgroups that are read-only."""
    for number in range(SHOWN + 5):
        name = f"prod/{number}"
        host.cgroup(name, io_weight="default 900")
        host.refuse[f"/sys/fs/cgroup/{name}/io.mqfair.weight"] = [errno.EROFS]
    result = run("follow", "--once")
    assert (result.code, result.err) == (1, "")
    lines = result.out.splitlines()
    assert len(lines) == SHOWN + 2
    assert "the mount is read-only: run outside of the container" in lines[0]
    assert lines[-2] == "error: and 5 more weights were not written"


# --- words in the wrong place ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "mend"),
    [
        (["enable", "nvme0n1", "mqfq"], "it is a scheduler: write --scheduler mqfq"),
        (["enable", "nvme0n1", "none"], "mqfair disable DEVICE --to none"),
        (["enable", "nvme0n1", "depth=64"], "write --depth 64"),
        (["top", "nvme0n1,sda"], "write the names with spaces between them: nvme0n1 sda"),
        (["help"], "write --help"),
        (["version"], "write --version"),
        (["sim", str(JOB), "--schedulers", "mqfq ifq"], "write mqfq,ifq"),
    ],
)
def test_a_word_in_the_wrong_place(host, run, words, mend):
    assert mend in one_line(run(*words), 2)
    assert host.stores == []


def test_a_root_that_does_not_exist(run, monkeypatch):
    monkeypatch.setenv("MQFAIR_ROOT", "/nosuch")
    for words in (["status"], ["weight", "prod", "5"], ["top", "--once"]):
        assert "MQFAIR_ROOT=/nosuch: no such folder: unset it" in one_line(run(*words), 2)


# --- files -----------------------------------------------------------------------------------


@pytest.fixture
def recorded(host, run, tmp_path):
    host.put("/sys/fs/cgroup/prod/db/io.stat", STAT)
    file = tmp_path / "r.jsonl"
    assert run("record", "--seconds", "0.2", "--interval", "0.1", "--out", str(file)).code == 0
    return str(file)


def test_no_file_that_is_read_is_replaced(recorded, run, tmp_path):
    results = [bench(tmp_path / f"{name}.json", [1.0]) for name in "ab"]
    job = tmp_path / "j.fio"
    job.write_text(JOB.read_text())
    for words in (
        ["report", recorded, "--out", recorded],
        ["report", recorded, "--csv", recorded],
        ["compare", *results, "--csv", results[1]],
        ["sim", str(job), "--json", str(job)],
    ):
        before = (tmp_path / words[-1]).read_text()
        said = one_line(run(*words), 2)
        assert f"{words[-1]}: it is a file that is read: name another file" in said
        assert (tmp_path / words[-1]).read_text() == before


def test_a_report_is_no_picture(recorded, run, tmp_path):
    said = one_line(run("report", recorded, "--out", str(tmp_path / "x.PNG")), 2)
    assert "the report is HTML: name a file that ends in .html" in said


def test_a_full_disk_is_named(recorded, run):
    said = one_line(run("report", recorded, "--csv", "/dev/full"), 1)
    assert "cannot write /dev/full: No space left on device" in said
    assert "free space, or name another file" in said


def test_a_full_disk_ends_a_recording(host, run):
    said = one_line(run("record", "--seconds", "0.1", "--interval", "0.1", "--out", "/dev/full"), 1)
    assert said.endswith("it has 0 samples: free space, or name another file\n")


def test_a_drive_that_goes_while_it_is_recorded(host, run, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "mqfair.watch.record.time.sleep", lambda _: host.put(SCHEDULER, "mqfq [none]")
    )
    words = ["--seconds", "0.2", "--interval", "0.1", "--out", str(tmp_path / "x")]
    assert run("record", *words).out.splitlines()[1] == (
        "note: nvme0n1 was removed or lost its scheduler before the end: mqfair status"
    )


@pytest.mark.parametrize("text", ["", "<html>", json.dumps([1])])
def test_a_file_that_is_neither_recording_nor_result(run, tmp_path, text):
    (tmp_path / "x").write_text(text)
    said = one_line(run("report", str(tmp_path / "x"), "--csv", "-"), 2)
    assert "`mqfair record --out FILE` or `mqfair bench JOB --json FILE` makes" in said


# --- terminals and ports ---------------------------------------------------------------------


def started(host, *words, **env):
    """A command on a terminal that does not know its size, and the terminal's other end."""
    ours, theirs = pty.openpty()
    program = subprocess.Popen(
        [sys.executable, "-m", "mqfair", *words], stdin=theirs, stdout=theirs, stderr=theirs,
        cwd=CHECKOUT, env={**os.environ, "MQFAIR_ROOT": str(host.root), **env},
    )  # fmt: skip
    os.close(theirs)
    return program, ours


def shown(ours, words):
    """The text on the terminal up to @words, or to its end."""
    text = ""
    ends = time.monotonic() + PATIENCE_S
    while words not in text and select.select([ours], [], [], ends - time.monotonic())[0]:
        try:
            text += os.read(ours, 4096).decode()
        except OSError:
            break
    return text


def test_a_terminal_without_a_size_has_80_columns(host):
    program, ours = started(host, "top", "--interval", "0.1", TERM="xterm")
    foot = "0.1 s  sort achieved  ? help  q quit".ljust(80)
    assert foot in shown(ours, foot)
    os.write(ours, b"q")
    assert "1049l" in shown(ours, "1049l")
    assert program.wait(PATIENCE_S) == 0
    os.close(ours)


def test_a_long_name_loses_its_begin_on_a_terminal_alone(host):
    pod = "kubepods.slice/kubepods-pod0123456789.slice"
    for name in (pod, f"{pod}/cri-containerd-{'ab' * 32}.scope"):
        host.cgroup(name, stat=STAT)
    program, ours = started(host, "status", NO_COLOR="1", COLUMNS="100")
    text = shown(ours, "abab.scope")
    program.wait(PATIENCE_S)
    os.close(ours)
    lines = [line for line in text.splitlines() if "kubepods" in line or "abab" in line]
    assert max(map(len, text.splitlines())) <= 100
    assert len(lines) == 2 and "…" in lines[1]
    assert f"  {name} " in called(host, "status")


def test_a_dumb_terminal_is_named(host):
    program, ours = started(host, "top", TERM="dumb")
    text = shown(ours, "--json")
    assert text.startswith("mqfair: TERM=dumb: the live picture needs a terminal that moves its")
    assert program.wait(PATIENCE_S) == 2
    os.close(ours)


def test_a_port_that_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Failure, match=f":{port}: Address already in use: choose another port"):
            metrics.listener(f"127.0.0.1:{port}")


def test_the_endpoint_tells_its_address(host):
    program, ours = started(host, "metrics", "--listen", "127.0.0.1:0", "--idle-exit", "5")
    address = shown(ours, "/metrics\r\n").strip()
    with urllib.request.urlopen(address, timeout=PATIENCE_S) as answer:
        assert b"mqfair_module_loaded 1.0" in answer.read()
    program.terminate()
    program.wait(PATIENCE_S)
    os.close(ours)

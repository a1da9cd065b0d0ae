# SPDX-License-Identifier: GPL-2.0
import errno

import pytest

from mqfair.machine.fs import BUSY_DELAYS_S, Fs, Write
from mqfair.text.errors import Failure

FILE = "/sys/block/nvme0n1/queue/scheduler"


@pytest.fixture
def fs(tmp_path):
    (tmp_path / "sys/block/nvme0n1/queue").mkdir(parents=True)
    (tmp_path / FILE.lstrip("/")).write_text("[none] mq-deadline\n")
    return Fs(str(tmp_path))


def test_write_reaches_the_file_and_the_record(fs):
    fs.write(FILE, "mqfq")
    assert fs.read(FILE) == "mqfq"
    assert [str(write) for write in fs.writes] == [f"write 'mqfq' to '{FILE}'"]


def test_dry_run_records_and_writes_nothing(fs):
    dry = Fs(fs.root, dry_run=True)
    dry.write(FILE, "mqfq")
    assert dry.writes == [Write(FILE, "mqfq")]
    assert dry.read(FILE) == "[none] mq-deadline\n"


def test_write_never_creates_a_file(fs, tmp_path):
    with pytest.raises(Failure, match=r"cannot write '1' to /sys/none: No such file"):
        fs.write("/sys/none", "1")
    assert not (tmp_path / "sys/none").exists()


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (errno.EACCES, "run as root"),
        (errno.EPERM, "run as root"),
        (errno.EROFS, "read-only"),
        (errno.EINVAL, "does not accept this value"),
        (errno.ENODEV, "was removed"),
        (errno.EOPNOTSUPP, "does not support"),
        (errno.ENOMEM, "smaller value"),
    ],
)
def test_errors_name_file_value_and_hint(fs, monkeypatch, code, hint):
    def refuse(_self, _path, _value):
        raise OSError(code, "refused")

    monkeypatch.setattr(Fs, "_store", refuse)
    with pytest.raises(Failure) as failure:
        fs.write(FILE, "mqfq")
    text = str(failure.value)
    assert FILE in text
    assert "'mqfq'" in text
    assert hint in text


def test_a_callers_hint_replaces_the_usual_one(fs, monkeypatch):
    def refuse(_self, _path, _value):
        raise OSError(errno.EINVAL, "refused")

    monkeypatch.setattr(Fs, "_store", refuse)
    with pytest.raises(Failure, match="Invalid argument: load it"):
        fs.write(FILE, "mqfq", {errno.EINVAL: "load it"})


def test_busy_is_tried_again_with_growing_delays(fs, monkeypatch, delays):
    answers = [errno.EBUSY, errno.EBUSY, 0]
    taken = []

    def store(_self, _path, value):
        code = answers.pop(0)
        if code:
            raise OSError(code, "busy")
        taken.append(value)

    monkeypatch.setattr(Fs, "_store", store)
    fs.write(FILE, "mqfq")
    assert taken == ["mqfq"]
    assert delays == list(BUSY_DELAYS_S[:2])
    assert len(fs.writes) == 1


def test_a_file_that_stays_busy_is_an_error(fs, monkeypatch, delays):
    def store(_self, _path, _value):
        raise OSError(errno.EBUSY, "busy")

    monkeypatch.setattr(Fs, "_store", store)
    with pytest.raises(Failure, match=r"busy in all 6 tries over 1\.6 s"):
        fs.write(FILE, "mqfq")
    assert delays == list(BUSY_DELAYS_S)


def test_read_errors(fs):
    with pytest.raises(Failure, match="cannot read /proc/none"):
        fs.read("/proc/none")
    assert fs.read_if_any("/proc/none") is None


def test_unreadable_is_not_absent(fs, monkeypatch):
    def refuse(_self, _path):
        raise PermissionError(errno.EACCES, "denied")

    monkeypatch.setattr(Fs, "_load", refuse)
    with pytest.raises(Failure, match="run as root"):
        fs.read_if_any(FILE)


def test_resolve_stays_inside_the_root(fs, tmp_path):
    (tmp_path / "sys/class/block").mkdir(parents=True)
    (tmp_path / "sys/class/block/nvme0n1").symlink_to("../../block/nvme0n1")
    assert fs.resolve("/sys/class/block/nvme0n1") == "/sys/block/nvme0n1"

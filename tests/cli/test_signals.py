# SPDX-License-Identifier: GPL-2.0
import os
import signal

import pytest

from mqfair.machine.signals import ENDING, ending_at_ease, guarded, interrupted_once


@pytest.mark.parametrize("how", ENDING)
def test_only_the_first_signal_interrupts(how):
    """The others come during the clean-up."""
    cleaned = []
    handlers = [signal.getsignal(one) for one in ENDING]
    with pytest.raises(KeyboardInterrupt), interrupted_once():
        try:
            signal.raise_signal(how)
            cleaned.append("not interrupted")
        finally:
            for one in ENDING:
                signal.raise_signal(one)
            cleaned.append("cleaned")
    assert cleaned == ["cleaned"]
    assert [signal.getsignal(one) for one in ENDING] == handlers


def killed(restore):
    """Runs a program that is killed in a guarded block, to the end of its guardian."""
    reader, writer = os.pipe()
    program = os.fork()
    if program == 0:
        with guarded(restore):
            os.kill(os.getpid(), signal.SIGKILL)
    os.close(writer)
    # The guardian has the other end of the pipe until it ends.
    os.read(reader, 1)
    os.close(reader)
    return os.waitpid(program, 0)[1]


def test_a_guardian_restores_for_a_killed_program(tmp_path):
    (tmp_path / "setting").write_text("changed")
    status = killed(lambda: (tmp_path / "setting").write_text("as before"))
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert (tmp_path / "setting").read_text() == "as before"


def test_a_guardian_that_fails_leaves_no_process(tmp_path):
    killed(lambda: (tmp_path / "nosuch" / "setting").write_text("as before"))


@pytest.mark.parametrize("error", [None, ValueError])
def test_a_living_program_restores_itself(tmp_path, error):
    (tmp_path / "setting").write_text("changed")
    try:
        with guarded(lambda: (tmp_path / "setting").write_text("by the guardian")):
            if error:
                raise error
    except ValueError:
        assert error
    assert (tmp_path / "setting").read_text() == "changed"


def test_the_first_signal_is_told_and_the_second_interrupts():
    with pytest.raises(KeyboardInterrupt), ending_at_ease() as ended:
        assert not ended()
        signal.raise_signal(signal.SIGTERM)
        assert ended()
        signal.raise_signal(signal.SIGINT)
    assert ended()

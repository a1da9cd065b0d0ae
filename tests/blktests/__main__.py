# SPDX-License-Identifier: GPL-2.0
"""Runs groups of blktests with our schedulers on all disks, beside mq-deadline, in guests.

    make blktests BLKTESTS=~/blktests                # all groups, mqfq and hwabc, on Linux 6.12
    make blktests KERNEL=7.2 SCHEDULER=all           # every scheduler of the module
    make blktests GROUPS="loop block/005"            # groups, or tests by their names

BLKTESTS is a checkout of https://github.com/linux-blktests/blktests. It is copied and built in
build/blktests/, so the checkout stays as it is.

Only differences from mq-deadline are listed. A test that differs is run up to two times more under
both. A difference that does not last is listed, and does not count. expected.toml has the
differences that are expected, with their reasons. Outcomes are kept in build/blktests/; with
--kept, a test with a kept outcome does not run again.

Exit status: 0 all differences are explained, 1 some are not or a test hung, 2 a wrong argument.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import hashlib
import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE), str(ROOT / "tests/vm")]

import consoles  # noqa: E402
import results  # noqa: E402
from results import HUNG, Key, Outcome, Outcomes  # noqa: E402

import lab  # noqa: E402
from lab import kernel, module  # noqa: E402
from lab.tree import KernelTree  # noqa: E402
from mqfair.schedulers import SCHEDULERS  # noqa: E402

SOURCE = "https://github.com/linux-blktests/blktests"
# The groups, those with the shortest tests first.
GROUPS = ("loop", "scsi", "zbd", "block", "throtl", "nvme")
REFERENCE = "mq-deadline"
DEFAULT_SCHEDULERS = ("mqfq", "hwabc")
DEFAULT_KERNEL = "6.12"
EXPECTED = HERE / "expected.toml"
FOLDER = ROOT / "build/blktests"
# The time of the runner around a test: it kills a hung one, and reads the kernel log.
_AROUND_A_TEST_S = 180.0
_BOOT_S = 600.0
_DRIVES = ("size=1G,queues=2", "size=8G,queues=2")
# throtl/006 makes a file system on a null_blk of 250 GiB.
_MEMORY_MB = 8192
# The further runs of a test that differs. An emulated guest on a busy machine is too slow for some
# tests now and then, such as block/017, which gives a process a tenth of a second to start.
_RUNS_MORE = 2


class Wrong(Exception):
    """A wrong argument; the text names a remedy."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """The parts of a run that are the same for all schedulers. @checkout is built. @limit_s ends a
    test, and @quick_s is the time of a test that asks for one."""

    kernel: str
    checkout: Path
    limit_s: float
    quick_s: int
    kept: bool


def main() -> int:
    args = _arguments()
    try:
        checkout = built(Path(args.checkout).expanduser())
        tests = tests_of(checkout, args.groups or GROUPS)
        expected = results.read_expected(EXPECTED)
        plan = Plan(args.kernel, checkout, args.limit, args.quick, args.kept)
        return compare(plan, args.schedulers, tests, expected, args.jobs)
    except (Wrong, ValueError) as error:
        print(f"blktests: {error}", file=sys.stderr)
        return 2
    except lab.LabError as error:
        print(f"blktests: {error}", file=sys.stderr)
        return 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests/blktests", description=__doc__.splitlines()[0])
    parser.add_argument(
        "groups", nargs="*", metavar="GROUP|TEST", help=f"all, or some of {', '.join(GROUPS)}"
    )
    parser.add_argument(
        "--checkout", default="blktests", metavar="FOLDER", help=f"a checkout of {SOURCE}"
    )
    parser.add_argument("--kernel", choices=lab.KERNELS, default=DEFAULT_KERNEL, metavar="NAME")
    parser.add_argument(
        "--schedulers",
        type=schedulers_of,
        default=list(DEFAULT_SCHEDULERS),
        metavar="NAME,...",
        help=f"all, or some of {', '.join(SCHEDULERS)}",
    )
    parser.add_argument("--limit", type=float, default=900.0, metavar="S", help="ends a test")
    parser.add_argument(
        "--quick", type=int, default=5, metavar="S", help="the time of tests that ask for one"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="guests at once")
    parser.add_argument("--kept", action="store_true", help="run no test that has a kept outcome")
    return parser.parse_args()


def schedulers_of(text: str) -> list[str]:
    names = list(SCHEDULERS) if text == "all" else text.replace(",", " ").split()
    for name in names:
        if name not in (*SCHEDULERS, "none"):
            raise argparse.ArgumentTypeError(f"'{name}': choose all, or {', '.join(SCHEDULERS)}")
    if not names:
        raise argparse.ArgumentTypeError("no scheduler: choose all, or name some")
    return names


# --- blktests itself -------------------------------------------------------------------------


def built(checkout: Path) -> Path:
    """A copy of @checkout with its programs built, in the build folder."""
    if not (checkout / "check").is_file():
        raise Wrong(f"{checkout}: no blktests: git clone {SOURCE}, and name it in BLKTESTS=FOLDER")
    files = sorted(file for file in checkout.rglob("*") if ".git" not in file.parts)
    digest = hashlib.sha256()
    for file in files:
        state = file.lstat()
        digest.update(
            f"{file.relative_to(checkout)} {state.st_size} {state.st_mtime_ns}\n".encode()
        )
    copy = FOLDER / f"checkout-{digest.hexdigest()[:12]}"
    if not copy.exists():
        partial = copy.with_name(f"{copy.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(checkout, partial, ignore=shutil.ignore_patterns(".git"), symlinks=True)
        done = subprocess.run(["make", "-C", partial], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Wrong(f"make -C {partial}: correct this and run again\n{done.stderr}")
        _mend_version(partial / "common/rc")
        partial.rename(copy)
    return copy


def _mend_version(file: Path) -> None:
    """blktests removes only one letter of a release such as 6.12.95+deb12, and each test that asks
    for the version then ends without an outcome."""
    if file.exists():
        file.write_text(file.read_text().replace("s/[^.0-9]//'", "s/[^.0-9].*//'"))


def tests_of(checkout: Path, chosen: Sequence[str]) -> list[str]:
    """The tests of groups or with names in @chosen; within a group the quick ones come first."""
    found: list[str] = []
    for word in chosen:
        place = checkout / "tests" / word
        if place.is_dir() and (place / "rc").is_file():
            files = [file for file in place.iterdir() if re.fullmatch(r"\d{3}", file.name)]
        elif place.is_file() and re.fullmatch(r"[a-z]+/\d{3}", word):
            files = [place]
        else:
            raise Wrong(f"'{word}': no group or test of {checkout}: choose {', '.join(GROUPS)}")
        found += [f"{file.parent.name}/{file.name}" for file in sorted(files, key=_slowness)]
    return list(dict.fromkeys(found))


def _slowness(test: Path) -> tuple[int, str]:
    text = test.read_text()
    marks = [bool(re.search(rf"^{mark}=1", text, re.MULTILINE)) for mark in ("QUICK", "TIMED")]
    return (marks.index(True) if any(marks) else len(marks)), test.name


def config_of(tree: KernelTree) -> Path:
    """The file with the options of the kernel."""
    places = (tree.root / f"boot/config-{tree.release}", tree.modules_dir / "config")
    for place in places:
        if place.exists():
            return place
    raise lab.LabError(f"{places[0]}: not found: the kernel's package has a new layout")


# --- guests ----------------------------------------------------------------------------------


class Series:
    """The tests of one scheduler, in as many guests as necessary."""

    def __init__(self, plan: Plan, scheduler: str) -> None:
        self._plan = plan
        self.scheduler = scheduler
        self.outcomes: Outcomes = {}
        self.given: dict[str, int] = {}
        self.troubles: list[str] = []
        self._file = FOLDER / f"{plan.kernel}-{scheduler}.json"
        self._line = b""
        self._strange = ""
        self._running = ""
        self._left: list[str] = []
        self._all = 0

    def run(self, tests: Sequence[str]) -> None:
        """Runs @tests; their outcomes replace earlier ones."""
        kept = self._read() if self._plan.kept else {}
        have = {key.test for key in kept}
        self.outcomes |= {key: one for key, one in kept.items() if key.test in tests}
        self.again([test for test in tests if test not in have])

    def again(self, tests: Sequence[str]) -> None:
        self._left = list(tests)
        self._all = len(self._left)
        while self._left:
            before = len(self._left)
            self._boot()
            if len(self._left) == before:
                raise lab.LabError(self.troubles[-1])

    def _boot(self) -> None:
        plan = self._plan
        tree = kernel.ensure(plan.kernel)
        ours = self.scheduler in SCHEDULERS
        spec = lab.GuestSpec(
            kernel=plan.kernel,
            memory_mb=_MEMORY_MB,
            drives=tuple(lab.parse_drive(text) for text in _DRIVES),
            modules=(module.build(tree),) if ours else (),
            timeout_s=_BOOT_S + (plan.limit_s + _AROUND_A_TEST_S) * len(self._left),
            silence_s=plan.limit_s + _AROUND_A_TEST_S,
        )
        settings = {
            "checkout": str(plan.checkout),
            "scheduler": self.scheduler,
            "tests": self._left,
            "limit_s": plan.limit_s,
            "quick_s": plan.quick_s,
            "config": str(config_of(tree)),
        }
        argv = ["/usr/bin/python3", "-s", "-E", str(HERE / "runner.py"), json.dumps(settings)]
        self._running, self._strange, self._line = "", "", b""
        result = lab.run(spec, argv, sink=self._received)
        trouble = result.trouble()
        if self._running:
            # The guest itself ended in this test.
            why = (trouble or f"the runner ended: {self._strange.strip()[-500:]}").partition("\n")
            outcome = Outcome(HUNG, why[0], why[2])
            self._note(self._running, {Key(self._running, "nodev"): outcome}, 0.0)
        elif trouble or result.status not in (0, 1) or self._strange:
            self.troubles.append(f"{self.scheduler}: {trouble or self._strange.strip()}")
        if trouble or any(one.status == HUNG for one in self.outcomes.values()):
            path = consoles.path_of(f"blktests-{plan.kernel}-{self.scheduler}")
            consoles.keep(path, result)
            _say(f"{self.scheduler}: the whole console of the guest: {path}")

    def _received(self, stream: str, data: bytes) -> None:
        if stream == "stderr":
            self._strange += data.decode(errors="replace")
            return
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            record = json.loads(line)
            if "start" in record:
                self._running = record["start"]
                continue
            test = record["test"]
            outcomes = {Key(test, one.pop("place")): Outcome(**one) for one in record["outcomes"]}
            for word, number in record["given"].items():
                self.given[word] = self.given.get(word, 0) + number
            self._note(test, outcomes, record["seconds"])

    def _note(self, test: str, outcomes: Outcomes, seconds: float) -> None:
        self._running = ""
        self._left.remove(test)
        self.outcomes = {key: one for key, one in self.outcomes.items() if key.test != test}
        self.outcomes |= outcomes
        text = "; ".join(f"{key.place}: {one}" for key, one in outcomes.items())
        done = self._all - len(self._left)
        _say(f"{self.scheduler} {done}/{self._all} {test} ({seconds:.0f} s): {text}")
        kept = {key: one for key, one in self._read().items() if key.test != test} | outcomes
        self._file.write_text(
            json.dumps(
                [[*dataclasses.astuple(k), *dataclasses.astuple(o)] for k, o in kept.items()],
                indent=0,
            )
        )

    def _read(self) -> Outcomes:
        if not self._file.exists():
            return {}
        rows = json.loads(self._file.read_text())
        return {Key(*row[:2]): Outcome(*row[2:]) for row in rows}


_saying = threading.Lock()


def _say(text: str) -> None:
    with _saying:
        print(text, flush=True)


# --- the comparison --------------------------------------------------------------------------


def compare(
    plan: Plan,
    schedulers: Sequence[str],
    tests: Sequence[str],
    expected: Sequence[results.Expected],
    jobs: int,
) -> int:
    """Runs @tests under the reference and @schedulers, and prints the differences."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    reference = Series(plan, REFERENCE)
    ours = [Series(plan, name) for name in schedulers]
    _say(f"{len(tests)} tests on Linux {plan.kernel} with {REFERENCE}, {', '.join(schedulers)}")
    _in_parallel([reference, *ours], tests, jobs)
    failed = False
    for series in ours:
        known = [one for one in expected if one.concerns(plan.kernel, series.scheduler)]
        found, passing = _lasting(reference, series, known, tests)
        judgement = results.judge(found, known, tests)
        stuck = _stuck(reference, series)
        failed |= bool(judgement.unexplained or stuck)
        _print(series, judgement, passing)
        for key in stuck:
            _say(f"{series.scheduler}: HUNG, as with {REFERENCE}: {key}")
    for series in (reference, *ours):
        _print_counts(series)
        for trouble in series.troubles:
            failed = True
            _say(f"trouble: {trouble}")
    _say("failed: see above" if failed else "no unexplained difference")
    return 1 if failed else 0


def _stuck(reference: Series, series: Series) -> list[Key]:
    """The tests that hung under both. They are no differences, and show nothing."""
    hung = [{k for k, one in s.outcomes.items() if one.status == HUNG} for s in (reference, series)]
    return sorted(hung[0] & hung[1])


def _lasting(
    reference: Series,
    series: Series,
    known: Sequence[results.Expected],
    tests: Sequence[str],
) -> tuple[list[results.Difference], list[results.Difference]]:
    """The differences that last, and those without a reason that do not come in each run."""
    passing: list[results.Difference] = []
    found = results.differences(reference.outcomes, series.outcomes)
    for _ in range(_RUNS_MORE):
        doubtful = results.judge(found, known, tests).unexplained
        if not doubtful:
            break
        again = sorted({one.key.test for one in doubtful})
        _say(f"{series.scheduler}: once more: {' '.join(again)}")
        reference.again(again)
        series.again(again)
        found = results.differences(reference.outcomes, series.outcomes)
        stays = {one.key for one in found}
        passing += [one for one in doubtful if one.key not in stays]
    return found, passing


def _in_parallel(all_series: Sequence[Series], tests: Sequence[str], jobs: int) -> None:
    if jobs == 1:
        for series in all_series:
            series.run(tests)
        return
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for future in [pool.submit(series.run, tests) for series in all_series]:
            future.result()


def _print(
    series: Series, judgement: results.Judgement, passing: Sequence[results.Difference]
) -> None:
    name = series.scheduler
    for difference in passing:
        _say(f"{name}: not in each run: {difference}")
    for difference, reason in judgement.explained:
        _say(f"{name}: expected: {difference}\n    {reason}")
    for one in judgement.missing:
        _say(f"{name}: expected, but it did not happen: {one.test} {one.place}: {one.reason}")
    for difference in judgement.unexplained:
        _say(f"{name}: UNEXPLAINED: {difference}")
        for label, outcome in ((REFERENCE, difference.reference), (name, difference.ours)):
            if outcome.detail:
                lines = "\n".join(f"    {line}" for line in outcome.detail.splitlines())
                _say(f"  the output with {label}:\n{lines}")


def _print_counts(series: Series) -> None:
    for group, by_status in results.counts(series.outcomes).items():
        text = ", ".join(f"{number} {status}" for status, number in sorted(by_status.items()))
        _say(f"{series.scheduler:12} {group:7} {text}")
    text = ", ".join(f"{number} {word}" for word, number in series.given.items())
    _say(f"{series.scheduler:12} disks   {text or 'none'}")


if __name__ == "__main__":
    sys.exit(main())

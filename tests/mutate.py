#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Break one line at a time and expect a test to fail.

usage: tests/mutate.py [--sample N | --all | --hand] [--match REGEX] [--seed N] [--jobs N]
                       [TABLE...]

A table, tests/mutate/NAME.toml, belongs to a scheduler or to a part of the tree. It lists files,
the tests that must notice, mutations written by hand, and mutations that change nothing
(equivalent), each with its reason. The text of an equivalent one is its line, after as many lines
as tell it from others. Further mutations are made mechanically from the bodies of the functions of
these files: a statement is removed, a condition is negated, a comparison is off by one, and +
becomes -. Reports about numbers for people and assertions are left alone.

A mutant that does not compile does not count, nor does an equivalent one. A mutant is killed when
a test fails, ends by a signal, or takes too long. Everything is built with -O2. The unit tests and
those of flash/ run with the address sanitizer, the others with the leak checker alone.

    tests/mutate.py --hand              only the mutations written by hand
    tests/mutate.py --sample 15         these, and 15 mechanical ones of each table
    tests/mutate.py --all drr           every mutation of drr
    tests/mutate.py --all --match 'drr.c:8[0-9]:' drr      those of ten lines

Exit status: 0 at least 90 % of each table's mutants are killed, 1 fewer are, 2 a table does not
fit the sources, or the tests fail without a mutation.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLES = ROOT / "tests" / "mutate"
LEAST_PERCENT = 90
LEAST_LIMIT_S = 10.0
SLOWER_MOST = 5  # than without a mutation; then a mutant counts as stuck
CC = ["gcc", "-std=gnu11", "-O2", "-w", "-fno-strict-aliasing", "-DMQFAIR_EXAMPLES"]
# A removed return is undefined behaviour, and no test can be expected to notice it.
CC += ["-Werror=return-type"]
LINK = ["gcc"]


@dataclasses.dataclass(frozen=True)
class Port:
    """The folder of port.h, and how all objects of a program are compiled. A mutant that leaks ends
    a program with a status."""

    name: str
    folder: str
    flags: tuple[str, ...]


SIM = Port("sim", "sim", ("-fsanitize=leak",))
# The unit tests and those of flash/ are short enough for more.
FLASH = Port("flash", "sim", ("-fsanitize=address",))
THREADS = Port("threads", "tests/mt", ("-fsanitize=address",))
# Processors stand still in the middle of a hook.
REPLAY = Port("replay", "tests/mt", ("-fsanitize=leak", "-DPORT_PERTURB"))
REPLAY_PARTS = ["device", "host", "port", "replay", "stall", "threads"]


class TableError(Exception):
    """The table does not fit the sources, or the sources do not pass."""


# --- tables ----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Mutation:
    """Replaces @old, which is at @at in @file, by @new."""

    name: str
    file: str
    at: int
    old: str
    new: str

    def apply(self, text: str) -> str:
        return text[: self.at] + self.new + text[self.at + len(self.old) :]


@dataclasses.dataclass(frozen=True)
class Table:
    name: str
    files: list[str]
    schedulers: list[str]  # that the simulated tests run
    prefixes: list[str]  # of the simulated tests, the fast ones first
    unit: list[str]
    replay: list[str]  # of tests/mt, those that need no threads
    flash: list[str]
    mutation: list[dict[str, str]]
    equivalent: list[dict[str, str]]

    def by_hand(self) -> list[Mutation]:
        found = []
        for entry in self.mutation:
            text = (ROOT / entry["file"]).read_text()
            count = text.count(entry["old"])
            if count != 1:
                raise TableError(
                    f"{self.name}/{entry['name']}: its text occurs {count} times in {entry['file']}"
                )
            at = text.index(entry["old"])
            found.append(Mutation(entry["name"], entry["file"], at, entry["old"], entry["new"]))
        return found

    def mechanical(self) -> list[Mutation]:
        """All but those that the table lists, which change nothing that a test could see."""
        made = [m for file in self.files for m in mutations_of(file)]
        equal: set[Mutation] = set()
        for entry in self.equivalent:
            found = [m for m in made if is_equal(m, entry)]
            if len({m.name for m in found}) != 1:
                raise TableError(f"{self.name}: {len(found)} mutations are like {entry}")
            equal.update(found)
        return [m for m in made if m not in equal]


def is_equal(mutation: Mutation, entry: dict[str, str]) -> bool:
    """The entry's text is the line of the mutation, perhaps with lines before it."""
    if re.sub(r":\d+:", ":", mutation.name) != f"{entry['file']}: {entry['change']}":
        return False
    text = (ROOT / mutation.file).read_text()
    lines = text[: text.index("\n", mutation.at)].splitlines()
    wanted = [line.strip() for line in entry["line"].strip().splitlines()]
    return [line.strip() for line in lines[-len(wanted) :]] == wanted


def load(path: Path) -> Table:
    data = tomllib.loads(path.read_text())
    defaults: dict[str, list[str]] = {
        field.name: [] for field in dataclasses.fields(Table) if field.name != "name"
    }
    return Table(name=path.stem, **(defaults | data))


def tables(names: list[str]) -> list[Table]:
    known = {path.stem: path for path in sorted(TABLES.glob("*.toml"))}
    for name in names:
        if name not in known:
            raise TableError(f"no table '{name}': choose from {', '.join(known)}")
    return [load(known[name]) for name in names or known]


# --- mutations made mechanically ---------------------------------------------------------------

SKIPPED_FUNCTION = re.compile(r"report|_name\b")
SKIPPED_LINE = re.compile(
    r"port_assert|static_assert|^\s*(\*|/\*|//|#|case |default:|goto |\(void\)\w+;)"
)
CONTROL = re.compile(r"^\s*(if|for|while|do|else|switch|return [^;]*|\}|\{)")
CHANGES = (
    (re.compile(r" < "), " <= ", "< to <="),
    (re.compile(r" <= "), " < ", "<= to <"),
    (re.compile(r" > "), " >= ", "> to >="),
    (re.compile(r" >= "), " > ", ">= to >"),
    (re.compile(r" \+ "), " - ", "+ to -"),
    (re.compile(r" - "), " + ", "- to +"),
    (re.compile(r" \+= "), " -= ", "+= to -="),
    (re.compile(r" -= "), " += ", "-= to +="),
)


def bodies(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of the bodies of functions: braces in the first column."""
    for match in re.finditer(r"^\{\n(.*?)^\}", text, re.M | re.S):
        head = text[: match.start()].rpartition("\n\n")[2]
        if not SKIPPED_FUNCTION.search(head.split("(")[0]):
            yield match.start(1), match.end(1)


def statements(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    """The lines that a mutation may touch, joined up to the end of a statement."""
    at = start
    for line in text[start:end].splitlines(keepends=True):
        yield at, line
        at += len(line)


def closing(text: str, at: int) -> int:
    """The place of the parenthesis that closes the one at @at."""
    depth = 0
    for i in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if not depth:
            return i
    raise ValueError("unbalanced parentheses")


def mutations_of(file: str) -> Iterator[Mutation]:
    text = (ROOT / file).read_text()
    for start, end in bodies(text):
        in_comment = in_assertion = False
        begins = True  # the line begins a statement
        for at, line in statements(text, start, end):
            in_comment = in_comment or line.lstrip().startswith("/*")
            in_assertion = in_assertion or "assert(" in line
            skipped = in_comment or in_assertion
            skipped = skipped or not line.strip() or SKIPPED_LINE.search(line)
            in_comment = in_comment and "*/" not in line
            in_assertion = in_assertion and not line.rstrip().endswith(";")
            if not skipped:
                number = text.count("\n", 0, at) + 1
                yield from of_line(Place(file, text, at, line, number), begins)
                begins = line.rstrip().endswith((";", "{", "}", ")", ":"))


@dataclasses.dataclass(frozen=True)
class Place:
    """A line of a file."""

    file: str
    text: str
    at: int
    line: str
    number: int

    def mutation(self, what: str, at: int, old: str, new: str) -> Mutation:
        return Mutation(f"{self.file}:{self.number}: {what}", self.file, at, old, new)


def of_line(place: Place, begins: bool) -> Iterator[Mutation]:
    text, at, line = place.text, place.at, place.line
    if begins and not CONTROL.match(line):
        semicolon = text.find(";", at)
        old = text[at : semicolon + 1].lstrip()
        if semicolon > 0 and "{" not in old and old.count("(") == old.count(")"):
            yield place.mutation("remove", semicolon + 1 - len(old), old, ";")
    match = re.search(r"\b(?:if|while) (?=\()", line)
    if match:
        opened = at + match.end()
        old = text[opened : closing(text, opened) + 1]
        yield place.mutation("negate", opened, old, f"(!{old})")
    code = line.split("/*", maxsplit=1)[0]
    for pattern, new, what in CHANGES:
        for match in pattern.finditer(code):
            yield place.mutation(what, at + match.start(), match.group(), new)


# --- building ----------------------------------------------------------------------------------


def compile_to(out: Path, source: Path, port: Port, quote: Path, root: Path = ROOT) -> bool:
    argv = [
        *CC,
        *port.flags,
        f"-I{port.folder}",
        "-I.",
        "-Isched",
        "-iquote",
        str(quote),
        "-c",
        str(source),
    ]
    done = subprocess.run([*argv, "-o", str(out)], cwd=root, capture_output=True, check=False)
    return done.returncode == 0


class Build:
    """Objects of the sources as they are, by port; programs link with a mutant before them."""

    def __init__(self, folder: Path, pool: concurrent.futures.Executor) -> None:
        self.folder = folder
        self.pool = pool
        self.made: dict[tuple[Port, str], Path] = {}

    def objects(self, port: Port, sources: list[str]) -> list[Path]:
        missing = [s for s in sources if (port, s) not in self.made]
        for s in missing:
            self.made[port, s] = self.folder / f"{port.name}/{s}.o".replace("/", "__")
        tasks = {s: self.pool.submit(self.compile, port, s) for s in missing}
        for s, task in tasks.items():
            if not task.result():
                raise TableError(f"{s} does not compile")
        return [self.made[port, s] for s in sources]

    def compile(self, port: Port, source: str) -> bool:
        path = ROOT / source
        return compile_to(self.made[port, source], path, port, path.parent)

    def link(self, program: Program, out: Path, mutant: dict[str, Path]) -> None:
        """Links @program with the objects of @mutant in place of those of the same sources."""
        same = [s for s in program.sources if s not in mutant]
        objects = [*mutant.values(), *self.objects(program.port, same)]
        argv = [
            *LINK,
            *program.port.flags,
            *map(str, objects),
            *program.libraries,
            "-o",
            str(out),
        ]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            raise TableError(f"{program.name} does not link:\n{done.stderr[-2000:]}")


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    port: Port
    sources: tuple[str, ...]
    libraries: tuple[str, ...]


def sources_in(*folders: str) -> list[str]:
    found = [p for folder in folders for p in (ROOT / folder).glob("*.c")]
    return sorted(str(p.relative_to(ROOT)) for p in found)


def shared_unit() -> dict[str, list[str]]:
    """The files that a unit test shares with others, as Meson has them, without their suffix."""
    text = (ROOT / "tests" / "unit" / "meson.build").read_text()
    listed = text.split("shared = {")[1].split("}")[0]
    return {
        name: re.findall(r"'(\w+)\.c'", files)
        for name, files in re.findall(r"'(\w+)': \[(.*?)\]", listed)
    }


def sched_sources() -> list[str]:
    return sources_in(*(str(p.relative_to(ROOT)) for p in (ROOT / "sched").iterdir() if p.is_dir()))


def simulator_sources() -> list[str]:
    """Those of the library of sim/: the folder has other programs, too."""
    text = (ROOT / "sim" / "meson.build").read_text()
    listed = text.split("sim_sources = files(")[1].split(")")[0]
    return [f"sim/{name}" for name in re.findall(r"'(\w+\.c)'", listed)]


def programs(table: Table) -> Iterator[tuple[Program, list[list[str]]]]:
    """Each program with the arguments of its runs, the fast ones first."""
    shared = shared_unit()
    for name in table.unit:
        own = [f"tests/unit/{part}.c" for part in [name, "main", *shared.get(name, [])]]
        sources = (*own, "tests/mt/port.c", *sched_sources())
        yield Program(f"unit-{name}", THREADS, sources, ("-lcmocka", "-lm", "-pthread")), [[]]
    for name in table.replay:
        own = [f"tests/mt/{part}.c" for part in [name, *REPLAY_PARTS]]
        sources = (*own, *sched_sources())
        yield Program(name, REPLAY, sources, ("-lm", "-pthread")), [[]]
    parts = ["fixture", "audit"]
    for name in table.flash:
        own = [f"tests/flash/{part}.c" for part in [name, *parts]]
        sources = (*own, "sched/core/heap.c", "sim/stats.c", *sources_in("flash"))
        yield Program(f"flash-{name}", FLASH, sources, ("-lcmocka", "-lm")), [[]]
    if table.schedulers:
        sources = (*simulator_sources(), *sources_in("tests/sim", "flash"), *sched_sources())
        runs = [
            ["-q", "-s", scheduler, prefix]
            for prefix in table.prefixes
            for scheduler in table.schedulers
        ]
        yield Program("sim-tests", SIM, sources, ("-lm",)), runs


# --- running -----------------------------------------------------------------------------------


def failure(argv: list[str], limit_s: float) -> str | None:
    """Why the test fails, or None."""
    with subprocess.Popen(
        ["timeout", "-s", "KILL", f"{limit_s:.1f}", *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout
        for line in process.stdout:
            if line.startswith("not ok"):
                process.kill()
                return line.strip()[:100]
        status = process.wait()
    if status in (137, -9):
        return f"not done after {limit_s:.0f} s"
    return None if status == 0 else f"status {status}"


@dataclasses.dataclass
class Run:
    program: Program
    arguments: list[str]
    limit_s: float


def baseline(table: Table, build: Build) -> list[Run]:
    """The runs of the table, with a limit each. All must pass without a mutation."""
    runs = []
    for program, arguments in programs(table):
        out = build.folder / program.name
        build.link(program, out, {})
        for argv in arguments:
            started = time.monotonic()
            why = failure([str(out), *argv], 600)
            if why:
                raise TableError(f"{program.name} {' '.join(argv)} fails without a mutation: {why}")
            took = time.monotonic() - started
            runs.append(Run(program, argv, max(LEAST_LIMIT_S, SLOWER_MOST * took)))
    return runs


@dataclasses.dataclass
class Outcome:
    mutation: Mutation
    compiled: bool
    why: str | None = None  # killed by this


def compile_mutant(mutation: Mutation, program: Program, folder: Path) -> dict[str, Path] | None:
    """The objects that the mutation changes, by source; None if one does not compile. Programs for
    the same port share them."""
    text = mutation.apply((ROOT / mutation.file).read_text())
    if mutation.file.endswith(".c"):
        source = folder / Path(mutation.file).name
        source.write_text(text)
        out = folder / f"{program.port.name}.o"
        quote = (ROOT / mutation.file).parent
        done = out.exists() or compile_to(out, source, program.port, quote)
        return {mutation.file: out} if done else None
    # A header is found beside its sources, so they are copied.
    tree = folder / program.port.name / "tree"
    if not tree.exists():
        for room in ("sched", "flash", "sim", "tests"):
            shutil.copytree(ROOT / room, tree / room)
        (tree / mutation.file).write_text(text)
    objects = {s: tree / f"{s}.o" for s in program.sources}
    for s, out in objects.items():
        quote = (tree / s).parent
        if not out.exists() and not compile_to(out, tree / s, program.port, quote, tree):
            return None
    return objects


def is_concerned(mutation: Mutation, program: Program) -> bool:
    return mutation.file.endswith(".h") or mutation.file in program.sources


def try_mutation(mutation: Mutation, runs: list[Run], build: Build, number: int) -> Outcome:
    folder = build.folder / f"mutant-{number}"
    folder.mkdir()
    linked: dict[str, Path] = {}
    try:
        for run in runs:
            program = run.program
            if not is_concerned(mutation, program):
                continue
            if program.name not in linked:
                objects = compile_mutant(mutation, program, folder)
                if objects is None:
                    return Outcome(mutation, compiled=False)
                linked[program.name] = folder / f"{program.name}.out"
                build.link(program, linked[program.name], objects)
            why = failure([str(linked[program.name]), *run.arguments], run.limit_s)
            if why:
                return Outcome(mutation, compiled=True, why=why)
        return Outcome(mutation, compiled=True)
    finally:
        shutil.rmtree(folder)


def choose(table: Table, args: argparse.Namespace) -> list[Mutation]:
    chosen = [] if args.mechanical else table.by_hand()
    if not args.hand:
        made = table.mechanical()
        if args.sample:
            made = random.Random(args.seed).sample(made, min(args.sample, len(made)))
        chosen += made
    return [m for m in chosen if re.search(args.match, m.name)]


def run_table(table: Table, args: argparse.Namespace, build: Build) -> bool:
    chosen = choose(table, args)
    runs = baseline(table, build)
    killed = total = 0
    tasks = [
        build.pool.submit(try_mutation, mutation, runs, build, number)
        for number, mutation in enumerate(chosen)
    ]
    for task in concurrent.futures.as_completed(tasks):
        outcome = task.result()
        if not outcome.compiled:
            continue
        total += 1
        killed += outcome.why is not None
        if outcome.why is None:
            old = " ".join(outcome.mutation.old.split())
            print(f"SURVIVED  {table.name}  {outcome.mutation.name}  {old}", flush=True)
        elif args.verbose:
            print(f"killed    {table.name}  {outcome.mutation.name}  {outcome.why}", flush=True)
    percent = 100 * killed / total if total else 100.0
    print(f"{table.name}: {killed} of {total} killed, {percent:.0f} %", flush=True)
    return percent >= LEAST_PERCENT


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Breaks the sources line by line and expects the tests to notice.",
        epilog="example: tests/mutate.py --sample 15 drr mqfq",
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--all", action="store_true", help="every mutation of the tables")
    which.add_argument("--sample", type=int, metavar="N", help="N mechanical ones of each table")
    which.add_argument("--hand", action="store_true", help="only those written by hand")
    parser.add_argument("--mechanical", action="store_true", help="leave out those by hand")
    parser.add_argument(
        "--match", metavar="REGEX", default="", help="of these, those with such a name"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default 1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="default: all CPUs")
    parser.add_argument("--verbose", action="store_true", help="print the killed mutants too")
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="default: all tables")
    return parser.parse_args()


def main() -> int:
    args = parse_args()
    try:
        chosen = tables(args.tables)
        with (
            tempfile.TemporaryDirectory(prefix="mqfair-mutate-") as folder,
            concurrent.futures.ThreadPoolExecutor(args.jobs) as pool,
        ):
            # Compiling has a pool of its own: a mutant waits for it in the other one.
            with concurrent.futures.ThreadPoolExecutor(args.jobs) as compilers:
                build = Build(Path(folder), compilers)
                for table in chosen:
                    baseline_objects(table, build)
            build.pool = pool
            passed = [run_table(table, args, build) for table in chosen]
    except TableError as e:
        print(f"tests/mutate.py: {e}", file=sys.stderr)
        return 2
    return 0 if all(passed) else 1


def baseline_objects(table: Table, build: Build) -> None:
    for program, _ in programs(table):
        build.objects(program.port, list(program.sources))


if __name__ == "__main__":
    sys.exit(main())

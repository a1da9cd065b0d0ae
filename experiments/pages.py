# SPDX-License-Identifier: GPL-2.0
"""Whether the pages with generated tables are of the present sources.

    python3 -m experiments.pages                   # say which are older, and what has changed
    python3 -m experiments.pages --make figures    # make the tables of a page anew
    python3 -m experiments.pages --mark            # have the older pages say that they are
    python3 -m experiments.pages --again           # compare the quick pages with new ones

--make writes a line into the page: the state of all that its tables depend on, with a hash for
each part. A part is a scheduler in the simulator, the machine model (experiments/probe.py), or
`sources`: the text of the experiment without its comments. A page of another state must say that
it is older, or the status is 1.
"""

import argparse
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments import harness
from experiments.probe import MACHINE, behaviour, short
from mqfair.bench.simulated.session import SIMULATED
from mqfair.bench.variant import DEADLINE, IOCOST, KYBER, MQFQ, NONE
from mqfair.schedulers import SCHEDULERS as OURS
from mqfair.text.errors import Failure

ROOT = Path(__file__).resolve().parents[1]
SOURCES = "sources"

State = Mapping[str, str]

_MADE = re.compile(r"<!-- made from: ([^>]*?) -->\n\n?")
UNKNOWN = "an unknown state"
OLDER = "> **Older than the sources.** `python3 -m experiments.pages` names what has changed.\n\n"
_TITLE = re.compile(r"\A# .*\n\n?")
_COMMENT_OF = {
    ".c": re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL),
    ".h": re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL),
    ".py": re.compile(r"^\s*#[^\n]*", re.MULTILINE),
    ".fio": re.compile(r"^\s*[#;][^\n]*", re.MULTILINE),
}


@dataclass(frozen=True)
class Page:
    """The module of @command writes the tables into the document @path. They depend on @parts of
    the probe, and on the files of @sources. A @quick page takes minutes of a core. The module
    draws a @picture beside the page, too. @varies matches text that differs from run to run."""

    name: str
    path: str
    command: str
    parts: Sequence[str]
    sources: Sequence[str]
    quick: bool = False
    picture: bool = False
    varies: str = r"\Z"


# The schedulers of the figures of the papers, and of the measurements of isolation.
_PLAYED = tuple(one for one in SIMULATED if one not in (DEADLINE, KYBER))

PAGES = (
    Page(
        "figures",
        "doc/figures.md",
        "experiments.papers all",
        (*_PLAYED, MACHINE),
        (
            "experiments/papers/*.py",
            "experiments/papers/*/figures.py",
            "experiments/machine.py",
            "experiments/traces.py",
            "mqfair/bench/simulated/prices.py",
            "tests/sim/bounds.c",
            "tests/sim/ifq_figure*.c",
        ),
        quick=True,
        varies=r"\| \d+ \|$|in \d+ minutes",
    ),
    Page(
        "machine",
        "doc/measurements/machine.md",
        "experiments.machine",
        (MACHINE,),
        ("experiments/machine.py",),
        quick=True,
        picture=True,
    ),
    Page(
        "tutorial",
        "doc/tutorial.md",
        "experiments.tutorial",
        (NONE, IOCOST, MQFQ),
        ("experiments/tutorial.py", "examples/four-cgroups.fio", "mqfair/bench/report.py"),
        quick=True,
    ),
    Page(
        "flash",
        "doc/measurements/flash.md",
        "experiments.papers.drives.curve",
        (),
        (
            "experiments/papers/drives/curve.py",
            "flash/*.c",
            "flash/*.h",
            "tests/flash/curve.c",
            "tests/flash/fixture.*",
        ),
        quick=True,
        picture=True,
    ),
    Page(
        "isolation",
        "doc/measurements/isolation.md",
        "experiments.isolation_tables",
        _PLAYED,
        ("experiments/isolation*.py",),
    ),
    Page(
        "study",
        "doc/study.md",
        "experiments.study all",
        (
            NONE,
            DEADLINE,
            KYBER,
            "bwf2q",
            IOCOST,
            "iolatency",
            "throttle",
            "sfq",
            "flashfq",
            *OURS,
            MACHINE,
        ),
        (
            "experiments/study/*.py",
            "mqfair/bench/simulated/prices.py",
            "mqfair/drives/models/980pro.toml",
            "mqfair/drives/models/p4500.toml",
        ),
        picture=True,
    ),
    Page(
        "fidelity",
        "doc/measurements/fidelity.md",
        "experiments.fidelity --json build/fidelity.json",
        (NONE, *OURS),
        (
            "experiments/fidelity.py",
            "experiments/jobs/*.fio",
            "examples/*.fio",
            "kernel/*.c",
            "kernel/ssd/*.c",
        ),
    ),
)


def plain(path: Path) -> str:
    """The text of the file @path without comments. White space counts as one blank."""
    text = path.read_text(encoding="utf-8")
    comment = _COMMENT_OF.get(path.suffix)
    return " ".join((comment.sub(" ", text) if comment else text).split())


def sources_of(page: Page, root: Path = ROOT) -> str:
    """The hash of the sources of @page. Raises Failure if a pattern names no file."""
    texts = []
    for pattern in page.sources:
        found = sorted(root.glob(pattern))
        if not found:
            raise Failure(f"{page.path}: no file {pattern}: correct PAGES in experiments/pages.py")
        texts += [f"{path.relative_to(root)}\n{plain(path)}\n" for path in found]
    return short("".join(texts))


def states(pages: Iterable[Page]) -> dict[str, State]:
    """The present state of each of @pages, by its path."""
    every = list(pages)
    parts = dict.fromkeys(part for page in every for part in page.parts)
    seen = behaviour(list(parts))
    return {
        page.path: {SOURCES: sources_of(page), **{part: seen[part] for part in page.parts}}
        for page in every
    }


# -- the line in a page


def made_from(text: str) -> State | None:
    """The state from which the tables of @text were made; None without a line. It is empty if that
    state is not known."""
    found = _MADE.search(text)
    if not found:
        return None
    return dict(word.split() for word in found[1].split(", ") if found[1] != UNKNOWN)


def stamped(text: str, state: State) -> str:
    """@text with the line of @state below its title, and no word that it is older."""
    words = ", ".join(f"{part} {one}" for part, one in state.items()) or UNKNOWN
    rest = _MADE.sub("", text.replace(OLDER, ""), count=1)
    return _TITLE.sub(lambda title: f"{title[0]}<!-- made from: {words} -->\n\n", rest, count=1)


def marked(text: str, older: bool) -> str:
    """@text that says that it is older, or does not."""
    rest = text.replace(OLDER, "")
    return _MADE.sub(lambda line: f"{line[0]}{OLDER}", rest, count=1) if older else rest


def changed(text: str, now: State) -> list[str]:
    """The parts that have another hash @now than in the line of @text."""
    then = made_from(text) or {}
    return [part for part in {**now, **then} if then.get(part) != now.get(part)]


def wrong(page: Page, text: str, now: State) -> str | None:
    """The reason why @text is not honest about its age, and the mend."""
    make = f"run `python3 -m experiments.pages --make {page.name}`"
    if made_from(text) is None:
        return f"{page.path}: no line 'made from': {make}"
    parts = changed(text, now)
    if text == marked(text, bool(parts)):
        return None
    if parts:
        return (
            f"{page.path}: older than its sources ({', '.join(parts)} changed): {make}, or"
            " `python3 -m experiments.pages --mark`, which has the page say so"
        )
    return (
        f"{page.path}: not older than its sources, as it says: run"
        " `python3 -m experiments.pages --mark`"
    )


# -- the command


def differs(page: Page, text: str, again: str) -> str | None:
    """The first line of @text that is another one in @again, the same page made anew."""

    def shown(page_text: str) -> list[str]:
        whole = _MADE.sub("", marked(page_text, False))
        return re.sub(page.varies, "", whole, flags=re.MULTILINE).splitlines()

    old, new = shown(text), shown(again)
    if old == new:
        return None
    number, line = next(
        ((n, line) for n, line in enumerate(old) if new[n : n + 1] != [line]), (len(old), "")
    )
    return (
        f"{page.path}: '{line}' is '{''.join(new[number : number + 1])}' when made anew: run"
        f" `python3 -m experiments.pages --make {page.name}`"
    )


def write_tables(page: Page, document: Path) -> None:
    """Makes the tables of @page in @document, which may be a copy. Raises Failure."""
    argv = [sys.executable, "-m", *shlex.split(page.command), "--document", str(document)]
    if page.picture:
        argv += ["--picture", str(document.with_suffix(".png"))]
    done = subprocess.run(argv, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise Failure(f"{page.path}: {page.command} ended with status {done.returncode}: see above")


def make(page: Page) -> None:
    """Makes @page anew. Raises Failure."""
    path = ROOT / page.path
    # The state is taken first: a source that changes meanwhile makes the page an older one.
    state = states([page])[page.path]
    write_tables(page, path)
    path.write_text(stamped(path.read_text(), state))


def compare(page: Page) -> str | None:
    """Makes the tables of @page in a copy of it; says where these differ. Raises Failure."""
    text = (ROOT / page.path).read_text()
    with tempfile.TemporaryDirectory(prefix="mqfair-pages-") as folder:
        copy = Path(folder) / Path(page.path).name
        copy.write_text(text)
        write_tables(page, copy)
        return differs(page, text, copy.read_text())


def look(mark: bool) -> list[str]:
    """Prints the age of each page, and returns what is wrong with them. With @mark the older pages
    say that they are, and the others do not."""
    now = states(PAGES)
    found = []
    for page in PAGES:
        path = ROOT / page.path
        text = path.read_text()
        parts = changed(text, now[page.path])
        known = made_from(text)
        age = f"older: {', '.join(parts)} changed" if known else f"older: of {UNKNOWN}"
        age = age if parts else "of the present sources"
        print(f"{page.path}: {age}")
        if mark:
            text = marked(text, bool(parts))
            path.write_text(text)
        found.append(wrong(page, text, now[page.path]))
    return [one for one in found if one]


def run(args: argparse.Namespace) -> int:
    chosen = [page for page in PAGES if page.name in args.make]
    for page in chosen:
        make(page)
    if args.again:
        said = [one for one in map(compare, (page for page in PAGES if page.quick)) if one]
    else:
        said = [] if chosen else look(args.mark)
    for one in said:
        print(f"pages: {one}", file=sys.stderr)
    return 1 if said else 0


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="experiments.pages",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group()
    names = [page.name for page in PAGES]
    what.add_argument(
        "--make", nargs="+", choices=names, default=(), metavar="NAME", help=" ".join(names)
    )
    what.add_argument("--mark", action="store_true", help="write into older pages that they are")
    what.add_argument("--again", action="store_true", help="make the quick pages anew, and compare")
    return harness.main(parser, run, argv)


if __name__ == "__main__":
    sys.exit(main())

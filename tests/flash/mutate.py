#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Do the tests of flash/ notice when a line that matters is broken?

Changes one line at a time in a copy of the sources, builds, and expects one of the tests to
fail. A mutation whose text is no longer found, or found twice, is an error: the table below
has to follow the sources.

    tests/flash/mutate.py               all mutations
    tests/flash/mutate.py gc owner      those whose name contains one of the words

Exit status: 0 all noticed, 1 some survived, 2 the table or the build is wrong.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("sched", "flash", "sim", "tests/flash", "tests/unit")
TESTS = ("timing", "owner", "map", "gc")
TIME_LIMIT_S = 30
BUILD = ["gcc", "-std=gnu11", "-O1", "-I.", "-Isim"]
RIG = ("tests/flash/fixture.c", "tests/flash/audit.c", "sched/core/heap.c", "sim/stats.c")


@dataclass(frozen=True)
class Mutation:
    name: str
    file: str
    old: str
    new: str


def ftl(name: str, old: str, new: str) -> Mutation:
    return Mutation(f"ftl-{name}", "flash/ftl.c", old, new)


def timing(part: str, name: str, old: str, new: str) -> Mutation:
    return Mutation(f"timing-{name}", f"flash/{part}.c", old, new)


def owner(name: str, old: str, new: str) -> Mutation:
    return Mutation(f"owner-{name}", "flash/owner.c", old, new)


MUTATIONS = (
    # the map
    ftl("old-page-stays-valid", "\tpage_drop(ftl, page);\n\tpage_map(", "\tpage_map("),
    ftl("unmap-keeps-valid-count", "\tb->valid--;\n", ""),
    ftl("unmap-not-relisted", "\tif (listed)\n\t\tlist_insert(ftl, b);\n", ""),
    ftl("trim-does-nothing", "\tpage_drop(ftl, page);\n\tftl->trimmed++;", "\tftl->trimmed++;"),
    ftl("list-forgets-bitmap", "\t\tdie->lists[b->valid / 64] |= BIT_ULL(b->valid % 64);", "\t\t;"),
    ftl(
        "list-bitmap-not-cleared",
        "\t\tdie->lists[b->valid / 64] &= ~BIT_ULL(b->valid % 64);",
        "\t\t;",
    ),
    ftl(
        "closed-too-early",
        "b->programmed << ftl->unit_shift != ",
        "b->programmed * 2 << ftl->unit_shift < ",
    ),
    ftl("chain-of-open-blocks-lost", "\t\tftl->block[s->open].next = number;", "\t\t;"),
    ftl("commands-take-the-reserve", "\t       d->nr_free > RESERVE;", "\t       d->nr_free;"),
    # collecting
    ftl("gc-takes-full-blocks", "return valid < ftl->block_pages ?", "return true ?"),
    ftl("gc-not-greedy", "valid = word * 64 + port_ffs64(", "valid = word * 64 + port_fls64("),
    ftl(
        "gc-begins-late", "if (die->nr_free <= ftl->gc_start)", "if (die->nr_free < ftl->gc_start)"
    ),
    ftl("gc-ends-late", "if (d->nr_free >= ftl->gc_stop)", "if (d->nr_free > ftl->gc_stop)"),
    ftl("gc-forgets-a-row", "\td->scan = 0;", "\td->scan = ftl->row_pages;"),
    ftl(
        "gc-copies-stale-pages",
        "if (ftl->page_of[first + i] != FTL_NONE)\n\t\t\tpage_copy",
        "if (true)\n\t\t\tpage_copy",
    ),
    ftl(
        "gc-loses-a-page",
        "\tpage_map(ftl, page, to, tag);\n\tftl->copied++;",
        "\tftl->page_at[page] = FTL_NONE;\n\tftl->copied++;",
    ),
    ftl(
        "gc-invalid-pages-stay-owned",
        "\t\towner_page_collected(&ftl->owners, ftl->tag[first + i]);\n",
        "",
    ),
    ftl("gc-program-skipped", "\tif (d->stream[STREAM_GC].units)\n\t\treturn GC_PROGRAM;\n", ""),
    ftl("free-block-still-programmed", "\tb->programmed = 0;\n", ""),
    # owners
    owner("copies-not-counted", "\to->owner[root].usage.copied++;\n", ""),
    owner(
        "tag-not-released",
        "\to->owner[tag].pages--;\n\ttag_release(o, tag);\n}",
        "\to->owner[tag].pages--;\n}",
    ),
    owner(
        "heir-inherits-nothing", "\tusage_add(&o->owner[root].usage, &o->owner[child].usage);\n", ""
    ),
    owner(
        "deeper-tree-below",
        "> o->owner[heir].rank ? gone : heir;",
        "< o->owner[heir].rank ? gone : heir;",
    ),
    owner("children-not-counted", "\to->owner[root].children++;\n", ""),
    owner("name-not-taken-over", "\ttag_name(o, root, to);", "\ttag_name(o, root, from);"),
    # timing
    timing(
        "controller", "link-not-serial", "*free_ns = max(*free_ns, f->now)", "*free_ns = f->now"
    ),
    timing(
        "pipeline",
        "channel-not-serial",
        "\tif (ch->first) {\n\t\tch->last->next = t;\n\t\tch->last = t;\n\t\treturn;\n\t}\n",
        "\tif (ch->first) {\n\t\tt->done(f, t);\n\t\treturn;\n\t}\n",
    ),
    timing("pipeline", "plane-takes-two", "if (pl->busy || !pl->first)", "if (!pl->first)"),
    timing("controller", "controller-not-serial", "max(f->front_free_ns, now) +", "now +"),
    timing(
        "pipeline",
        "no-read-burst",
        "if (wanted && d->passed >= f->params.read_burst)",
        "if (wanted && d->passed > f->params.read_burst)",
    ),
    timing("pipeline", "program-beside-reads", "if (wanted && !d->busy_planes)", "if (wanted)"),
    timing(
        "pipeline", "program-without-transfer", "\t\t\t f->params.program_pages);", "\t\t\t 0);"
    ),
    timing("buffer", "buffer-never-full", "\tf->buffered += f->link_pages;\n", ""),
    timing("pipeline", "buffer-never-empties", "\tf->buffered -= f->params.program_pages;\n", ""),
    timing(
        "buffer",
        "stalled-write-forgotten",
        "\tif (f->link_stalled)\n\t\tlink_in_arrived(f);\n\telse\n",
        "",
    ),
    timing(
        "pipeline",
        "stalled-reads-forgotten",
        "\top->next = f->free_ops;\n\tf->free_ops = op;\n\tcontroller_retry(f);",
        "\top->next = f->free_ops;\n\tf->free_ops = op;",
    ),
    timing(
        "controller",
        "buffered-read-from-flash",
        "at != FTL_NONE && !ftl_buffered(&f->ftl, at)",
        "at != FTL_NONE",
    ),
    timing(
        "controller",
        "flash-page-read-twice",
        "\twhile (n < most && page_at[n] == at + n)",
        "\twhile (n > most && page_at[n] == at + n)",
    ),
    timing(
        "controller",
        "run-over-flash-page",
        "u32 most = min(left, cmd->pages - cmd->issued), n = 1;",
        "u32 most = max(left, cmd->pages - cmd->issued), n = 1;",
    ),
    timing("controller", "done-out-of-order", "\t\tns = max(ns, fifo->last->done_ns);", "\t\t;"),
    timing("flash", "host-sees-hidden-map", "return f->mode == FLASH_FTL_HOST && ", "return "),
    timing("pipeline", "gc-never-urgent", "|| ftl_gc_urgent(&f->ftl, d->number)", ""),
    timing(
        "pipeline",
        "gc-row-copied-twice",
        "\t\tftl_gc_copy(&f->ftl, d->number);\n",
        "\t\tftl_gc_copy(&f->ftl, d->number);\n\t\tftl_gc_copy(&f->ftl, d->number);\n",
    ),
    # filling
    Mutation(
        "fill-not-a-permutation",
        "flash/fill.c",
        "0x9e3779b97f4a7c15ULL + round) & mask",
        "0x9e3779b97f4a7c14ULL + round) & mask",
    ),
    Mutation(
        "fill-forgets-collecting", "flash/fill.c", "\t\tfill_collect(&f->ftl, die, copied);\n", ""
    ),
)


class TableError(Exception):
    """The table does not fit the sources, or these do not build."""


def copy_sources(to: Path) -> None:
    for folder in COPIED:
        shutil.copytree(ROOT / folder, to / folder)
    shutil.copy(ROOT / "tests" / "random.h", to / "tests")


def build(tree: Path, test: str) -> None:
    sources = [str(path.relative_to(tree)) for path in sorted((tree / "flash").glob("*.c"))]
    argv = [*BUILD, f"tests/flash/{test}.c", *RIG, *sources, "-lcmocka", "-lm", "-o", test]
    done = subprocess.run(argv, cwd=tree, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TableError(f"does not build:\n{done.stderr[-2000:]}")


def failing_test(tree: Path) -> str | None:
    """The first test that is not content; None when all are."""
    for test in TESTS:
        build(tree, test)
        argv = ["timeout", str(TIME_LIMIT_S), f"./{test}"]
        if subprocess.run(argv, cwd=tree, capture_output=True, check=False).returncode:
            return test
    return None


def mutant(mutation: Mutation, tree: Path) -> str:
    """The text of its file with the mutation."""
    text = (tree / mutation.file).read_text()
    found = text.count(mutation.old)
    if found != 1:
        raise TableError(f"{mutation.name}: its text occurs {found} times in {mutation.file}")
    return text.replace(mutation.old, mutation.new)


def try_mutation(mutation: Mutation, tree: Path) -> bool:
    path = tree / mutation.file
    original = path.read_text()
    path.write_text(mutant(mutation, tree))
    try:
        test = failing_test(tree)
    except TableError as e:
        raise TableError(f"{mutation.name}: {e}") from e
    finally:
        path.write_text(original)
    print(f"{'noticed ' if test else 'SURVIVED'}  {mutation.name}  {test or ''}", flush=True)
    return test is not None


def run(words: list[str]) -> int:
    chosen = [m for m in MUTATIONS if not words or any(w in m.name for w in words)]
    if not chosen:
        raise TableError(f"no mutation's name contains {' or '.join(words)}")
    with tempfile.TemporaryDirectory(prefix="mqfair-mutate-") as folder:
        tree = Path(folder)
        copy_sources(tree)
        for mutation in chosen:
            mutant(mutation, tree)
        test = failing_test(tree)
        if test:
            raise TableError(f"{test} fails without any mutation")
        survived = [m.name for m in chosen if not try_mutation(m, tree)]
    print(f"{len(chosen) - len(survived)} noticed, {len(survived)} survived")
    return 1 if survived else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Breaks flash/ line by line and expects its tests to notice.",
        epilog="example: tests/flash/mutate.py gc owner",
    )
    parser.add_argument("word", nargs="*", help="only mutations whose name contains a word")
    try:
        return run(parser.parse_args().word)
    except TableError as e:
        print(f"mutate.py: {e}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Do the simulated tests notice when a line that matters is broken?

Takes lines of the scheduler away, one at a time, in a copy of the sources, builds, and
expects sim-tests to fail.  A mutation whose text is no longer found, or found twice, is an
error: the table below has to follow the sources.

    tests/sim/mutate.py               all mutations
    tests/sim/mutate.py take vt       those whose name contains one of the words

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
COPIED = ("sched", "flash", "sim", "tests/sim")
TIME_LIMIT_S = 300

MESON = """\
project('mutant', 'c',
  default_options: ['c_std=gnu11', 'buildtype=debugoptimized', 'warning_level=0'])
root_include = include_directories('.', 'sched')
sched_sources = files({sources})
flash_sources = files({flash})
subdir('sim')
subdir('tests/sim')
"""


@dataclass(frozen=True)
class Mutation:
    name: str
    file: str
    old: str
    new: str
    tests: str = ""  # only those whose name begins so


def mqfq(name: str, old: str, new: str) -> Mutation:
    return Mutation(name, "sched/mqfq/mqfq.c", old, new)


def ifq(name: str, old: str, new: str) -> Mutation:
    return Mutation(f"ifq-{name}", "sched/ifq/ifq.c", old, new, "ifq/")


def ifq_weight(name: str, old: str, new: str) -> Mutation:
    return Mutation(f"interference-{name}", "sched/ifq/ifq_weight.c", old, new, "ifq/")


MUTATIONS = (
    # virtual time and the threshold
    mqfq(
        "beyond-never",
        "return vtime_before(vt + READ_ONCE(mqfq_params(&s->params)->threshold),\n\t\t\t    a);",
        "return (void)s, (void)a, (void)vt, false;",
    ),
    mqfq(
        "beyond-ignores-t",
        "return vtime_before(vt + READ_ONCE(mqfq_params(&s->params)->threshold),\n\t\t\t    a);",
        "return (void)s, vtime_before(vt, a);",
    ),
    mqfq(
        "vt-not-monotone",
        "while (vtime_before((vtime_t)vt, to))",
        "while ((vtime_t)vt != to)",
    ),
    mqfq(
        "vt-stands-still",
        "if (atomic64_try_cmpxchg(&m->vt, &vt, (s64)to))\n\t\t\tbreak;",
        "break;",
    ),
    mqfq(
        "vt-counts-nobody",
        "if (least == VTIME_NONE)\n\t\treturn;",
        "",
    ),
    mqfq(
        "wheel-not-turned",
        "wheel_turn(&m->wheel, mqfq_vt(m), unpark, &u);",
        ";",
    ),
    mqfq(
        "holder-not-woken",
        "if (holder < m->sched->nr_queues &&\n\t\t    queue_set_claim(&m->throttled, holder))",
        "if (0)",
    ),
    mqfq(
        "publish-not-heard",
        "mindicator_set(&m->tags, q->index, head_tag);",
        ";",
    ),
    mqfq(
        "throttle-unpublished",
        "publish(m, q, head_tag, wake);\n\twhile (beyond(",
        "while (beyond(",
    ),
    mqfq(
        "dispatch-unpublished",
        "if (mq->published)\n\t\tpublish(m, q, q->head_tag, wake);",
        "",
    ),
    mqfq(
        "blocked-stays-published",
        "atomic64_inc(&q->sched->stats.blocks);\n\t\tpublish(m, q, VTIME_NONE, wake);",
        "atomic64_inc(&q->sched->stats.blocks);",
    ),
    # slots
    mqfq(
        "take-not-asked",
        "!slots_try(&m->slots, q->index)))\n\t\treturn wait_for_slot(",
        "false))\n\t\treturn wait_for_slot(",
    ),
    Mutation(
        "put-forgotten",
        "sched/core/slots.c",
        "token_put(&sl->tree, queue);",
        ";",
    ),
    Mutation(
        "hand-over-forgotten",
        "sched/core/slots.c",
        "/* Pairs with announce(). */\n\tslots_hand_over(sl, queue, wake);",
        "",
    ),
    mqfq(
        "left-slot-kept",
        "slots_hand_over(&m->slots, q->index, wake);\n\treturn why;",
        "return why;",
    ),
    mqfq(
        "no-slot-unpublished",
        "publish(m, q, head_tag, wake);\n\tif (!slots_wait(",
        "if (!slots_wait(",
    ),
    Mutation(
        "ready-unannounced",
        "sched/core/slots.c",
        "bool slots_wait(struct slots *sl, u32 queue)\n{\n\tannounce(sl, queue);",
        "bool slots_wait(struct slots *sl, u32 queue)\n{",
    ),
    Mutation(
        "no-stealing",
        "sched/core/slots.c",
        "token_take(&sl->tree, queue) ||\n\t\t\t  token_steal(&sl->tree, queue)",
        "token_take(&sl->tree, queue)",
    ),
    Mutation(
        "unpark-loses-ready",
        "sched/core/slots.c",
        "if (token_total(&sl->tree) <= 0) {\n\t\tannounce(sl, queue);",
        "if (token_total(&sl->tree) <= 0) {",
    ),
    Mutation(
        "unpark-wakes-nobody",
        "sched/core/slots.c",
        "\t\t\treturn;\n\t}\n\tsched_wake(sl->sched, queue, wake);\n}\n\nvoid slots_wake_all",
        "\t\t\treturn;\n\t}\n}\n\nvoid slots_wake_all",
    ),
    mqfq(
        "exempt-takes-a-slot",
        "if (io->flags & IO_EXEMPT)\n\t\treturn true;",
        "",
    ),
    mqfq(
        "urgent-waits",
        "if (unlikely(q->urgent.head)) {",
        "if (unlikely(q->urgent.head) && head_tag == VTIME_NONE) {",
    ),
    # order and charge
    mqfq(
        "lead-keeps-its-key",
        "heap_rekey_top(&mq->heap, flow_tag(lane->lane.flow,\n"
        "\t\t\t\t\t\t   lane->lane.fifo.head->pos,\n\t\t\t\t\t\t   &lane->epoch));",
        "(void)0;",
    ),
    mqfq(
        "shares-not-asked-again",
        "heap_rebuild(&mq->heap, fresh_key);",
        ";",
    ),
    Mutation(
        "merge-for-free",
        "sched/core/engine.h",
        "atomic64_add(more, &io->flow->pos);",
        ";",
    ),
    Mutation(
        "charged-twice",
        "sched/core/engine.h",
        "if (likely(!(io->flags & IO_CHARGED))) {",
        "if (1) {",
    ),
    mqfq(
        "backlog-for-ever",
        "atomic64_dec(&lane->lane.flow->queued);",
        ";",
    ),
    Mutation(
        "requeue-repeated",
        "sched/core/engine.h",
        "io->flags &= (u8)~IO_SLOT;",
        ";",
    ),
    # slow changes
    mqfq(
        "sweep-wakes-nobody",
        "if (changed)\n\t\tunpark_all(m, wake);",
        "",
    ),
    mqfq(
        "tune-wakes-nobody",
        "unpark_all(m, wake);\n\tslots_wake_all(&m->slots, wake);",
        "",
    ),
    mqfq(
        "tune-keeps-depth",
        "slots_resize(&m->slots, p->depth, wake);",
        ";",
    ),
    Mutation(
        "tick-asks-once",
        "sched/core/engine.c",
        "if (flow_sweep(s, now, changed))\n\t\twake_at(wake, sw->next_ns);",
        "flow_sweep(s, now, changed);",
    ),
    mqfq(
        "drain-throttles",
        "if (q->sched->drain)\n\t\treturn false;",
        "",
    ),
    # ifq_weight
    ifq(
        "window-never-ends",
        "ifq_weight_roll(&i->ifq_weight, s, now);",
        ";",
    ),
    ifq(
        "window-wakes-nobody",
        "mqfq_tune(s, NULL, wake);",
        ";",
    ),
    ifq(
        "max-is-min",
        "tag = (vtime_t)atomic64_read(&i->tags.most);",
        ";",
    ),
    ifq(
        "returned-not-counted",
        "t->batch[io->flags & IO_OWN_1 ? 1 : 0].nr--;",
        ";",
    ),
    ifq_weight(
        "undamped",
        "u32 retain = PERCENT - READ_ONCE(ifq_params(&s->params)->damping);",
        "u32 retain = 0 * READ_ONCE(ifq_params(&s->params)->damping);",
    ),
    ifq_weight(
        "ancestors-move-nothing",
        "for (g = &f->group; g; g = g->parent)\n\t\ttenant_add_bytes(",
        "for (g = &f->group; g; g = NULL)\n\t\ttenant_add_bytes(",
    ),
    ifq_weight(
        "rank-ignored",
        "served_bytes = div64_u64(served_bytes * WEIGHT_DEFAULT, weight);",
        "(void)weight;",
    ),
    ifq_weight(
        "all-alike",
        "return (u32)exp2_fixed(min(highest - log_usage, clamp_log(s)));",
        "return SCALE_ONE + 0 * clamp_log(s);",
    ),
    ifq_weight(
        "moved-for-ever",
        "WRITE_ONCE(t->served_bytes, 0);",
        ";",
    ),
    # the flow
    Mutation(
        "idle-flow-saves-up",
        "sched/core/flow.c",
        "if (!backlogged && vtime_before(start->tag, vt))",
        "if (backlogged && 0)",
    ),
    Mutation(
        "share-not-refreshed",
        "sched/core/flow.c",
        "if (share != f->share)\n\t\t\tflow_turn_epoch(f, vt, share_inverse(share));",
        "if (!f->share)\n\t\t\tflow_turn_epoch(f, vt, share_inverse(share));",
    ),
)


class TableError(Exception):
    """The table does not fit the sources, or these do not build."""


def list_sources(room: str) -> str:
    sources = sorted(p.relative_to(ROOT) for p in (ROOT / room).rglob("*.c"))
    return ", ".join(f"'{s}'" for s in sources)


def copy_sources(to: Path) -> None:
    for folder in COPIED:
        shutil.copytree(ROOT / folder, to / folder)
    (to / "meson.build").write_text(
        MESON.format(sources=list_sources("sched"), flash=list_sources("flash"))
    )


def build(tree: Path) -> None:
    done = subprocess.run(
        ["ninja", "-C", str(tree / "build")], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise TableError(f"does not build:\n{done.stdout[-2000:]}")


def first_failure(tree: Path, tests: str) -> str | None:
    """The first thing that sim-tests finds wrong; None when it is content."""
    program = [str(tree / "build/tests/sim/sim-tests"), tests]
    with subprocess.Popen(
        ["timeout", str(TIME_LIMIT_S), *program],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout
        for line in process.stdout:
            if line.startswith("not ok"):
                process.kill()
                return line.strip()
        status = process.wait()
    return None if status == 0 else f"ended with status {status}"


def apply(mutation: Mutation, tree: Path) -> str:
    """Writes the mutant and returns the original text."""
    path = tree / mutation.file
    text = path.read_text()
    found = text.count(mutation.old)
    if found != 1:
        raise TableError(f"{mutation.name}: its text occurs {found} times in {mutation.file}")
    path.write_text(text.replace(mutation.old, mutation.new))
    return text


def try_mutation(mutation: Mutation, tree: Path) -> bool:
    original = apply(mutation, tree)
    try:
        build(tree)
        why = first_failure(tree, mutation.tests)
    except TableError as e:
        raise TableError(f"{mutation.name}: {e}") from e
    finally:
        (tree / mutation.file).write_text(original)
    print(f"{'noticed ' if why else 'SURVIVED'}  {mutation.name}  {why or ''}", flush=True)
    return why is not None


def run(words: list[str]) -> int:
    chosen = [m for m in MUTATIONS if not words or any(w in m.name for w in words)]
    if not chosen:
        raise TableError(f"no mutation's name contains {' or '.join(words)}")
    with tempfile.TemporaryDirectory(prefix="mqfair-mutate-") as folder:
        tree = Path(folder)
        copy_sources(tree)
        for mutation in chosen:
            (tree / mutation.file).write_text(apply(mutation, tree))
        subprocess.run(
            ["meson", "setup", str(tree / "build"), str(tree)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        build(tree)
        for tests in {mutation.tests for mutation in chosen}:
            why = first_failure(tree, tests)
            if why:
                raise TableError(f"the tests fail without any mutation: {why}")
        survived = [m.name for m in chosen if not try_mutation(m, tree)]
    print(f"{len(chosen) - len(survived)} noticed, {len(survived)} survived")
    return 1 if survived else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Breaks the scheduler line by line and expects sim-tests to notice.",
        epilog="example: tests/sim/mutate.py vt slot",
    )
    parser.add_argument("word", nargs="*", help="only mutations whose name contains a word")
    try:
        return run(parser.parse_args().word)
    except TableError as e:
        print(f"mutate.py: {e}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

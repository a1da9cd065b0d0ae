# SPDX-License-Identifier: GPL-2.0
"""A guest and the simulator agree on the part of each tenant of a drawn scene.

The scenes are the first ten of the gauntlet that a guest can play. Both sides play each for 20 s,
after 4 s, which are 0.2 s of the drive's own time. tests/gauntlet/guest.py has the rules.
"""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from fairlib import COUNTED_GUEST, done, scheduled, sent_bytes, served_bytes
from guestlib import Cgroup, Fio, Skip, cases, slow, time_limit, wait_until
from ssdlib import Ssd

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gauntlet"))

import guest as rules
from draw import draw
from scene import Scene

from mqfair.bench.simulated import program

guest = dataclasses.replace(COUNTED_GUEST, needs_simulator=True)

SCHEDULER = "mqfq"
# A fio is stopped by its test.
RUNTIME_S = 3600
# The interrupts of a machine that is not the limit are late by a small part of the drive's time.
MOST_LATE = 0.05

Amounts = dict[str, float]


@slow
@time_limit(1800)
@cases(*rules.SCENES)
def test_scenes_agree_at_a_fixed_depth(seed: int) -> None:
    """Here no control loop of the scheduler finds a depth while the scene runs."""
    agree(seed, {"depth": 64, "isolation": 0})


@slow
@time_limit(1800)
@cases(*rules.SCENES)
def test_scenes_agree(seed: int) -> None:
    try:
        agree(seed, {})
    except rules.ApartError as error:
        if seed in rules.KNOWN_APART:
            raise Skip(f"known to be apart, for {rules.KNOWN_APART[seed]}: {error}") from error
        raise


@slow
def test_other_scenes() -> None:
    seeds, left_out = rules.held(len(rules.SCENES))
    reasons = ", ".join(f"{number} for {reason}" for reason, number in left_out.most_common())
    raise Skip(f"scenes up to seed {seeds[-1]} that no guest plays: {reasons}")


def agree(seed: int, tunables: Mapping[str, int]) -> None:
    """Plays the scene of @seed on both sides. Raises ApartError."""
    scene = rules.stretched(draw(seed))
    with Ssd(**rules.ssd(scene)) as drive, contextlib.ExitStack() as stack:
        got, ios = played(scene, tunables, drive, stack)
        stat = drive.stat()
    simulated = [simulate(scene, tunables, number) for number in rules.SEEDS]
    late = stat["late_us"] / stat["service_us"]
    rate = sum(got.values()) / rules.RUN_MS * 1000
    rates = sorted(sum(one.values()) for one in simulated)
    print(
        f"figure: {seed}: {rate / 1e6:.2f} MB/s in the guest, {rates[0] / 1e6:.2f} to "
        f"{rates[-1] / 1e6:.2f} simulated, interrupts late by {late:.2%} of the service"
    )
    found = list(rules.compare(scene, got, simulated))
    for one in found:
        print(f"figure: {seed}: {one}, {ios[one.tenant]:.0f} requests")
    assert late < MOST_LATE, f"interrupts late by {late:.1%}: the guest is the limit"
    rules.check(found)


def played(
    scene: Scene, tunables: Mapping[str, int], drive: Ssd, stack: contextlib.ExitStack
) -> tuple[Amounts, Amounts]:
    """The bytes and the requests of each tenant in the measured time, in the guest."""
    groups = {}
    for tenant in scene.present:
        group = Cgroup(rules.path(scene, tenant), tenant.weight)
        groups[tenant.name] = stack.enter_context(group)
    host = dict(scene.host)
    stack.enter_context(scheduled(drive, SCHEDULER, **tunables))
    drive.set_queue("nr_requests", host["sched_tags"])
    drive.set_queue("max_sectors_kb", host["most_bytes"] >> 10)
    names = [tenant.name for tenant in scene.loaded]
    jobs = [
        Fio(drive, groups[tenant.name], runtime=RUNTIME_S, thread=1, **rules.fio(scene, tenant))
        for tenant in scene.loaded
    ]
    # A tenant of little weight may wait longer for its first answer than the warm-up takes.
    wait_until(lambda: all(sent_bytes(groups[n], drive) for n in names), "all tenants ask")

    def counts() -> list[tuple[int, int]]:
        return [(served_bytes(groups[n], drive), done(groups[n], drive)) for n in names]

    time.sleep(rules.WARM_MS / 1000)
    before = counts()
    time.sleep(rules.RUN_MS / 1000)
    after = counts()
    got, ios = {}, {}
    for name, was, now in zip(names, before, after, strict=True):
        got[name], ios[name] = float(now[0] - was[0]), float(now[1] - was[1])
    # A tenant of little weight would take minutes for its last requests beside the others.
    for job in jobs:
        job.process.send_signal(signal.SIGINT)
    for job in jobs:
        assert not job.result(check=False)["jobs"][0]["error"]
    return got, ios


def simulate(scene: Scene, tunables: Mapping[str, int], seed: int) -> Amounts:
    """The bytes per second of each tenant with @seed, in the simulator."""
    binary = program.FOLDER / "sim/sim-run"
    settings = [f"set {name} {value}" for name, value in tunables.items()]
    text = dataclasses.replace(scene, seed=seed).play_text(SCHEDULER, settings)
    figures = program.play(binary, text)
    return {t.name: figures["flows"][t.name]["bytes_per_s"] for t in scene.loaded}

# SPDX-License-Identifier: GPL-2.0
"""The picture of a bench: its caption in words, and labels that do not overlap."""

import itertools

import matplotlib as mpl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from mqfair.bench.cdf import MOST_NINES, cdf, nines
from mqfair.bench.device import default_device, in_words
from mqfair.bench.picture import caption, draw, label_centre, picture
from mqfair.bench.plan import Case
from mqfair.bench.result import CaseResult, CgroupResult, RunResult
from mqfair.bench.variant import SCHEDULERS
from mqfair.text.palette import STYLE

WEIGHTS = {"w100": 100, "w250": 250, "w500": 500, "w1000": 1000}
WHERE = {"cpus": 1, "accel": "tcg", "kernel": "6.1.0-56-amd64", "device": default_device(1)}
EVEN, BY_WEIGHT, STARVED = (0.25,) * 4, (0.054, 0.135, 0.27, 0.541), (0.001, 0.042, 0.144, 0.813)


def result(shares_of):
    runs = []
    for scheduler, shares in shares_of.items():
        groups = tuple(
            CgroupResult(name, weight, weight / 1850, share, 0.0, 0.0, {})
            for (name, weight), share in zip(WEIGHTS.items(), shares, strict=True)
        )
        iops = 200.0 if shares is STARVED else 2000.0
        runs.append(RunResult(scheduler, 0, iops, iops * 4096, 0.9, groups))
    return CaseResult(Case("case", tuple(WEIGHTS), WEIGHTS, 1.0, 1.0), tuple(runs), (), {})


def with_latencies(**buckets):
    return CgroupResult(
        "a",
        1,
        1.0,
        1.0,
        0.0,
        0.0,
        {},
        lat_histogram={"end_ns": list(buckets["ends"]), "requests": list(buckets["requests"])},
    )


def test_a_cdf_adds_the_histograms_of_the_repeats():
    first = with_latencies(ends=(1023, 5119), requests=(6, 1))
    second = with_latencies(ends=(1023, 2047), requests=(2, 1))
    assert cdf([first, second]) == [(1023, 0.8), (2047, 0.9), (5119, 1.0)]
    assert cdf([with_latencies(ends=(), requests=())]) == []


def test_percentiles_have_places_by_their_nines():
    assert [nines(part) for part in (0, 0.9, 0.99)] == pytest.approx([0, 1, 2])
    assert nines(1) > MOST_NINES


ALL = result(dict(zip(SCHEDULERS, itertools.cycle((EVEN, STARVED, BY_WEIGHT)), strict=False)))


@pytest.mark.parametrize(
    ("device", "words"),
    [
        (default_device(1), "null_blk drive with 64 slots of 16 ms"),
        (default_device(2), "null_blk drive with 64 slots of 16 ms and 2 queues"),
        ("null:irqmode=0", "null_blk drive that completes at once, with 64 slots"),
        (
            "ssd:model=p4500,fill=85,ftl=host",
            "virtual SSD p4500, 1024 MiB, 85 % full, map on the host, slowed down 100 times",
        ),
        ("nvme:size=1G", "emulated NVMe drive (nvme:size=1G)"),
        ("/dev/nvme0n1", "/dev/nvme0n1"),
    ],
)
def test_a_device_in_words(device, words):
    assert in_words(device) == words


@pytest.mark.parametrize(
    ("cpus", "accel", "words"),
    [(1, "tcg", "one emulated CPU"), (2, "kvm", "2 virtual CPUs"), (8, "host", "8 CPUs")],
)
def test_a_caption_names_drive_kernel_and_processors(cpus, accel, words):
    text = caption({**WHERE, "cpus": cpus, "accel": accel})
    assert text == f"null_blk drive with 64 slots of 16 ms; Linux 6.1.0-56-amd64, {words}"


def test_no_label_covers_another():
    with mpl.rc_context(STYLE):
        figure = picture([ALL, ALL], ["4 KiB random reads", "half reads and half writes"], WHERE)
        FigureCanvasAgg(figure).draw()
        labels = [
            (one.get_text(), one.get_window_extent())
            for one in figure.findobj(Text)
            if one.get_text().strip() and one.get_visible()
        ]
    assert len(labels) > 2 * 4 * len(SCHEDULERS)
    for (text, box), (other, second) in itertools.combinations(labels, 2):
        assert not box.overlaps(second), (text, other)


@pytest.mark.parametrize(
    ("left", "right", "centre"),
    [
        (0.2, 0.4, 0.3),  # no line
        (0.0, 0.04, None),  # no room
        (0.5, 0.9, 0.7),  # a line far from the middle
        (0.39, 0.6, 0.4715),  # a line in the middle
        (0.47, 0.53, None),  # no room beside the line
    ],
)
def test_a_number_keeps_clear_of_the_lines(left, right, centre):
    assert label_centre(left, right, [0.5, 0.85]) == (
        centre if centre is None else pytest.approx(centre)
    )


def test_a_picture_is_written(tmp_path):
    draw([ALL], ["4 KiB random reads"], WHERE, tmp_path / "shares.png")
    assert (tmp_path / "shares.png").stat().st_size > 10_000

# SPDX-License-Identifier: GPL-2.0
"""The colours and the type of all pictures: of bench, of report, and of the experiments."""

from typing import Any

INK = "#22303c"
FAINT = "#d9dee3"
# A due, and a cgroup below its due.
MARK = "#d1495b"
NEUTRAL = "#6c7f90"
# In the order of the cgroups; the shades also differ in grey.
SHADES = ("#cfe3ee", "#93c1d9", "#4a93b8", "#1f5f86", "#0f3a57", "#071f30")
# Lines that differ in hue and in lightness. None is MARK.
CURVES = (INK, "#1f7a8c", "#e0a030", "#6a4c93", "#4a9a5a", "#9a6a4a", "#4a93b8", "#c06c9a")

# Settings of matplotlib.
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
}

# SPDX-License-Identifier: GPL-2.0
"""The Python packages beyond the standard library that verbs need, and how to install them."""

import importlib.util
from collections.abc import Mapping, Sequence

# By verb; the names are those of the modules.
NEEDED: Mapping[str, Sequence[str]] = {
    "bench": ("rich", "numpy"),
    "sim": ("rich", "numpy"),
    "qualify": ("rich", "numpy", "matplotlib"),
    "top": ("rich",),
    "report": ("matplotlib",),
}


def lacking(package: str, needed: Sequence[str]) -> str:
    """A message that names @package and the others of @needed that would be missed next. The
    system's Python of a distribution refuses pip, so its packages come first."""
    names = [package]
    if package in needed:
        names += [one for one in needed if one != package and importlib.util.find_spec(one) is None]
    names = [name.replace("_", "-") for name in names]
    system = " ".join(f"python3-{name}" for name in names)
    return (
        f"Python package{'s' if len(names) > 1 else ''} {', '.join(names)} missing:"
        f" apt install {system} (Debian, Ubuntu), dnf install {system} (Fedora, RHEL), or pip in a"
        " virtual environment"
    )

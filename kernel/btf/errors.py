# SPDX-License-Identifier: GPL-2.0
"""The one error of the generator: a line that names the place and gives a hint."""

from __future__ import annotations


class GenerateError(Exception):
    """The build cannot go on. The message is one line for the user."""


class ToolError(GenerateError):
    """A program of the build is missing or cannot run: the kernel is not to blame."""

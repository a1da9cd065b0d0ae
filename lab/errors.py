"""Errors of the lab. Each message is one line with place, value and hint."""

from __future__ import annotations


class LabError(Exception):
    """The lab could not fulfil a correct request."""


class GoneError(LabError):
    """The mirror has a newer kernel in place of the one that was asked for."""


class SpecError(LabError):
    """The request is wrong: an impossible guest, or a missing file."""

"""Errors of the lab: one line each, naming place, value and mend."""

from __future__ import annotations


class LabError(Exception):
    """The lab could not do what was asked, through no fault of the request."""


class SpecError(LabError):
    """The request itself is wrong: an impossible guest, a file that is not there."""

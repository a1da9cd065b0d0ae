# SPDX-License-Identifier: GPL-2.0
"""The one error of the generator: a line that names the place and the mend."""

from __future__ import annotations


class GenerateError(Exception):
    """The build cannot go on; the message is one line fit to be shown to the user."""

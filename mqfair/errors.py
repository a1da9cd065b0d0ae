# SPDX-License-Identifier: GPL-2.0
"""The two ways in which a subcommand ends early; `mqfair.__main__` prints them as one line."""


class UsageError(Exception):
    """The command line or an input file is wrong: exit status 2, nothing was changed."""


class Failure(Exception):  # noqa: N818 -- the user reads of failures, not of errors
    """The machine refused or is not in the state that was asked for: exit status 1."""

# SPDX-License-Identifier: GPL-2.0
"""The two exceptions that end a verb early. `mqfair.__main__` prints each as one line, which names
the place, the value and a hint."""


class UsageError(Exception):
    """The command line or an input file is wrong. Exit status 2; nothing was changed."""


class Failure(Exception):  # noqa: N818 -- UsageError is the error of the user
    """The machine refused a step or is not in the requested state. Exit status 1."""

# SPDX-License-Identifier: GPL-2.0
"""mqfair: share one fast SSD between cgroups by weight."""

import sys

# The version's only source in Python; tests/cli/test_version.py compares the other places.
__version__ = "0.3.0"

# Python 3.11. The other files have words of that version, and an older one ends at the first.
if sys.hexversion < 0x030B0000:
    from mqfair import old_python

    old_python.leave()

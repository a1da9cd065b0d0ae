# SPDX-License-Identifier: GPL-2.0
"""The names of the schedulers; written by sched/new.py from sched/core/policies.def."""

SCHEDULERS = ("mqfq", "ifq", "kyber-fair", "wdt", "hwabc")
# A module has these only when it is built with MQFAIR_EXAMPLES, as for the guests of the tests.
EXAMPLES = ("drr", "sfq")

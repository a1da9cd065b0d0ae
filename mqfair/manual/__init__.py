# SPDX-License-Identifier: GPL-2.0
"""Man pages and completions, written from the parsers of the verbs, and the forms of JSON."""

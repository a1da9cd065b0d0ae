# SPDX-License-Identifier: GPL-2.0
"""What is printed: errors that end a verb in one line, tables, units, JSON. And the readers of TOML
and of the JSON of fio."""

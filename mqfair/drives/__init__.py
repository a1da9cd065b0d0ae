# SPDX-License-Identifier: GPL-2.0
"""Models of drives as files: their fields, the built-in ones, and their fit to measured figures."""

# SPDX-License-Identifier: GPL-2.0
"""Numbers that a user writes."""

# The digits of 64 bits. Python converts no text of more than 4300 digits.
_DIGITS_MOST = 20


def is_number(text: str, least: int, most: int) -> bool:
    """Is @text a decimal number in @least..@most, of 64 bits?"""
    plain = text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MOST
    return plain and least <= int(text) <= most

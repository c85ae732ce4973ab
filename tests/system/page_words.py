# SPDX-License-Identifier: Apache-2.0
"""Numbers as the page writes them, by independent rules."""
from decimal import ROUND_HALF_UP, Decimal


def rounded(value, digits):
    """Halves are rounded up, as in a browser."""
    return str(Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def short(value):
    """At most three digits, and no trailing zeroes."""
    text = rounded(value, 0 if value >= 100 else 1 if value >= 10 else 2)
    return text.rstrip("0").rstrip(".") if "." in text else text


def latency_text(seconds):
    if seconds < 1e-3:
        return short(seconds * 1e6) + " µs"
    return short(seconds * 1e3) + " ms" if seconds < 1 else short(seconds) + " s"


def scaled(value, units):
    while value >= 1000:
        value, units = value / 1000, units[1:]
    return short(value) + units[0]

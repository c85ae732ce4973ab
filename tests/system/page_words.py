# SPDX-License-Identifier: Apache-2.0
"""Numbers as the page writes them, by independent rules."""
import math
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


def milliseconds_text(seconds):
    """In a column of milliseconds: two digits, then whole ones; from ten seconds on with a unit."""
    if seconds >= 10:
        return f"{int(rounded(seconds, 0)):,} s"
    value = seconds * 1e3
    text = rounded(value, max(0, 1 - math.floor(math.log10(value))) if seconds < 0.01 else 0)
    return text.rstrip("0").rstrip(".") if "." in text else f"{int(text):,}"


def per_second(value):
    return short(value) if value < 10 else f"{int(rounded(value, 0)):,}"


def megabytes(value):
    return "<0.01" if 0 < value < 5000 else short(value / 1e6)


def scaled(value, units):
    while value >= 1000:
        value, units = value / 1000, units[1:]
    return short(value) + units[0]

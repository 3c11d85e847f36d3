"""Texts for figures: three digits and a unit."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

SCALES = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "B": ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1.0, "B")),
    "1/s": ((1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")),
}
"""Units of each kind from the largest: how much it is, and its name."""


def show(values: Sequence[float], unit: str) -> str:
    """Return the median of the rounds in the largest unit that leaves a digit before the point; empty without rounds."""
    if not values:
        return ""
    middle, scales = median(values), SCALES[unit]
    size, name = next((scale for scale in scales if middle >= scale[0]), scales[-1])
    return f"{three_digits(middle / size)} {name}"


def three_digits(number: float) -> str:
    """Return a number with three digits, in full also above a thousand."""
    return f"{number:.0f}" if number >= 99.95 else f"{number:.3g}"


def show_ratio(ratio: float | None) -> str:
    """Return a ratio with two or three digits; empty without one."""
    if ratio is None:
        return ""
    return f"{ratio:.2f}" if ratio < 10 else three_digits(ratio)


def show_spread(ratios: Sequence[float]) -> str:
    """Return the lowest and the highest ratio; empty without one."""
    return f"{show_ratio(min(ratios))} to {show_ratio(max(ratios))}" if ratios else ""

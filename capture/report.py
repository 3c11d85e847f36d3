"""``report``: a text about what was recorded of a function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any


def report(name: str, entries: Sequence[Any]) -> str:
    """Return a text about the plans of a function.

    Args:
        name: of the function.
        entries: what is known of its calls, by key.
    """
    lines = []
    for number, entry in enumerate(entries, 1):
        for plan in entry.plans:
            lines.append(
                f"  {number}: {plan.label}: {plan.source.calls} calls, {plan.memory:,} bytes, {plan.replays} replays"
            )
            for (operation, reason), count in Counter(plan.whole).items():
                lines.append(f"     {count} x {operation} as a whole: {reason}")
        if entry.reason is not None:
            lines.append(f"  {number}: eager: {entry.reason}")
        elif not entry.plans:
            lines.append(f"  {number}: {len(entry.recordings)} calls recorded, no plan yet")
    plans = sum(len(entry.plans) for entry in entries)
    return "\n".join([f"{name}: {plans} plan{'s' * (plans != 1)}", *lines])

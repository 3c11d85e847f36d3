"""``report``: a text about what was recorded of a function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from .blocks import Blocks
from .branches import each_of
from .loops import Loop
from .values import Kind


def report(name: str, entries: Sequence[Any], divided: bool = False) -> str:
    """Return a text about the plans of a function.

    Args:
        name: of the function.
        entries: what is known of its calls, by key.
        divided: whether parts of it are compiled where it runs eagerly.
    """
    lines = []
    for number, entry in enumerate(entries, 1):
        for plan in each_of(entry.plans):
            head, *rest = plan_lines(plan)
            lines += [f"  {number}: {head}, {plan.replays} replays", *(f"     {line}" for line in rest)]
        if entry.reason is not None:
            lines.append(f"  {number}: eager{' in part' * divided}: {entry.reason}")
    waiting = [entry for entry in entries if entry.reason is None and not entry.plans]
    if waiting:
        calls = sum(len(entry.recordings) for entry in waiting)
        lines.append(f"  {calls} calls of {len(waiting)} kinds of arguments recorded, no plan yet")
    plans = sum(len(each_of(entry.plans)) for entry in entries)
    return "\n".join([f"{name}: {plans} plan{'s' * (plans != 1)}", *lines])


def plan_lines(plan: Any) -> list[str]:
    """Return lines about a plan; parts of other workers have those that they give."""
    calls, most = sum(each.calls for each in plan.sources), max(each.passing for each in plan.sources)
    passing = f" and {most:,} while it runs" if most else ""
    lines = [f"{plan.label}: {calls} calls, {plan.memory:,} bytes{passing}"]
    lines += [f"where {look}" for look in plan.looks]
    for part in plan.remote:
        found = part.description()
        lines += [part.text, *(f"  {line}" for line in (found.lines if found is not None else ()))]
    lines += [line for source in plan.sources for line in _chains(source.statements)]
    for (operation, reason), count in Counter(plan.whole).items():
        lines.append(f"{count} x {operation} as a whole: {reason}")
    return lines


def _chains(statements: Sequence[Any]) -> list[str]:
    """Return a line for each chain of element-wise calls, with the first of the calls and the blocks."""
    lines = []
    for each in statements:
        if isinstance(each, Loop):
            names = f"{', '.join(each.names[:4])}{', ...' * (len(each.names) > 4)}"
            lines.append(f"chain of {len(each.names)} calls in one loop of numba: {names}")
        if isinstance(each, Blocks):
            calls = [getattr(part.function, "__name__", "") for part in each.parts if part.kind is not Kind.VIEW]
            names = f"{', '.join(calls[:4])}{', ...' * (len(calls) > 4)}"
            blocks = f"{-(-each.length // each.step)} blocks of {each.step:,} {'elements' if each.flat else 'rows'}"
            lines.append(f"chain of {len(calls)} calls in {blocks}: {names}")
    return lines

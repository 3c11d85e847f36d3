"""Output of the command: a line after each round, at the end a table of faults and one of calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .checks import summarized
from .faults import FAULTS
from .plan import RoundPlan
from .round import Hit, Result


def report_round(console: Console, plan: RoundPlan, result: Result, seconds: float, folder: Path) -> None:
    """Print the result of a round."""
    violations = result.all_violations()
    faults = " ".join(f"{hit.fault}(w{hit.victim})" for hit in result.hits)
    state = f"[red]{len(violations)} violations[/]" if violations else "[green]good[/]"
    console.print(
        f"round {plan.number}: {state}, {seconds:.0f} s, {sum(result.attempts.values())} calls; {escape(faults)}",
        highlight=False,
    )
    for text in summarized(violations):
        console.print(f"  [red]{escape(text)}[/]", highlight=False, soft_wrap=True)
    if violations:
        console.print(f"  journals and logs: {folder}", highlight=False, soft_wrap=True)


def report_all(console: Console, results: Sequence[Result]) -> None:
    """Print the tables."""
    console.print(fault_table(results))
    console.print(call_table(results))
    others = Counter(violation.kind for result in results for violation in result.violations)
    ran = sum(result.ran for result in results)
    peak = max((result.peak_bytes for result in results), default=0)
    console.print(f"{len(results)} rounds, {ran} calls of the counter ran, peak of a worker's memory {peak >> 20} MiB")
    console.print(f"violations that no single fault explains: {_counted(others) or 'none'}", highlight=False)


def fault_table(results: Sequence[Result]) -> Table:
    """Return a row for each fault: how often, who must survive it, how soon a loss was noticed, what went wrong."""
    table = Table("fault", "what it does", "times", "victim", "noticed within", "violations", title="faults")
    for fault in FAULTS.values():
        hits = [hit for result in results for hit in result.hits if hit.fault == fault.name]
        if hits:
            wrong = Counter(violation.kind for hit in hits for violation in hit.violations)
            table.add_row(
                fault.name,
                fault.summary,
                str(len(hits)),
                fault.fate.value,
                _slowest(hits),
                f"[red]{_counted(wrong)}[/]" if wrong else "none",
            )
    return table


def call_table(results: Sequence[Result]) -> Table:
    """Return a row for each kind of call: how many ended how."""
    total: Counter[str] = sum((result.attempts for result in results), Counter())
    outcomes: dict[str, Counter[str]] = {}
    for name, number in total.items():
        kind, outcome = name.split(": ")
        outcomes.setdefault(kind, Counter())[outcome] += number
    table = Table("call", "answered", "others", title="calls")
    for kind, counts in sorted(outcomes.items()):
        answered = counts.pop("answered", 0)
        table.add_row(kind, str(answered), _counted(counts))
    return table


def _slowest(hits: Sequence[Hit]) -> str:
    times = [hit.noticed for hit in hits if hit.noticed is not None]
    return f"{max(times):.1f} s" if times else "-"


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in sorted(counts.items()))

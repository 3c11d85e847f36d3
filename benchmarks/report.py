"""What the benchmark prints: the table of times and ratios, the machine, the errors.

A cell is the median over rounds of each round's median. A ratio below 1 means that ours takes less time.
"""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .cases import Case
from .runner import Contender


def report(contenders: list[Contender], cases: list[Case], rounds: int, console: Console, file: Path | None) -> None:
    """Print the table, the machine and the errors; write the JSON file if a file is named."""
    console.print(build_table(contenders, cases, rounds))
    facts = machine_facts(contenders)
    for name, value in facts.items():
        console.print(f"[dim]{name}: {value}[/]", highlight=False)
    for contender in contenders:
        for case, error in contender.results.errors.items():
            console.print(f"[red]{contender.label}, {case}:[/] {escape(error)}", highlight=False, soft_wrap=True)
    if file:
        file.write_text(json.dumps(as_json(contenders, facts), indent=2) + "\n")


def build_table(contenders: list[Contender], cases: list[Case], rounds: int) -> Table:
    """One row a case: a time for each contender, and ours divided by each of the others'."""
    table = Table(title=f"RPC between two processes on this host, median of {rounds} rounds")
    table.add_column("case")
    for contender in contenders:
        table.add_column(contender.label, justify="right")
        if contender is not contenders[0]:
            table.add_column("ratio", justify="right")
    for case in cases:
        ours = middle(contenders[0], case)
        row = [case.name, show_time(ours)]
        for other in contenders[1:]:
            row += [show_time(middle(other, case)), show_ratio(ours, middle(other, case))]
        table.add_row(*row)
    table.caption = "ratio: ours / theirs, below 1 is better; burst: time per call"
    return table


def middle(contender: Contender, case: Case) -> float | None:
    """The median over rounds, in seconds, or ``None`` if no round succeeded."""
    seconds = contender.results.seconds.get(case.name)
    return median(seconds) if seconds else None


def show_time(seconds: float | None) -> str:
    """Three digits and a unit."""
    if seconds is None:
        return "[red]failed[/]"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"


def show_ratio(ours: float | None, theirs: float | None) -> str:
    """Green when ours is faster, red when it is slower."""
    if ours is None or theirs is None:
        return "-"
    ratio = ours / theirs
    return f"[{'green' if ratio < 1 else 'red'}]{ratio:.2f}[/]"


def machine_facts(contenders: list[Contender]) -> dict[str, str]:
    """What a reader needs to judge the figures."""
    facts = {
        "processor": f"{processor_name()}, {os.cpu_count()} cores",
        "system": f"{platform.system()} {platform.release()}",
        "load before the end": ", ".join(f"{load:.2f}" for load in os.getloadavg()),
    }
    for contender in contenders:
        versions = ", ".join(f"{name} {version}" for name, version in contender.versions.items())
        facts[contender.label] = versions or "did not start"
    return facts


def processor_name() -> str:
    """The processor's name as the kernel gives it, else as Python does."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def as_json(contenders: list[Contender], facts: dict[str, str]) -> dict[str, Any]:
    """Every measurement, for a later comparison."""
    rows = {
        contender.label: {"seconds": contender.results.seconds, "errors": contender.results.errors}
        for contender in contenders
    }
    return {"machine": facts, "contenders": rows}

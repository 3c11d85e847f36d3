"""Output of the benchmarks: the table of times and ratios, the machine, the errors.

A cell is the median over rounds of each round's median. A ratio is the median of the rounds' ratios, because what
slows one contender down in a round mostly slows the next one too; below 1, Telegrad takes less time.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .runner import Contender


@dataclass(frozen=True)
class Heading:
    """Texts above and below the table; ``aims`` are ratios by case, 1 where none is given."""

    title: str
    caption: str
    aims: Mapping[str, float] = field(default_factory=dict)


def report(
    contenders: list[Contender], cases: list[str], heading: Heading, console: Console, file: Path | None
) -> None:
    """Print the table, the machine and the errors; write the JSON file if a file is named."""
    console.print(build_table(contenders, cases, heading))
    facts = machine_facts(contenders)
    for name, value in facts.items():
        console.print(f"[dim]{name}: {value}[/]", highlight=False)
    for contender in contenders:
        for case, error in contender.results.errors.items():
            console.print(f"[red]{contender.label}, {case}:[/] {escape(error)}", highlight=False, soft_wrap=True)
    if file:
        file.write_text(json.dumps(as_json(contenders, facts), indent=2) + "\n")


def build_table(contenders: list[Contender], cases: list[str], heading: Heading) -> Table:
    """Return a table with a row for each case: each contender's time, Telegrad's divided by each other one, the aim if any."""
    table = Table(title=heading.title, caption=heading.caption)
    table.add_column("case")
    for contender in contenders:
        table.add_column(contender.label, justify="right")
        if contender is not contenders[0]:
            table.add_column("ratio", justify="right")
    if heading.aims:
        table.add_column("aim", justify="right")
    for case in cases:
        ours, aim = seconds_of(contenders[0], case), heading.aims.get(case, 1.0)
        row = [case, show_time(ours)]
        for other in contenders[1:]:
            theirs = seconds_of(other, case)
            row += [show_time(theirs), show_ratio(ours, theirs, aim)]
        table.add_row(*row, *([f"{aim:g}"] if heading.aims else []))
    return table


def seconds_of(contender: Contender, case: str) -> list[float]:
    """Return the seconds of a case's rounds; none if the first round failed."""
    return contender.results.seconds.get(case, [])


def show_time(seconds: Sequence[float]) -> str:
    """Return the median of the rounds: three digits and a unit."""
    if not seconds:
        return "[red]failed[/]"
    middle = median(seconds)
    return f"{middle * 1e3:.3g} ms" if middle >= 1e-3 else f"{middle * 1e6:.3g} µs"


def show_ratio(ours: Sequence[float], theirs: Sequence[float], aim: float = 1.0) -> str:
    """Return the median of the rounds' ratios; green within the aim, red above."""
    if not ours or not theirs:
        return "-"
    ratio = median(mine / other for mine, other in zip(ours, theirs))
    return f"[{'green' if ratio <= aim else 'red'}]{ratio:.2f}[/]"


def machine_facts(contenders: list[Contender]) -> dict[str, str]:
    """Return facts of the machine that a reader needs to judge the numbers."""
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
    """Return the processor's name from the kernel, else from Python."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def as_json(contenders: list[Contender], facts: dict[str, str]) -> dict[str, Any]:
    """Return every measurement, for a later comparison."""
    rows = {
        contender.label: {"seconds": contender.results.seconds, "errors": contender.results.errors}
        for contender in contenders
    }
    return {"machine": facts, "contenders": rows}

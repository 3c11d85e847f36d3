"""Report of a run on the terminal: figures and ratios of all contenders, the aims, the machine, what failed."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .aims import Aim
from .cases import FIGURES
from .figures import show, show_ratio, show_spread
from .results import Results, Row

COLOURS = {"moonshot": "bold green", "yes": "green", "no": "red"}
COLUMNS = 4  # of other contenders in a table
NAMED = 3  # cases of a contender in which it failed for one reason; of more their number is told
WIDTH = 130  # at least: a table that is broken cannot be read


def report(results: Results, aims: Sequence[Aim], title: str, console: Console) -> None:
    """Print everything; the first contender is the one that the others are compared with."""
    console.width = max(console.width, WIDTH)
    ours, *others = [source.name for source in results.contenders if not source.missing] or [""]
    console.print(f"[bold]{title}[/]; in brackets: ours / theirs, the median of the rounds' ratios", highlight=False)
    for start in range(0, len(others) or bool(ours), COLUMNS):
        console.print(figures_table(results, [ours, *others[start : start + COLUMNS]]))
    rows = {row.name: row for row in results.rows}
    if measured := [aim for aim in aims if aim.row in rows and ratio_of(results, rows, aim) is not None]:
        console.print(aims_table(results, rows, measured))
    report_facts(results, console)


def report_facts(results: Results, console: Console) -> None:
    """Print facts of the machine and of the run, and what failed."""
    for name, value in {**results.machine, **results.run}.items():
        console.print(f"[dim]{name}: {escape(value)}[/]", highlight=False)
    for reason, names in failures(results).items():
        console.print(f"[yellow]{escape(', '.join(names))}:[/] {escape(reason)}", highlight=False, soft_wrap=True)


def figures_table(results: Results, contenders: list[str]) -> Table:
    """Return a table with a row for each figure: every contender's, and in brackets the first one's divided by it."""
    table = Table()
    table.add_column("")
    for name in contenders:
        table.add_column(name, justify="right", no_wrap=True)
    for row in results.rows:
        cells = [cell(results, row, name, contenders[0]) for name in contenders]
        if any(cells):
            table.add_row(row.name, *cells)
    return table


def cell(results: Results, row: Row, contender: str, ours: str) -> str:
    """Return the text of one contender in a row."""
    found = results.find(row.case, contender)
    if found.error:
        return "[red]failed[/]"
    text = show(found.values(row.figure), FIGURES[row.figure].unit)
    ratio = show_ratio(results.ratio(row, ours, contender))
    return f"{text} [dim]({ratio})[/]" if ratio and contender != ours else text


def aims_table(results: Results, rows: dict[str, Row], aims: Sequence[Aim]) -> Table:
    """Return a table with a row for each aim."""
    table = Table("", "ours / theirs", title="aims")
    for name in ("ratio", "of rounds", "aim", "moonshot"):
        table.add_column(name, justify="right")
    for aim in aims:
        ratio = ratio_of(results, rows, aim)
        assert ratio is not None
        goals = [("" if goal is None else f"{goal:g}") for goal in (aim.aim, aim.moonshot)]
        colour = COLOURS[aim.reached(ratio)]
        spread = show_spread(results.ratios(rows[aim.row], aim.ours, aim.theirs))
        table.add_row(aim.row, f"{aim.ours} / {aim.theirs}", f"[{colour}]{show_ratio(ratio)}[/]", spread, *goals)
    return table


def ratio_of(results: Results, rows: dict[str, Row], aim: Aim) -> float | None:
    """Return the ratio that an aim is about, if it was measured."""
    return results.ratio(rows[aim.row], aim.ours, aim.theirs)


def failures(results: Results) -> dict[str, list[str]]:
    """Return who is missing, or failed where, by reason; the file has whole tracebacks."""
    found: dict[str, dict[str, list[str]]] = {}
    for source in results.contenders:
        if source.missing:
            found.setdefault(shorten(source.missing), {})[source.name] = []
    for measured in results.measurements:
        if reason := measured.absent or measured.error:
            found.setdefault(shorten(reason), {}).setdefault(measured.contender, []).append(measured.case)
    return {reason: [named(*item) for item in cases.items()] for reason, cases in found.items()}


def named(contender: str, cases: list[str]) -> str:
    """Return a contender's name with the cases in which it failed, or how many these are."""
    text = ", ".join(cases) if len(cases) <= NAMED else f"{len(cases)} cases"
    return f"{contender} ({text})" if cases else contender


def shorten(text: str) -> str:
    """Return first and last line of a text: of a traceback, the last is the exception."""
    first, *others = text.strip().splitlines()
    return " ".join([first, *others[-1:]])

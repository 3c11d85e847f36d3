"""Picture of the results: latency by payload, rate by calling threads, and how many times better than PyTorch Telegrad is."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import median
from typing import Any

from .aims import AIMS, Aim
from .figures import show
from .results import Results, Row

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
COLOURS = {
    "telegrad": "#c1272d",
    "torch": "#e8862e",
    "rpyc": "#7a5195",
    "zeromq": "#2a7f9e",
    "ray": "#4b8b3b",
    "sockets": "#888888",
}
Points = list[tuple[float, float]]


def draw(results: Results, file: Path) -> None:
    """Draw the results into a file, whose suffix says in which form: ``.svg`` or ``.png``."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullLocator

    # Text stays text, and the same results give the same file.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "results", "font.size": 9}):
        figure: Any = plt.figure(figsize=(11, 12), layout="constrained")
        above, below = figure.subfigures(2, 1, height_ratios=[2, 3])
        echo, threads = above.subplots(1, 2)
        draw_lines(results, echo, r"(.+) echo", "payload", "there and back")
        draw_lines(results, threads, r"(\d+) calling threads?", "calling threads", "empty calls a second")
        echo.xaxis.set(
            major_locator=LogLocator(32), major_formatter=lambda size, _: show([size], "B"), minor_locator=NullLocator()
        )
        echo.yaxis.set_major_formatter(lambda seconds, _: show([seconds], "s"))
        threads.yaxis.set(
            major_locator=LogLocator(10, (1, 2, 5)),
            major_formatter=lambda rate, _: show([rate], "1/s"),
            minor_locator=NullLocator(),
        )
        threads.xaxis.set(
            major_locator=LogLocator(2), major_formatter=lambda count, _: f"{count:g}", minor_locator=NullLocator()
        )
        echo.legend(fontsize=7, ncols=2)
        draw_aims(results, below.subplots())
        if not threads.lines:  # that was not measured
            threads.remove()
        # Tight: the longest labels reach beyond the figure.
        metadata = {"Date": None} if file.suffix == ".svg" else None
        figure.savefig(file, dpi=120, metadata=metadata, bbox_inches="tight")
        plt.close(figure)


def draw_lines(results: Results, axes: Any, pattern: str, across: str, up: str) -> None:
    """Draw a line for each contender through the rows whose names match; what the pattern finds is the place on the x axis."""
    for source in results.contenders:
        points = points_of(results, source.name, pattern)
        if points:
            colour = COLOURS.get(source.name.partition(",")[0], "#000000")
            wide = 2.2 if source.name == "telegrad" else 1.2
            axes.plot(*zip(*points), ls=style_of(source.name), color=colour, lw=wide, marker=".", label=source.name)
    axes.set(xlabel=across, ylabel=up, xscale="log", yscale="log")
    axes.grid(alpha=0.3)


def points_of(results: Results, contender: str, pattern: str) -> Points:
    """Return (what the pattern finds as a number, median) of each row that matches."""
    points = []
    for row in results.rows:
        match, values = re.fullmatch(pattern, row.name), results.values(row, contender)
        if match and values:
            number, _, unit = match[1].partition(" ")
            points.append((float(number) * UNITS.get(unit, 1), median(values)))
    return sorted(points)


def style_of(contender: str) -> Any:
    """Return the style of a contender's line: a library's first transport is solid."""
    _, _, transport = contender.partition(", ")
    return {"": "-", "Unix": "-.", "TCP": "--", "TLS": (0, (4, 1, 1, 1, 1, 1))}.get(transport, ":")


def draw_aims(results: Results, axes: Any) -> None:
    """Draw a bar for each aim: how many times better ours is than theirs, with the aim and the moonshot as marks."""
    from matplotlib.ticker import LogLocator

    rows = {row.name: row for row in results.rows}
    measured = [(aim, factor) for aim in AIMS if aim.row in rows and (factor := times_better(results, rows, aim))]
    labels = [f"{aim.row}: {aim.ours} / {aim.theirs}" for aim, _ in measured]
    places = range(len(measured))
    factors = [factor for _, factor in measured]
    axes.barh(places, [factor - 1 for factor in factors], left=1, height=0.6, color=COLOURS["telegrad"], alpha=0.6)
    for place, factor in zip(places, factors):  # right of the bars
        axes.annotate(
            f"{factor:.2g}",
            (1.01, place),
            xycoords=("axes fraction", "data"),
            fontsize=8,
            va="center",
            annotation_clip=False,
        )
    for name, marker in (("aim", "|"), ("moonshot", "x")):
        goals = [(as_times(aim, getattr(aim, name)), place) for place, (aim, _) in zip(places, measured)]
        points = [(goal, place) for goal, place in goals if goal]
        if points:
            axes.plot(*zip(*points), marker, color="black", ms=9 if marker == "|" else 5, label=name)
    axes.set(
        xscale="log",
        yticks=list(places),
        yticklabels=labels,
        xlabel="times better (fewer seconds or bytes, more calls)",
    )
    axes.xaxis.set(major_locator=LogLocator(10, (1, 2, 5)), major_formatter=lambda times, _: f"{times:g}")
    axes.axvline(1, color="black", lw=0.8)
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3, which="both")
    if measured:
        axes.legend(fontsize=8)


def times_better(results: Results, rows: dict[str, Row], aim: Aim) -> float | None:
    """Return how many times better ours is."""
    return as_times(aim, results.ratio(rows[aim.row], aim.ours, aim.theirs))


def as_times(aim: Aim, ratio: float | None) -> float | None:
    """Return a ratio as how many times better that is."""
    return ratio if ratio is None or aim.more else 1 / ratio

"""Results on ``docs/performance.md`` and ``README.md``: ``python -m telegrad.benchmarks.publish results.json``.

It writes the ratios between two marks on the page. The page's folder gets all figures, between such marks on ``figures.md``,
a copy of the file, and the picture. ``README.md`` gets the figures of some cases beside PyTorch's. ``make bench-docs``
measures first.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from .aims import AIMS, OURS, TORCH
from .cases import FIGURES
from .figures import show, show_ratio
from .picture import draw
from .report import failures, ratio_of
from .results import Results, read

ROOT = Path(__file__).resolve().parents[1]
PAGE, README = ROOT / "docs" / "performance.md", ROOT / "README.md"
BEGIN, END = "<!-- results: written by benchmarks/publish.py -->\n", "<!-- end of results -->\n"
COLUMNS = 6
IN_README = (
    "no-op",
    "1 MiB echo",
    "64 MiB echo",
    "burst of 10,000 no-ops",
    "remote + to_here",
    "autograd, 1 hop",
    "autograd, 8 hops",
    "optimizer step, 1M parameters",
    "parameter server",
    "all_reduce of 1 MiB, 2 ranks",
    "data parallel step, 2 ranks",
    "pipeline step, 2 stages",
    "start, 2 workers",
    "memory of one of 2 workers",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Publish one file."""
    parser = argparse.ArgumentParser(
        prog="python -m telegrad.benchmarks.publish", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("file", type=Path, help="results that `python -m telegrad.benchmarks.rpc --json FILE` wrote")
    parser.add_argument("--page", type=Path, default=PAGE, help=f"page to write (default: {PAGE})")
    options = parser.parse_args(arguments)
    publish(options.file, options.page, options.page.with_suffix(""))
    if options.page == PAGE:
        write_between_marks(README, beside_torch(read(options.file)))
    return 0


def publish(file: Path, page: Path, folder: Path) -> None:
    """Write the results in ``file`` onto the page, and all figures, with what belongs to them, into the folder.

    Args:
        file: results that were written by ``Results.write``.
        page: text with both marks.
        folder: has ``figures.md`` with both marks, and gets ``results.json`` and ``results.svg``.

    Raises:
        ValueError: a page lacks a mark, or the file has another schema.
    """
    results = read(file)
    write_between_marks(page, summary(results, folder.name))
    write_between_marks(folder / "figures.md", figures(results))
    if file.resolve() != (copy := folder / "results.json").resolve():
        shutil.copyfile(file, copy)
    draw(results, folder / "results.svg")


def write_between_marks(page: Path, lines: Iterable[str]) -> None:
    """Replace the lines between the marks of a page.

    Raises:
        ValueError: the page lacks a mark.
    """
    before, _, rest = page.read_text().partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"{page} must have the lines {BEGIN.strip()} and {END.strip()}")
    page.write_text(before + BEGIN + "\n".join(lines) + "\n" + END + after)


def beside_torch(results: Results) -> Iterator[str]:
    """Return a table of some cases beside PyTorch's, in Markdown."""
    yield from head("", "Telegrad", "PyTorch", "ratio")
    for row in results.rows:
        ratio = results.ratio(row, OURS, TORCH)
        if row.name in IN_README and ratio is not None:
            shown = [show(results.values(row, name), FIGURES[row.figure].unit) for name in (OURS, TORCH)]
            yield line(row.name, *shown, show_ratio(ratio))


def summary(results: Results, folder: str) -> Iterator[str]:
    """Return the machine, the picture and the aims, in Markdown."""
    facts = {**results.machine, **results.run}
    yield (
        "; ".join(f"{name}: {value}" for name, value in facts.items())
        + f". Every round: [results.json]({folder}/results.json)."
    )
    yield ""
    yield f"![latencies, rates, and Telegrad beside PyTorch]({folder}/results.svg)"
    yield ""
    yield from aims_table(results)


def figures(results: Results) -> Iterator[str]:
    """Return the figures of all contenders, who they were, and why cases are missing, in Markdown."""
    ours, *others = [source.name for source in results.contenders if not source.missing]
    for start in range(0, len(others) or 1, COLUMNS):
        yield from figures_table(results, [ours, *others[start : start + COLUMNS]])
    yield from versions(results)
    for reason, names in failures(results).items():
        yield f"* {' · '.join(names)}: {reason}"


def aims_table(results: Results) -> Iterator[str]:
    """Return the aims that were measured, in Markdown."""
    yield from head("", "ours / theirs", "ratio", "aim", "moonshot", "reached")
    rows = {row.name: row for row in results.rows}
    for aim in AIMS:
        ratio = ratio_of(results, rows, aim) if aim.row in rows else None
        if ratio is not None:
            goals = ["" if goal is None else f"{goal:g}" for goal in (aim.aim, aim.moonshot)]
            yield line(aim.row, f"{aim.ours} / {aim.theirs}", show_ratio(ratio), *goals, aim.reached(ratio))
    yield ""


def figures_table(results: Results, contenders: list[str]) -> Iterator[str]:
    """Return the figures of these contenders in Markdown, with ours divided by theirs in brackets."""
    ours = contenders[0]
    yield from head("", *contenders)
    for row in results.rows:
        cells = []
        for name in contenders:
            text = show(results.values(row, name), FIGURES[row.figure].unit)
            ratio = results.ratio(row, ours, name) if name != ours else None
            cells.append(text if ratio is None else f"{text} ({show_ratio(ratio)})")
        if any(cells):
            yield line(row.name, *cells)
    yield ""


def versions(results: Results) -> Iterator[str]:
    """Return who took part, by versions."""
    found: dict[str, list[str]] = {}
    for source in results.contenders:
        if source.versions:
            text = ", ".join(f"{name} {version}" for name, version in source.versions.items())
            found.setdefault(text, []).append(source.name)
    for text, names in found.items():
        yield f"* {' · '.join(names)}: {text}"


def head(*names: str) -> Iterator[str]:
    """Return the head of a table, whose first column is text."""
    yield line(*names)
    yield line("---", *["---:"] * (len(names) - 1))


def line(*cells: str) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())

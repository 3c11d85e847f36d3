"""Results on ``docs/guests.md``: ``python -m telegrad.benchmarks.publish_guests FILE``.

The file is what ``python -m telegrad.benchmarks.guests --json FILE`` wrote. The table is put between two marks of the page, and
a copy of the file into ``docs/performance/``.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from .aims import GUESTS as AIMS
from .aims import OURS, TORCH
from .cases import FIGURES
from .figures import show, show_ratio, show_spread
from .publish import ROOT, head, line, write_between_marks
from .results import Results, read

PAGE, COPY = ROOT / "docs" / "guests.md", ROOT / "docs" / "performance" / "guests.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Publish one file."""
    name, about = "python -m telegrad.benchmarks.publish_guests", __doc__.partition("\n")[0]
    parser = argparse.ArgumentParser(prog=name, description=about)
    parser.add_argument("file", type=Path, help="results that `python -m telegrad.benchmarks.guests --json FILE` wrote")
    file: Path = parser.parse_args(arguments).file
    write_between_marks(PAGE, guests_table(read(file)))
    if file.resolve() != COPY.resolve():
        shutil.copyfile(file, COPY)
    return 0


def guests_table(results: Results) -> Iterator[str]:
    """Return figures and ratios beside PyTorch's RPC, and where they were taken, in Markdown."""
    aims = {aim.row: aim for aim in AIMS}
    yield from head("", "Telegrad", "PyTorch's RPC", "ratio", "of rounds", "aim")
    for row in results.rows:
        if ratios := results.ratios(row, OURS, TORCH):
            shown = [show(results.values(row, name), FIGURES[row.figure].unit) for name in (OURS, TORCH)]
            aim = f"{aims[row.name].aim:g}" if row.name in aims else ""
            yield line(row.name, *shown, show_ratio(results.ratio(row, OURS, TORCH)), show_spread(ratios), aim)
    yield ""
    versions = {name: version for source in results.contenders for name, version in source.versions.items()}
    facts = {**versions, **results.machine, **results.run}
    yield "; ".join(f"{name}: {value}" for name, value in facts.items()) + "."


if __name__ == "__main__":
    sys.exit(main())

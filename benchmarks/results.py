"""Results of a benchmark: every figure of every round, and where it was taken. The file is JSON in the form of these classes.

A figure of a case is the median over rounds. A ratio is the median of the rounds' ratios, because what slows one
contender down in a round mostly slows the next one too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

SCHEMA = 1


@dataclass
class Source:
    """Contender: its versions, or why there are none of it."""

    name: str
    versions: dict[str, str] = field(default_factory=dict)
    missing: str = ""


@dataclass(frozen=True)
class Row:
    """Row of the table: a figure of a case. ``FIGURES`` in ``cases/base.py`` has its unit."""

    name: str
    case: str
    figure: str


@dataclass
class Measurement:
    """One case of one contender: the figures of each round, or why there are none.

    Attributes:
        case: name of the case.
        contender: name of the contender.
        rounds: the figures of each round by name, in seconds, bytes or per second.
        absent: what the contender lacks for this case.
        error: what went wrong.
    """

    case: str
    contender: str
    rounds: list[dict[str, float]] = field(default_factory=list)
    absent: str = ""
    error: str = ""

    def values(self, name: str) -> list[float]:
        """Return the figure of every round."""
        return [figures[name] for figures in self.rounds if name in figures]


@dataclass
class Results:
    """Results of one run.

    Attributes:
        machine: facts of the machine.
        run: facts of the run: when, how long, the load.
        rows: rows of the table, in order.
        contenders: all contenders, in order.
        measurements: all measurements.
    """

    machine: dict[str, str] = field(default_factory=dict)
    run: dict[str, str] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    contenders: list[Source] = field(default_factory=list)
    measurements: list[Measurement] = field(default_factory=list)

    def find(self, case: str, contender: str) -> Measurement:
        """Return the measurement of that case and contender; an empty one if there is none."""
        for found in self.measurements:
            if (found.case, found.contender) == (case, contender):
                return found
        return Measurement(case, contender)

    def record(self, case: str, contender: str) -> Measurement:
        """Return the measurement of that case and contender, which the results hold from now on."""
        found = self.find(case, contender)
        if not any(found is known for known in self.measurements):
            self.measurements.append(found)
        return found

    def values(self, row: Row, contender: str) -> list[float]:
        """Return the figure of every round."""
        return self.find(row.case, contender).values(row.figure)

    def ratio(self, row: Row, ours: str, theirs: str) -> float | None:
        """Return a row's figure of one contender divided by that of another; None if one of them has none."""
        return ratio_of(self.values(row, ours), self.values(row, theirs))

    def ratios(self, row: Row, ours: str, theirs: str) -> list[float]:
        """Return that ratio of every round."""
        return ratios_of(self.values(row, ours), self.values(row, theirs))

    def write(self, file: Path) -> None:
        """Write all of it."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1, ensure_ascii=False) + "\n")


def read(file: Path) -> Results:
    """Return the results that ``Results.write`` wrote.

    Raises:
        ValueError: the file has another schema.
    """
    data = json.loads(file.read_text())
    if (schema := data.pop("schema", None)) != SCHEMA:
        raise ValueError(f"{file} has schema {schema}; this program reads schema {SCHEMA}")
    sources = [Source(**row) for row in data.pop("contenders")]
    rows = [Row(**row) for row in data.pop("rows")]
    measurements = [Measurement(**row) for row in data.pop("measurements")]
    return Results(rows=rows, contenders=sources, measurements=measurements, **data)


def ratio_of(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """Return the median of the rounds' ratios; None without rounds."""
    ratios = ratios_of(ours, theirs)
    return median(ratios) if ratios else None


def ratios_of(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Return the rounds' ratios."""
    return [mine / other for mine, other in zip(ours, theirs)]

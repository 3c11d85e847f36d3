"""Table of outcomes: one line an entry, the worst verdict of its cases, and the first case that has it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from .judging import Outcome
from .left_out import differs

# From good to bad. "differs": on purpose. "other error" and "silent": PyTorch raises. "untested": no case could be sent.
VERDICTS = ("agrees", "differs", "untested", "other error", "silent", "lacks a form", "raises", "wrong", "missing")


@dataclass
class Entry:
    """Outcomes of one entry: how many of each verdict, and what each verdict's first cases said."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    details: dict[str, list[str]] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    def add(self, note: str, outcome: Outcome) -> None:
        """Add the outcome of a case."""
        verdict, detail = outcome
        if verdict != "agrees" and (reason := differs(self.name, note, detail)):
            verdict, detail = "differs", reason
        self.counts[verdict] += 1
        if verdict != "agrees":
            self.details.setdefault(verdict, []).append(f"[{note}] {detail}")

    @property
    def verdict(self) -> str:
        """Worst verdict of the entry's cases."""
        return max(self.counts or ["untested"], key=VERDICTS.index)

    def line(self) -> str:
        """Return the entry's line of the table."""
        worst = self.details.get(self.verdict, self.skipped)
        text = f"{self.verdict:13}{self.name:42}{self.counts['agrees']:4}/{sum(self.counts.values()):<4}"
        return f"{text} {worst[0][:220] if worst else ''}".replace("\n", " ")


def summary(entries: list[Entry]) -> str:
    """Return how many entries have each verdict."""
    counts = Counter(entry.verdict for entry in entries)
    parts = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]]
    return f"{len(entries)} entries: {', '.join(parts)}"


def write_json(entries: list[Entry], path: Path) -> None:
    """Write all that is known of each entry."""
    content = {
        entry.name: {
            "verdict": entry.verdict,
            "counts": dict(entry.counts),
            "details": entry.details,
            "skipped": entry.skipped,
        }
        for entry in entries
    }
    path.write_text(json.dumps(content, indent=1))

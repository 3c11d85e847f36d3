"""Explanation why a job waits: records of the causes, as text and as JSON.

A program's names may hold anything: in the text, characters that are not printable are escaped.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ...base.printable import printable

if TYPE_CHECKING:
    from .records import ObservedFrame

NOTHING_WAITS = "nothing waits: no call is under way, and no thread waits for a worker"


@dataclass(frozen=True, slots=True)
class WaitStep:
    """Step of a chain of waits.

    Attributes:
        worker: the worker where it waits.
        thread: name of the thread; empty if it needs none.
        text: what it waits for.
        at: the place in the program, if it has one.
        inferred: concluded from source code, not observed.
    """

    worker: str
    thread: str
    text: str
    at: ObservedFrame | None
    inferred: bool = False


@dataclass(frozen=True, slots=True)
class Cause:
    """Cause of waits: what other calls, threads and workers wait for in the end.

    Attributes:
        kind: "deadlock", "computes", "debugger", "sleeps", "lock", "queue", "event", "condition", "future",
            "generator", "pool", "window", "link", "stopped", "interpreter", "silent", "lost", "reference",
            "references", "shutdown", "thread", "input", …
        severity: "deadlock", "lost", "stuck", "slow" or "busy".
        worker: the worker that is the cause; of a deadlock, the first of its cycle.
        workers: those that it concerns: in a deadlock all of its cycle.
        text: a sentence.
        at: the place in the program, if it is known.
        threads: how many threads are there; of a cause without a place, how many calls.
        waiting: names of the workers that wait for it.
        chain: the steps of one wait that leads there; of a deadlock, its cycle.
    """

    kind: str
    severity: str
    worker: str
    workers: list[str]
    text: str
    at: ObservedFrame | None
    threads: int = 1
    waiting: list[str] = field(default_factory=list)
    chain: list[WaitStep] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Explanation why a job waits.

    Attributes:
        causes: the worst first.
        workers: names of those that were observed.
        left_out: number of further causes.
    """

    causes: list[Cause]
    workers: list[str]
    left_out: int = 0

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """Return it in words: each cause with its place, the workers that wait for it, and one chain that leads there."""
        parts = [_cause(each) for each in self.causes] or [NOTHING_WAITS]
        if self.left_out:
            parts.append(f"{self.left_out} more causes are left out")
        return "\n".join(parts)

    def first_line(self) -> str:
        """Return the worst cause in one line, with its place; empty if nothing waits."""
        return _headline(self.causes[0]) if self.causes else ""

    def table(self) -> dict[str, Any]:
        """Return it as tables, lists, texts and numbers."""
        return asdict(self)

    def json(self) -> str:
        """Return it as JSON."""
        return json.dumps(self.table(), indent=2)


def _cause(cause: Cause) -> str:
    lines = [_headline(cause)]
    if cause.waiting:
        lines.append(f"  waiting for it: {printable(', '.join(cause.waiting))}")
    lines += [f"  {number}. {_step(step)}" for number, step in enumerate(cause.chain, 1)]
    return "\n".join(lines)


def _headline(cause: Cause) -> str:
    unit = "threads" if cause.at else "calls"
    times = f" ({cause.threads:,} {unit})" if cause.threads > 1 and cause.kind != "deadlock" else ""
    place = "" if cause.kind == "deadlock" else _place(cause.at)
    return printable(cause.text) + place + times


def _step(step: WaitStep) -> str:
    thread = f" ({step.thread})" if step.thread else ""
    return printable(f"{step.worker!r}{thread}") + _place(step.at) + " " + printable(step.text)


def _place(at: ObservedFrame | None) -> str:
    return f" in {printable(at.function)} at {printable(at.file)}:{at.line}" if at else ""

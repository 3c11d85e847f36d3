"""Order of a run: jobs of one size at a time; round by round, case by case, contender by contender.

So a noisy minute affects every contender. A case that wants to be alone has its jobs launched one after another.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import groupby

from rich.console import Console

from .cases import Case
from .contenders import Entry
from .machine import GIB, Load, available_bytes
from .results import Results, Source
from .runner import Contender

SPARE = 0.8  # of the available memory may be used


class Run:
    """Run of cases with contenders.

    Args:
        results: where measurements go.
        entries: contenders with the interpreter of each.
        rounds: of every case.
        seconds: of every turn, about.
        console: shows what is measured now.
        load: notes the machine's load between measurements.
    """

    def __init__(
        self, results: Results, entries: dict[Entry, str], rounds: int, seconds: float, console: Console, load: Load
    ) -> None:
        self._results, self._entries, self._load = results, entries, load
        self._rounds, self._seconds, self._console = rounds, seconds, console
        self._sources = {entry: Source(entry.name) for entry in entries}
        results.contenders += self._sources.values()

    def measure(self, cases: Sequence[Case]) -> None:
        """Measure all cases."""
        self._results.rows += [row for case in cases for row in case.rows()]
        ordered = sorted(cases, key=lambda case: (case.alone, case.workers))
        for (alone, workers), group in groupby(ordered, key=lambda case: (case.alone, case.workers)):
            (self._launch_each if alone else self._launch_all)(workers, list(group))

    def _launch_all(self, workers: int, cases: list[Case]) -> None:
        with ExitStack() as stack, self._progress(f"starting jobs of {workers} workers") as show:
            contenders = [stack.enter_context(self._contender(entry, workers)) for entry in self._present()]
            for contender in contenders:
                contender.await_ready()
            for case, contender in self._turns(cases, contenders, show):
                contender.ask(case.name, self._seconds)

    def _present(self) -> list[Entry]:
        """Return the contenders that can be started, as far as is known."""
        return [entry for entry, source in self._sources.items() if not source.missing]

    def _turns(
        self, cases: list[Case], contenders: list[Contender], show: Callable[[str], None]
    ) -> Iterator[tuple[Case, Contender]]:
        for turn in range(self._rounds):
            for case in cases:
                for contender in contenders:
                    show(f"round {turn + 1} of {self._rounds}: {case.name}, {contender.source.name}")
                    self._load.note()
                    yield case, contender

    def _launch_each(self, workers: int, cases: list[Case]) -> None:
        entries = [entry for entry in self._present() if entry.footprint]
        for turn in range(self._rounds):
            for case in cases:
                for entry in entries:
                    with self._progress(f"round {turn + 1} of {self._rounds}: {case.name}, {entry.name}"):
                        self._launch_one(entry, workers, case)

    def _launch_one(self, entry: Entry, workers: int, case: Case) -> None:
        measurement = self._results.record(case.name, entry.name)
        needed, free = workers * self._memory_of_a_worker(entry), available_bytes()
        if needed > SPARE * free:
            measurement.absent = f"it needs about {needed / GIB:.0f} GiB of memory; {free / GIB:.0f} are free"
        if measurement.absent or measurement.error:
            return
        self._load.note()
        with self._contender(entry, workers, alone=True) as contender:
            contender.await_ready()
            contender.ask(case.name, self._seconds)

    @contextmanager
    def _progress(self, text: str) -> Iterator[Callable[[str], None]]:
        """Show what is measured: on a terminal one line, elsewhere a line on stderr for each step."""
        if self._console.is_terminal:
            with self._console.status(text) as status:
                yield status.update
            return
        print(text, file=sys.stderr, flush=True)
        yield lambda text: print(text, file=sys.stderr, flush=True)

    def _memory_of_a_worker(self, entry: Entry) -> float:
        """Return what a worker needed in the jobs so far, in bytes; it grows with the job."""
        mine = [known for known in self._results.measurements if known.contender == entry.name]
        return max((bytes_ for known in mine for bytes_ in known.values("own memory")), default=0.0)

    def _contender(self, entry: Entry, workers: int, alone: bool = False) -> Contender:
        command = entry.command(self._entries[entry], workers, alone)
        return Contender(self._sources[entry], self._results, command, entry.variables, entry.spins and not alone)

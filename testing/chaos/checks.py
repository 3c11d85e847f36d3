"""Checks after a round: of its journals, its measurements, and what it left behind."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...base import errors
from .journal import ANSWERED, UNENDED, Attempt, CallId, Run, WrongResultError

COUNTED = ("count", "echo")
NAMED_ERRORS = {
    name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.RpcError)
}
GROWTH_BYTES = 64 << 20
PEAK_BYTES = 1 << 30
GROWTH_DESCRIPTORS = 64
MOST_OF_A_KIND = 3


@dataclass(frozen=True)
class Violation:
    """A promise that did not hold. ``kind`` groups violations in the table."""

    kind: str
    text: str


@dataclass
class Excuses:
    """Outcomes that the faults of a round allow, by rank.

    Attributes:
        late: seconds by which a worker may be late because it was frozen.
        starved: workers that had no descriptors or memory: calls from and to them may fail with errors of the system.
        gone: workers that died or were expelled: their own calls may end in any way, or not at all.
    """

    late: Counter[int] = field(default_factory=Counter)
    starved: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)


def check_calls(
    attempts: Sequence[Attempt], runs: Sequence[Run], excuses: Excuses, slack: float
) -> Iterator[Violation]:
    """Check that no call ran twice, that answered ones ran once, and that all others failed in time and by name."""
    by_call: defaultdict[CallId, list[Run]] = defaultdict(list)
    for run in runs:
        by_call[run.call].append(run)
    for call, found in by_call.items():
        if len(found) > 1:
            yield Violation("ran twice", f"call {call} ran {len(found)} times: {found}")
    for attempt in attempts:
        ran = by_call.get(attempt.call, [])
        if attempt.kind in COUNTED and attempt.outcome == ANSWERED and [run.value for run in ran] != [attempt.value]:
            yield Violation("lost answer", f"{attempt} was answered, and these runs are on record: {ran}")
        yield from _check_end(attempt, excuses, slack)


def _check_end(attempt: Attempt, excuses: Excuses, slack: float) -> Iterator[Violation]:
    caller = attempt.call[0]
    if caller in excuses.gone:
        return
    if attempt.outcome == UNENDED:
        if caller not in excuses.starved:
            yield Violation("hang", f"{attempt} never ended")
    elif attempt.took > attempt.limit + slack + excuses.late[caller]:
        yield Violation("hang", f"{attempt} ended late")
    elif attempt.outcome == WrongResultError.__name__:
        yield Violation("wrong result", f"{attempt}")
    elif attempt.outcome != ANSWERED and not _fails_well(attempt, excuses):
        yield Violation("unclear error", f"{attempt}")


def _fails_well(attempt: Attempt, excuses: Excuses) -> bool:
    if excuses.starved & {attempt.call[0], *(int(name[1:]) for name in attempt.names)}:
        return True
    # The caller's own name counts: a call that it asked others to make may reach it over a link that is cut.
    named = (*attempt.names, f"w{attempt.call[0]}")
    return attempt.outcome in NAMED_ERRORS and any(repr(name) in attempt.text for name in named)


def check_growth(name: str, before: tuple[int, int], after: tuple[int, int], peak: int) -> Iterator[Violation]:
    """Check a survivor's (allocated bytes, descriptors), and the peak of its resident memory."""
    if after[0] - before[0] > GROWTH_BYTES:
        yield Violation("memory", f"{name} held {before[0] >> 20} MiB, and holds {after[0] >> 20}")
    if peak > PEAK_BYTES:
        yield Violation("memory", f"{name} needed {peak >> 20} MiB at its peak")
    if after[1] - before[1] > GROWTH_DESCRIPTORS:
        yield Violation("descriptors", f"{name} had {before[1]} descriptors open, and has {after[1]}")


def check_remains(processes: Mapping[int, str], folder: Path, shared_files: Collection[str]) -> Iterator[Violation]:
    """Check that nothing is left of a job that ended: processes, temporary files, named shared memory."""
    for pid, command in processes.items():
        yield Violation("left behind", f"process {pid} still runs: {command}")
    for name in os.listdir(folder):
        yield Violation("left behind", f"temporary file {name}")
    for name in shared_files:
        if os.path.exists(name):
            yield Violation("left behind", f"shared memory {name}")


def summarized(violations: Sequence[Violation]) -> Iterator[str]:
    """Return each violation in words, but only the first few of a kind."""
    seen: Counter[str] = Counter()
    for violation in violations:
        seen[violation.kind] += 1
        if seen[violation.kind] <= MOST_OF_A_KIND:
            yield f"{violation.kind}: {violation.text}"
    for kind, number in seen.items():
        if number > MOST_OF_A_KIND:
            yield f"{kind}: and {number - MOST_OF_A_KIND} more"

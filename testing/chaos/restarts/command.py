"""Command ``python -m telegrad.testing.chaos --restarts``: each seed kills workers of each training, and compares its end."""

from __future__ import annotations

import random
import shutil
import statistics
import tempfile
from collections.abc import Iterable
from math import isfinite
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from ..checks import Violation, summarized
from .job import Kill, Outcome, run_training
from .trainings import TRAININGS, Training

PAUSE_SECONDS = 0.02


def play(seeds: Iterable[int], names: Iterable[str], console: Console) -> int:
    """Play seeds, print a line for each and one that counts them, and return how many broke a promise."""
    trainings = [TRAININGS[name] for name in names]
    good = bad = kills = 0
    pauses: list[float] = []
    undisturbed: dict[str, Outcome] = {}
    for seed in seeds:
        for training in trainings:
            if training.name not in undisturbed:
                undisturbed[training.name] = _play_undisturbed(training)
            outcome, violations = _play_one(training, seed, undisturbed[training.name], console)
            good, bad = good + (not violations), bad + bool(violations)
            kills += len(outcome.kills)
            pauses += [pause for pause in outcome.pauses if isfinite(pause)]
    console.print(_times(pauses), highlight=False)
    console.print(f"{good + bad} trainings, {kills} workers killed: {good} as undisturbed, {bad} not", highlight=False)
    return bad


def planned(training: Training, seed: int) -> list[Kill]:
    """Return the kills of a seed: of any workers, at any moments from the first process on."""
    chance = random.Random(f"{training.name} {seed}")
    return [
        Kill(chance.randrange(training.workers), chance.random(), chance.random() * PAUSE_SECONDS)
        for _ in range(chance.randint(1, training.most_kills))
    ]


def violations_of(training: Training, outcome: Outcome, undisturbed: Outcome) -> list[Violation]:
    """Return what did not hold."""
    if outcome.code != 0:
        ended = "did not end" if outcome.code is None else f"ended with {outcome.code}"
        return [Violation("exit code", f"telegrad run {ended}")]
    return [*training.check(outcome.lines, undisturbed.lines)]


def _play_undisturbed(training: Training) -> Outcome:
    folder = Path(tempfile.mkdtemp(prefix="telegrad-chaos-"))
    outcome = run_training(training, folder, [], 0)
    if outcome.code != 0:
        raise RuntimeError(f"the undisturbed {training.name} ended with {outcome.code}; see {folder}")
    shutil.rmtree(folder)
    return outcome


def _play_one(training: Training, seed: int, undisturbed: Outcome, console: Console) -> tuple[Outcome, list[Violation]]:
    folder = Path(tempfile.mkdtemp(prefix="telegrad-chaos-"))
    outcome = run_training(training, folder, planned(training, seed), len(undisturbed.lines))
    violations = violations_of(training, outcome, undisturbed)
    state = f"[red]{len(violations)} violations[/]" if violations else "[green]good[/]"
    killed = " ".join(f"w{rank}" for _, rank in outcome.kills) or "none"
    console.print(f"seed {seed}, {training.name}: {state}, {outcome.seconds:.1f} s; killed {killed}", highlight=False)
    for text in summarized(violations):
        console.print(f"  [red]{escape(text)}[/]", highlight=False, soft_wrap=True)
    if violations:
        console.print(f"  diaries and logs: {folder}", highlight=False, soft_wrap=True)
    else:
        shutil.rmtree(folder)
    return outcome, violations


def _times(pauses: list[float]) -> str:
    if len(pauses) < 2:  # what quantiles need
        return "first step after a death: too few to tell"
    late = statistics.quantiles(pauses, n=20, method="inclusive")[-1]
    return f"first step after a death: {statistics.median(pauses):.2f} s (median), {late:.2f} s (95 of 100)"

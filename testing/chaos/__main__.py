"""Command ``python -m telegrad.testing.chaos``: rounds of faults for some minutes; it exits with 1 if a promise was broken."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from rich.console import Console

from .faults import FAULTS, Pace
from .plan import FEWEST_WORKERS, RoundPlan, plan_rounds
from .report import report_all, report_round
from .restarts.command import play as play_restarts
from .restarts.trainings import TRAININGS
from .round import Result, Round
from .workload import ACTIVITIES, find_activity

QUICK = Pace(keepalive=1.0, reconnect_timeout=2.0, timeout=4.0, brief=0.5, lasting=8.0)

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Play rounds and print the tables; return the exit code."""
    options = parse(arguments)
    console = Console()
    if options.restarts:
        seeds = range(options.seed, options.seed + options.seeds)
        return int(play_restarts(seeds, options.training or list(TRAININGS), console) > 0)
    results: list[Result] = []
    interrupted = False
    try:
        play(options, console, results)
    except KeyboardInterrupt:
        interrupted = True
        console.print("interrupted; what the rounds before this one showed:")
    report_all(console, results)
    return INTERRUPTED if interrupted else int(any(result.all_violations() for result in results))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options on the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m telegrad.testing.chaos",
        description="Break links and processes of running jobs, and check that they keep their promises.",
        epilog="faults: " + "; ".join(f"{fault.name}: {fault.summary}" for fault in FAULTS.values()),
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="begin no round after that long (default: 10)")
    parser.add_argument("--rounds", type=int, help="play so many rounds, however long they take")
    parser.add_argument("--workers", type=int, default=4, help="workers of a round at its start (default: 4)")
    parser.add_argument("--seed", type=int, default=0, help="the same seed plays the same rounds (default: 0)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="begin with round N, to play it again")
    parser.add_argument("--fault", action="append", choices=list(FAULTS), help="only this one; may be repeated")
    parser.add_argument(
        "--activity",
        action="append",
        metavar="NAME",
        help=f"what workers do: {', '.join(ACTIVITIES)} (default: all), or package.module:function; may be repeated",
    )
    parser.add_argument(
        "--restarts", action="store_true", help="kill workers of trainings that restart them, and compare how these end"
    )
    parser.add_argument("--seeds", type=int, default=10, help="with --restarts: so many, from --seed on (default: 10)")
    parser.add_argument(
        "--training", action="append", choices=list(TRAININGS), help="with --restarts: only this one; may be repeated"
    )
    parser.add_argument("--quick", action="store_true", help="short time-outs and short faults, for an idle machine")
    options = parser.parse_args(arguments)
    if options.workers < FEWEST_WORKERS:
        parser.error(
            f"--workers must be at least {FEWEST_WORKERS}, for of two none has a majority; you gave {options.workers}"
        )
    if options.seeds < 1:
        parser.error(f"--seeds must be at least 1; you gave {options.seeds}")
    if not options.minutes >= 0 or options.first < 0 or (options.rounds is not None and options.rounds < 1):
        parser.error("--minutes and --first must not be below 0, and --rounds at least 1")
    for name in options.activity or ():
        try:
            find_activity(name)
        except ValueError as error:
            parser.error(str(error))
    return options


def play(options: argparse.Namespace, console: Console, results: list[Result]) -> None:
    """Play the rounds that the options ask for, and add the result of each to ``results``."""
    faults = [FAULTS[name] for name in options.fault or FAULTS]
    plans = islice(plan_rounds(faults, options.workers, options.seed), options.first, None)
    until = time.monotonic() + 60 * options.minutes
    while len(results) < options.rounds if options.rounds else time.monotonic() < until:
        plan = next(plans)
        began = time.monotonic()
        folder = Path(tempfile.mkdtemp(prefix="telegrad-chaos-"))
        keep = False
        try:
            result = asyncio.run(make_round(folder, options, plan).run(plan.faults))
            results.append(result)
            report_round(console, plan, result, time.monotonic() - began, folder)
            keep = bool(result.all_violations())  # so that a user can see what happened
        finally:
            if not keep:
                shutil.rmtree(folder)


def make_round(folder: Path, options: argparse.Namespace, plan: RoundPlan) -> Round:
    """Return the round that the options and its plan describe."""
    pace = QUICK if options.quick else Pace()
    return Round(folder, options.workers, plan.seed, pace, options.activity or list(ACTIVITIES))


if __name__ == "__main__":
    sys.exit(main())

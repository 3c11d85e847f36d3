"""Program of a contender: the workers of one library, which take a turn at measuring a case when a line on stdin names it.

``start.py contender torch --workers 2`` is rank 0; it starts the other ranks. Requests and answers are lines of JSON.
Only ``libraries`` imports a library under test, so that all are measured in the same way.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from .answers import Answers
from .cases import FIGURES, Case, Turn
from .cases.all import named
from .job import Job
from .libraries import Library, Place, UnsupportedError, load

LEAD_S = 0.3  # for the request to reach all callers


def main(arguments: Sequence[str]) -> None:
    """Be rank 0, which is asked by the runner and starts the others, or one that rank 0 asks."""
    options = parse(arguments)
    if options.launched:
        join_launched(options)
        return
    answers = Answers()
    if options.rank:
        place = Place(Path(options.folder), options.port)
        Worker(options).run(place, Job((), ()), answers)
        return
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench"))
        place = Place(Path(folder), stack.enter_context(reserve_port()).getsockname()[1])
        given = [*arguments, "--folder", str(place.folder), "--port", str(place.port)]
        ranks = range(1, options.workers) if options.processes else ()
        job = stack.enter_context(Job(given, ranks))
        Worker(options).run(place, job, answers)


def join_launched(options: argparse.Namespace) -> None:
    """Be a worker that a launcher has started: rank 0 has the paths of requests and answers, the others only answer calls."""
    options.rank, place = launched_rank(), Place(Path(), 0)
    requests, answers = options.launched if options.rank == 0 else (os.devnull, os.devnull)
    with open(requests) as lines:
        Worker(options).run(place, Job((), ()), Answers(answers), lines)


def launched_rank() -> int:
    """Return the rank that Telegrad's launcher or ``mpiexec`` has given this process."""
    return int(next(os.environ[name] for name in ("RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK") if name in os.environ))


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a contender."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    parser.add_argument("--transport", default="default")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--one-process", dest="processes", action="store_false", help="rank 0 makes all workers")
    parser.add_argument("--launched", nargs=2, metavar="PATH", help="a launcher made all workers; requests and answers")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--folder")
    parser.add_argument("--port", type=int)
    return parser.parse_args(arguments)


class Worker:
    """One worker of the job: it joins, takes the turns it is asked for, and leaves when stdin ends."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._library: Library = load(options.library, options.transport)
        self._rank, self._workers, self._processes = options.rank, options.workers, options.processes
        self._kept: dict[str, dict[str, Any]] = {}

    def run(self, place: Place, job: Job, answers: Answers, requests: Iterable[str] = sys.stdin) -> None:
        """Be a worker of the job at ``place``, until the requests end; ``job`` has the ranks that this process started."""
        self._library.join(self._rank, self._workers, place)
        job.await_all()
        answers.say(ready={"Python": platform.python_version(), **self._library.versions})
        for line in requests:
            answers.say(**self._answer(job, json.loads(line)))
        job.let_leave()
        self._library.leave()

    def _answer(self, job: Job, request: dict[str, Any]) -> dict[str, Any]:
        """Take a turn, here and on the other callers; a case that raises is answered with its error."""
        case = named(request["case"])
        others = case.callers - 1 if self._rank == 0 else 0
        request.setdefault("begin", time.monotonic() + LEAD_S)
        try:
            if others and not self._processes:
                raise UnsupportedError("all its callers would be in one process")
            job.ask(others, request)
            mine = {"figures": case.measure(self._turn(case, request))}
            return combine([mine, *job.answers(others)])
        except UnsupportedError as error:
            return {"absent": str(error)}
        except Exception as error:  # reported to the runner, which shows it
            return {"error": f"{type(error).__name__}: {error}"}

    def _turn(self, case: Case, request: dict[str, Any]) -> Turn:
        peer = self._rank + case.callers
        kept = self._kept.setdefault(case.name, {})
        times = {name: request[name] for name in ("seconds", "begin", "launched")}
        return Turn(library=self._library, workers=self._workers, peer=peer, kept=kept, **times)


def combine(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one answer for those of all callers: the sum of their rates, or the first that has none."""
    for answer in answers:
        if "figures" not in answer:
            return answer
    first = answers[0]["figures"]
    rates = Counter[str]()
    for answer in answers:
        rates.update({name: value for name, value in answer["figures"].items() if is_rate(name)})
    return {"figures": {**first, **rates}}


def is_rate(figure: str) -> bool:
    """Return whether the figures of several callers add up."""
    return figure in FIGURES and FIGURES[figure].more_is_better


def reserve_port() -> socket.socket:
    """Return a socket that keeps a free port of the loopback from other processes while it is open.

    Rank 0 listens there nevertheless, as PyTorch and Telegrad do it: with SO_REUSEADDR. Telegrad's ``launcher`` has the same
    function; a contender does not import Telegrad.
    """
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved

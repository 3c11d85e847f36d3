"""``telegrad debug``: lists the threads of a job that are held, and types into one; or gives commands to all of them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from ...base.printable import printable
from ..progress import report
from .answers import NoAnswerError
from .asking import names_of, question
from .jobs import LocalJob, NoJobError, choose_job
from .observing import MOST_AT_A_TIME

HELD_LOOK_SECONDS = 0.3  # between two looks whether a thread is held
TALK_TIMEOUT = 10.0
MOST_OUTPUT_LINE = 1 << 20  # of a line of output
READ_LINE = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class HeldThread:
    """Thread of a worker that is held.

    Attributes:
        job: its job.
        worker: name of its worker.
        stop: its number there.
        thread: its name.
        where: "file:line in function".
        reason: "breakpoint", or the exception.
    """

    job: LocalJob
    worker: str
    stop: int
    thread: str
    where: str
    reason: str

    def __str__(self) -> str:
        """Return it as a line for people."""
        return printable(f"{self.worker} is held at {self.where} ({self.reason})")

    def talk(self, seen: int, line: str | None = None) -> dict[str, Any]:
        """Type a line, if there is one, and return what was said since ``seen`` characters, and the state.

        Raises:
            NoAnswerError: the worker does not answer, or its thread is not held any more.
        """
        request = {"ask": "talk", "stop": self.stop, "seen": seen, "line": line}
        told = question(self.job, self.worker, request, TALK_TIMEOUT)
        if not isinstance(told, dict) or not isinstance(told.get("output"), str) or "state" not in told:
            raise NoAnswerError(f"worker {printable(self.worker)} said something else")
        return told


@dataclass(frozen=True, slots=True)
class DebugOptions:
    """Options of the command.

    Attributes:
        commands: given instead of typed ones.
        to_all: give them to all threads that are held.
        waits: wait for a thread, if none is held.
        timeout: seconds that a worker has to answer.
        as_json: print one JSON object: the threads that are held, and what the commands said.
    """

    commands: Sequence[str] = ()
    to_all: bool = False
    waits: bool = True
    timeout: float = 2.0
    as_json: bool = False


def debug_job(names: Sequence[str], key: str | None, options: DebugOptions, read_line: READ_LINE = input) -> bool:
    """Type into the threads of a job that are held, one after the other; return whether there was one.

    Args:
        names: threads of these workers only; of all, if there are none.
        key: the beginning of the job's id; None for the latest of this folder.
        options: see there.
        read_line: shows a prompt and returns a line.

    Raises:
        NoJobError: there is no such job or worker.
    """
    job, held = _wait_for_threads(key, names, options)
    if options.as_json or options.commands:
        chosen = held if options.to_all or not options.commands else held[:1]
        said = [(each, "".join(_run(each, options.commands))) for each in chosen]
        _show(said, options.as_json)
        return bool(said)
    found = bool(held)
    while held:
        print("\n".join(map(str, held[:1] if len(held) == 1 else held)))
        if not _session(held[0], read_line):
            break
        held = held_threads(job, names, options.timeout)
    return found


def held_threads(job: LocalJob, names: Sequence[str], timeout: float) -> list[HeldThread]:
    """Return the threads of a job that are held, in order of rank.

    Args:
        job: the job.
        names: of these workers; of all, if there are none.
        timeout: seconds that a worker has to answer.

    Raises:
        NoJobError: the job has no such worker.
    """
    known = names_of(job, timeout)
    if missing := sorted(set(names) - set(known)):
        raise NoJobError(
            f"job {printable(job.key)} has no worker {printable(missing[0])!r}; it has {printable(', '.join(known))}"
        )
    wanted = [name for name in known if not names or name in names]
    with ThreadPoolExecutor(MOST_AT_A_TIME) as pool:
        return [each for threads in pool.map(lambda name: _of_worker(job, name, timeout), wanted) for each in threads]


def _of_worker(job: LocalJob, worker: str, timeout: float) -> list[HeldThread]:
    try:
        told = question(job, worker, {"ask": "stops"}, timeout)
        return [
            HeldThread(
                job,
                worker,
                int(each["stop"]),
                str(each["thread"]),
                f"{each['file']}:{each['line']} in {each['function']}",
                str(each["reason"]),
            )
            for each in told
        ]
    except (NoAnswerError, KeyError, TypeError, ValueError):
        return []  # it is stopped, or ends


def _wait_for_threads(
    key: str | None, names: Sequence[str], options: DebugOptions
) -> tuple[LocalJob, list[HeldThread]]:
    job, told = choose_job(key), False
    while not (held := held_threads(job, names, options.timeout)) and options.waits:
        if not told:
            report("no thread is held; waits for one, until Ctrl-C")
            told = True
        time.sleep(HELD_LOOK_SECONDS)
        job = choose_job(key)  # raises when it has ended; a job that comes together gets another id
    return job, held


def _session(held: HeldThread, read_line: READ_LINE) -> bool:
    """Type into a thread until it goes on; return False if the terminal leaves it."""
    seen, line = 0, None
    while True:
        try:
            told = held.talk(seen, line)
        except NoAnswerError as error:
            report(str(error))
            return True
        seen, line = int(told["seen"]), None
        body, prompt = _divided(str(told["output"]), told["state"])
        if body:
            print(body, end="", flush=True)
        if told["state"] == "ended":
            print(printable(f"{held.worker} goes on"))
            return True
        if told["state"] == "prompt":
            try:
                line = read_line(prompt)
            except (EOFError, KeyboardInterrupt):
                print()
                report(
                    f"{printable(held.worker)} is still held; come back with: telegrad debug {printable(held.worker)}"
                )
                return False


def _run(held: HeldThread, commands: Sequence[str]) -> Iterator[str]:
    """Give a thread commands, and return what it says to each, until it goes on or its worker does not answer."""
    seen = 0
    for command in [None, *commands]:
        try:
            told = held.talk(seen, command)
        except NoAnswerError as error:
            report(str(error))
            return
        seen = int(told["seen"])
        if command is None:
            continue
        body, _ = _divided(str(told["output"]), told["state"])
        yield body
        if told["state"] == "ended":
            return


def _show(said: Sequence[tuple[HeldThread, str]], as_json: bool) -> None:
    if as_json:
        rows = [
            {"worker": each.worker, "stop": each.stop, "where": each.where, "reason": each.reason, "said": text}
            for each, text in said
        ]
        print(json.dumps(rows, indent=2))
        return
    for each, text in said:
        print(each)
        sys.stdout.write(text)


def _divided(output: str, state: str) -> tuple[str, str]:
    """Return what is printed, with control characters made harmless, and the prompt at its end."""
    lines = [printable(line.expandtabs(), MOST_OUTPUT_LINE) for line in output.split("\n")]
    prompt = lines.pop() if state == "prompt" else ""
    return "\n".join([*lines, ""] if prompt else lines), prompt

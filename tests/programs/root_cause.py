"""Program that counts how often the launchers name the worker that failed, not one that lost it: ``root_cause.py --jobs 4``."""

import argparse
import io
import itertools
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path

import failing
from telegrad.launcher import JobSpec, ProcessException, launch, spawn
from telegrad.launcher.result import summary

CASES = ("serving", "pending", "polling", "short", "chain")
HOWS = ("raise", "hook", "leave", "thread", "exit", "os._exit", "kill", "crash", "forgotten")
ERROR = "ValueError: the culprit's own error"
CODES = {
    "raise": 1,
    "hook": 1,
    "leave": 1,
    "thread": 1,
    "exit": 3,
    "os._exit": 3,
    "kill": 137,
    "crash": 139,
    "forgotten": 1,
}


def run(size, case, how):
    """Run a job with `telegrad run`; return what is wrong with its verdict."""
    workers = tuple(f"worker{i}" for i in range(size))
    with tempfile.TemporaryDirectory() as folder:
        stream = io.StringIO()
        result = launch(JobSpec(failing.__file__, (case, how), workers, log_dir=Path(folder)), stream)
        said = summary(result)
    text = f"{said}\n--- shown:\n{stream.getvalue()}"
    root, _, others = said.partition("the others:")
    if not root.startswith(f"root cause: {workers[-1]} (rank {size - 1}) "):
        return f"wrong worker: {text}"
    if result.exit_code != CODES[how]:
        return f"exit code {result.exit_code}: {text}"
    if CODES[how] == 1 and how != "forgotten" and ERROR not in root:
        return f"its error is not told: {text}"
    if len(others.splitlines()) > size + 1 or "CancelledError" in text:
        return f"more than a line for each victim, or gRPC's own: {text}"
    return ""


def spawned(size, case, how):
    """Run a job with `launcher.spawn`; return what is wrong with its verdict."""
    try:
        spawn(failing.main, (case, how), nprocs=size)
    except ProcessException as error:
        if error.error_index != size - 1:
            return f"wrong process: {error}"
        if CODES[how] == 1 and how != "forgotten" and ERROR not in str(error).partition("\nprocess ")[0]:
            return f"its error is not told: {error}"
        return ""
    return "nothing was raised"


def progress(text):
    """Overwrite the last line on a terminal."""
    if sys.stderr.isatty():
        print(f"\r{text}\033[K", end="", file=sys.stderr, flush=True)


def repeat(judge, runs, jobs, label):
    """Run ``judge`` ``runs`` times, ``jobs`` at the same time; return what was wrong."""
    found = []
    with ThreadPoolExecutor(jobs) as pool:
        for done, verdict in enumerate(as_completed([pool.submit(judge) for _ in range(runs)]), 1):
            found += [fault] if (fault := verdict.result()) else []
            progress(f"{label}: right {done - len(found)} of {done}")
    progress("")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=2, help="how many jobs run at the same time")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--hows", nargs="+", choices=HOWS, default=["raise"])
    parser.add_argument("--size", type=int, help="of every job; else 8 workers for a chain, and 3")
    parser.add_argument("--launchers", nargs="+", choices=LAUNCHERS, default=list(LAUNCHERS))
    given = parser.parse_args()
    wrong = 0
    print("launcher workers case     fails      right     seconds each", flush=True)
    for launcher, case, how in itertools.product(given.launchers, given.cases, given.hows):
        size = given.size or (8 if case == "chain" else 3)
        label = f"{launcher:8} {size:7} {case:8} {how:9}"
        began = time.monotonic()
        found = repeat(partial(LAUNCHERS[launcher], size, case, how), given.runs, given.jobs, label)
        seconds = (time.monotonic() - began) / given.runs
        print(f"{label} {given.runs - len(found):3} of {given.runs:3}  {seconds:.1f}", flush=True)
        print(*found[:3], sep="\n", end="\n" if found else "", flush=True)
        wrong += len(found)
    print(f"{wrong} wrong" if wrong else "all are right")
    sys.exit(wrong > 0)


LAUNCHERS = {"run": run, "spawn": spawned}

if __name__ == "__main__":
    main()

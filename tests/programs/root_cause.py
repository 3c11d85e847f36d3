"""Counts how often the launchers name the worker that failed, and not one that lost it: ``root_cause.py --runs 50``."""

import argparse
import io
import itertools
import sys
import tempfile
import time
from pathlib import Path

import failing
from telegrad.launcher import JobSpec, ProcessException, launch, spawn
from telegrad.launcher.report import summary

CASES = ("serving", "pending", "polling", "short", "chain")
HOWS = ("raise", "hook", "leave", "exit", "os._exit", "kill", "crash", "forgotten")
ERROR = "ValueError: the culprit's own error"
CODES = {"raise": 1, "hook": 1, "leave": 1, "exit": 3, "os._exit": 3, "kill": 137, "crash": 139, "forgotten": 1}


def run(size, case, how):
    """`telegrad run`; returns what is wrong with its verdict."""
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
    """`launcher.spawn`; returns what is wrong with its verdict."""
    try:
        spawn(failing.main, (case, how), nprocs=size)
    except ProcessException as error:
        if error.error_index != size - 1:
            return f"wrong process: {error}"
        if CODES[how] == 1 and how != "forgotten" and ERROR not in str(error).partition("\nprocess ")[0]:
            return f"its error is not told: {error}"
        return ""
    return "nothing was raised"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--hows", nargs="+", choices=HOWS, default=["raise"])
    parser.add_argument("--sizes", nargs="+", type=int, default=[3])
    parser.add_argument("--launchers", nargs="+", choices=("run", "spawn"), default=("run", "spawn"))
    given = parser.parse_args()
    wrong = 0
    for launcher, size, case, how in itertools.product(given.launchers, given.sizes, given.cases, given.hows):
        began, judge = time.monotonic(), run if launcher == "run" else spawned
        found = [fault for _ in range(given.runs) if (fault := judge(size, case, how))]
        wrong += len(found)
        seconds = (time.monotonic() - began) / given.runs
        right = given.runs - len(found)
        print(
            f"{launcher:5} {size} workers {case:8} {how:9} right {right} of {given.runs}, {seconds:.1f} s each",
            flush=True,
        )
        for fault in found[:3]:
            print(fault, flush=True)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()

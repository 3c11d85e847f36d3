"""Three programs in six libraries: ``python -m telegrad.benchmarks.comparison`` runs those of ``compare/``, and compares them.

Libraries take turns, and a ratio is the median of those of the rounds, so other work on the machine is the same for all. A
library without an environment (``make peers``, or ``--peer NAME=PYTHON``) is left out.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

from .environments import find_peers
from .machine import machine_facts
from .publish import ROOT, head, line, write_between_marks

FOLDER, PAGE = Path(__file__).with_name("compare"), ROOT / "docs" / "comparison.md"
LIBRARIES = ("telegrad", "torch", "ray", "monarch", "mpi4py", "rpyc")
SHOWN = {"telegrad": "Telegrad", "torch": "PyTorch RPC", "ray": "Ray", "monarch": "Monarch", "rpyc": "RPyC"}
TIMED, DEATH = {"call": "a call", "server": "parameter server, a step"}, "death"
WORKERS = {"call": 2, "server": 3, "death": 3}
LIMIT_S = 240  # for a program; Ray alone takes a minute to start on a busy machine
VARIABLES = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "OMP_NUM_THREADS": "1"}
VARIABLES |= {"RAY_raylet_start_wait_time_s": "200"}


@dataclass(frozen=True)
class Ran:
    """Program that has run: the object of its line of JSON, empty if it wrote none, and its exit code."""

    said: dict[str, Any]
    code: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all programs, print the tables, and write them into the page if ``--publish`` says so."""
    name, about = "python -m telegrad.benchmarks.comparison", __doc__.partition("\n")[0]
    parser = argparse.ArgumentParser(prog=name, description=about)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON", help="interpreter of a library")
    parser.add_argument("--rounds", type=int, default=5, help="of the programs that are timed (default: 5)")
    parser.add_argument("--publish", action="store_true", help="write the tables into docs/comparison.md")
    options = parser.parse_args(arguments)
    pythons = {"telegrad": sys.executable, **find_peers(options.peer)}
    names = [name for name in LIBRARIES if name in pythons]
    lines = [*timed_table(pythons, names, options.rounds), "", *death_table(pythons, names)]
    facts = {**machine_facts(), "rounds": options.rounds, "load at the end": f"{os.getloadavg()[0]:.0f}"}
    lines += ["", "; ".join(f"{name}: {value}" for name, value in facts.items()) + "."]
    print(*lines, sep="\n")
    if options.publish:
        write_between_marks(PAGE, lines)
    return 0


def timed_table(pythons: dict[str, str], names: list[str], rounds: int) -> Iterator[str]:
    """Return a row for each library: lines, and time beside Telegrad's, of each program that is timed."""
    cells: dict[str, list[str]] = {name: [] for name in names}
    for program in TIMED:
        ran = [{name: run(program, name, pythons[name]) for name in names} for _ in range(rounds)]
        for name in names:
            cells[name] += [str(count_lines(program, name)), show_ratio(ran, name), show_time(ran, name)]
    yield from head("", *(text for shown in TIMED.values() for text in (f"{shown}: lines", "ratio", "time")))
    for name in names:
        yield line(SHOWN.get(name, name), *cells[name])


def death_table(pythons: dict[str, str], names: list[str]) -> Iterator[str]:
    """Return a row for each library: what its caller sees of a worker that was killed."""
    yield from head("", "lines", "the caller gets", "after", "another worker answers")
    for name in names:
        ran = run(DEATH, name, pythons[name])
        lines = str(count_lines(DEATH, name))
        if ran.said:
            error = shorten(ran.said["error"].splitlines()[0].replace("|", "/"), 120, placeholder=" …")
            answers = "yes" if ran.said["others"] == 7 else "no"
            yield line(SHOWN.get(name, name), lines, f"`{error}`", f"{ran.said['seconds']:.1f} s", answers)
        else:
            yield line(SHOWN.get(name, name), lines, f"nothing: the job ends with code {ran.code}", "", "no")


def run(program: str, name: str, python: str) -> Ran:
    """Run a program of a library, and return what it said.

    Args:
        program: ``"call"``, ``"server"`` or ``"death"``.
        name: of the library.
        python: interpreter that has it.
    """
    file = str(FOLDER / f"{program}_{name}.py")
    with tempfile.TemporaryDirectory(prefix="compare") as folder, tempfile.TemporaryFile("w+") as output:
        given = [*command(program, name, python, folder), file]
        with subprocess.Popen(
            given,
            cwd=folder,
            env={**os.environ, **VARIABLES},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process:
            code = end(process)
        output.seek(0)
        text = output.read()
    found = [each[each.index("{") :] for each in text.splitlines() if '{"' in each]
    print(program, name, code, *found[-1:], file=sys.stderr, flush=True)
    return Ran(json.loads(found[-1]) if found else {}, code)


def end(process: subprocess.Popen[bytes]) -> int:
    """Wait for a program, and return its exit code; one that does not end in time is killed with those that it started."""
    try:
        return process.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait()


def command(program: str, name: str, python: str, folder: str) -> list[str]:
    """Return the command, without the file, that starts a job of a library."""
    workers = str(WORKERS[program])
    if name == "telegrad" and program != DEATH:
        return [python, "-m", "telegrad.launcher", "run", "-n", workers, "--log-dir", folder]
    if name == "torch":
        return [python, "-m", "torch.distributed.run", "--nproc-per-node", workers]
    if name == "mpi4py":
        return [str(Path(python).with_name("mpiexec")), "-n", workers, python]
    return [python]


def count_lines(program: str, name: str) -> int:
    """Return the number of lines of a program, without comments, docstrings and empty lines."""
    tree = ast.parse((FOLDER / f"{program}_{name}.py").read_text())
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            node.body = body[1:]  # type: ignore[attr-defined]
    return sum(1 for each in ast.unparse(tree).splitlines() if each.strip())


def show_ratio(ran: list[dict[str, Ran]], name: str) -> str:
    """Return the median of the rounds' ratios of a library's time and Telegrad's."""
    pairs = [(each[name].said, each["telegrad"].said) for each in ran]
    ratios = [mine["seconds"] / ours["seconds"] for mine, ours in pairs if mine and ours]
    return f"{statistics.median(ratios):.1f}" if ratios else "it failed"


def show_time(ran: list[dict[str, Ran]], name: str) -> str:
    """Return the least time of a library."""
    times = [each[name].said["seconds"] for each in ran if each[name].said]
    return f"{min(times) * 1e6:.0f} µs" if times else ""


if __name__ == "__main__":
    sys.exit(main())

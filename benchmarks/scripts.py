"""Whole runs of programs, from the start of their processes to the end, each as a user starts it."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from ..launcher import migrate_file
from .cases.programs import FOLDER, losses_in, numbered
from .contender import reserve_port
from .contenders import ONE_THREAD, OURS, Entry
from .results import Results

TIMEOUT_S = 300.0
TAIL_CHARACTERS = 2000


def whole(program: str) -> str:
    """Return the name of the case that is a whole run of a program."""
    return f"{program}, from start to end"


def copy_program(program: str, entry: Entry, folder: Path) -> Path:
    """Return a copy of a program in a folder; for Telegrad its remote calls are changed, and no other line."""
    script = folder / entry.name / program
    script.parent.mkdir(exist_ok=True)
    script.write_text((FOLDER / program).read_text())
    if entry.name == OURS:
        migrate_file(script, keep_torch=True)
    return script


def run_script(results: Results, program: str, entry: Entry, python: str, folder: Path) -> None:
    """Run a program once, and record how long that took, and the losses that it printed."""
    measurement = results.record(whole(program), entry.name)
    script = copy_program(program, entry, folder)
    with reserve_port() as reserved:
        port = str(reserved.getsockname()[1])
    start = time.perf_counter()
    try:
        environment = {**os.environ, **ONE_THREAD, "MASTER_PORT": port}
        done = subprocess.run([python, script], env=environment, timeout=TIMEOUT_S, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        measurement.error = f"it did not end within {TIMEOUT_S:g} s"
        return
    if done.returncode:
        measurement.error = done.stderr[-TAIL_CHARACTERS:].strip()
        return
    measurement.rounds.append({"start": time.perf_counter() - start, **numbered(losses_in(done.stdout))})

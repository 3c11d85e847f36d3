"""Command line: ``python -m telegrad.tools.parity --peer PYTHON [--only NAME]... [--json FILE]``."""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from .left_out import LEFT_OUT
from .replay import replayed
from .report import Entry, summary, write_json

FOLDER = Path(__file__).parent
NOISY = ("wrong", "raises")


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, print a table of disagreements and a summary, and return 1 if there is any."""
    parser = argparse.ArgumentParser(prog="python -m telegrad.tools.parity", description=__doc__)
    parser.add_argument("--peer", required=True, help="a Python that has torch, expecttest, hypothesis and scipy")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="an entry, as optim.Adam; repeatable"
    )
    parser.add_argument("--all", action="store_true", help="print the entries that agree too")
    parser.add_argument("--details", action="store_true", help="print every case that does not agree")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there")
    options = parser.parse_args(arguments)
    start = time.monotonic()
    entries: list[Entry] = []
    for entry in compared(options.peer, options.only):
        entries.append(entry)
        if options.all or entry.verdict != "agrees":
            print(entry.line(), flush=True)
        if options.details:
            for details in entry.details.values():
                print(*(f"    {detail}" for detail in details), sep="\n")
    print(f"{summary(entries)}; {len(LEFT_OUT)} left out; {time.monotonic() - start:.0f} s")
    if options.json:
        write_json(entries, options.json)
    return int(any(entry.verdict in NOISY for entry in entries))


def compared(peer: str, only: Sequence[str]) -> Iterator[Entry]:
    """Yield the entries as they are completed."""
    command = [peer, "-m", "peer.main", *(f"--only={name}" for name in only)]
    environment = {**os.environ, "PYTHONPATH": str(FOLDER)}  # it has torch, and not this package
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            yield from _read(process.stdout)
        except EOFError:
            process.wait()
            raise SystemExit(
                f"the peer ended early (exit code {process.returncode}); run it to see why: {command}"
            ) from None
        finally:
            process.kill()


def _read(stream: Any) -> Iterator[Entry]:
    _, names, version = pickle.load(stream)
    console = Console(stderr=True)
    console.print(f"PyTorch {version}: {len(names)} entries")
    for number, name in enumerate(names):
        entry = Entry(name)
        with console.status(f"{number + 1} of {len(names)}: {name}"):
            while (message := pickle.load(stream)) != ("end", name):
                if isinstance(message, str):
                    entry.skipped.append(message)
                elif name not in LEFT_OUT:
                    entry.add(message["note"], replayed(message))
        if name not in LEFT_OUT:
            yield entry


if __name__ == "__main__":
    sys.exit(main())

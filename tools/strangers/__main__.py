"""Command ``python -m telegrad.tools.strangers --help``."""

from __future__ import annotations

import argparse
import math
import os
import random
import resource
import secrets
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ...rpc.security.joiners import HANDSHAKE_SECONDS
from .attacks import garbage, half_open, handshakes, large_messages
from .job import Job, Phase
from .mutation import Mutations

CALL_MILLISECONDS = 50.0
MEMORY_MIB = 50.0
HOLD = 2 * HANDSHAKE_SECONDS + 5  # long enough to see that half-open connections are closed
ABOUT = """Attack a job of two workers as strangers on its machine could: random bytes, mutated HTTP/2, wrong handshakes,
half-open connections and huge messages at its port, and mutated handshakes and frames before its readers. The job must go on
(99 of 100 calls within 50 ms), use less than 50 MiB more, and unpickle nothing of it. Loopback only."""


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    made = argparse.ArgumentParser(prog="python -m telegrad.tools.strangers", description=ABOUT)
    made.add_argument("--messages", type=_count, default=1_000_000, help="mutated ones, 1%% of them at the port")
    made.add_argument("--connections", type=_count, default=1000, help="half-open ones at a time")
    made.add_argument(
        "--hold", type=float, default=HOLD, metavar="SECONDS", help=f"how long they are held (default {HOLD:g})"
    )
    made.add_argument("--megabytes", type=_count, default=512, help="size of the huge messages, in MiB")
    made.add_argument("--seed", type=int, help="default: a random one, which is printed")
    made.add_argument("--no-timing", action="store_true", help="for busy machines: do not judge how long calls take")
    options = made.parse_args(arguments)
    if not 0 <= options.hold < math.inf:
        made.error(f"--hold must be a number of seconds; you gave {options.hold}")
    return options


def _count(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 10**9:
        raise argparse.ArgumentTypeError(f"use a number from 1 to 10^9; you gave {text}")
    return number


def attack(options: argparse.Namespace, console: Console) -> tuple[list[Phase], list[str]]:
    """Run every attack; return what each did, and what happened that must not."""
    rng = random.Random(options.seed)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # for the strangers' side of their connections
    at_port = max(options.messages // 200, 1)
    problems: list[str] = []
    job = Job()
    try:
        attacks: list[tuple[str, Callable[[], int]]] = [
            ("nobody attacks", lambda: half_open(job.port, 0, 2.0)[0]),
            ("bytes at the port", lambda: garbage(job.port, at_port, rng)),
            ("wrong handshakes at the port", lambda: handshakes(job.port, at_port, rng)),
            ("half-open connections", lambda: hold(job.port, options.connections, options.hold, problems)),
            (f"messages of {options.megabytes} MiB", lambda: large_messages(job.port, options.megabytes)),
        ]
        phases = []
        for name, action in attacks:
            console.print(f"[dim]{name} ...[/]")
            with job.phase(name) as phase:
                phase.done = action()
            phases.append(phase)
        job.end()
    finally:
        job.kill()
    console.print("[dim]mutated handshakes and frames at the readers ...[/]")
    readers, unpickled = attack_readers(options.messages - 2 * at_port, rng)
    problems += [problem for phase in phases for problem in judge(phase, options.no_timing)]
    if readers.grown >= MEMORY_MIB:
        problems.append(f"{readers.name}: memory grew by {readers.grown:.0f} MiB")
    if unpickled:
        problems.append(f"{unpickled} names were looked up to unpickle what strangers said")
    return [*phases, readers], problems


def hold(port: int, count: int, seconds: float, problems: list[str]) -> int:
    """Hold half-open connections, and return how many; one that stays open for too long is a problem."""
    opened, closed = half_open(port, count, seconds)
    if closed < opened and seconds > 2 * HANDSHAKE_SECONDS:
        problems.append(f"{opened - closed} of {opened} half-open connections were still open after {seconds:g} s")
    return opened


def attack_readers(count: int, rng: random.Random) -> tuple[Phase, int]:
    """Read mutated messages here; return how many, the memory that they took, and how much was unpickled."""
    phase = Phase("mutated messages at the readers", count)
    with tempfile.TemporaryDirectory() as folder:
        canary = Path(folder) / "unpickled"
        mutations = Mutations(rng, canary)
        mutations.run(1000)
        before = _peak()
        mutations.run(count)
        phase.grown = _peak() - before
        return phase, mutations.unpickled + canary.exists()


def judge(phase: Phase, no_timing: bool = False) -> list[str]:
    """Return what happened in an attack that must not."""
    problems = [f"{phase.name}: {len(phase.errors)} calls failed, such as: {phase.errors[0]}"] if phase.errors else []
    if not phase.milliseconds:
        problems.append(f"{phase.name}: no call was answered")
    if not no_timing and phase.percentile(0.99) >= CALL_MILLISECONDS:
        problems.append(f"{phase.name}: calls took up to {phase.percentile(0.99):.0f} ms (99 of 100)")
    if phase.grown >= MEMORY_MIB:
        problems.append(f"{phase.name}: the attacked worker's memory grew by {phase.grown:.0f} MiB")
    return problems


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report(phases: list[Phase], console: Console) -> None:
    """Print what each attack did."""
    table = Table("attack", "number", "calls", "median ms", "99% ms", "max ms", "MiB")
    for phase in phases:
        timing = [f"{phase.percentile(share):.1f}" if phase.milliseconds else "" for share in (0.5, 0.99, 1.0)]
        table.add_row(phase.name, f"{phase.done:,}", f"{len(phase.milliseconds):,}", *timing, f"{phase.grown:+.1f}")
    console.print(table)
    for reason, count in next((phase.refused for phase in reversed(phases) if phase.refused), {}).items():
        console.print(f"{count:>8,} refused: {reason}")


def main(arguments: list[str] | None = None) -> int:
    """Attack, report, and return the exit code: 1 if something happened that must not."""
    options = parse(arguments)
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it would tell of each connection that is closed
    options.seed = secrets.randbits(32) if options.seed is None else options.seed
    console = Console()
    console.print(f"seed {options.seed}")
    phases, problems = attack(options, console)
    report(phases, console)
    for problem in problems:
        console.print(f"[red]{problem}[/]")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

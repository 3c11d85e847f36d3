"""Aims: ratios between two contenders that Telegrad is to reach, and those that would be better still."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

OURS, TCP, TLS, GRPC = "telegrad", "telegrad, TCP", "telegrad, TLS", "telegrad, gRPC"
TORCH, TORCH_TCP, COPIES = "torch", "torch, TCP", "two memcpys"


@dataclass(frozen=True)
class Aim:
    """Aim of a row: ours divided by theirs. ``more`` says that a larger ratio is better, as for rates."""

    row: str
    ours: str
    theirs: str
    aim: float | None
    moonshot: float | None = None
    more: bool = False

    def reached(self, ratio: float) -> str:
        """Return the best of "moonshot", "yes" and "no" that a ratio is."""
        for goal, word in ((self.moonshot, "moonshot"), (self.aim, "yes")):
            if goal is not None and (ratio >= goal if self.more else ratio <= goal):
                return word
        return "no"


def _all() -> Iterator[Aim]:
    yield Aim("no-op", OURS, TORCH, 0.2, 0.1)
    yield Aim("no-op", OURS, "rpyc", 1.0)
    yield Aim("no-op", OURS, "zeromq", 1.0)
    yield Aim("1 KiB echo", OURS, TORCH, 0.25, 0.12)
    for size, aim in (("1 MiB", 0.3), ("64 MiB", 0.45), ("256 MiB", 0.45)):
        yield Aim(f"{size} echo", OURS, TORCH, aim)
        yield Aim(f"{size} echo", OURS, COPIES, None, 1.1)
    yield Aim("burst of 10,000 no-ops", OURS, TORCH, 8, 12, more=True)
    yield Aim("remote + to_here", OURS, TORCH, 0.5, 0.3)
    yield Aim("autograd, 1 hop", OURS, TORCH, 0.4, 0.2)
    yield Aim("4 pairs at once", OURS, TORCH, 4, 8, more=True)
    for case, aim, moonshot in (("no-op", 0.15, 0.08), ("1 KiB echo", 0.2, 0.1), ("64 MiB echo", 0.5, 0.35)):
        yield Aim(case, TCP, TORCH_TCP, aim, moonshot)
    for case, aim, moonshot in (("no-op", 0.9, 0.7), ("1 KiB echo", 0.9, 0.6), ("64 MiB echo", 0.9, 0.6)):
        yield Aim(case, GRPC, TORCH_TCP, aim, moonshot)
    yield Aim("burst of 10,000 no-ops", GRPC, TORCH_TCP, 5, more=True)
    yield Aim("no-op", TLS, TCP, 1.2)
    yield Aim("64 MiB echo", TLS, TCP, 2.5)
    for ranks in (2, 4):
        for size in ("1 KiB", "1 MiB", "64 MiB"):
            yield Aim(f"all_reduce of {size}, {ranks} ranks", OURS, TORCH, 0.7)
            yield Aim(f"all_reduce of {size}, {ranks} ranks", OURS, "MPI", None, 1.0)
        yield Aim(f"data parallel step, {ranks} ranks", OURS, TORCH, 0.9)
        yield Aim(f"pipeline step, {ranks} stages", OURS, TORCH, 1.0)
    for workers, aim in ((2, 0.25), (32, 0.08)):
        yield Aim(f"own memory of one of {workers} workers", OURS, TORCH, aim)
    yield Aim("start, 32 workers", OURS, TORCH, 0.3, 0.15)
    yield Aim("parameter server", OURS, TORCH, 2, 4, more=True)


AIMS = tuple(_all())
GUESTS = (
    *(Aim(f"{name}.py", OURS, TORCH, 0.8) for name in ("parameter_server", "rnn", "reinforcement", "pipeline")),
    Aim("parameter server", OURS, TORCH, 2, more=True),
    Aim("step of two workers", OURS, TORCH, 0.6),
    Aim("module of 100M parameters, 64 MiB", OURS, TORCH, 0.3),
)

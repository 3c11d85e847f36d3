"""Cases of the RPC benchmark, the same for each library: each takes a ``Kit`` (the library's modules) and a peer.

A case is a function that returns one measurement in seconds (for the burst: per call). It runs in the caller, rank 0;
functions that it calls run in the peer. Both are here, so that both sides import them under one name.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

KIB, MIB = 1024, 1024 * 1024
FLOAT32 = 4


@dataclass(frozen=True)
class Kit:
    """Parts of a library that a case needs: its rpc and distributed autograd modules and its ``ones``."""

    rpc: Any
    dist_autograd: Any
    ones: Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """Row of the table. ``run`` measures once; a round is ``repeats`` measurements, of which the median counts."""

    name: str
    run: Callable[[Kit, str], float]
    repeats: int
    warmup: int


def nothing() -> None:
    """Do nothing."""


def echo(value: Any) -> Any:
    """Return the argument."""
    return value


def total(left: Any, right: Any) -> Any:
    """Return the sum of two tensors; it runs on the callee."""
    return left + right


def time_nothing(kit: Kit, peer: str) -> float:
    """Measure an empty ``rpc_sync``."""
    start = time.perf_counter()
    kit.rpc.rpc_sync(peer, nothing)
    return time.perf_counter() - start


def time_echo(size: int) -> Callable[[Kit, str], float]:
    """Return a case that sends a float32 tensor of ``size`` bytes and gets it back."""

    def run(kit: Kit, peer: str) -> float:
        tensor = kit.ones(size // FLOAT32)
        start = time.perf_counter()
        answer = kit.rpc.rpc_sync(peer, echo, args=(tensor,))
        elapsed = time.perf_counter() - start
        assert answer.shape == tensor.shape
        return elapsed

    return run


def time_burst(kit: Kit, peer: str, count: int = 10_000) -> float:
    """Measure ``count`` empty calls that are made at once and then waited for; return seconds for each."""
    start = time.perf_counter()
    for future in [kit.rpc.rpc_async(peer, nothing) for _ in range(count)]:
        future.wait()
    return (time.perf_counter() - start) / count


def time_remote(kit: Kit, peer: str) -> float:
    """Measure ``remote``, which makes a value on the peer, and ``to_here``, which fetches it."""
    tensor = kit.ones(4)
    start = time.perf_counter()
    kit.rpc.remote(peer, echo, args=(tensor,)).to_here()
    return time.perf_counter() - start


def time_autograd(kit: Kit, peer: str) -> float:
    """Measure one hop of distributed autograd: a sum of two small tensors on the peer, backward, both gradients."""
    left, right = kit.ones(3, 3, requires_grad=True), kit.ones(3, 3, requires_grad=True)
    start = time.perf_counter()
    with kit.dist_autograd.context() as context_id:
        loss = kit.rpc.rpc_sync(peer, total, args=(left, right)).sum()
        kit.dist_autograd.backward(context_id, [loss])
        gradients = kit.dist_autograd.get_gradients(context_id)
    elapsed = time.perf_counter() - start
    assert len(gradients) == 2
    return elapsed


CASES = (
    Case("no-op", time_nothing, repeats=300, warmup=50),
    Case("1 KiB echo", time_echo(KIB), repeats=300, warmup=50),
    Case("1 MiB echo", time_echo(MIB), repeats=40, warmup=5),
    Case("64 MiB echo", time_echo(64 * MIB), repeats=5, warmup=1),
    Case("burst of 10,000", time_burst, repeats=1, warmup=0),
    Case("remote + to_here", time_remote, repeats=200, warmup=30),
    Case("one-hop autograd", time_autograd, repeats=150, warmup=20),
)


def measure(case: Case, kit: Kit, peer: str) -> float:
    """Measure one round of a case: warm up, measure ``repeats`` times, return the median in seconds."""
    for _ in range(case.warmup):
        case.run(kit, peer)
    return median(case.run(kit, peer) for _ in range(case.repeats))


def named(name: str) -> Case:
    """Return the case called ``name``.

    Raises:
        KeyError: there is none.
    """
    return {case.name: case for case in CASES}[name]

"""Benchmark of ``rpc.Buffer``: ``python -m telegrad.benchmarks.buffers``.

Reads and writes of a buffer beside a plain copy of as many bytes on this machine, and beside a bare socket over TCP; while
its owner waits, and while it holds its interpreter. Then fetches of a sealed buffer by many workers, beside that by one. The
ways take turns; times are medians, and ratios are of turns.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import statistics
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np
from telegrad import rpc
from telegrad.launcher import local_cluster

from .timing import seconds_of

_kept: dict[str, Any] = {}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the figures, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m telegrad.benchmarks.buffers", description=__doc__)
    parser.add_argument("--mib", type=int, default=1024, help="size on one machine (default %(default)s)")
    parser.add_argument("--sent-mib", type=int, default=256, help="size over TCP (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each way (default %(default)s)")
    parser.add_argument("--readers", type=int, default=8, help="workers that fetch at once (default %(default)s)")
    options = parser.parse_args(arguments)
    _one_machine(options.mib << 20, options.rounds)
    _tcp(options.sent_mib << 20, options.rounds)
    _to_many(options.sent_mib << 20, options.readers, options.rounds)
    return 0


def _one_machine(size: int, rounds: int) -> None:
    out, source = np.zeros(size, np.uint8), np.ones(size, np.uint8)
    with local_cluster(1):
        buffer = rpc.rpc_sync("worker0", _make, args=(size,), timeout=0)
        ways: dict[str, Callable[[], object]] = {
            "read": lambda: buffer.read_into(out),
            "write": lambda: buffer.write_from(source),
        }
        _compare(f"{size >> 20} MiB on one machine", "a copy", lambda: np.copyto(out, source), ways, rounds)


def _tcp(size: int, rounds: int) -> None:
    out, source = np.zeros(size, np.uint8), np.ones(size, np.uint8)
    with local_cluster(1, rpc_backend_options=rpc.GrpcRpcBackendOptions(lanes=["tcp"])):
        buffer = rpc.rpc_sync("worker0", _make, args=(size,), timeout=0)
        port = rpc.rpc_sync("worker0", _serve, args=(size,))
        ways: dict[str, Callable[[], object]] = {
            "read": lambda: buffer.read_into(out),
            "write": lambda: buffer.write_from(source),
        }
        _compare(f"{size >> 20} MiB over TCP", "a bare socket", lambda: _receive(port, out.data), ways, rounds)


def _to_many(size: int, readers: int, rounds: int) -> None:
    """Time a fetch by one worker, and by many of one other machine or of as many machines, beside reads by as many."""
    with local_cluster(readers + 1, rpc_backend_options=rpc.GrpcRpcBackendOptions(lanes=["tcp", "unix"])):
        buffer = rpc.rpc_sync("worker0", _make_sealed, args=(size,), timeout=0)
        names = [f"worker{number}" for number in range(1, readers + 1)]

        def run(function: Callable[[rpc.Buffer], None], who: list[str]) -> None:
            rpc.mesh(who).call(function, args=(buffer,), timeout=0).values()

        ways: dict[str, Callable[[], object]] = {
            f"{readers} of one machine fetch": lambda: run(_fetch, names),
            f"{readers} machines fetch": lambda: run(_fetch_apart, names),
            f"{readers} read": lambda: run(_read, names),
        }
        _compare(f"{size >> 20} MiB over TCP to many", "one fetches", lambda: run(_fetch, names[:1]), ways, rounds)


def _compare(
    title: str, base: str, plain: Callable[[], object], ways: dict[str, Callable[[], object]], rounds: int
) -> None:
    """Time the ways in turns with a plain one, while the owner waits and while it computes."""
    times: dict[str, list[float]] = {}
    for number in range(rounds + 1):
        for computes in (False, True):
            with _computing() if computes else contextlib.nullcontext():
                for name, way in {base: plain, **ways}.items():
                    took = seconds_of(way)
                    if number:  # the first round maps the memory
                        times.setdefault(f"{name}, the owner {'computes' if computes else 'waits'}", []).append(took)
    print(title)
    for name, taken in times.items():
        plainly = times[f"{base},{name.rpartition(',')[2]}"]
        ratio = statistics.median(mine / theirs for mine, theirs in zip(taken, plainly))
        print(f"  {name:40} {statistics.median(taken) * 1e3:8.1f} ms  {1 / ratio:5.2f} of its speed")


@contextlib.contextmanager
def _computing() -> Iterator[None]:
    """Let the owner hold its interpreter meanwhile, in a loop of Python."""
    done = rpc.rpc_async("worker0", _compute, timeout=0)
    yield
    rpc.rpc_sync("worker0", _stop)
    done.wait()


def _make(size: int) -> rpc.Buffer:
    buffer = _kept["buffer"] = rpc.Buffer(size)
    buffer.tensor.fill_(1)
    return buffer


def _make_sealed(size: int) -> rpc.Buffer:
    buffer = _make(size)
    buffer.seal()
    return buffer


def _fetch(buffer: rpc.Buffer) -> None:
    _from_elsewhere(buffer).fetch(timeout=0)


def _fetch_apart(buffer: rpc.Buffer) -> None:
    with mock.patch("telegrad.rpc.buffers.copies.maps_memory", lambda _: False):
        _from_elsewhere(buffer).fetch(timeout=0)


def _read(buffer: rpc.Buffer) -> None:
    _from_elsewhere(buffer).read(timeout=0)


def _from_elsewhere(buffer: rpc.Buffer) -> rpc.Buffer:
    """Return a buffer whose owner is on another machine, as far as this worker can tell."""
    buffer._place = buffer._place._replace(mark=b"")
    return buffer


def _compute() -> int:
    _kept["computes"], passed = True, 0
    while _kept["computes"]:
        passed += sum(range(1000))
    return passed


def _stop() -> None:
    _kept["computes"] = False


def _serve(size: int) -> int:
    """Send as many bytes to each who connects; return the port."""
    listener, content = socket.create_server(("127.0.0.1", 0)), b"\1" * size

    def serve() -> None:
        while True:
            connected, _ = listener.accept()
            with connected:
                connected.sendall(content)

    threading.Thread(target=serve, daemon=True).start()
    port: int = listener.getsockname()[1]
    return port


def _receive(port: int, memory: memoryview) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connected:
        while memory:
            memory = memory[connected.recv_into(memory) :]


if __name__ == "__main__":
    sys.exit(main())

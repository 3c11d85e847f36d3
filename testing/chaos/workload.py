"""Activities of the workers of a chaos job. Each activity is a function that takes one step; a thread repeats it.

An activity makes its calls through ``Station.journal.attempt``, so that the checks know which calls were made and how they
ended. Your own is a function ``step(station)`` that can be imported: ``--activity package.module:step``.
"""

from __future__ import annotations

import importlib
import itertools
import random
import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ... import autograd_dist, rpc
from ...core import tensor
from ...core.extend import Tensor
from ...core.futures import Future
from ...rpc.extend import Agent
from ...rref import RRef
from .journal import CallId, Journal, WrongResultError

SIZES = (0, 1, 1000, 1 << 16, 1 << 20, 1 << 22, 1 << 24)
BURST = 4
KEPT_REFERENCES = 8


@dataclass
class Station:
    """Worker of the job, as its activities see it."""

    agent: Agent
    journal: Journal
    timeout: float
    random: random.Random
    stopping: threading.Event = field(default_factory=threading.Event)
    gatherings: Counter[tuple[str, ...]] = field(default_factory=Counter)  # begun here, by group
    gathered: dict[tuple[tuple[str, ...], str], int] = field(default_factory=dict)  # latest object, by group and member

    def others(self, count: int = 1) -> list[str]:
        """Return the names of ``count`` random other workers; lost ones too, because calls to them must fail as promised."""
        names = [peer.info.name for peer in self.agent.peers if peer.info.id != self.agent.rank]
        return self.random.sample(names, count)

    def members(self) -> tuple[str, ...]:
        """Return the names of the workers that are not lost, as far as this one knows."""
        return tuple(sorted(peer.info.name for peer in self.agent.peers if not peer.gone))


class Callee:
    """Part of a worker that remote calls reach: a counter, and references that it keeps for a while."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.kept: deque[Any] = deque(maxlen=KEPT_REFERENCES)
        self._lock = threading.Lock()
        self._numbers = itertools.count()

    def count(self, call: CallId) -> int:
        """Return the next number, and record who took it."""
        with self._lock:
            number = next(self._numbers)
        self.journal.ran(call, number)
        return number


_callee: Callee | None = None


def install(callee: Callee) -> None:
    """Make ``callee`` answer the remote calls of this process."""
    global _callee
    _callee = callee


def callee() -> Callee:
    """Return this process's callee."""
    if _callee is None:
        raise RuntimeError("this process is not a worker of a chaos job; call install() first")
    return _callee


# -- functions that run on the callee


def count(call: CallId) -> int:
    """Take a number; a second run of the same call would be seen."""
    return callee().count(call)


def echo(call: CallId, payload: Any) -> tuple[int, Any]:
    """Take a number, and return the payload."""
    return callee().count(call), payload


class Box:
    """Value of a reference."""

    def __init__(self, value: int) -> None:
        self.value = value


def open_box(box: Any, timeout: float) -> int:
    """Fetch a box from its owner, and keep the reference for a while."""
    callee().kept.append(box)
    value: int = box.to_here(timeout).value
    return value


def square_then_triple(x: Tensor, then: str, timeout: float) -> Tensor:
    """Return ``3 * x * x``, of which another worker computes a part."""
    result: Tensor = rpc.rpc_sync(then, triple, (x * x,), timeout=timeout)
    return result


def triple(x: Tensor) -> Tensor:
    """Return ``3 * x``."""
    return x * 3.0


# -- activities


def take_numbers(station: Station) -> None:
    """Take a number at another worker."""
    (to,) = station.others()
    _attempt(station, "count", [to], lambda call: rpc.rpc_sync(to, count, (call,), timeout=station.timeout))


def ship_tensors(station: Station) -> None:
    """Send tensors and arrays of all sizes there and back, now and then several at once."""
    (to,) = station.others()
    if station.random.random() < 0.8:
        _attempt(station, "echo", [to], lambda call: _echoed(*_ship(station, call, to)))
    else:
        _attempt(station, "burst", [to], lambda _: _ship_burst(station, to))


def _ship(station: Station, call: CallId, to: str) -> tuple[Future[Any], Any]:
    size = station.random.choice(SIZES)
    array = np.frombuffer(station.random.randbytes(min(size, 4096)) * max(size // 4096, 1), np.uint8)
    payload = array if station.random.random() < 0.5 else tensor(array.astype(np.float32)[: size // 4])
    return rpc.rpc_async(to, echo, (call, payload), timeout=station.timeout), payload


def _echoed(future: Future[Any], sent: Any) -> int:
    number, received = future.wait()
    if not np.array_equal(np.asarray(sent), np.asarray(received)):
        raise WrongResultError(f"{np.asarray(sent).size} elements came back changed")
    return int(number)


def _ship_burst(station: Station, to: str) -> None:
    for future in [rpc.rpc_async(to, len, (bytes(1 << 20),), timeout=station.timeout) for _ in range(BURST)]:
        if future.wait() != 1 << 20:
            raise WrongResultError("1 MiB arrived with another length")


def pass_references(station: Station) -> None:
    """Make a value at one worker, have another fetch it, fetch it here, and drop it."""
    owner, user = station.others(2)
    value = station.random.randrange(1 << 30)
    box = _attempt(station, "remote", [owner], lambda _: rpc.remote(owner, Box, (value,), timeout=station.timeout))
    if box is None:
        return
    # If the creating call never arrives, the owner's error names its sender, which is this worker.
    _attempt(station, "fork", [owner, user, station.agent.name], lambda _: _opened(box, user, value, station.timeout))
    _attempt(station, "fetch", [owner], lambda _: _equal(box.to_here(station.timeout).value, value))
    own = RRef(Box(value))
    _attempt(station, "lend", [user, station.agent.name], lambda _: _opened(own, user, value, station.timeout))


def _opened(box: Any, user: str, value: int, timeout: float) -> None:
    _equal(rpc.rpc_sync(user, open_box, (box, timeout), timeout=timeout), value)


def _equal(found: Any, expected: Any) -> None:
    if found != expected:
        raise WrongResultError(f"got {found!r} instead of {expected!r}")


def differentiate(station: Station) -> None:
    """Compute ``3 * x ** 3`` over three workers, and its gradient, ``9 * x ** 2``."""
    first, second = station.others(2)
    _attempt(station, "autograd", [first, second], lambda _: _differentiate(station, first, second), limits=3)


def _differentiate(station: Station, first: str, second: str) -> None:
    x = tensor(np.array([station.random.uniform(-2, 2) for _ in range(5)]), requires_grad=True)
    with autograd_dist.context() as context:
        y = rpc.rpc_sync(first, square_then_triple, (x, second, station.timeout), timeout=station.timeout)
        autograd_dist.backward(context, [(y * x).sum()])
        found = autograd_dist.get_gradients(context)[x]
    if not np.allclose(np.asarray(found), 9 * np.asarray(x.detach()) ** 2):
        raise WrongResultError(f"the gradient at {x} is {found}")


def gather(station: Station) -> None:
    """Gather among all workers that are not lost; an object of another round must not come a second time."""
    group = station.members()
    number = station.gatherings[group]
    station.gatherings[group] += 1
    _attempt(station, "gather", list(group), lambda _: _gather(station, group, number))


def _gather(station: Station, group: tuple[str, ...], number: int) -> None:
    found = rpc._all_gather((station.agent.name, number), group, station.timeout)
    _equal({name: sender for name, (sender, _) in found.items()}, {name: name for name in group})
    _equal(found[station.agent.name][1], number)
    for name, (_, latest) in found.items():  # others may have gathered more often in vain, but never go back
        if latest <= station.gathered.get((group, name), -1):
            raise WrongResultError(f"{name!r} gave its object number {latest} of {group} twice")
        station.gathered[group, name] = latest


ACTIVITIES: dict[str, Callable[[Station], None]] = {
    "numbers": take_numbers,
    "tensors": ship_tensors,
    "references": pass_references,
    "autograd": differentiate,
    "gatherings": gather,
}


def find_activity(name: str) -> Callable[[Station], None]:
    """Return one of ``ACTIVITIES`` by name, or a function of yours by ``package.module:function``.

    Raises:
        ValueError: there is none.
    """
    if name in ACTIVITIES:
        return ACTIVITIES[name]
    module, _, function = name.partition(":")
    try:
        found: Callable[[Station], None] = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"there is no activity {name!r} ({error}); name one of {', '.join(ACTIVITIES)}, or package.module:function"
        ) from error
    return found


def _attempt(station: Station, kind: str, names: list[str], action: Callable[[CallId], Any], limits: int = 1) -> Any:
    return station.journal.attempt(kind, names, limits * station.timeout, action)

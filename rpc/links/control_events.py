"""Events and instructions that the state machines of control messages share.

A machine names the workers by their ranks, or by keys. It takes ``Received`` and ``WorkerLost``, and gives ``Send``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

W = TypeVar("W")  # name of a worker
M = TypeVar("M")  # message


@dataclass(slots=True)  # Python 3.10 has no generic named tuples
class Received(Generic[W, M]):
    """A control message arrived."""

    sender: W
    message: M


@dataclass(slots=True)
class WorkerLost(Generic[W]):
    """A worker is gone for good: it died or left."""

    worker: W


@dataclass(slots=True)
class Send(Generic[W, M]):
    """Send a control message."""

    to: W
    message: M

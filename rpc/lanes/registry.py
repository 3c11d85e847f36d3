"""Lanes by scheme: those of this package, and those that users add."""

from __future__ import annotations

from collections.abc import Callable

from .base import Lane
from .grpc import GrpcLane
from .inproc import InProcessLane, InProcessNetwork

LaneFactory = Callable[[], Lane]
_network = InProcessNetwork()  # of the agents of this process
_factories: dict[str, LaneFactory] = {"grpc": GrpcLane, "inproc": lambda: InProcessLane(_network)}


def register_lane(scheme: str, factory: LaneFactory) -> None:
    """Make a lane known under its scheme; ``GrpcRpcBackendOptions(lanes=[scheme])`` then uses it."""
    _factories[scheme] = factory


def make_lane(scheme: str) -> Lane:
    """Return a new lane of that scheme.

    Raises:
        ValueError: none is registered.
    """
    if scheme not in _factories:
        raise ValueError(f"lanes= names {scheme!r}, which is not a lane; choose from {sorted(_factories)}")
    return _factories[scheme]()

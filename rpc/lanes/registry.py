"""Registry of lanes by scheme: those of this package, and those that users add."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from .grpc import GrpcLane
from .inproc import InProcessLane, InProcessNetwork
from .lane import Lane
from .sockets import KINDS

DEFAULT_LANES = (*KINDS, "grpc")
LaneFactory = Callable[[], Lane]
_network = InProcessNetwork()  # for the agents of this process
_factories: dict[str, LaneFactory] = {"grpc": GrpcLane, "inproc": lambda: InProcessLane(_network)}


def register_lane(scheme: str, factory: LaneFactory) -> None:
    """Register a lane; ``GrpcRpcBackendOptions(lanes=[scheme])`` then uses it."""
    _factories[scheme] = factory


def make_lanes(schemes: Sequence[str]) -> list[Lane]:
    """Return new lanes of these schemes. The gRPC lane sets up sockets, so "unix" and "tcp" are kinds of its sockets.

    Raises:
        ValueError: a scheme is not registered.
    """
    for scheme in schemes:
        if scheme not in _factories and scheme not in KINDS:
            raise ValueError(
                f"lanes= names {scheme!r}, which is not a lane; choose from {sorted({*_factories, *KINDS})}"
            )
    kinds = [scheme for scheme in schemes if scheme in KINDS]
    lanes: list[Lane] = []
    with ExitStack() as undo:
        for scheme in dict.fromkeys("grpc" if scheme in KINDS else scheme for scheme in schemes):
            lanes.append(_factories[scheme]())
            undo.callback(lanes[-1].close)
            if scheme == "grpc":
                lanes[-1].sockets = kinds
        undo.pop_all()
    return lanes

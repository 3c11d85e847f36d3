"""Backends beside gRPC that ``init_rpc`` can start, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.errors import ArgumentKindError
from .agent import Agent
from .options import BackendType, RpcBackendOptions

Starter = Callable[[str, int, "int | None", "RpcBackendOptions | None"], Agent]
_starters: dict[Any, Starter] = {}


def register_backend(backend: Any, starter: Starter) -> None:
    """Make ``init_rpc(backend=backend)`` call ``starter(name, rank, world_size, options)``.

    Raises:
        ValueError: the backend is registered already.
    """
    if backend is BackendType.GRPC or backend in _starters:
        raise ValueError(f"backend {backend!r} is registered already; choose another name")
    _starters[backend] = starter


def find_backend(backend: Any) -> Starter:
    """Return what starts the agent of a registered backend.

    Raises:
        ArgumentKindError: there is no such backend.
    """
    if backend not in _starters:
        raise ArgumentKindError(f"backend must be one of {[BackendType.GRPC, *_starters]}; you gave {backend!r}")
    return _starters[backend]

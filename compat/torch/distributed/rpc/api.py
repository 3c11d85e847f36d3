"""Functions of calls by the path of their definition (``torch.distributed.rpc.api``), and what programs take from there."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from .....base.errors import AgentClosedError
from .....rpc import WorkerInfo as WorkerInfo
from .....rpc import _all_gather as _all_gather
from .....rpc import _barrier as _barrier
from .....rpc import _wait_all as _wait_all
from .....rpc import get_rpc_timeout as get_rpc_timeout
from .....rpc import get_worker_info as get_worker_info
from .....rpc import rpc_async as rpc_async
from .....rpc import rpc_sync as rpc_sync
from .....rpc import shutdown as shutdown
from .....rpc.extend import UNSET_RPC_TIMEOUT as UNSET_RPC_TIMEOUT
from .....rpc.extend import Agent, current_agent
from .....rref import RRef as RRef
from .....rref import remote as remote

P = ParamSpec("P")
R = TypeVar("R")


class AllGatherStates:
    """Objects of one round of a gathering, and the event that it is complete (PyTorch's own ``_all_gather`` keeps them)."""

    def __init__(self) -> None:
        self.gathered_objects: dict[str, Any] = {}
        self.proceed_signal = threading.Event()


def _get_current_rpc_agent() -> Agent:
    """Return the agent of this process.

    Raises:
        AgentClosedError: there is none.
    """
    return current_agent()


def _is_current_rpc_agent_set() -> bool:
    """Return whether ``init_rpc`` was called, and ``shutdown`` was not."""
    try:
        current_agent()
    except AgentClosedError:
        return False
    return True


def _require_initialized(func: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that it raises, and is not called, where RPC is not initialized.

    Args:
        func: the function.

    Raises:
        AgentClosedError: a ``RuntimeError``; raised by the decorated function.
    """

    @functools.wraps(func)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        current_agent()
        return func(*args, **kwargs)

    return wrapper

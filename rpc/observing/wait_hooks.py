"""Hooks by which an agent's notices of long waits tell more: the line that a request runs, and what the others wait for.

They import what they need when the first wait is long.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from ..threads.pool import ThreadPool

if TYPE_CHECKING:
    from ..agent import Agent
    from ..calls.server_call import ServerCall


def watch_waits(agent: Agent) -> None:
    """Let notices of an agent tell more; its ``Observer`` is asked."""
    agent.waits.place_of = _place_of
    if isinstance(agent.threads.functions, ThreadPool):  # else a simulator runs all on one thread, which must not wait
        agent.caller.on_long_wait = partial(_tell_reason, agent)


def _place_of(call: ServerCall) -> str:
    from .stacks import place_of_call

    return place_of_call(call)


def _tell_reason(agent: Agent, names: Iterable[str]) -> None:
    from .observer import Observer

    agent.part(Observer).tell_reason(names)

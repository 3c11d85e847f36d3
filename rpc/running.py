"""Agents of this process, and the agent and the call of a context. ``current.py`` chooses between agents."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

agent_variable: ContextVar[Any] = ContextVar("telegrad_agent", default=None)  # an ``Agent``, or None
call_variable: ContextVar[Any] = ContextVar("telegrad_call", default=None)  # the ``ServerCall`` that runs, or None
running_agents: list[Any] = []  # each an ``Agent``

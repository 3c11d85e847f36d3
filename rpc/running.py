"""Agents of this process, and the one that a context names. ``current.py`` chooses between them."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

agent_variable: ContextVar[Any] = ContextVar("telegrad_agent", default=None)  # an ``Agent``, or None
running_agents: list[Any] = []  # each an ``Agent``

"""Which agent a call belongs to: the one of the context variable, else the process's only agent, else an error."""

from __future__ import annotations

import atexit
import os
from contextvars import ContextVar
from typing import TYPE_CHECKING

from ..core.errors import AgentClosedError
from . import expulsion
from .lanes.forking import keep_for_ever
from .lanes.ioloop import abandon_loop

if TYPE_CHECKING:
    from .agent import Agent

agent_variable: ContextVar[Agent | None] = ContextVar("telegrad_agent", default=None)
_agents: list[Agent] = []
_inherited: list[Agent] = []


def register(agent: Agent) -> None:
    """An agent was started in this process."""
    _agents.append(agent)


def unregister(agent: Agent) -> None:
    """An agent was closed."""
    if agent in _agents:
        _agents.remove(agent)


def abandon() -> None:
    """In a forked child: the parent's agents, and the gRPC objects they hold, are neither used nor destroyed here."""
    keep_for_ever(_agents)
    for agent in _agents:
        agent.timers.abandon()
    _inherited.extend(_agents)
    _agents.clear()
    agent_variable.set(None)
    abandon_loop()


def agents() -> list[Agent]:
    """The open agents of this process."""
    return list(_agents)


def current_agent() -> Agent:
    """The agent that a call from here goes through.

    Raises:
        AgentClosedError: there is none, or more than one and no context says which.
    """
    agent = agent_variable.get()
    if agent is not None:
        return agent
    if len(_agents) == 1:
        return _agents[0]
    if _inherited:
        _inherited[0].check_open()
    if not _agents and (expelled := expulsion.reasons()):
        worker, reason = expelled.popitem()
        raise AgentClosedError(f"worker {worker!r} cannot be used: {reason}; end this process and start the job again")
    if not _agents:
        raise AgentClosedError(
            "RPC is not running in this process; call rpc.init_rpc(...) first (or again, after shutdown)"
        )
    names = ", ".join(repr(agent.name) for agent in _agents)
    raise AgentClosedError(f"this process has several agents ({names}); choose one with `with agent.use():`")


@atexit.register
def _close_all() -> None:
    for agent in agents():
        agent.close("its process ended without rpc.shutdown()")


os.register_at_fork(after_in_child=abandon)

"""Current agent: that of the context variable, else the process's only agent, else an error."""

from __future__ import annotations

import atexit
import os
from typing import TYPE_CHECKING

from ..base.errors import AgentClosedError
from .losses import expulsion
from .running import agent_variable, running_agents
from .threads.forking import keep_for_ever
from .threads.ioloop import abandon_loop

if TYPE_CHECKING:
    from .agent import Agent

_inherited: list[Agent] = []


def abandon() -> None:
    """Forget the parent's agents in a forked child; they and their gRPC objects are neither used nor destroyed in the child."""
    keep_for_ever(running_agents)
    for agent in running_agents:
        agent.state.closed = "this process was forked from that of the worker"
        agent.timers.abandon()
    _inherited.extend(running_agents)
    running_agents.clear()
    agent_variable.set(None)
    abandon_loop()


def open_agents() -> list[Agent]:
    """Return the open agents of this process."""
    return list(running_agents)


def rpc_agents() -> list[Agent]:
    """Return the open agents of this process through which user code makes calls."""
    return [agent for agent in running_agents if not agent.private]


def current_agent() -> Agent:
    """Return the agent that a call from here goes through.

    Raises:
        AgentClosedError: there is none, or there are several and the context does not name one.
    """
    agent: Agent | None = agent_variable.get()
    if agent is not None:
        return agent
    if len(running_agents) == 1 and not running_agents[0].private:  # the usual case, made fast
        return running_agents[0]
    if len(found := rpc_agents()) == 1:
        return found[0]
    if _inherited:
        _inherited[0].state.check_open()
    if not found and (expelled := expulsion.reasons()):
        worker, reason = expelled.popitem()
        raise AgentClosedError(f"worker {worker!r} cannot be used: {reason}; end this process and start the job again")
    if not found:
        raise AgentClosedError(
            "RPC is not running in this process; call rpc.init_rpc(...) first (or again, after shutdown)"
        )
    names = ", ".join(repr(agent.name) for agent in found)
    raise AgentClosedError(f"this process has several agents ({names}); choose one with `with agent.use():`")


@atexit.register
def _close_all() -> None:
    for agent in open_agents():
        without = "destroy_process_group()" if agent.private else "rpc.shutdown()"
        agent.close(f"its process ended without {without}")


os.register_at_fork(after_in_child=abandon)

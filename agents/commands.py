"""Access of commands (``telegrad ps``, ``why``, ...) to this process's worker: its record, its socket, its stacks on a signal.

Where it cannot be had, as there is no folder for it, the worker works without.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ..base.job_credentials import launcher_socket
from ..base.job_folder import JobFolder, new_records_folder
from ..base.job_records import (
    LOG_VARIABLE,
    RESTART_COUNT_VARIABLE,
    SOCKET,
    JobRecord,
    own_facts,
    remove_record,
    sweep_records,
    write_record,
)
from ..base.stack_dumps import StackDumps
from ..rpc.extend import Agent, CommandSocket, Plan, debugger_of

if TYPE_CHECKING:
    from ..rpc.observing import CommandRequest

logger = logging.getLogger("telegrad.rpc")
ROOT_PACKAGE = __name__.partition(".")[0]
_open: list[CommandAccess] = []


class CommandAccess:
    """Access of commands to an agent, from before it joins until it is closed.

    Args:
        agent: the agent.
        plan: its rendezvous.
        address: where it finds the other workers.

    Raises:
        OSError: there is no folder for it, or no descriptor left.
    """

    def __init__(self, agent: Agent, plan: Plan, address: str) -> None:
        self._process_id = os.getpid()
        self.private = agent.private
        with ExitStack() as stack:
            self._folder: JobFolder = stack.enter_context(new_records_folder())
            if agent.rank == 0:  # one of a job is enough
                sweep_records(self._folder)
            self._stem = f"{self._process_id}-{secrets.token_hex(4)}"
            stack.callback(remove_record, self._folder, self._stem)
            self._dumps = StackDumps(self._folder, self._stem)
            stack.callback(self._dumps.close)
            self._socket = CommandSocket(agent, self._folder.place(self._stem + SOCKET))
            stack.callback(self._socket.close)
            self._record = JobRecord(
                **own_facts(),
                stem=self._stem,
                worker=agent.name,
                rank=agent.rank,
                world_size=plan.world_size,
                job=_digest(agent.credentials.secret, address.encode()),
                program=_program(),
                log=os.environ.get(LOG_VARIABLE, ""),
                dump_signal=self._dumps.signal,
                began=time.time(),
                restarts=_restarts(),
                launcher=launcher_socket(),
                version=str(getattr(sys.modules.get(ROOT_PACKAGE), "__version__", "")),
            )
            write_record(self._folder, self._record)
            self._parts = stack.pop_all()
        _open.append(self)

    def joined(self, agent: Agent) -> None:
        """Note that the workers of the job have come together. Its id comes from its first worker, whose identity all know."""
        job = self._record.job if agent.state.dynamic else _digest(agent.peers.identity(0))
        self._record = replace(self._record, joined=True, job=job)
        self._socket.debug = partial(_ask_debugger, agent)
        try:
            write_record(self._folder, self._record)
        except OSError as error:
            logger.debug("worker %r cannot write its record for commands: %s", agent.name, error)

    def close(self) -> None:
        """Remove the record, and close all."""
        if os.getpid() == self._process_id and self in _open:
            _open.remove(self)
            self._parts.close()

    def abandon(self) -> None:
        """In a forked child: close what is the parent's, and leave its files."""
        self._socket.abandon()
        self._dumps.close()
        self._folder.close()


def open_to_commands(agent: Agent, plan: Plan, address: str) -> CommandAccess | None:
    """Return the access of commands to an agent, which ends with it; None if there can be none.

    A process is shown once: by the worker of ``init_rpc``, and without one by the member of its process group.

    Args:
        agent: the agent.
        plan: its rendezvous.
        address: where it finds the other workers.
    """
    if agent.private and any(not each.private for each in _open):
        return None
    for former in [each for each in _open if each.private]:
        former.close()
    try:
        access = CommandAccess(agent, plan, address)
    except OSError as error:
        logger.debug("commands such as telegrad ps do not see worker %r: %s", agent.name, error)
        return None
    agent.on_close.append(access.close)
    return access


def _ask_debugger(agent: Agent, request: CommandRequest) -> str:
    if agent.private:
        raise ValueError(f"{agent.name!r} has a process group only; a debugger needs rpc.init_rpc()")
    (name,) = request.workers
    return debugger_of(agent).ask(agent.peers.find(name), json.loads(request.request), request.timeout).wait()


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:8]


def _restarts() -> int:
    """Return how often the launcher has started this worker again."""
    count = os.environ.get(RESTART_COUNT_VARIABLE, "")
    return int(count) if count.isdecimal() else 0


def _program() -> str:
    first, second, *_ = [*sys.argv, "", ""]
    return (second if first == "-m" else os.path.basename(first))[:200]


def _abandon() -> None:
    for access in _open:
        access.abandon()
    _open.clear()


os.register_at_fork(after_in_child=_abandon)

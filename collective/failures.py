"""Failures of collectives, which all members of a group hear of, and questions to those that are late.

A member whose collective fails sends the error to all others, under the collective's number: what they wait for in that
collective, or will, fails with the same error. So nobody waits until its own time-out for a member that waits no longer, and
the next collective finds all members in step again.

A member that comes too late may only wait for another. So before a time-out blames somebody, that member is asked what it is
doing in the collective.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..base.errors import RpcError
from ..core.futures import Future, copy_error
from ..rpc.extend import Agent, ServerCall
from .calls import CollectiveCall
from .mailbox import Mailbox
from .numbers import GroupMethod

TELL_SECONDS = 10.0


class Standing(NamedTuple):
    """Part of one member in a collective, as it answers when it is asked.

    Attributes:
        signature: how it called the collective; ``None`` if it has not, or that is over.
        waits_for: ranks whose parts it waits for.
        failure: why the collective failed there.
    """

    signature: tuple[str, Any] | None
    waits_for: list[int]
    failure: BaseException | None


class Failures:
    """Open collectives of one agent's groups, and what their members tell one another.

    Args:
        agent: the agent. Its ``Mailbox`` keeps the errors.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._mailbox = agent.part(Mailbox)
        self._lock = threading.Lock()
        self._open: dict[tuple[str, int], CollectiveCall] = {}
        agent.server.serve(GroupMethod.FAIL, self.told)
        agent.server.serve(GroupMethod.ASK, self.asked, quick=True)

    def begin(self, group: str, call: CollectiveCall) -> None:
        """Begin a collective.

        Raises:
            Exception: it has failed on another member already.
        """
        self.check(group, call.number)
        with self._lock:
            self._open[group, call.number] = call

    def end(self, group: str, call: CollectiveCall) -> None:
        """End a collective."""
        with self._lock:
            self._open.pop((group, call.number), None)

    def check(self, group: str, number: int) -> None:
        """Raise the error with which a collective has failed on any member; return if it has not.

        Args:
            group: name of the group.
            number: of the collective.
        """
        if (error := self._mailbox.failure(group, number)) is not None:
            raise copy_error(error)

    def tell(self, ranks: Iterable[int], group: str, number: int, error: BaseException) -> None:
        """Let a collective fail on all members, unless it has already.

        Args:
            ranks: of the members.
            group: its name.
            number: of the collective.
            error: why.
        """
        if not self._mailbox.fail(group, number, copy_error(error)):
            return
        for rank in ranks:
            peer = self._agent.peers.at(rank)
            if rank == self._agent.number or peer.gone:
                continue
            with contextlib.suppress(RpcError):  # it is lost, or this agent closes: then that is what others hear of
                what = f"the failure of a collective of group {group!r}"
                self._agent.caller.request(peer, GroupMethod.FAIL, (group, number, error), TELL_SECONDS, what, _label)

    def ask(self, rank: int, group: str, number: int, seconds: float) -> Future[Any]:
        """Ask a member what it is doing in a collective; the future holds the fields of a ``Standing``.

        Args:
            rank: of the member.
            group: name of the group.
            number: of the collective.
            seconds: until the future fails.
        """
        peer = self._agent.peers.at(rank)
        what = f"a question about group {group!r}"
        return self._agent.caller.request(peer, GroupMethod.ASK, (group, number), seconds, what, _label)

    def told(self, request: ServerCall) -> None:
        """Take an error of another member (``GroupMethod.FAIL``)."""
        group, number, error = request.open()
        self._mailbox.fail(group, number, error)
        request.reply(None)

    def asked(self, request: ServerCall) -> None:
        """Answer what this member is doing (``GroupMethod.ASK``)."""
        group, number = request.open()
        with self._lock:
            call = self._open.get((group, number))
        waits_for = [] if call is None else [*self._mailbox.sources(group, number), *call.late]
        signature = None if call is None else call.signature
        request.reply(tuple(Standing(signature, waits_for, self._mailbox.failure(group, number))))


def serve_groups(agent: Agent) -> None:
    """Let an agent take part in process groups."""
    agent.add_part(Mailbox(agent))
    agent.add_part(Failures(agent))


def _label(body: Any) -> list[tuple[str, Any]]:
    return [("the message", body)]

"""Messages between the ranks of process groups: those that have arrived, and those that somebody waits for."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from ..base.errors import AgentClosedError, CollectiveError
from ..core.futures import Future, complete_once, copy_error
from ..rpc.extend import Agent, Peer, ServerCall
from .numbers import GroupMethod

MOST_FAILURES = 1024  # that are kept, of collectives that this process may not have reached
MOST_DESTROYED = 1024  # groups whose names are kept, because messages of them may still come


class MessageKey(NamedTuple):
    """Name of one message: its group, who sends it, and its place among that sender's messages of the group."""

    group: str
    source: int  # the worker's rank
    place: Any  # number of a collective, or tag and number of a single message
    step: int = 0


class Message(NamedTuple):
    """Part of one rank, and how that rank called the collective."""

    signature: Any
    content: Any


class Mailbox:
    """The messages of one agent's groups.

    A message is answered when it is taken, so that a sender knows how far its receivers are. Those of a collective that has
    failed are dropped, and whoever wants to take one gets the error.

    Args:
        agent: the agent that sends and receives.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._lock = threading.Lock()
        self._arrived: dict[MessageKey, tuple[Message, Callable[[Any], object]]] = {}
        self._awaited: dict[MessageKey, Future[Message]] = {}
        self._failed: OrderedDict[tuple[str, Any], BaseException] = OrderedDict()
        self._destroyed: OrderedDict[str, BaseException] = OrderedDict()  # by group: what those get who still take
        agent.losses.on_lost.append(self._lost)
        agent.on_close.append(self._closed)
        agent.server.serve(GroupMethod.PASS, self.arrived)

    def send(self, to: int, key: MessageKey, message: Message, seconds: float, what: str) -> Future[Any]:
        """Send a message; the future completes when its receiver has taken it.

        Args:
            to: rank of the receiver.
            key: the message's name.
            message: captured before this returns.
            seconds: until the future fails.
            what: names the message in errors.
        """
        peer = self._agent.peers.at(to)
        return self._agent.caller.request(peer, GroupMethod.PASS, (key, message), seconds, what, _label)

    def take(self, key: MessageKey) -> Future[Message]:
        """Return a future of a message. Each is taken once.

        The future fails with ``WorkerLostError`` when its sender is lost, with the collective, and when the group is destroyed.
        """
        future: Future[Message] = Future()
        with self._lock:
            failure = self._failed.get((key.group, key.place), self._destroyed.get(key.group))
            arrived = self._arrived.pop(key, None)
            if arrived is None and failure is None:
                self._awaited[key] = future
        if failure is not None:
            future.set_exception(copy_error(failure))
        elif arrived is not None:
            message, answer = arrived
            answer(None)
            future.set_result(message)
        elif (peer := self._agent.peers.at(key.source)).gone:
            self._lost(peer)
        return future

    def fail(self, group: str, place: Any, error: BaseException) -> bool:
        """Let a collective fail: drop its messages, and give the error to whoever waits for one, now or later.

        Args:
            group: name of the group.
            place: number of the collective.
            error: why.

        Returns:
            Whether it had not failed yet.
        """
        with self._lock:
            if (group, place) in self._failed:
                return False
            self._failed[group, place] = error
            if len(self._failed) > MOST_FAILURES:
                self._failed.popitem(last=False)
        self._drop(lambda key: key.group == group and key.place == place)
        self._fail(lambda key: key.group == group and key.place == place, error)
        return True

    def failure(self, group: str, place: Any) -> BaseException | None:
        """Return the error with which a collective failed; ``None`` if it did not."""
        return self._failed.get((group, place)) if self._failed else None

    def sources(self, group: str, place: Any) -> list[int]:
        """Return the ranks whose messages of a collective somebody waits for."""
        with self._lock:
            return [key.source for key in self._awaited if key.group == group and key.place == place]

    def waiting(self, group: str, place: Any = None) -> list[tuple[MessageKey, Message]]:
        """Return the messages of a collective, or of all of a group, that nobody has taken yet."""
        if not self._arrived:
            return []
        with self._lock:
            found = [(key, message) for key, (message, _) in self._arrived.items() if key.group == group]
        return [(key, message) for key, message in found if place is None or key.place == place]

    def forget(self, group: str) -> None:
        """Drop the messages and errors of a group that was destroyed, and messages that come later. Names are used once."""
        error = CollectiveError(f"group {group!r} was destroyed on worker {self._agent.name!r}")
        with self._lock:
            self._destroyed[group] = error
            if len(self._destroyed) > MOST_DESTROYED:
                self._destroyed.popitem(last=False)
            for name in [name for name in self._failed if name[0] == group]:
                del self._failed[name]
        self._drop(lambda key: key.group == group)
        self._fail(lambda key: key.group == group, error)

    def cancel(self, key: MessageKey) -> None:
        """Wait for a message no longer."""
        with self._lock:
            self._awaited.pop(key, None)

    def arrived(self, call: ServerCall) -> None:
        """Take a message that arrived (``GroupMethod.PASS``)."""
        key, message = call.open()
        key, message = MessageKey(*key), Message(*message)
        with self._lock:
            future = self._awaited.pop(key, None)
            dropped = (key.group, key.place) in self._failed or key.group in self._destroyed
            if future is None and not dropped:
                self._arrived[key] = message, call.reply
        if future is not None or dropped:
            call.reply(None)
        if future is not None:
            complete_once(future, message)

    def _lost(self, peer: Peer) -> None:
        self._fail(lambda key: key.source == peer.number, peer.lost_error())

    def _closed(self) -> None:
        name = self._agent.name
        self._fail(
            lambda key: True, AgentClosedError(f"worker {name!r} was closed while a collective waited for others")
        )

    def _fail(self, chosen: Callable[[MessageKey], bool], error: BaseException) -> None:
        with self._lock:
            failed = [self._awaited.pop(key) for key in list(self._awaited) if chosen(key)]
        for future in failed:
            complete_once(future, error=copy_error(error))

    def _drop(self, chosen: Callable[[MessageKey], bool]) -> None:
        with self._lock:
            dropped = [self._arrived.pop(key) for key in list(self._arrived) if chosen(key)]
        for _, answer in dropped:
            answer(None)


def _label(body: tuple[MessageKey, Message]) -> list[tuple[str, Any]]:
    return [("the tensor or object", body[1].content)]

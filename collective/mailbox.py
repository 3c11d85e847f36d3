"""Messages between the ranks of process groups: those that have arrived, and those that somebody waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from ..core.errors import AgentClosedError
from ..core.futures import Future, complete_once
from ..rpc.extend import Agent, Peer, ServerCall
from .numbers import Method


class Key(NamedTuple):
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

    A message is answered when it is taken, so that a sender knows how far its receivers are.

    Args:
        agent: the agent that sends and receives.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._lock = threading.Lock()
        self._arrived: dict[Key, tuple[Message, Callable[[Any], None]]] = {}
        self._awaited: dict[Key, Future[Message]] = {}
        agent.losses.on_lost.append(self._lost)
        agent.on_close.append(self._closed)

    def send(self, to: int, key: Key, message: Message, seconds: float, what: str) -> Future[Any]:
        """Send a message; the future completes when its receiver has taken it.

        Args:
            to: rank of the receiver.
            key: the message's name.
            message: captured before this returns.
            seconds: until the future fails.
            what: names the message in errors.
        """
        peer = self._agent.peers.at(to)
        return self._agent.caller.request(peer, Method.PASS, (key, message), seconds, what, _label)

    def take(self, key: Key) -> Future[Message]:
        """Return a future of a message. Each is taken once.

        The future fails with ``WorkerLostError`` when its sender is lost.
        """
        future: Future[Message] = Future()
        with self._lock:
            arrived = self._arrived.pop(key, None)
            if arrived is None:
                self._awaited[key] = future
        if arrived is not None:
            message, answer = arrived
            answer(None)
            future.set_result(message)
        elif (peer := self._agent.peers.at(key.source)).gone:
            self._lost(peer)
        return future

    def forget(self, group: str) -> None:
        """Drop the messages of a group that was destroyed."""
        with self._lock:
            arrived = [self._arrived.pop(key) for key in list(self._arrived) if key.group == group]
            for key in [key for key in self._awaited if key.group == group]:
                del self._awaited[key]
        for _, answer in arrived:
            answer(None)

    def cancel(self, key: Key) -> None:
        """Wait for a message no longer."""
        with self._lock:
            self._awaited.pop(key, None)

    def arrived(self, call: ServerCall) -> None:
        """Take a message that arrived (``Method.PASS``)."""
        key, message = call.open()
        key, message = Key(*key), Message(*message)
        with self._lock:
            future = self._awaited.pop(key, None)
            if future is None:
                self._arrived[key] = message, call.reply
        if future is not None:
            call.reply(None)
            complete_once(future, message)

    def _lost(self, peer: Peer) -> None:
        self._fail(lambda key: key.source == peer.info.id, peer.lost_error())

    def _closed(self) -> None:
        name = self._agent.name
        self._fail(
            lambda key: True, AgentClosedError(f"worker {name!r} was closed while a collective waited for others")
        )

    def _fail(self, chosen: Callable[[Key], bool], error: Exception) -> None:
        with self._lock:
            failed = [self._awaited.pop(key) for key in list(self._awaited) if chosen(key)]
        for future in failed:
            complete_once(future, error=error)


def serve_messages(agent: Agent) -> None:
    """Let an agent take part in process groups."""
    mailbox = Mailbox(agent)
    agent.add_part(mailbox)
    agent.server.serve(Method.PASS, mailbox.arrived)


def _label(body: tuple[Key, Message]) -> list[tuple[str, Any]]:
    return [("the tensor or object", body[1].content)]

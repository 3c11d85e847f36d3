"""Answers of ``None``. They consist of the ids of calls, so that several that leave at the same time are one message.

An answer for which a thread waits is lost with its connection, as its call then fails: a frame that is not acknowledged is
enough. One that no thread waits for must arrive whatever happens to the connection: it is a control message.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import TYPE_CHECKING, TypeVar

from ..links.connections import MOST_DIALS
from ..wire.control import encode_done, encode_ids
from ..wire.messages import Outgoing, Topic
from .replies import Reply

if TYPE_CHECKING:
    from ..flow.flows import Flows
    from ..lanes.session import Session
    from ..links.control_channel import ControlChannel
    from ..links.peer import Peer
    from ..threads.timers import Timers

MOST_TOGETHER = 64  # so many answers leave without waiting for more
T = TypeVar("T")


class DoneAnswers:
    """Answers of ``None`` of one agent.

    Args:
        flows: flow control of the connections.
        control: for answers that no thread waits for.
        timers: for answers that wait for others.
        waiting: requests that have not begun. While there are many, answers wait up to a millisecond to leave together.
    """

    def __init__(self, flows: Flows, control: ControlChannel, timers: Timers, waiting: Sized) -> None:
        self._flows = flows
        self._control = control
        self._waiting = waiting
        self._together = timers.together(self._send_together, hurried=True)
        self._soon = timers.together(self._send_soon)

    def send(self, connection: Session, call_id: int) -> None:
        """Answer a call on the connection of its request; with others in one message, while many requests wait."""
        together, waiting = self._together, len(self._waiting)
        if waiting <= MOST_DIALS and not together.items:
            self._send(connection, [call_id])
            return
        together.add((connection, call_id))
        if not waiting or len(together.items) >= MOST_TOGETHER:
            together.flush()

    def send_soon(self, peer: Peer, call_id: int) -> None:
        """Answer a call later, by a control message with others: no thread waits for the answer, and it cannot be lost."""
        self._soon.add((peer, call_id))

    def _send(self, connection: Session, call_ids: list[int]) -> None:
        parts = [frame := encode_done(call_ids)]
        done = Reply(0, 0, 0.0, -1)
        done.deadline = 0.0
        done.size = len(frame)
        flow = connection.flow or self._flows.of(connection)
        if flow.take(done):
            connection.send(parts)
        else:  # the caller does not read; no further request of it starts meanwhile
            done.timer = None
            flow.send(done, parts, _unsent, waits=False)

    def _send_together(self, answers: list[tuple[Session, int]]) -> None:
        for connection, ids in _grouped(answers).items():
            self._send(connection, ids)

    def _send_soon(self, answers: list[tuple[Peer, int]]) -> None:
        for peer, ids in _grouped(answers).items():
            self._control.post(peer, Topic.DONE, encode_ids(ids))


def _unsent(done: Outgoing) -> None:
    """Do nothing: the connection has ended, and the caller knows."""


def _grouped(answers: list[tuple[T, int]]) -> dict[T, list[int]]:
    groups: dict[T, list[int]] = {}
    for receiver, call_id in answers:
        groups.setdefault(receiver, []).append(call_id)
    return groups

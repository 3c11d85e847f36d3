"""Answers of a worker in one mesh call. If one is lost with its connection, the parent asks again and gets another."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading

    from ..calls.codec import Codec
    from ..calls.replies import Reply


class GivenAnswer:
    """Answer to a parent.

    Args:
        start: position of its first result.

    Attributes:
        reply: the message; ``None`` until it is sent.
        lost: whether the parent has asked again for what it had.
    """

    __slots__ = ("lost", "reply", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.reply: Reply | None = None
        self.lost = False

    def sent(self, reply: Reply | None, codec: Codec) -> None:
        """Note that it was sent; meanwhile the parent may have asked again."""
        self.reply = reply
        if self.lost and reply is not None:
            codec.replaced(reply)


def lose_answers(answers: list[GivenAnswer], held: int, lock: threading.Lock, codec: Codec) -> None:
    """Give up the answers that a parent does not have: no gradients come for them.

    Args:
        answers: those given so far. The lost ones are removed.
        held: the parent asks for the results from this position on.
        lock: guards the list.
        codec: tells the interceptors.
    """
    with lock:
        lost = [answer for answer in answers if answer.start >= held]
        answers[:] = [answer for answer in answers if answer.start < held]
    for answer in lost:
        answer.lost = True
        if (reply := answer.reply) is not None:
            codec.replaced(reply)

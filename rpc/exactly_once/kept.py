"""``KeptCalls``: the calls of one stream to one callee that may have to be sent again. Pure: no I/O, no clock, no thread.

A call is kept until its answer has arrived and a durable checkpoint of the callee contains it. Numbers count up from 0 without
gaps, so the callee can tell which of them it has.
"""

from __future__ import annotations

from typing import Any


class KeptCall:
    """Call that is kept.

    Args:
        number: its number in the stream.
        request: what is sent.
        size: bytes of its arguments.
    """

    __slots__ = ("number", "request", "size")

    def __init__(self, number: int, request: Any, size: int) -> None:
        self.number = number
        self.request = request
        self.size = size


class KeptCalls:
    """Calls of one stream to one callee that are kept.

    Args:
        most_calls: how many calls to keep.
        most_bytes: how many bytes of arguments to keep; one call is kept whatever its size.

    Attributes:
        next: number of the next call.
        durable: a durable checkpoint of the callee has all calls below this number.
        size: bytes of the arguments that are kept.
        most_calls, most_bytes: as given.
    """

    def __init__(self, most_calls: int, most_bytes: int) -> None:
        self.next = 0
        self.durable = 0
        self.size = 0
        self.most_calls, self.most_bytes = most_calls, most_bytes
        self._kept: dict[int, KeptCall] = {}  # in the order of their numbers
        self._unanswered: dict[int, None] = {}  # the same
        self._on_way: dict[int, int] = {}  # number of a call -> incarnation whose answer to it is to come
        self._callee: int | None = None  # incarnation that was sent all calls which are kept
        self._restored_from: int | None = None  # next number in the caller's checkpoint to which it may go back

    def __str__(self) -> str:
        return f"{len(self._kept)} earlier calls ({self.size:,} bytes)"

    def has_room(self, size: int) -> bool:
        """Return whether a call with so many bytes of arguments can be kept."""
        return not self._kept or (len(self._kept) < self.most_calls and self.size + size <= self.most_bytes)

    def half_full(self) -> bool:
        """Return whether it is time for the callee to save a checkpoint."""
        return 2 * len(self._kept) >= self.most_calls or 2 * self.size >= self.most_bytes

    def add(self, request: Any, size: int) -> KeptCall:
        """Keep a call and give it the next number."""
        call = KeptCall(self.next, request, size)
        self.next += 1
        self._keep(call)
        return call

    def _keep(self, call: KeptCall) -> None:
        self._kept[call.number] = call
        self._unanswered[call.number] = None
        self.size += call.size

    @property
    def oldest(self) -> int:
        """Number of the oldest call that is kept: those below it can never be sent again."""
        return next(iter(self._kept), self.next)

    @property
    def results_from(self) -> int:
        """Number below which no result is needed again: neither by a call under way, nor after this caller went back."""
        waiting = next(iter(self._unanswered), self.next)
        return waiting if self._restored_from is None else min(waiting, self._restored_from)

    def answered(self, number: int) -> None:
        """Note that the answer to a call has arrived."""
        self._unanswered.pop(number, None)
        self._on_way.pop(number, None)
        self._forget()

    def sent(self, number: int, callee: int) -> None:
        """Note that a call is on its way to an incarnation of the callee, which will answer or fail it."""
        self._on_way[number] = callee

    def failed(self, number: int, callee: int) -> None:
        """Note that a call which was sent ended without an answer."""
        if self._on_way.get(number) == callee:
            del self._on_way[number]

    def made_durable(self, end: int) -> None:
        """Note that a durable checkpoint of the callee has all calls below ``end``.

        After this caller went back, these may be more than it has made again.
        """
        self.durable = max(self.durable, end)
        self._forget()

    def _forget(self) -> None:
        while self._kept and (first := self.oldest) < self.durable and first not in self._unanswered:
            self.size -= self._kept.pop(first).size

    def goes_to(self, call: KeptCall, callee: int) -> bool:
        """Return whether a call goes to this incarnation of the callee at once. If not, ask that first how far it is.

        A callee may be lost and begin anew while no call waits for it. It may lack calls that were answered then.

        Args:
            call: the call, which is kept.
            callee: number of the incarnation.
        """
        if self.oldest == call.number == self.next - 1:  # no other is kept that it may lack
            self._callee = callee
        return self.was_sent_to(callee)

    def to_send(self, callee: int, applied: int) -> list[KeptCall]:
        """Return the calls to send after the callee was asked how far it is, in order. Later ones go to it at once.

        A call that is on its way to this incarnation is not sent again: its second answer could only be that it was applied
        before, and might come first.

        Args:
            callee: number of the incarnation.
            applied: how many calls of the stream it has applied. Those below it are sent only if their answer is missing.
        """
        self._callee = callee
        lacking = [call for call in self._kept.values() if call.number >= applied or call.number in self._unanswered]
        return [call for call in lacking if self._on_way.get(call.number) != callee]

    def was_sent_to(self, callee: int) -> bool:
        """Return whether an incarnation of the callee was sent all calls that are kept."""
        return callee == self._callee

    def unreachable(self) -> None:
        """Note that the callee could not be asked how far it is, so it may lack calls."""
        self._callee = None

    def is_empty(self) -> bool:
        """Return whether a durable checkpoint of the callee has all calls."""
        return not self._kept

    # -- the caller's own checkpoints

    def keep_results(self) -> None:
        """Let the callee keep results from now on, for a caller that goes back to a checkpoint of this moment."""
        if self._restored_from is None:
            self._restored_from = self.next

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint of the caller."""
        self.keep_results()
        kept = [(call.number, call.request, call.size) for call in self._kept.values()]
        return {"next": self.next, "durable": self.durable, "kept": kept}

    def saved(self, state: dict[str, Any]) -> None:
        """Note that a checkpoint with this state is durable, so that the caller does not go back further."""
        self._restored_from = max(self._restored_from or 0, state["next"])

    def load(self, state: dict[str, Any]) -> None:
        """Go back to a state. Answers that had arrived count as missing until the callee has been asked."""
        self.next, self.durable, self.size = state["next"], state["durable"], 0
        self._kept, self._unanswered, self._on_way, self._callee = {}, {}, {}, None
        self._restored_from = self.next
        for number, request, size in state["kept"]:
            self._keep(KeptCall(number, request, size))

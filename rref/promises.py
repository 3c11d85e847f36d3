"""Promises: values of references as arguments, found by the callee before its function starts (``PROTOCOL.md``).

The message carries the reference, as any other, and says that its value is meant. Where the callee is the owner, the value is
there or is waited for; else the callee asks the owner. The request waits in the table of requests, and holds no thread.
"""

from __future__ import annotations

import math
import struct
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

from ..core.errors import RpcCancelledError, SerializationError
from ..core.futures import Future, complete_once, copy_error
from ..rpc.extend import FrameKind, Incoming, Interceptor, Outgoing, ServerCall
from .promise_states import PromiseAction, PromiseEvent, PromiseMachine
from .value_of import ValueOf
from .values import fetch, own_value, text_of

if TYPE_CHECKING:
    from .context import RRefContext
    from .rref import RRef

# Number of the extra that says which references of a message stand for their values.
PROMISE_EXTRA = 6
PLACE = struct.Struct("<I")


def mark_promises(message: Outgoing) -> None:
    """Say in a message which of its references stand for their values.

    Raises:
        SerializationError: it is an answer.
    """
    places = [place for place, each in enumerate(message.attached.references) if type(each) is ValueOf]
    if not places:
        return
    if message.kind != FrameKind.REQUEST:
        raise SerializationError(
            "rpc.value(reference) stands for a value in arguments only; return the reference, or reference.to_here()"
        )
    message.tell(PROMISE_EXTRA, b"".join(map(PLACE.pack, places)))


def promised_places(message: Incoming) -> list[int]:
    """Return the places of the references that stand for their values, in the table of a message that arrived."""
    return [place for (place,) in PLACE.iter_unpack(message.extras[PROMISE_EXTRA])]


class PromiseInterceptor(Interceptor):
    """Puts values in the places of the references that stand for them, when a request is opened."""

    number = PROMISE_EXTRA

    def opening(self, message: Incoming) -> None:
        """Put the values in place.

        Raises:
            Exception: a value could not be made, or not be had.
        """
        references = message.attached.references
        places = promised_places(message)
        for place in places:  # first: the others may not be there yet
            references[place].check()
        for place in places:
            references[place] = references[place].future.value()


class PromisedValue:
    """Value of a reference for which a request waits.

    Args:
        context: the references of this agent.
        reference: the reference, which is kept until the value is there.

    Attributes:
        future: completes with the value, or with the reason why there is none.
    """

    __slots__ = ("_context", "_lock", "_machine", "_name", "_question", "_reference", "future")

    def __init__(self, context: RRefContext, reference: RRef[Any]) -> None:
        self.future: Future[Any] = Future()
        self._context = context
        self._reference: RRef[Any] | None = reference
        self._name = text_of(reference._fork, context.agent)
        self._machine = PromiseMachine()
        self._lock = threading.Lock()
        self._question: Future[Any] | None = None

    def begin(self, call: ServerCall) -> None:
        """Ask for the value, for a request."""
        self._handle(PromiseEvent.BEGIN, call=call)
        if not (self.future.done() or call.must_run):
            call.cancellation().add_done_callback(self._cancel)

    def _cancel(self, _: Future[bool]) -> None:
        error = RpcCancelledError(f"the value of {self._name} is not needed: the call was cancelled")
        self._handle(PromiseEvent.CANCEL, error=error)

    def check(self) -> None:
        """Raise the reason if it is known that there is no value. It keeps its type, and a note says which value it is."""
        if self.future.done() and (error := self.future.exception()) is not None:
            error = copy_error(error)
            notes: list[str] = error.__dict__.setdefault("__notes__", [])  # add_note() is new in Python 3.11
            notes.append(f"(an argument of this call is the value of {self._name})")
            raise error

    def _handle(
        self, event: PromiseEvent, value: Any = None, error: BaseException | None = None, call: ServerCall | None = None
    ) -> None:
        with self._lock:
            actions = self._machine.handle(event)
        for action in actions:
            if action is PromiseAction.ASK_OWNER:
                assert call is not None
                self._ask_owner(call)
            elif action is PromiseAction.WITHDRAW:
                self._withdraw()
            else:
                self._end(value, error)

    def _ask_owner(self, call: ServerCall) -> None:
        assert self._reference is not None  # its machine has just begun
        fork, agent = self._reference._fork, self._context.agent
        if fork.owner == self._context.me:
            self._ask(partial(own_value, self._context, fork))
            return
        left = 0.0 if math.isinf(call.left) else max(call.left, 1e-3)
        question = partial(self._ask, partial(fetch, self._context, fork, left), call)
        # In a thread for callbacks: the request may have to wait for room, and a reader must not.
        agent.threads.run_later(partial(agent.new_context().run, question))

    def _ask(self, question: partial[Future[Any]], call: ServerCall | None = None) -> None:
        if self._reference is None:
            return  # the request was cancelled meanwhile
        if call is not None:
            self._context.agent.codec.enter(call)
        try:
            self._question = asked = question()
        except Exception as error:
            self._handle(PromiseEvent.ERROR, error=error)
            return
        asked.add_done_callback(partial(self._answered, self.future))

    def _answered(self, _: Future[Any], asked: Future[Any]) -> None:
        # The first argument is for observers: in the callback they find what the answer completes.
        error = asked.exception()
        if error is None:
            self._handle(PromiseEvent.VALUE, asked.value())
        else:
            self._handle(PromiseEvent.ERROR, error=error)

    def _withdraw(self) -> None:
        question = self._question
        if question is not None and question.canceller is not None:  # else it is the value itself, which others use
            question.cancel()

    def _end(self, value: Any, error: BaseException | None) -> None:
        self._reference = None
        complete_once(self.future, value, error)

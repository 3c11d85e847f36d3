"""Promises: values of references as arguments, found by the callee before its function starts (``PROTOCOL.md``).

The message carries the reference, as any other, and says that its value is meant. Where the callee is the owner, the value is
there or is waited for; else the callee asks the owner. The request waits in the table of requests, and holds no thread.
"""

from __future__ import annotations

import math
import struct
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ..base.errors import RpcCancelledError, RpcError, SerializationError
from ..core.futures import Future, complete_once, copy_error
from ..rpc.extend import FrameKind, Incoming, Interceptor, Outgoing, ServerCall
from .numbers import ReferenceMethod
from .promise_states import PromiseAction, PromiseEvent, PromiseMachine, PromiseState
from .rref import RRef
from .value_of import ArrivedValue, ValueOf
from .values import fetch, own_value, text_of

if TYPE_CHECKING:
    from .context import RRefContext

# Number of the extra that says which references of a message stand for their values.
PROMISE_EXTRA = 6
# Place in the table of references; for the result of a call under way also its callee's number, else -1, and its id.
PLACE = struct.Struct("<IiQ")
NO_CALL = (-1, 0)


def mark_promises(context: RRefContext, message: Outgoing) -> None:
    """Say in a message which of its references stand for their values; put references in the places of futures.

    Args:
        context: the references of this agent.
        message: the message.

    Raises:
        SerializationError: it is an answer.
    """
    references = message.attached.references
    places = [place for place, each in enumerate(references) if isinstance(each, (ValueOf, Future))]
    if not places:
        return
    if message.kind != FrameKind.REQUEST:
        raise SerializationError(
            "a future, or rpc.value(reference), stands for a value in arguments only; wait for the value and return that"
        )
    rows = []
    for place in places:
        call = NO_CALL
        if isinstance(future := references[place], Future):
            call = NO_CALL if future.done() or future.call is None else future.call
            references[place] = RRef._of(context, context.own_outcome(future))
        rows.append(PLACE.pack(place, *call))
    message.tell(PROMISE_EXTRA, b"".join(rows))


def promised_places(message: Incoming) -> list[tuple[int, int, int]]:
    """Return the rows of a message that arrived: place of a reference that stands for its value, callee and id of a call."""
    return list(PLACE.iter_unpack(message.extras[PROMISE_EXTRA]))


class PromiseInterceptor(Interceptor):
    """Puts values in the places of the references that stand for them, when a request is opened."""

    number = PROMISE_EXTRA

    def opening(self, message: Incoming) -> None:
        """Put the values in place.

        Raises:
            Exception: a value could not be made, or not be had.
        """
        references = message.attached.references
        places = [place for place, *_ in promised_places(message)]
        for place in places:  # first: the others may not be there yet
            references[place].check()
        for place in places:
            references[place] = references[place].argument()


class PromisedValue:
    """Value of a reference for which a request waits.

    Args:
        context: the references of this agent.
        reference: the reference, which is kept until the value is there.
        callee: number of the worker that makes the value for a call of the reference's owner, if that is so; else -1.
        call_id: id of that call.
        passes_on: the request goes on to other workers, which need the reference.

    Attributes:
        future: completes with the value, or with the reason why there is none.
    """

    __slots__ = (
        "_call_id",
        "_callee",
        "_context",
        "_lock",
        "_machine",
        "_name",
        "_passed_on",
        "_question",
        "_reference",
        "future",
    )

    def __init__(
        self, context: RRefContext, reference: RRef[Any], callee: int, call_id: int, passes_on: bool = False
    ) -> None:
        self.future: Future[Any] = Future()
        self._context = context
        self._callee, self._call_id = callee, call_id
        self._reference: RRef[Any] | None = reference
        self._passed_on = reference if passes_on else None
        self._name = text_of(reference._fork, context.agent)
        self._machine = PromiseMachine()
        self._lock = threading.Lock()
        self._question: Future[Any] | None = None

    def begin(self, call: ServerCall) -> None:
        """Ask for the value, for a request."""
        self._handle(PromiseEvent.BEGIN if self._callee < 0 else PromiseEvent.BEGIN_CALL, call=call)
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

    def argument(self) -> Any:
        """Return what takes the place of the reference in the arguments."""
        value = self.future.value()
        return value if self._passed_on is None else ArrivedValue(self._passed_on, value)

    def _handle(
        self, event: PromiseEvent, value: Any = None, error: BaseException | None = None, call: ServerCall | None = None
    ) -> None:
        with self._lock:
            actions = self._machine.handle(event)
        for action in actions:
            if action is PromiseAction.ASK_OWNER or action is PromiseAction.ASK_CALLEE:
                assert call is not None
                (self._ask_owner if action is PromiseAction.ASK_OWNER else self._ask_callee)(call)
            elif action is PromiseAction.WITHDRAW:
                self._withdraw()
            else:
                self._end(value, error)

    def _ask_callee(self, call: ServerCall) -> None:
        agent, key = self._context.agent, (call.sender, self._call_id)
        if self._callee != agent.number:
            self._ask_later(partial(self._question_for, key, call), call)
        elif (result := agent.server.handed_on.result_of(key)) is not None:
            self._ask(lambda: result, call)
        else:
            self._handle(PromiseEvent.UNKNOWN, call=call)

    def _question_for(self, key: tuple[int, int], call: ServerCall) -> Future[Any]:
        agent, what = self._context.agent, f"a question for the result of another call ({self._name})"
        callee = agent.peers.at(self._callee)  # may be a worker that joins now, of which this one has not heard
        return agent.caller.request(callee, ReferenceMethod.RESULT, key, _left(call), what)

    def _ask_owner(self, call: ServerCall) -> None:
        if (reference := self._reference) is None:
            return  # the request was cancelled meanwhile
        if (fork := reference._fork).owner == self._context.me:
            self._ask(partial(own_value, self._context, fork), call)
        else:
            self._ask_later(partial(fetch, self._context, fork, _left(call)), call)

    def _ask_later(self, question: Callable[[], Future[Any]], call: ServerCall) -> None:
        """Ask in a thread for callbacks: the question may have to wait for room, and a reader must not."""
        agent = self._context.agent

        def ask() -> None:
            agent.codec.enter(call)
            self._ask(question, call)

        agent.threads.run_later(partial(agent.new_context().run, ask))

    def _ask(self, question: Callable[[], Future[Any]], call: ServerCall) -> None:
        if self._reference is None:
            return
        try:
            self._question = asked = question()
        except Exception as error:
            self._failed(error, call)
        else:
            asked.add_done_callback(partial(self._answered, self.future, call))

    def _answered(self, _: Future[Any], call: ServerCall, asked: Future[Any]) -> None:
        # The first argument is for observers: in the callback they find what the answer completes.
        error = asked.exception()
        if error is None:
            self._handle(PromiseEvent.VALUE, asked.value())
        else:
            self._failed(error, call)

    def _failed(self, error: BaseException, call: ServerCall) -> None:
        # Only the call's caller, which owns the reference, knows whether an RpcError is that of the call or of the question.
        asks_callee = self._machine.state is PromiseState.ASKING_CALLEE
        unknown = asks_callee and isinstance(error, RpcError)
        self._handle(PromiseEvent.UNKNOWN if unknown else PromiseEvent.ERROR, error=error, call=call)

    def _withdraw(self) -> None:
        question = self._question
        if question is not None and question.canceller is not None:  # else it is the value itself, which others use
            question.cancel()

    def _end(self, value: Any, error: BaseException | None) -> None:
        self._reference = None
        complete_once(self.future, value, error)


def _left(call: ServerCall) -> float:
    return 0.0 if math.isinf(call.left) else max(call.left, 1e-3)


def serve_result(context: RRefContext, call: ServerCall) -> None:
    """Answer with the result of a request that is served here, when it is there.

    Raises:
        RpcError: it is not served here, or not any more.
    """
    sender, call_id = call.open()
    if (result := context.agent.server.handed_on.result_of((sender, call_id))) is None:
        raise RpcError(f"worker {context.agent.name!r} does not serve call {call_id} now")
    call.what = "a question for a result"
    call.reply_with(result, is_future=True)

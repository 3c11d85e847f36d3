"""References in messages, and the handlers of creating calls and fetches.

References are forked when a message leaves. They are adopted when it arrives, before anything in it is unpickled.
"""

from __future__ import annotations

import inspect
from contextvars import copy_context
from functools import partial
from typing import Any

from ..base.errors import MemoryBudgetError
from ..core.futures import Future, complete_once
from ..rpc.extend import (
    Flag,
    FrameKind,
    Incoming,
    Interceptor,
    Outgoing,
    RemoteTraceback,
    ServerCall,
    callees_traceback,
    check_future,
    is_async_execution,
    name_of,
    open_request,
)
from . import protocol as p
from .context import REFERENCE_EXTRA, RRefContext
from .ids import GlobalId
from .numbers import ReferenceMethod
from .plain import is_plain
from .promises import PROMISE_EXTRA, PromisedValue, mark_promises, promised_places, serve_result
from .rref import RRef
from .transfers import ReferenceTransfer, decode_transfer, encode_transfer

USES_VALUE = (ReferenceMethod.METHOD, ReferenceMethod.CREATE)  # their handlers use the value, or make it


class ReferenceInterceptor(Interceptor):
    """Adds a transfer to each message that has references."""

    number = REFERENCE_EXTRA
    needs_references = True

    def __init__(self, context: RRefContext) -> None:
        self.context = context

    def sending(self, message: Outgoing) -> None:
        """Fork every reference in the message, and add the transfer. Creating calls and calls of methods bring their own."""
        transfer: ReferenceTransfer | None = message.attached.notes.get(REFERENCE_EXTRA)
        if message.attached.references:
            mark_promises(self.context, message)
        elif transfer is None:
            return
        if transfer is None:
            transfer = ReferenceTransfer(self.context.key(message.to), answered=message.kind == FrameKind.REQUEST)
        transfer.answer_by = message.session  # of an answer; a request has none yet
        transfer.forks = [reference.sendable_fork(self.context) for reference in message.attached.references]
        self.context.handle(p.Sending(transfer))
        if transfer.created is not None:
            transfer.created.call = message
            message.flags |= Flag.KEEP  # it must run even if it is late: other workers may know of the reference
        message.keep(REFERENCE_EXTRA, transfer)
        message.tell(REFERENCE_EXTRA, encode_transfer(transfer))

    def _owners_lost(self, transfer: ReferenceTransfer) -> list[p.Event]:
        """Return the losses of owners that are gone; this worker may have heard of none, as it joined later."""
        return [p.WorkerLost(each.owner) for each in transfer.entries if self.context.is_gone(each.owner)]

    def arrived(self, message: Incoming) -> bool:
        """Adopt the references; return False for a message that its sender has cancelled."""
        extra = message.extras.get(REFERENCE_EXTRA)
        if extra is None:
            return True
        transfer = decode_transfer(extra, self.context.key(message.session.number))
        self.context.handle(*self._owners_lost(transfer), p.ReferencesArrived(transfer))
        attached = message.attached
        attached.references = [RRef._of(self.context, fork) for fork in transfer.forks]
        if message.method in USES_VALUE:
            attached.value = transfer.value  # for the handler; this also keeps the value
        # A function can use a reference that its owner has not registered yet, but not one whose owner is not known here.
        heard_of = self.context.agent.peers.heard_of
        attached.waits_for = [fork.settled for fork in transfer.forks if not heard_of(fork.owner.number)]
        if not transfer.adopted:
            return False
        if message.method == ReferenceMethod.METHOD and (value := transfer.value) is not None and not value.done():
            attached.waits_for.append(value)
        if PROMISE_EXTRA in message.extras:
            places, passes_on = promised_places(message), bool(message.flags & Flag.BUNDLE)
            attached.awaited = [
                PromisedValue(self.context, attached.references[place], callee, call_id, passes_on)
                for place, callee, call_id in places
            ]
            for (place, *_), promised in zip(places, attached.awaited):
                attached.references[place] = promised
            attached.waits_for += [promised.future for promised in attached.awaited]
        return True

    def delivered(self, message: Outgoing) -> None:
        """Note that the receiver has adopted the references."""
        transfer: ReferenceTransfer | None = message.take_note(REFERENCE_EXTRA)
        if transfer is None:
            return
        self.context.handle(p.Delivered(transfer))
        if (fork := transfer.created) is not None:
            answer = fork.call.future
            if answer.done():
                self.context.creation_ended(fork, answer.exception())
            else:
                answer.add_done_callback(lambda done: self.context.creation_ended(fork, done.exception()))

    def not_delivered(self, message: Outgoing) -> None:
        """Take the references back, unless they have arrived."""
        transfer: ReferenceTransfer | None = message.take_note(REFERENCE_EXTRA)
        if transfer is None:
            return
        self.context.handle(p.NotDelivered(transfer))
        fork = transfer.created
        if fork is not None and fork.call.future.done():  # if not, another interceptor refused the message
            self.context.creation_ended(fork, fork.call.future.exception())


def serve_references(context: RRefContext) -> None:
    """Let the agent of ``context`` answer creating calls and fetches."""
    context.agent.server.serve(ReferenceMethod.CREATE, partial(_serve_create, context), _refuse_create)
    context.agent.server.serve(ReferenceMethod.RESULT, partial(serve_result, context), quick=True)
    context.agent.server.serve(ReferenceMethod.FETCH, partial(_serve_fetch, context), quick=True)


def _serve_create(context: RRefContext, call: ServerCall) -> None:
    """Make the value of a new reference, then answer. An error becomes the value's error, not the answer's."""
    value = _value(call)
    try:
        function, args, kwargs = open_request(call.open(), context.agent.name)
        call.what = name_of(function)
        result = function(*args, **kwargs)
        del args, kwargs
        if is_async_execution(function):
            check_future(result)
            _complete_later(context, call, value, result, keep=False)
        elif inspect.iscoroutine(result):
            outcome = context.agent.threads.run_coroutine(result, copy_context())
            _complete_later(context, call, value, outcome, keep=True)
        else:
            complete_once(value, _kept(context, result))
            call.done_soon()
    except BaseException as error:
        call.note(error)
        complete_once(value, error=_storable(error, context.agent.name))
        call.done_soon()


def _refuse_create(call: ServerCall, error: BaseException) -> None:
    """Fail the value of a new reference whose function gets no thread, so that no call waits for it."""
    complete_once(_value(call), error=error)


def _value(call: ServerCall) -> Future[Any]:
    """Return the future of the value to make. The call has kept it: a fetch may wait for it when the reference is gone.

    If the value was freed before the call arrived, the function runs nevertheless.
    """
    value: Future[Any] | None = call.attached.value
    return Future() if value is None else value


def _complete_later(
    context: RRefContext, call: ServerCall, value: Future[Any], outcome: Future[Any], keep: bool
) -> None:
    def complete(done: Future[Any]) -> None:
        error = done.exception()
        try:
            if error is None:
                complete_once(value, _kept(context, done.value()))
        except MemoryBudgetError as no_room:
            error = no_room
        if error is not None:
            complete_once(value, error=_storable(error, context.agent.name) if keep else error)
        call.done_soon()

    call.park()
    outcome.add_done_callback(complete)


def _kept(context: RRefContext, value: Any) -> Any:
    """Return a new value of this worker; the memory of its tensors may lie in a file from now on."""
    if (budget := context.agent.codec.budget) is not None:
        budget.keep(value)
    return value


def _serve_fetch(context: RRefContext, call: ServerCall) -> None:
    """Answer with the value: when it is made, in the thread that makes it. A value that exists is sent at once if it is plain.

    Another value that exists may run user code when it is pickled, so a thread for functions sends it.
    """
    ids = call.open()
    value = context.value(GlobalId(*ids[:3]), GlobalId(*ids[3:]) if len(ids) > 3 else None)
    call.what = "to_here()"
    if not value.done():
        call.reply_with(value, is_future=True)
    elif is_plain(value):
        call.reply(value.value())
    else:
        context.agent.threads.functions.submit(partial(copy_context().run, call.reply_with, value, True))


def _storable(error: BaseException, worker: str) -> BaseException:
    """Return an exception to keep, with its traceback as text: frames would keep arguments, and the future that has it."""
    text = callees_traceback(error, worker)
    error.__cause__ = RemoteTraceback(worker, text) if text else None
    error.__context__ = None
    return error.with_traceback(None)

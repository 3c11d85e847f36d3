"""Generators that run for other workers: drivers of ``item_source.py``, and the handlers of the requests of ``rpc.stream``.

A stream of items is opened by a request that also asks for its first item. Each further item is the answer to a request of
its own, so that packing, flow control and losses treat items like all answers. The caller closes a stream by cancelling the
request that opened it, even if that was answered.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from ...base.errors import RpcError
from ...core.extend import profiles, recorded_by
from ...core.futures import attempt, attempt_async
from ..wire.messages import Method
from .calling import name_of, open_request
from .item_source import (
    Close,
    CloseGenerator,
    Event,
    Finished,
    GeneratorPhase,
    Interrupt,
    ItemSource,
    NoMoreItems,
    Pulled,
    Step,
    Stepped,
)

if TYPE_CHECKING:
    from ..agent import Agent
    from ..calls.handed_on import CallKey
    from ..calls.server_call import ServerCall
    from ..links.peer import Peer
    from ..threads.agent_threads import AgentThreads
    from ..threads.pool import Idle

logger = logging.getLogger("telegrad.rpc")
Work: TypeAlias = Step | CloseGenerator
MORE, END = True, False  # first part of an answer; the second part is an item, or the value that the generator returned


class Producer:
    """Generator, or another iterable, that runs for one caller: one step for each item that the caller asks for.

    Args:
        threads: the agent's threads.
        call: the request that opened the stream.
        iterator: makes the items; synchronous or asynchronous.
        forget: called when the generator has ended.
    """

    def __init__(self, threads: AgentThreads, call: ServerCall, iterator: Any, forget: Callable[[], object]) -> None:
        self.call = call
        self._threads = threads
        self.iterator = iterator
        self._forget = forget
        self._asynchronous = hasattr(iterator, "__anext__")
        # For all steps: it has the callee's agent, the call, and the caller's autograd context.
        self._context = copy_context()
        self._source = ItemSource()
        self._lock = threading.Lock()
        self._task: asyncio.Task[Any] | None = None  # the task that makes items now

    def handle(self, event: Event) -> None:
        """Take an event, and begin the work that follows from it. Any thread: no user code runs here."""
        if (work := self._decide(event)) is not None:
            self._begin(work)

    def open(self) -> None:
        """Answer the opening request with the first item; a synchronous generator runs in this thread."""
        if (work := self._decide(Pulled(0, self.call))) is not None:
            if self._asynchronous:
                self._begin(work)
            else:
                self._run(work)

    def _decide(self, event: Event) -> Work | None:
        """Carry out the instructions for an event, except the work with the generator, which is returned."""
        with self._lock:
            instructions = self._source.handle(event)
            ended = self._source.phase is GeneratorPhase.ENDED
        work = None
        for instruction in instructions:
            if isinstance(instruction, Interrupt):
                self._interrupt()
            elif isinstance(instruction, NoMoreItems):
                instruction.pull.reply((END, None))
            else:
                work = instruction
        if ended:
            self._forget()
            self.call.ended()
        return work

    def _begin(self, work: Work) -> None:
        try:
            if self._asynchronous:
                self._threads.run_coroutine(self._run_coroutine(work), self._context)
            else:
                self._threads.functions.submit(partial(self._run, work))
        except RpcError as error:  # the agent is closing, or there is no thread left
            self._forget()
            if isinstance(work, Step):
                work.pull.fail(error)

    def _interrupt(self) -> None:
        self.call.cancel()
        # A task that has not begun yet sees the call cancelled.
        if (task := self._task) is not None:
            with suppress(RuntimeError):  # the loop was closed, and has ended the task
                task.get_loop().call_soon_threadsafe(task.cancel)

    # -- user code

    def _run(self, work: Work | None) -> Idle | None:
        """Make items as long as they are asked for. Return a function for the thread to call before it idles."""
        while work is not None:
            if isinstance(work, CloseGenerator):
                work = self._closed(self._error_of(getattr(self.iterator, "close", None)))
                continue
            try:
                value = (MORE, self._context.run(self._next, work.pull))
            except StopIteration as end:
                value = (END, end.value)
            except BaseException as error:
                work = self._failed(work, error)
                continue
            work = self._answer(work, value)
        return None if (reading := self.call.session.reading) is None else reading.linger

    def _next(self, pull: ServerCall) -> Any:
        with recorded_by(pull.kept):
            return next(self.iterator)

    def _error_of(self, close: Callable[[], object] | None) -> BaseException | None:
        if close is None:  # only generators have it
            return None
        return attempt(self._context.run, close)[1]

    async def _run_coroutine(self, work: Work | None) -> None:
        self._task = asyncio.current_task()
        try:
            while work is not None:
                work = await self._advance(work)
        finally:
            self._task = None

    async def _advance(self, work: Work) -> Work | None:
        if isinstance(work, CloseGenerator):
            return self._closed(await self._aclose())
        if self.call.cancelled:  # before the step began: the generator is to be closed instead
            work.pull.reply((END, None))
            return self._decide(Stepped())
        with recorded_by(work.pull.kept):
            value, error = await attempt_async(self.iterator.__anext__)
        if isinstance(error, StopAsyncIteration):
            return self._answer(work, (END, None))
        return self._answer(work, (MORE, value)) if error is None else self._failed(work, error)

    async def _aclose(self) -> BaseException | None:
        close = getattr(self.iterator, "aclose", None)
        return None if close is None else (await attempt_async(close))[1]

    def _answer(self, step: Step, value: tuple[bool, Any]) -> Work | None:
        if step.pull is not self.call:  # warnings are collected at the call that opened the stream
            step.pull.warnings, self.call.warnings = self.call.warnings, ()
        _, error = attempt(self._context.copy().run, _reply, step.pull, value)
        if error is not None:  # it cannot be sent
            step.pull.fail(error)
            if value[0] is MORE:
                self._decide(Close())
        return self._decide(Stepped() if value[0] is MORE else Finished())

    def _failed(self, step: Step, error: BaseException) -> Work | None:
        step.pull.fail(error)
        return self._decide(Finished())

    def _closed(self, error: BaseException | None) -> Work | None:
        if error is not None:
            logger.error("the generator of %s raised when it was closed", self.call.what, exc_info=error)
        return self._decide(Finished())


class Producers:
    """Generators that run at one agent for others."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._open: dict[CallKey, Producer] = {}  # by the request that opened the stream
        agent.server.serve(Method.STREAM, self._serve_opening)
        agent.server.serve(Method.PULL, self._serve_pull, quick=True)
        agent.server.on_cancel.append(self._cancelled)
        agent.losses.on_lost.append(self._peer_lost)
        agent.debug_sections["generators"] = self.count
        agent.on_close.append(lambda: self._close(list(self._open)))

    def count(self) -> int:
        """Return how many generators have not ended."""
        return len(self._open)

    def suspended(self) -> list[tuple[ServerCall, Any]]:
        """Return the requests of the streams that have not ended, each with its iterator."""
        return [(each.call, each.iterator) for each in list(self._open.values())]

    def _serve_opening(self, call: ServerCall) -> None:
        function, args, kwargs = open_request(call.open(), self._agent.name)
        call.what = name_of(function)
        iterator = items_of(function(*args, **kwargs), call.what)
        del args, kwargs
        call.state = call.state.stream
        producer = Producer(self._agent.threads, call, iterator, lambda: self._open.pop(call.key, None))
        self._open[call.key] = producer
        if call.cancelled or self._agent.closed:  # before it was found in the table
            producer.handle(Close())
        producer.open()

    def _serve_pull(self, call: ServerCall) -> None:
        stream, number = call.open()
        call.kept = profiles.get()  # set in this context when the body was opened; the step runs in another context
        producer = self._open.get((call.sender, stream))
        if producer is None:
            call.reply((END, None))
        else:
            producer.handle(Pulled(number, call))

    def _cancelled(self, key: CallKey) -> None:
        self._close([key])

    def _peer_lost(self, peer: Peer) -> None:
        self._close([key for key in list(self._open) if key[0] == peer.number])

    def _close(self, keys: Iterable[CallKey]) -> None:
        for key in keys:
            if (producer := self._open.get(key)) is not None:
                producer.call.cancel()
                producer.handle(Close())


def _reply(pull: ServerCall, value: tuple[bool, Any]) -> None:
    with recorded_by(pull.kept):  # the profiles' interceptor sends the recorded events with the answer
        pull.reply(value)


def items_of(result: Any, what: str) -> Any:
    """Return an iterator, synchronous or asynchronous, of the result of a function.

    Args:
        result: the result.
        what: the function's name.

    Raises:
        TypeError: the result is not iterable.
    """
    if hasattr(result, "__aiter__"):
        return result.__aiter__()
    if hasattr(result, "__iter__"):
        return iter(result)
    if inspect.iscoroutine(result):
        result.close()
    raise TypeError(
        f"rpc.stream needs a generator function, or one that returns something to iterate; {what} returned "
        f"{type(result).__name__}"
    )

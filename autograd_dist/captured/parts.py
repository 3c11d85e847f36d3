"""``CapturedParts``: parts of captured steps on one worker: those that it replays for others, and numbers for its own."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from functools import partial
from types import MethodType
from typing import Any
from weakref import WeakValueDictionary

from ...base.errors import RpcError
from ...capture.extend import Description, GivenUp, mapped, tensors_of
from ...core.extend import Tensor, watchers
from ...core.futures import Future
from ...rpc.extend import Agent, Peer, ServerCall, is_async_execution
from ...rref.extend import forward_of
from ..current_context import recorded_part
from ..local_optimizer import LocalOptimizer
from ..numbers import GradientMethod, GradientTopic
from ..step_queue import StepQueue
from .callee import Arguments, CalleePart, CalleeReplay, QuietlyCompiled, is_same, slot_of
from .messages import ACCEPTED, pack, refusal, unpack
from .plain_parts import PlainParts
from .replays import Origin, Owners, ReplayNews, ServedPart, numbers_in
from .states import PartTable

UNKNOWN_PART = "it does not know this part of the step"


class CapturedParts:
    """Parts of captured steps on one worker.

    Args:
        agent: the worker's agent.

    Attributes:
        numbers: for this worker's own calls.
        replay_numbers: for their replays.
        replays: those that are not over, in order.
    """

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.numbers, self.replay_numbers = itertools.count(1), itertools.count(1)
        self.replays: dict[int, None] = {}
        self._table: PartTable[CalleePart] = PartTable()
        self._compiled: WeakValueDictionary[Any, QuietlyCompiled] = WeakValueDictionary()
        self._lock = threading.Lock()
        self._plain = PlainParts(agent, key_of, self._lock)
        agent.server.serve(GradientMethod.DEFINE, self._plain.serve_define)
        agent.server.serve(GradientMethod.PLAIN, self._plain.serve_plain)
        agent.server.serve(GradientMethod.FORWARD, self._serve_forward)
        agent.server.serve(GradientMethod.BACKWARD, self._serve_backward)
        agent.server.serve(GradientMethod.FAILURE, self._serve_failure)
        agent.server.serve(GradientMethod.DESCRIBE, self._serve_describe)
        agent.server.serve(GradientMethod.WITHDRAW, self._serve_withdraw)
        agent.control.on(GradientTopic.FORGET, self._on_forget)
        agent.losses.on_lost.append(self._on_lost)
        agent.on_close.append(self._on_close)

    def record(
        self,
        call: ServerCall,
        number: int,
        tensors: Sequence[Tensor],
        find: Callable[[], Any],
        function: Any,
        args: Any,
        kwargs: Any,
    ) -> Any:
        """Call a function for another worker that records its step, and note what it does as a part.

        Args:
            call: the request.
            number: the caller's number of the part.
            tensors: those among the arguments, in the order of the message.
            find: finds the function again, as the next call would.
            function, args, kwargs: what is called.
        """
        if watchers():
            return function(*args, **kwargs)
        reason = _refusal(find, function)
        named = function
        function, args, kwargs = forward_of(function, args, kwargs)
        marked = [place for place, each in enumerate(tensors) if each._requires_grad]
        arguments = mapped((args, kwargs), partial(slot_of, tensors))
        compiled = self._compiled_of(function)
        with recorded_part():
            result = compiled.called(args, kwargs)
        if not reason and tensors_of(arguments):
            reason = "an argument is of a class of tensors of its own"
        part = CalleePart(find, named, compiled, Arguments(arguments), marked, reason)
        with self._lock:
            dropped = self._table.learn(key_of(call.peer), number, part)
        del dropped  # here, without the lock: it may hold a user's objects
        return result

    def _compiled_of(self, function: Any) -> QuietlyCompiled:
        key = (function.__func__, id(function.__self__)) if isinstance(function, MethodType) else function
        with self._lock:
            found = self._compiled.get(key)
            if found is None:
                found = self._compiled[key] = QuietlyCompiled(function, False)
            return found

    # -- requests

    def _serve_forward(self, call: ServerCall) -> None:
        words, arrays = unpack(call.open())
        number, replay, place, oldest, alone, whole, *more = map(int, words)
        caller = key_of(call.peer)
        with self._lock:
            part = self._table.find(caller, number)
        if part is None:
            call.reply(refusal(UNKNOWN_PART, final=False))
            return
        call.what = "the replay of a captured step"
        origin = Origin.of_words(caller, replay, more)
        kept = self._replay(origin, oldest)
        try:
            served = ServedPart(origin, oldest, bool(alone), kept.news, kept.undoing)
            tensors = [Tensor(each) for each in arrays if each is not None]
            results = part.forward(tensors, kept, place, served, bool(whole))
        except GivenUp as given_up:
            if kept.empty:
                with self._lock:
                    self._table.take(origin.root, origin.replay)
            call.reply(refusal(str(given_up), given_up.final))
            return
        call.reply(pack([ACCEPTED], results))

    def _replay(self, origin: Origin, oldest: int) -> CalleeReplay:
        """Return what is kept of a replay; it may be new."""
        with self._lock:
            kept, dropped = self._table.kept(origin.root, origin.replay), None
            if kept is None:
                kept = CalleeReplay()
                dropped = self._table.keep(origin.root, origin.replay, oldest, kept)
        del dropped
        found: CalleeReplay = kept
        return found

    def _serve_backward(self, call: ServerCall) -> None:
        (owners, places, replay, *more), gradients = unpack(call.open())
        call.what = "the backward of a captured step"
        origin = Origin.of_words(key_of(call.peer), int(replay), list(map(int, more)))
        keys = [(origin.caller, origin.run, place) for place in numbers_in(places)]
        # Without calls, this worker owns parameters that the step has not used.
        kept = self._kept(origin, self._table.kept) if keys else CalleeReplay()
        kept.news.owners = Owners.of_text(owners)
        optimizer = self._optimizer(kept.news.owners.numbers.get(self.agent.number, 0))
        returned, complete = kept.backward(keys, gradients)
        if complete and keys:
            self._kept(origin, self._table.take)
        if optimizer is None or not complete:
            call.reply(pack(kept.news.words(), returned))
            return
        done = optimizer.step_with([kept.found.get(id(each)) for each in optimizer.parameters])
        if done.known():
            call.reply(pack(kept.news.words(), returned))
            return
        call.reply_with(done.then(partial(self._stepped, origin, kept.news, returned)), is_future=True)

    def _stepped(self, origin: Origin, news: ReplayNews, returned: Sequence[Any], done: Future[None]) -> Any:
        """Return the answer after a step. Its error is kept: the caller asks for it when its own steps are done."""
        error = done.exception()
        if error is not None:
            news.failed.add(self.agent.number)
            with self._lock:
                dropped = self._table.keep(origin.root, origin.replay, 0, error)
            del dropped
        return pack(news.words(), returned)

    def _serve_failure(self, call: ServerCall) -> None:
        (replay,), _ = unpack(call.open())
        raise self._kept(Origin.of_words(key_of(call.peer), int(replay), []), self._table.take)

    def _serve_withdraw(self, call: ServerCall) -> None:
        (replay, *more), _ = unpack(call.open())
        origin = Origin.of_words(key_of(call.peer), int(replay), list(map(int, more)))
        with self._lock:
            kept = self._table.take(origin.root, origin.replay)
        if isinstance(kept, CalleeReplay):
            kept.undoing.undo()
        call.reply(pack([ACCEPTED], ()))

    def _serve_describe(self, call: ServerCall) -> None:
        (number,), _ = unpack(call.open())
        with self._lock:
            part = self._table.find(key_of(call.peer), int(number))
        found = Description([UNKNOWN_PART]) if part is None else part.description
        call.reply(found.as_json())

    def _kept(self, origin: Origin, find: Callable[[Any, int], Any]) -> Any:
        with self._lock:
            kept = find(origin.root, origin.replay)
        if kept is None:
            raise RpcError(
                f"worker {self.agent.name!r} does not keep replay {origin.replay} of a captured step any more"
            )
        return kept

    def _optimizer(self, number: int) -> LocalOptimizer | None:
        found: LocalOptimizer | None = self.agent.part(StepQueue).find(number) if number else None
        return found

    # -- the end of parts

    def _on_forget(self, peer: Peer, payload: bytes) -> None:
        self._drop(lambda: [table.forget(key_of(peer), int(payload)) for table in self._tables])

    def _on_lost(self, peer: Peer) -> None:
        self._drop(lambda: [each for table in self._tables for each in table.lost(key_of(peer))])

    def _on_close(self) -> None:
        self._drop(lambda: [each for table in self._tables for each in table.clear()])

    @property
    def _tables(self) -> tuple[PartTable[Any], ...]:
        return self._table, self._plain.table

    def _drop(self, forget: Callable[[], list[Any]]) -> None:
        with self._lock:
            dropped = forget()
        if dropped:
            self.agent.threads.run_later(dropped.clear)  # they may hold a user's objects


def key_of(peer: Peer) -> tuple[int, int]:
    """Return what names one incarnation of a worker."""
    return peer.number, peer.record.incarnation


def _refusal(find: Callable[[], Any], function: Any) -> str:
    """Return why calls of a function cannot be replayed for another worker; empty if they can."""
    name = getattr(function, "__qualname__", repr(function))
    if is_async_execution(function):
        return f"{name} returns a future (async_execution)"
    return "" if is_same(find, function) else f"{name} travels by value, so each call has another function"

"""``MeshAnswers``: gives the results of mesh calls: to the workers that asked, and to what takes them at the caller."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from ...base.errors import SerializationError
from ...core.futures import attempt
from ..calls.remote_warnings import issue_warnings
from ..wire.bundle import NONE, Bundle, Content
from .answers import GivenAnswer
from .heads import encode_answer
from .reducing import summed
from .warned_result import Results, WarnedResult, pack_warnings, warnings_of

if TYPE_CHECKING:
    from ..agent import Agent
    from ..calls.server_call import ServerCall
    from .leaf_call import LeafCall
    from .mesh_call import MeshCall
    from .sink import Sink


TENSORS = attrgetter("tensors")  # of a content
RESULT = itemgetter(1)  # of a place and a result


class MeshAnswers:
    """Results that one agent gives, of its own part of a call and of those below it.

    Args:
        agent: the agent.
    """

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.lock = threading.Lock()

    def _finish(self, call: MeshCall) -> None:
        """Note that a call that was made here is over."""
        raise NotImplementedError

    def answer(
        self, call: MeshCall, parent: Any, results: Sequence[tuple[int, Content]], more: bool, start: int
    ) -> None:
        """Give a parent results. A call that was made here is over.

        Args:
            call: the call.
            parent: the request of the worker that asked.
            results: with their places in the mesh.
            more: there will be others.
            start: position of the first of them.
        """
        if (sink := call.sink) is not None:
            if sink.reduces:
                self._give(call, results, lambda results: sink.complete(results, call.context))
            self._finish(call)
        elif call.head.folds and len(results) > 1:
            self.agent.threads.run_later(partial(call.context.copy().run, self._answer_folded, call, parent, results))
        elif not more and len(results) == 1 and results[0][0] == call.head.subtree[0].place:
            self.answer_with(call, parent, *results[0])
        else:
            self._answer(call, parent, results, more, start)

    def give(self, call: MeshCall, sink: Sink, results: Sequence[tuple[int, Content]]) -> None:
        """Give a caller's sink new results. Their warnings are issued before, if it does not need all results for its own.

        Args:
            call, sink: the call and its sink.
            results: with their places in the mesh.
        """
        if sink.reduces:
            sink.add(results)
        else:
            self._give(call, results, sink.add)

    def _give(self, call: MeshCall, results: Results, take: Callable[[Results], object]) -> None:
        """Issue the warnings of results, which may run user code, before ``take`` gets them."""

        def issue() -> None:
            take([(place, self._issued(each)) for place, each in results])

        if warnings_of(map(RESULT, results)):
            self.agent.threads.run_later(partial(call.context.copy().run, issue))
        else:
            take(results)

    def _issued(self, result: Content) -> Content:
        """Issue the warnings of a result; return it, or the error that a filter of the user's has made of them."""

        def issue() -> None:
            for number, rows in warnings_of([result]):
                issue_warnings(rows, self.agent.peers.name(number))

        _, problem = attempt(issue)
        return result if problem is None else self.pack_failed(problem)

    def answer_with(self, call: MeshCall | LeafCall, parent: ServerCall, place: int, result: Content) -> None:
        """Give a parent the one result that it lacks: that of this worker, or a sum.

        Args:
            call: the mesh call.
            parent: the request of the worker that asked.
            place: of this worker in the mesh.
            result: the result.
        """
        if result is NONE:
            parent.reply(None)  # a short message, which several may share
        else:
            self._answer(call, parent, [(place, result)], False)

    def _answer_folded(self, call: MeshCall, parent: Any, results: Sequence[tuple[int, Content]]) -> None:
        """Answer with the sum of this worker's result and those of its subtrees, in the order of the mesh."""
        codec, place = self.agent.codec, call.head.subtree[0].place
        total, problem = attempt(
            lambda: summed([codec.open_content(content) for _, content in sorted(results, key=lambda each: each[0])])
        )
        content = self.pack_result(call.head.caller, total) if problem is None else self.pack_failed(problem)
        if warned := warnings_of(map(RESULT, results)):
            content = WarnedResult(content, warned)
        self._answer(call, parent, [(place, content)], False)

    def _answer(
        self,
        call: MeshCall | LeafCall,
        parent: Any,
        results: Sequence[tuple[int, Content]],
        more: bool,
        start: int = 0,
    ) -> None:
        fitting = self._fitting(results)
        head = encode_answer([place for place, _ in fitting], more or len(fitting) < len(results))
        bundle = Bundle(head, pack_warnings(list(map(RESULT, fitting))))
        answer = GivenAnswer(start)
        if any(map(TENSORS, bundle.contents)):  # gradients may come for it
            with self.lock:
                call.answers.append(answer)
        try:
            answer.sent(parent.reply(bundle), self.agent.codec)
        except Exception as error:
            parent.fail(error)

    def _fitting(self, results: Sequence[tuple[int, Content]]) -> Sequence[tuple[int, Content]]:
        """Return the first results that fit into a message, and at least one."""
        size = 0
        for place, (_, content) in enumerate(results):
            if content is not NONE:
                size += content.size()
            if size > self.agent.codec.limit and place:
                return results[:place]
        return results

    # -- errors

    def pack_failed(self, error: BaseException) -> Content:
        """Return an error as the result of a worker."""
        return self.agent.codec.pack_failed(error)

    def pack_result(self, caller: int, value: Any) -> Content:
        """Return a result, captured; an error if it cannot be sent.

        Args:
            caller: number of the worker that made the call.
            value: the result.
        """
        peer = self.agent.peers.at(caller)
        try:
            packed = self.agent.codec.pack_content(value, peer.same_main, peer.versions, _label_result)
        except SerializationError as error:
            return self.pack_failed(error)
        return packed.captured()


def _label_result(value: Any) -> list[tuple[str, Any]]:
    return [("the result", value)]

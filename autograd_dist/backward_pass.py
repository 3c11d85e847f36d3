"""One backward pass on one worker: feed the local graph task, send gradients on, find the end.

Nothing here waits. Gradients arrive as requests; the thread that brings them runs the nodes that they make ready; and they
leave as requests. An acknowledgement lists the sends for which each worker still expects gradients, so the root can name them
at the end.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ..core.errors import AutogradError
from ..core.extend import Array, GraphTask, Node
from ..core.futures import Future
from ..rpc.extend import Agent, ServerCall
from .graph import ContextGraph, ReceiveNode, current_propagate
from .numbers import Method
from .termination import Termination

# By worker: how often it became idle, and the sends without gradients then. The latest report of each worker counts.
Reports = dict[int, tuple[int, list[str]]]
Feed = Callable[[], object]


class BackwardPass:
    """The pass ``pass_id``, (root worker, number), over the part of a context's graph on one worker.

    Args:
        agent: the worker's agent.
        graph: what to differentiate.
        pass_id: the same on all workers.
        keep_graph: keep what the nodes saved, for another pass.
        roots: nodes that ``begin`` will feed, at the worker that starts the pass.
    """

    def __init__(
        self, agent: Agent, graph: ContextGraph, pass_id: tuple[int, int], keep_graph: bool, roots: Sequence[Node] = ()
    ) -> None:
        self._agent = agent
        self._graph = graph
        self.id = pass_id
        self.keep_graph = keep_graph
        self.finished: Future[None] = Future()  # at the root
        self.task = GraphTask(sink=graph.accumulate, keep_graph=keep_graph)
        self._termination: Termination[ServerCall] = Termination(is_root=pass_id[0] == agent.rank)
        self._roots = [*roots, *graph.sends()]  # the nodes that the task expects to be fed
        self._early: deque[Feed] | None = deque()  # feeds that came before the graph was walked; None afterwards
        self._walking = False
        self._lock = threading.Lock()
        self._failure: BaseException | None = None
        self._settled = 0
        self._reports: Reports = {}

    # -- the root

    def begin(self, feeds: Sequence[tuple[Node, Sequence[Any]]]) -> None:
        """Feed the roots and run.

        Args:
            feeds: nodes and their gradients; the nodes are the ``roots`` of the constructor.
        """
        with self._lock:
            self._termination.started()
        self._work(lambda: self._feed_roots(feeds))

    def _feed_roots(self, feeds: Sequence[tuple[Node, Sequence[Any]]]) -> None:
        for node, gradients in feeds:
            self.task.feed(node, gradients)

    # -- gradients that arrive

    def received(self, call: ServerCall, message_id: int, gradients: Sequence[Array | None]) -> None:
        """Take a message with the gradients of one of our sends.

        Args:
            call: the request; its reply acknowledges it.
            message_id: the message of the send node.
            gradients: one for each tensor of that message; ``None`` for none.
        """
        with self._lock:
            failure = self._failure
            at_once = None if failure else self._termination.received(call)
        if failure is not None:
            call.fail(failure)
            return
        if at_once is not None:
            call.reply({})
        self._work(lambda: self._feed(message_id, gradients))

    def _feed(self, message_id: int, gradients: Sequence[Array | None]) -> None:
        node = self._graph.send(message_id)
        if node is None:
            raise AutogradError(
                f"gradients came for message {message_id}, which worker {self._agent.name!r} did not send in this "
                f"context; use one context for a forward and its backward"
            )
        self.task.feed(node, gradients)

    def _work(self, feed: Feed) -> None:
        token = current_propagate.set(self.propagate)
        try:
            if self._walk_first(feed):
                self.task.run()
        except BaseException as error:
            self._fail(error)
        finally:
            current_propagate.reset(token)
        self._step(self._termination.rested)

    def _walk_first(self, feed: Feed) -> bool:
        """Feed the task. The first thread walks its graph before, without a lock, and feeds what others bring meanwhile.

        Returns:
            Whether this thread has to run the task: not if it left its gradients to the first one.
        """
        with self._lock:
            walked = self._early is None
            if self._early is not None:
                self._early.append(feed)
                if self._walking:
                    return False
                self._walking = True
        if walked:
            feed()
            return True
        self.task.expect(*self._roots)
        self._roots.clear()
        with self._lock:
            early, self._early = self._early or deque(), None
        for each in early:
            each()
        return True

    # -- gradients that leave

    def propagate(self, node: ReceiveNode, gradients: Sequence[Array | None]) -> None:
        """Send the gradients of received tensors to their sender. The graph task calls it."""
        if node.context_id != self._graph.context_id:
            raise AutogradError(
                f"the graph mixes contexts: a tensor received in context {node.context_id} is differentiated in context "
                f"{self._graph.context_id}; do the forward and the backward in one `with autograd_dist.context()` block"
            )
        peer = self._agent.peers.at(node.sender)
        body = (self._graph.context_id, self.id, self.keep_graph, node.message_id, list(gradients))
        with self._lock:
            self._termination.sent()
        what = f"the backward of context {self._graph.context_id} at worker {peer.info.name!r}"
        # No deadline of its own: an acknowledgement may take as long as the rest of the pass, which has one at its root.
        answer = self._agent.caller.request(
            peer, Method.PROPAGATE, body, 0.0, what, lambda body: [("the gradients", body)]
        )
        answer.add_done_callback(self._acknowledged)

    def _acknowledged(self, answer: Future[Reports]) -> None:
        error = answer.exception()
        if error is not None:
            self._fail(error)
        else:
            self._merge(answer.value())
        self._step(self._termination.acknowledged)

    def _merge(self, reports: Reports) -> None:
        with self._lock:
            for rank, report in reports.items():
                if rank not in self._reports or self._reports[rank][0] < report[0]:
                    self._reports[rank] = report

    # -- the end

    def _step(self, event: Callable[[], None]) -> None:
        with self._lock:
            event()
            if self._failure is not None:
                return
            done, parent = self._termination.settle()
            if not done:
                return
            self._settled += 1
            unfed = [repr(node) for node in self.task.unfed()]
            self._reports[self._agent.rank] = (self._settled, unfed)
            reports = dict(self._reports)
        if parent is not None:
            parent.reply(reports)
        else:
            self._finish(reports)

    def _finish(self, reports: Reports) -> None:
        unfed = [f"{send} from {self._name(rank)}" for rank, (_, sends) in sorted(reports.items()) for send in sends]
        if unfed:
            self.finished.set_exception(
                AutogradError(
                    f"the backward is over, and no gradient came for {', '.join(unfed)}: a result of a remote call does not "
                    f"contribute to the loss. Leave such calls out of the context, or send no tensor that requires grad"
                )
            )
        else:
            self.finished.set_result(None)

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            if self._failure is not None:
                return
            self._failure = error
            parent, self._termination.parent = self._termination.parent, None
        if self._termination.is_root:
            self.finished.set_exception(error)
        elif parent is not None:
            parent.fail(error)

    def _name(self, rank: int) -> str:
        return f"worker {self._agent.peers.at(rank).info.name!r}"

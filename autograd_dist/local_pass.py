"""Part of a backward pass on one worker: entries with gradients come in, entries for other workers go out.

A pass expects gradients for every send node of the context. In SMART mode the send nodes that take no part are left out. A
worker that the pass reaches walks its graph, and tells the senders of messages that the walk did not reach that these take no
part. Nodes to which only such messages lead are left out too, and so on at the workers before. So there is no round of messages
before the backward that finds out what takes part, as in PyTorch's design of this mode. A pass in which everything is used has
the same messages as in FAST mode.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from ..base.errors import AutogradError
from ..core.extend import Array, GraphTask, Node, Tensor
from .graph import ContextGraph, ReceiveNode, SendNode, sender_of


class PassKind:
    """Kind of an entry."""

    FED = 0  # gradients of the tensors of a message
    UNUSED = 1  # the tensors of a message take no part
    QUERY = 2  # do the tensors of a message take part? Its sender has got nothing for it from its receiver


# What workers tell one another about a message: kind, message id, and for ``FED`` a gradient or ``None`` for each tensor.
Entry: TypeAlias = tuple[int, int, Sequence[Array | Tensor | None]]

Feeds: TypeAlias = Mapping[Node, Sequence[Any]]  # gradients of nodes
NO_FEEDS: Feeds = MappingProxyType({})


class Unfed(NamedTuple):
    """Message whose send node got nothing: its id, the number of its receiver, and how many tensors it has."""

    message_id: int
    receiver: int
    tensors: int


class LocalPass:
    """Part of one pass on one worker.

    Args:
        worker: number of the worker.
        graph: the context's graph on this worker.
        keep_graph: keep the saved values of the nodes, for another pass.
        smart: leave out nodes that take no part.
        roots: nodes that are fed with ``feeds`` of ``take``, at the worker that starts the pass.
    """

    def __init__(
        self,
        worker: int,
        graph: ContextGraph,
        keep_graph: bool,
        smart: bool,
        roots: Collection[Node] = (),
    ) -> None:
        self._worker = worker
        self._graph = graph
        self._smart = smart
        self.task = GraphTask(sink=graph.accumulate, keep_graph=keep_graph)
        self._roots = roots
        self._early: list[tuple[Sequence[Entry], Feeds]] | None = []  # entries until the end of the walk
        self._walking = False
        self._outgoing: dict[int, list[Entry]] = {}  # by worker
        self._unused: set[int] = set()  # messages whose senders were told that they take no part
        self._lock = threading.Lock()

    def receive(self, entries: Sequence[Entry], feeds: Feeds = NO_FEEDS) -> None:
        """Receive entries, and run the nodes that they make ready. It does not wait for other workers.

        Args:
            entries: entries from other workers.
            feeds: the ``roots`` and their gradients.

        Raises:
            AutogradError: the entries do not belong to this graph, or the pass has failed before.
            Exception: the error of a node or a hook.
        """
        with self._lock:
            early = self._early
            if early is not None:
                early.append((entries, feeds))
                if self._walking:
                    return  # to the first thread
                self._walking = True
        if early is None:
            self._feed(entries, feeds)
        else:
            self._walk_first()
        self.task.run()

    def stop(self, reason: str) -> None:
        """Run no more nodes. The result of a node that runs now is dropped."""
        self.task.stop(reason)

    def outgoing(self) -> dict[int, list[Entry]]:
        """Remove and return the entries for other workers, by number."""
        with self._lock:
            outgoing, self._outgoing = self._outgoing, {}
        return outgoing

    def unfed(self) -> list[Unfed]:
        """Return the messages for which nothing has come yet."""
        if not (nodes := self.task.unfed()):
            return []
        sends = [node for node in nodes if isinstance(node, SendNode)]
        return [Unfed(node.message_id, node.receiver, node.num_inputs) for node in sends]

    def gather(self, node: ReceiveNode, gradients: Sequence[Array | None] | None) -> int:
        """Take the gradients of received tensors, for their sender; return their bytes."""
        if node.context_id != self._graph.context_id:
            raise AutogradError(
                f"the graph mixes contexts: a tensor received in context {node.context_id} is differentiated in context "
                f"{self._graph.context_id}; do the forward and the backward in one `with autograd_dist.context()` block"
            )
        if gradients is None:
            self._tell_unused(node.message_id, node.sender)
            return 0
        self.tell(node.sender, (PassKind.FED, node.message_id, gradients))
        size = 0
        for gradient in gradients:
            if gradient is not None and not isinstance(gradient, Tensor):
                size += gradient.nbytes
        return size

    def tell(self, worker: int, entry: Entry) -> None:
        """Add an entry for a worker. An entry for this worker itself is taken at once."""
        if worker == self._worker:
            self._apply(entry)
            return
        with self._lock:
            self._outgoing.setdefault(worker, []).append(entry)

    # -- entries that arrive

    def _apply(self, entry: Entry) -> None:
        kind, message_id, gradients = entry
        if kind == PassKind.QUERY:
            self._answer(message_id)
            return
        node = self._graph.send_node(message_id)
        if kind == PassKind.UNUSED and sender_of(message_id) != self._worker:
            self.tell(sender_of(message_id), entry)  # answer to a query of this worker, from one without the context
        elif kind == PassKind.UNUSED:
            # A message that this pass does not expect was sent after the pass came here, by a forward that goes on. One that
            # was fed before had a receiver that told so and was lost before its report came to the root.
            if node is not None:
                self.task.leave_out(node)
        elif node is not None:
            self.task.feed(node, gradients)
        else:
            raise AutogradError(
                f"gradients came for message {message_id}, which worker {self._worker} did not send in this context; use one "
                f"context for a forward and its backward"
            )

    def _answer(self, message_id: int) -> None:
        """Tell the sender that a message takes no part, if it does not, or has not arrived. Otherwise gradients will come."""
        node = self._graph.receive_node(message_id)
        if node is None or not self.task.reaches(node):
            self._tell_unused(message_id, sender_of(message_id))

    def _tell_unused(self, message_id: int, sender: int) -> None:
        with self._lock:
            told = message_id in self._unused
            self._unused.add(message_id)
        if not told:  # the walk, which a query may cause, may have told it already
            self.tell(sender, (PassKind.UNUSED, message_id, ()))

    # -- the walk

    def _walk_first(self) -> None:
        """Walk the graph, without a lock, and feed the task with what came until then, also to other threads."""
        self._walk()
        with self._lock:
            early, self._early = self._early or (), None
        for each in early:
            self._feed(*each)

    def _feed(self, entries: Sequence[Entry], feeds: Feeds) -> None:
        if entries:
            for watch in self._graph.watches:
                watch(entries)
        for node, gradients in feeds.items():
            self.task.feed(node, gradients)
        for entry in entries:
            self._apply(entry)

    def _walk(self) -> None:
        self.task.expect(*self._roots, *self._graph.send_nodes())
        self._roots = ()
        if self._smart:
            for node in self._graph.receive_nodes():
                if not self.task.reaches(node):
                    self.gather(node, None)

"""The backward pass: a ``GraphTask`` runs nodes in the order of their dependencies.

Everything that belongs to one pass (dependency counts, buffers, the ready queue, captured gradients) is in the task
and nothing is on the nodes, so that passes over shared graphs run side by side. A task never waits: it runs what is
ready in the thread that called ``run``, and roots may be fed later and from other threads.

Invariants: ``_fed`` is the only thing that other threads append to while a thread runs the task; ``_running`` changes
under ``_lock``; no lock is held while a node, a hook or a sink runs.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import AutogradError
from . import intercept
from .accumulate import accumulate_grad
from .grad_mode import GradMode
from .node import AccumulateGrad, Node

if TYPE_CHECKING:
    from ..tensor import Tensor

Sink: TypeAlias = Callable[["Tensor", Any], None]


class GraphTask:
    """One backward pass.

    Args:
        sink: receives ``(leaf, gradient)`` for each leaf reached; the default adds to ``leaf.grad``. The array may
            be shared: a sink that changes it in place copies it first.
        keep_graph: keep what nodes saved, so that another pass can go over them.
        create_graph: compute on tensors and record, so that the gradients can be differentiated; implies
            ``keep_graph``. Sinks and ``captured`` then get tensors instead of arrays.
        inputs: when given, only these tensors' gradients are computed; they go to ``captured`` and not to the sink.
    """

    __slots__ = (
        "_buffers",
        "_captures",
        "_failure",
        "_fed",
        "_lock",
        "_ready",
        "_running",
        "_unfed",
        "_waiting",
        "captured",
        "create_graph",
        "keep_graph",
        "sink",
    )

    def __init__(
        self,
        *,
        sink: Sink | None = None,
        keep_graph: bool = False,
        create_graph: bool = False,
        inputs: Sequence[Tensor] | None = None,
    ) -> None:
        self.sink = accumulate_grad if sink is None else sink
        self.keep_graph = keep_graph or create_graph
        self.create_graph = create_graph
        self._captures = None if inputs is None else intercept.Captures(inputs)
        self.captured: list[Any] = [] if inputs is None else [None] * len(inputs)
        self._waiting: dict[Node, int] = {}  # node -> feeds and gradients still to come
        self._unfed: dict[Node, None] = {}  # expected roots, in order
        self._buffers: dict[Node, list[Any]] = {}  # node -> sums of the gradients that came
        self._ready: list[Node] = []
        self._fed: deque[tuple[Node, Sequence[Any]]] = deque()
        self._lock = threading.Lock()
        self._running = False
        self._failure: str | None = None

    def expect(self, *roots: Node) -> None:
        """Count the dependencies below ``roots``; each of them needs one ``feed``. Call it before the first ``run``.

        A root below another one waits for its feed and for the gradients from above.
        """
        waiting, unfed = self._waiting, self._unfed
        stack: list[Node] = []
        for root in roots:
            if root not in unfed:
                unfed[root] = None
                if root not in waiting:
                    stack.append(root)
                waiting[root] = waiting.get(root, 0) + 1
        while stack:
            for edge in stack.pop().next_edges:
                if edge is not None:
                    node = edge[0]
                    if node in waiting:
                        waiting[node] += 1
                    else:
                        waiting[node] = 1
                        stack.append(node)

    def feed(self, root: Node, grads: Sequence[Any]) -> None:
        """Give an expected root its gradients (``None``: no gradient for that output); then call ``run``.

        May be called from any thread. Gradients are arrays, or tensors.

        Raises:
            AutogradError: the root was not expected, was fed before, or takes another number of gradients.
        """
        if len(grads) != root.num_inputs:
            raise AutogradError(f"{root.name()} takes {root.num_inputs} gradients and you fed it {len(grads)}")
        with self._lock:
            if root not in self._unfed:
                raise AutogradError(f"{root.name()} is not an expected root of this pass, or you fed it before")
            del self._unfed[root]
            self._fed.append((root, grads))

    def run(self) -> None:
        """Run nodes until none is ready. If another thread is running the task already, leave the work to it.

        Raises:
            AutogradError: the pass failed before.
            Exception: whatever a node, hook or sink raised; the pass has then failed.
        """
        if not self._claim():
            return
        finished = False
        try:
            with GradMode(self.create_graph):
                while not finished:
                    self._run_ready()
                    finished = self._yield_claim()
        except BaseException as error:
            # Only the text is kept: the exception's traceback holds this frame, which holds the task.
            self._failure = f"{type(error).__name__}: {error}"
            self._buffers.clear()
            self._ready.clear()
            raise
        finally:
            if not finished:
                self._running = False

    @property
    def idle(self) -> bool:
        """Nothing is running, ready, or fed and not yet taken up."""
        with self._lock:
            return not (self._running or self._ready or self._fed)

    @property
    def failed(self) -> bool:
        """Whether a node, hook or sink raised."""
        return self._failure is not None

    def unfed(self) -> list[Node]:
        """The expected roots that were never fed."""
        return list(self._unfed)

    def _claim(self) -> bool:
        with self._lock:
            if self._failure is not None:
                raise AutogradError(f"this backward pass failed before ({self._failure}); start a new one")
            if self._running:
                return False
            self._running = True
        if self._captures is not None:
            self._captures.prepare(self._waiting)
        return True

    def _yield_claim(self) -> bool:
        with self._lock:
            # Decided under the lock: whoever feeds after this finds the task free and runs it.
            if self._fed:
                return False
            self._running = False
            return True

    def _accept(self) -> bool:
        """Move what was fed into the buffers; whether something became ready."""
        while self._fed:
            root, grads = self._fed.popleft()
            if any(grad is not None for grad in grads):
                kind = intercept.to_tensor if self.create_graph else intercept.to_array
                _add(self._buffers, root, [None if grad is None else kind(grad) for grad in grads])
            self._count_down(root)
        return bool(self._ready)

    def _count_down(self, node: Node) -> None:
        self._waiting[node] -= 1
        if not self._waiting[node]:
            self._ready.append(node)

    def _run_ready(self) -> None:
        # The hot loop: about a microsecond a node, so it is written out in one piece.
        ready, buffers, waiting = self._ready, self._buffers, self._waiting
        release, recorded = not self.keep_graph, self.create_graph
        while ready or self._accept():
            node = ready.pop()
            grads = buffers.pop(node, None)
            wanted = True
            if node._hooks is not None or self._captures is not None:
                grads, wanted = intercept.before(self, node, grads)
            if type(node) is AccumulateGrad:
                if wanted and grads is not None:
                    self._deliver(node, grads)
                continue
            edges = node.next_edges
            if not wanted or (grads is None and node.tape):
                results: Sequence[Any] = (None,) * len(edges)
            elif node.tape and grads is not None:
                # The table's own nodes take a list and the scalars that sums of 0-d arrays are.
                results = node.apply_graph(grads) if recorded else node.apply(grads)  # type: ignore[arg-type]
                if release:
                    node.release()
            else:
                results = self._apply(node, grads)
                if release:
                    node.release()
            if wanted and node._hooks is not None and node._hooks.after:
                results = intercept.after(self, node, results, grads)
            for edge, grad in zip(edges, results):
                if edge is not None:
                    child, slot = edge
                    if grad is not None:
                        buffer = buffers.get(child)
                        if buffer is None:
                            buffers[child] = buffer = [None] * child.num_inputs
                        have = buffer[slot]
                        buffer[slot] = grad if have is None else have + grad
                    left = waiting[child] = waiting[child] - 1
                    if not left:
                        ready.append(child)

    def _apply(self, node: Node, grads: list[Any] | None) -> Sequence[Any]:
        given = (None,) * node.num_inputs if grads is None else intercept.as_arrays(grads)
        results = node.apply_graph(given) if self.create_graph else node.apply(given)
        if len(results) != len(node.next_edges):
            raise AutogradError(f"{node.name()} returned {len(results)} gradients for {len(node.next_edges)} inputs")
        return results

    def _deliver(self, node: AccumulateGrad, grads: list[Any]) -> None:
        variable, (grad,) = node.variable, intercept.as_arrays(grads)
        if variable._hooks is not None:
            grad = intercept.leaf_hooks(self, variable, grad)
        if grad is not None:
            self.sink(variable, grad)
        if node._hooks is not None or variable._hooks is not None:
            intercept.after_leaf(node)


def _add(buffers: dict[Node, list[Any]], node: Node, grads: Iterable[Any]) -> None:
    buffer = buffers.setdefault(node, [None] * node.num_inputs)
    for slot, grad in enumerate(grads):
        if grad is not None:
            have = buffer[slot]
            buffer[slot] = grad if have is None else have + grad

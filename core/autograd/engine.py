"""The backward pass: a ``GraphTask`` runs nodes in the order of their dependencies.

All state of one pass (dependency counts, buffers, the ready queue, captured gradients) is in the task and none on the
nodes, so that passes over shared graphs run side by side. A task never waits: it runs the ready nodes in the thread that
called ``run``, and roots may be fed later and from other threads.

Invariants: ``_fed`` is the only thing that other threads append to while a thread runs the task; ``_running`` changes
under ``_lock``; no lock is held while a node, a hook or a sink runs.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ...base.errors import AutogradError
from ..tensors import Tensor
from . import hook_calls
from .accumulate import AccumulateGrad, accumulate_grad
from .captures import Captures
from .forward_lines import show_forward_line
from .grad_mode import is_grad_enabled, set_mode
from .node import Node
from .reentrant import run_reentrant

Sink: TypeAlias = Callable[[Tensor, Any], None]
# The state of a node in one pass, in one list, so that an arriving gradient costs one look-up:
# [feeds and gradients still to come, the node, bits of the slots whose sum may be changed in place, gradients by slot ...]
Entry: TypeAlias = list[Any]
LEFT, NODE, OWNED, GRADS = range(4)
SAVES_NOTHING = Node.release  # of nodes that do not override it


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
        "_captures",
        "_failure",
        "_fed",
        "_lock",
        "_pending",
        "_ready",
        "_running",
        "_unfed",
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
        self._captures = None if inputs is None else Captures(inputs)
        self._pending: dict[Node, Entry] = {}
        self._unfed: dict[Node, None] = {}  # expected roots, in order
        self._ready: list[Entry] = []
        self._fed: deque[tuple[Node, Sequence[Any] | None]] = deque()
        self._lock = threading.Lock()
        self._running = False
        self._failure: str | None = None

    @property
    def captured(self) -> list[Any]:
        """The gradients of ``inputs``, in their order; ``None`` where none has arrived."""
        return [] if self._captures is None else self._captures.gradients

    def expect(self, *roots: Node) -> None:
        """Count the dependencies below ``roots``; each of them needs one ``feed``. Call it before the first ``run``.

        A root below another one waits for its feed and for the gradients from above.
        """
        pending, unfed = self._pending, self._unfed
        stack: list[Node] = []
        for root in roots:
            if root not in unfed:
                unfed[root] = None
                if root in pending:
                    pending[root][LEFT] += 1
                else:
                    pending[root] = [1, root, 0, *[None] * root.num_inputs]
                    stack.append(root)
        while stack:
            for edge in stack.pop().next_edges:
                if edge is not None:
                    node = edge[0]
                    entry = pending.get(node)
                    if entry is None:
                        pending[node] = [1, node, 0, None] if node.tape else [1, node, 0, *[None] * node.num_inputs]
                        stack.append(node)
                    else:
                        entry[LEFT] += 1

    def reaches(self, node: Node) -> bool:
        """Return whether a node is an expected root or lies below one."""
        return node in self._pending

    def awaited(self, node: Node) -> int:
        """Return how many feeds and gradients a node waits for; 0 for one that no root leads to."""
        return self._pending[node][LEFT] if node in self._pending else 0

    def feed(self, root: Node, grads: Sequence[Any] | None) -> None:
        """Give an expected root its gradients (``None``: no gradient for that output); then call ``run``.

        May be called from any thread.

        Args:
            root: one of the roots given to ``expect``.
            grads: an array, a tensor or ``None`` for each of its outputs. ``None`` in their place says that the root takes
                no part in the pass: it does not run, and neither do the nodes below it that get no gradient from elsewhere.

        Raises:
            AutogradError: the root was not expected, was fed before, or takes another number of gradients.
        """
        if grads is not None and len(grads) != root.num_inputs:
            raise AutogradError(f"{root.name()} takes {root.num_inputs} gradients and you fed it {len(grads)}")
        with self._lock:
            if root not in self._unfed:
                raise AutogradError(f"{root.name()} is not an expected root of this pass, or you fed it before")
            del self._unfed[root]
            self._fed.append((root, grads))

    def leave_out(self, root: Node) -> None:
        """Feed a root ``None``; do nothing if it is not expected, or was fed before. May be called from any thread."""
        with self._lock:
            if root in self._unfed:
                del self._unfed[root]
                self._fed.append((root, None))

    def run(self) -> None:
        """Run nodes until none is ready. If another thread is running the task already, leave the work to it.

        Raises:
            AutogradError: the pass failed before.
            Exception: the error that a node, hook or sink raised; the pass has then failed.
        """
        with self._lock:
            if self._failure is not None:
                self._check()
            if self._running:
                return
            self._running = True
        if self._captures is not None:
            self._captures.prepare(self._pending)
        finished, former = False, is_grad_enabled()
        try:
            set_mode(self.create_graph)
            while not finished:
                run_reentrant(self._run_ready)
                if self._failure is not None:
                    self._check()
                with self._lock:
                    # Decided under the lock: a thread that feeds after this finds the task free and runs it.
                    finished = not self._fed
                    self._running = not finished
        except BaseException as error:
            # Only the text is kept: the exception's traceback holds this frame, which holds the task.
            self.stop(f"{type(error).__name__}: {error}")
            self._pending.clear()
            self._ready.clear()
            raise
        finally:
            if not finished:
                self._running = False
            set_mode(former)

    def stop(self, reason: str) -> None:
        """Let the pass fail, unless it has failed: no further node runs. May be called from any thread."""
        with self._lock:
            if self._failure is None:
                self._failure = reason

    @property
    def idle(self) -> bool:
        """True if nothing is running, ready, or fed and not yet accepted."""
        with self._lock:
            return not (self._running or self._ready or self._fed)

    @property
    def has_ready(self) -> bool:
        """True if nodes are ready that do not run yet."""
        return bool(self._ready)

    @property
    def failed(self) -> bool:
        """True after a node, hook or sink has raised."""
        return self._failure is not None

    def unfed(self) -> list[Node]:
        """Return the expected roots that were never fed."""
        return list(self._unfed)

    def _check(self) -> None:
        if self._failure is not None:
            raise AutogradError(f"this backward pass failed before ({self._failure}); start a new one")

    def _accept(self) -> bool:
        """Add the fed gradients to the nodes' entries; return whether a node became ready."""
        while self._fed:
            root, grads = self._fed.popleft()
            convert = hook_calls.to_tensor if self.create_graph else hook_calls.to_array
            entry = self._pending[root]
            for place, grad in enumerate(grads or (), GRADS):
                if grad is not None:
                    if self.create_graph or type(grad) is not np.ndarray:
                        grad = convert(grad)
                    have = entry[place]
                    entry[place] = grad if have is None else have + grad
            entry[LEFT] -= 1
            if not entry[LEFT]:
                if grads is None:
                    self._leave_out(entry)
                else:
                    self._ready.append(entry)
        return bool(self._ready)

    def _leave_out(self, entry: Entry) -> None:
        """Leave out a node that waits for nothing more, unless gradients came from elsewhere; and then those below it."""
        complete = [entry]
        while complete:
            entry = complete.pop()
            if any(grad is not None for grad in entry[GRADS:]):
                self._ready.append(entry)
                continue
            entry[NODE].left_out()
            for edge in entry[NODE].next_edges:
                if edge is not None:
                    child = self._pending[edge[0]]
                    child[LEFT] -= 1
                    if not child[LEFT]:
                        complete.append(child)

    def _run_ready(self) -> None:
        # The hot loop: about a microsecond a node, so it is written out in one piece.
        ready, pending = self._ready, self._pending
        keep, recorded, plain = self.keep_graph, self.create_graph, self._captures is None
        while (ready or (self._fed and self._accept())) and self._failure is None:
            entry = ready.pop()
            node = entry[NODE]
            if not (node.tape and plain and node._hooks is None):
                grads = entry[GRADS:]
                del entry[GRADS:]
                results = (self._apply if plain and node._hooks is None else self._run_hooked)(node, grads)
            elif (grad := entry.pop()) is None:
                results = (None,) * len(node.next_edges)
            elif type(node) is AccumulateGrad:
                self._deliver(node, grad)
                continue
            else:
                results = node.pull_graph(grad) if recorded else node.pull(grad, keep)
            for edge, grad in zip(node.next_edges, results):
                if edge is not None:
                    child, slot = edge
                    entry = pending[child]
                    if grad is not None:
                        have = entry[slot + GRADS]
                        if have is None:
                            entry[slot + GRADS] = grad
                        elif entry[OWNED] >> slot & 1:
                            have += grad
                            entry[slot + GRADS] = have
                        else:  # the first may have other holders; a sum of arrays is new, and has none
                            entry[slot + GRADS] = have = have + grad
                            if not isinstance(have, Tensor):  # a recorded or sparse one cannot take any sum in place
                                entry[OWNED] |= 1 << slot
                    entry[LEFT] = left = entry[LEFT] - 1
                    if not left:
                        ready.append(entry)

    def _run_hooked(self, node: Node, grads: list[Any]) -> Sequence[Any]:
        """Run a node of any kind, its hooks or the pass's captures; return the gradients of its inputs."""
        try:
            return self._with_hooks(node, grads)
        except Exception as error:
            show_forward_line(node, error)
            raise

    def _with_hooks(self, node: Node, grads: list[Any]) -> Sequence[Any]:
        given: list[Any] | None = None if all(grad is None for grad in grads) else grads
        given, wanted = hook_calls.before(node, given, self._captures, self.create_graph)
        if type(node) is AccumulateGrad:
            if wanted and given is not None:
                self._deliver(node, given[0])
            return ()
        if not wanted or (given is None and node.tape):
            return (None,) * len(node.next_edges)
        if node.tape and given is not None:
            results = node.pull_graph(given[0]) if self.create_graph else node.pull(given[0], self.keep_graph)
        else:
            results = self._apply(node, given)
        if node._hooks is not None and node._hooks.after:
            results = hook_calls.after(node, results, given, self.create_graph)
        return results

    def _apply(self, node: Node, grads: list[Any] | None) -> Sequence[Any]:
        given = [None] * node.num_inputs if grads is None else grads
        for slot, grad in enumerate(given):
            if isinstance(grad, np.generic):
                given[slot] = np.asarray(grad)
        results = node.apply_graph(tuple(given)) if self.create_graph else node.apply(tuple(given))
        if len(results) != len(node.next_edges):
            raise AutogradError(f"{node.name()} returned {len(results)} gradients for {len(node.next_edges)} inputs")
        if not self.keep_graph and type(node).release is not SAVES_NOTHING:
            node.release()
        return results

    def _deliver(self, node: AccumulateGrad, grad: Any) -> None:
        variable, grad = node.variable, hook_calls.as_array(grad)
        if variable._hooks is not None:
            grad = hook_calls.leaf_hooks(variable, grad, self.create_graph)
        if grad is not None:
            self.sink(variable, grad)
        if node._hooks is not None or variable._hooks is not None:
            hook_calls.after_leaf(node)

"""Functions of users: ``context``, ``backward`` and ``get_gradients``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..base.errors import AutogradError, ContextTypeError, RpcError, as_runtime_error
from ..core.extend import Node, Tensor, leaf_with, profiles
from ..core.futures import Future
from ..core.profiler import record_function
from ..rpc.extend import UNSET_RPC_TIMEOUT, Agent, LibraryTensor, call_function, current_agent
from .backward_pass import BackwardPass
from .contexts import Context, Contexts, contexts_of
from .current_context import current_context
from .edges import as_tensor, edge_of
from .graph import ContextGraph
from .local_pass import Feeds
from .parameter_trees import Parameters

if TYPE_CHECKING:
    from ..capture.extend import Crossing, Recorder


@contextmanager
def context() -> Iterator[int]:
    """Context in which remote calls are recorded for a backward (``torch.distributed.autograd.context``).

    Use it in a ``with`` block. When the block ends, also by an exception, all workers forget the context, with its graph and
    its gradients.

    Yields:
        The id of the context, for ``backward``, ``get_gradients`` and ``DistributedOptimizer.step``.

    Raises:
        RpcError: the ``with`` block is inside another context.

    Example:
        >>> import telegrad as tg
        >>> from telegrad.testing import in_process_cluster
        >>> with in_process_cluster("server", "trainer") as (server, trainer), trainer.use():
        ...     weight = tg.ones(3, requires_grad=True)
        ...     with tg.autograd_dist.context() as context_id:
        ...         loss = tg.rpc.rpc_sync("server", tg.mul, (weight, 2.0)).sum()
        ...         tg.autograd_dist.backward(context_id, [loss])
        ...         print(tg.autograd_dist.get_gradients(context_id)[weight])
        tensor([2., 2., 2.])
    """
    present = current_context.get()
    if present is not None:
        raise RpcError(f"you are in autograd context {present.id} already; leave it before you enter another")
    contexts = contexts_of(current_agent())
    fresh = contexts.create()
    token = current_context.set(fresh)
    is_finalizing = sys.is_finalizing  # then this module's names may be gone, and the agent is closed
    try:
        yield fresh.id
    finally:
        if not is_finalizing():
            current_context.reset(token)
            contexts.release(fresh.id)


def make_crossing(recorder: Recorder) -> Crossing:
    """Return what a recording of ``tg.compile`` that enters a context knows of other workers (``capture/crossings.py``).

    Args:
        recorder: the recording.
    """
    from .captured.joined import crossing_of  # here: few programs compile their steps

    return crossing_of(recorder)


def backward(
    context_id: int, roots: Sequence[Tensor], retain_graph: bool = False, *, mode: Literal["smart", "fast"] = "smart"
) -> None:
    """Compute the gradients of ``roots`` on every worker that took part, into the context. Blocks until all are computed.

    Args:
        context_id: the id that ``autograd_dist.context()`` gave.
        roots: scalar tensors (one element, any number of dimensions) of this worker that require grad.
        retain_graph: keep the arrays that the graph saved, so that another backward can use it.
        mode: "smart" leaves out tensors that were sent in the context and do not contribute to the roots. In "fast", as PyTorch
            calls its only mode, such a tensor is an error, which names it. Both send the same messages if all contribute.

    Raises:
        RpcError: there is no such context.
        AutogradError: a root is not a scalar or does not require grad, or the graph mixes contexts; in FAST mode also, a tensor
            that was sent got no gradient.
        TypeError: a root is not a tensor.
        ValueError: there is no such mode.
        RpcTimeoutError: it took longer than the agent's ``rpc_timeout``.
        WorkerLostError: a worker that takes part was lost.
        RuntimeError: a gradient rule failed; it is also of the type of the rule's error.
    """
    agent = current_agent()
    fresh, feeds, what = _prepare(agent, context_id, roots, retain_graph, mode)
    try:
        if profiles.get():
            with record_function("torch::distributed::autograd::backward"):
                fresh.run(feeds, agent.rpc_timeout, what)
        else:
            fresh.run(feeds, agent.rpc_timeout, what)
    except Exception as error:
        if (telling := as_runtime_error(error)) is error:
            raise
        raise telling from error.__cause__


def get_gradients(context_id: int) -> dict[Any, Any]:
    """Return the gradients that a context has accumulated on this worker, by leaf tensor.

    Args:
        context_id: the id that ``autograd_dist.context()`` gave.

    Returns:
        For each leaf that a backward of the context reached, its gradient, of the leaf's shape and dtype. The leaves' ``.grad``
        does not change. Gradients of an embedding table with ``sparse=True``, and those of sparse leaves, are sparse. Looking
        up another tensor raises a ``KeyError`` that says so.

    Raises:
        RpcError: there is no such context.
    """
    found = _Gradients()
    for leaf, gradient in contexts_of(current_agent()).find(context_id).graph.gradients().items():
        if not isinstance(leaf, Tensor):
            found[leaf] = gradient
            continue
        # A sparse gradient is a tensor already. The elements of a sparse leaf are a leaf that users do not see.
        value = gradient if isinstance(gradient, Tensor) else Tensor(gradient)
        sparse: Any = leaf_with(leaf)
        found[sparse] = value if sparse is leaf else sparse.with_values(value)
    return found


class _Gradients(dict[Any, Any]):
    """Gradients by leaf. The usual ``KeyError`` would print all elements of the tensor."""

    def __missing__(self, leaf: Any) -> Any:
        if type(leaf) is Parameters:
            raise KeyError(
                "no backward of this context reached these parameters on this worker; write .get(parameters) if they need "
                "not take part"
            )
        if as_tensor(leaf) is None:
            raise KeyError(
                f"the keys of get_gradients() are leaf tensors of this worker; you gave {type(leaf).__name__}"
            )
        raise KeyError(
            f"no backward of this context reached this tensor of shape {tuple(leaf.shape)} on this worker; "
            "write .get(tensor) if it need not take part"
        )


def backward_async(
    context_id: int, roots: Sequence[Tensor], retain_graph: bool = False, *, mode: Literal["smart", "fast"] = "smart"
) -> Future[None]:
    """Return the future of ``backward``, for ``await``.

    Args:
        context_id, roots, retain_graph, mode: as for ``backward``.
    """
    agent = current_agent()
    fresh, feeds, what = _prepare(agent, context_id, roots, retain_graph, mode)
    fresh.begin(feeds)
    ended = agent.caller.waits.with_deadline(fresh.finished, agent.rpc_timeout, what)
    return ended.then(partial(_value_or_stop, fresh))


def _value_or_stop(started: BackwardPass, ended: Future[None]) -> None:
    if (error := ended.exception()) is not None:
        started.stop(error)  # it timed out
        if isinstance(error, Exception) and (telling := as_runtime_error(error)) is not error:
            raise telling from error.__cause__
    return ended.value()


def _prepare(
    agent: Agent, context_id: int, roots: Sequence[Tensor], retain_graph: bool, mode: str
) -> tuple[BackwardPass, Feeds, _Description]:
    if not isinstance(retain_graph, (bool, int)):
        raise TypeError(f"retain_graph must be True or False; you gave {retain_graph!r}")
    if mode not in ("smart", "fast"):
        raise ValueError(f'mode must be "smart" or "fast"; you gave {mode!r}')
    contexts = contexts_of(agent)
    context = contexts.find(context_id)
    feeds = _feeds(context.graph, roots)
    keep = retain_graph or bool(context.recorded)
    make = partial(BackwardPass, agent, context.graph, keep_graph=keep, smart=mode == "smart", roots=feeds)
    fresh = context.passes.begin(make)
    return fresh, feeds, _Description(contexts, context)


def backward_from(reference: Any, context_id: int, retain_graph: bool) -> None:
    """Run backward from a reference's value at its owner (``RRef.backward``).

    Args:
        reference: a reference to a scalar tensor.
        context_id: the id of a context; -1 accumulates in ``.grad``.
        retain_graph: see ``backward``.
    """
    if not reference.is_owner():
        arguments = (reference, context_id, retain_graph)
        call_function(current_agent(), reference.owner(), backward_from, arguments, None, UNSET_RPC_TIMEOUT).wait()
        return
    value = reference.local_value()
    if as_tensor(value) is None:
        raise RpcError(f"backward() needs a reference to a tensor; {reference} refers to a {type(value).__name__}")
    if context_id == -1:
        value.backward(retain_graph=retain_graph)
    else:
        backward(context_id, [value], retain_graph)


class _Description:
    """Description of a backward for the error of a timeout. The text is made only then, when its partners are known."""

    def __init__(self, contexts: Contexts, context: Context) -> None:
        self._contexts = contexts
        self._context = context

    def __str__(self) -> str:
        peers = self._contexts.agent.peers
        others = ", ".join(repr(peers.at(rank).info.name) for rank in self._contexts.partners(self._context))
        return f"the backward of context {self._context.id}" + (f" with {others}" if others else "")


def _advice(root: Tensor) -> str:
    if isinstance(root, LibraryTensor) and root.library.name == "jax":
        return (
            "only interop.jax.call(function, *args) records operations of JAX: put what computes it into the function"
        )
    return "check the forward"


def _feeds(graph: ContextGraph, roots: Sequence[Any]) -> Feeds:
    if not isinstance(roots, list):
        roots = list(roots) if as_tensor(roots) is None and isinstance(roots, Iterable) else []
    if not roots:
        raise ContextTypeError("roots must be a list of tensors; write backward(context_id, [loss])")
    feeds: dict[Node, list[Any]] = {}
    for index, given in enumerate(roots):
        if (root := as_tensor(given)) is None:
            raise TypeError(f"root {index} must be a tensor; you gave {type(given).__name__}")
        edge = edge_of(graph, root) if root._requires_grad else None
        if edge is None:
            raise AutogradError(
                f"root {index} does not require grad, so nothing can be differentiated; {_advice(root)}"
            )
        if root._array.size != 1:
            raise AutogradError(
                f"root {index} must be a scalar; its shape is {root._array.shape}. Take its sum or mean"
            )
        node, slot = edge
        gradients = feeds.setdefault(node, [None] * node.num_inputs)
        one = np.array(1, root._array.dtype).reshape(root._array.shape)
        gradients[slot] = one if gradients[slot] is None else gradients[slot] + one
    return feeds

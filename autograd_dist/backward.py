"""Distributed backward: start a pass at its root, join it on other workers.

FAST mode, as PyTorch calls it: every tensor requiring grad that was sent in the context is expected to take part.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import AutogradError, RpcError
from ..core.extend import Node, Tensor, gradient_edge
from ..core.futures import Future
from ..rpc.extend import UNSET_RPC_TIMEOUT, Agent, ServerCall, call_function, current_agent
from .backward_pass import BackwardPass
from .contexts import Context, Contexts, contexts_of
from .numbers import Method

_pass_numbers = itertools.count(1)


def backward(context_id: int, roots: Sequence[Tensor], retain_graph: bool = False) -> None:
    """Compute the gradients of ``roots`` on every worker that took part, into the context; blocks until all are there.

    Args:
        context_id: the id that ``autograd_dist.context()`` gave.
        roots: scalar tensors (one element, any number of dimensions) of this worker that require grad.
        retain_graph: keep the arrays that the graph saved, so that another backward can use it.

    Raises:
        RpcError: there is no such context.
        AutogradError: a root is not a scalar or does not require grad, the graph mixes contexts, or a tensor that was sent got
            no gradient.
        TypeError: a root is not a tensor.
        RpcTimeoutError: it took longer than the agent's ``rpc_timeout``.
        WorkerLostError: a worker that takes part was lost.
    """
    agent = current_agent()
    backward_async(agent, context_id, roots, retain_graph).wait()


def backward_async(agent: Agent, context_id: int, roots: Sequence[Tensor], retain_graph: bool) -> Future[None]:
    """Return the future of ``backward``."""
    contexts = contexts_of(agent)
    context = contexts.find(context_id)
    feeds = _feeds(roots)
    own = join_pass(contexts, context, (agent.rank, next(_pass_numbers)), retain_graph, [node for node, _ in feeds])
    own.begin(feeds)
    return agent.caller.with_deadline(own.finished, agent.rpc_timeout, _Description(contexts, context))


class _Description:
    """Description of a backward for the error of a timeout: made only then, when its partners are known."""

    def __init__(self, contexts: Contexts, context: Context) -> None:
        self._contexts = contexts
        self._context = context

    def __str__(self) -> str:
        peers = self._contexts.agent.peers
        others = ", ".join(repr(peers.at(rank).info.name) for rank in self._contexts.partners(self._context))
        return f"the backward of context {self._context.id}" + (f" with {others}" if others else "")


def join_pass(
    contexts: Contexts, context: Context, pass_id: tuple[int, int], keep_graph: bool, roots: Sequence[Node] = ()
) -> BackwardPass:
    """Return this worker's part of a pass, made if it is new here. It replaces an earlier pass of the same root that is over.

    Raises:
        AutogradError: the earlier pass is not over, or this one is.
    """
    while True:
        former = context.latest_pass(pass_id[0])
        if former is not None and former.id == pass_id:
            return former
        _check_successor(contexts, context, pass_id, former)
        fresh = BackwardPass(contexts.agent, context.graph, pass_id, keep_graph, roots)
        if context.replace_pass(fresh, former):
            return fresh


def _check_successor(
    contexts: Contexts, context: Context, pass_id: tuple[int, int], former: BackwardPass | None
) -> None:
    if former is None:
        return
    if former.id > pass_id:
        raise AutogradError(
            f"gradients of backward {pass_id[1]} came after backward {former.id[1]} of the same worker began"
        )
    if pass_id[0] == contexts.agent.rank and not former.finished.done():
        raise AutogradError(
            f"a backward of context {context.id} is under way on this worker (or timed out); wait for its end, or use "
            f"a context for each"
        )


def _feeds(roots: Sequence[Tensor]) -> list[tuple[Node, list[Any]]]:
    if isinstance(roots, Tensor) or not roots:
        raise AutogradError("roots must be a list of tensors; write backward(context_id, [loss])")
    feeds: dict[Node, list[Any]] = {}
    for index, root in enumerate(roots):
        if not isinstance(root, Tensor):
            raise TypeError(f"root {index} must be a tensor; you gave {type(root).__name__}")
        edge = gradient_edge(root)
        if edge is None:
            raise AutogradError(
                f"root {index} does not require grad, so nothing can be differentiated; check the forward"
            )
        if root._array.size != 1:
            raise AutogradError(
                f"root {index} must be a scalar; its shape is {root._array.shape}. Take its sum or mean"
            )
        node, slot = edge
        gradients = feeds.setdefault(node, [None] * node.num_inputs)
        one = np.ones_like(root._array)
        gradients[slot] = one if gradients[slot] is None else gradients[slot] + one
    return list(feeds.items())


def serve_passes(contexts: Contexts) -> None:
    """Let the agent of ``contexts`` take part in passes."""
    contexts.agent.server.serve(Method.PROPAGATE, lambda call: _serve_propagate(contexts, call))


def _serve_propagate(contexts: Contexts, call: ServerCall) -> None:
    """Take the gradients of a message that this worker sent."""
    context_id, pass_id, keep_graph, message_id, gradients = call.open()
    call.what = f"the backward of context {context_id}"
    context = contexts.find(context_id)
    join_pass(contexts, context, pass_id, keep_graph).received(call, message_id, gradients)


def backward_from(reference: Any, context_id: int, retain_graph: bool) -> None:
    """Differentiate from a reference's value at its owner (``RRef.backward``)."""
    if not reference.is_owner():
        arguments = (reference, context_id, retain_graph)
        call_function(current_agent(), reference.owner(), backward_from, arguments, None, UNSET_RPC_TIMEOUT).wait()
        return
    value = reference.local_value()
    if not isinstance(value, Tensor):
        raise RpcError(f"backward() needs a reference to a tensor; {reference} refers to a {type(value).__name__}")
    if context_id == -1:
        value.backward(retain_graph=retain_graph)
    else:
        backward(context_id, [value], retain_graph)

"""Functions of users: ``context`` and ``get_gradients``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..core.errors import RpcError
from ..core.extend import Tensor
from ..rpc.extend import current_agent
from .contexts import contexts_of, current_context


@contextmanager
def context() -> Iterator[int]:
    """A context in which remote calls stay differentiable (``torch.distributed.autograd.context``).

    Gives its id, for ``backward``, ``get_gradients`` and ``DistributedOptimizer.step``. When the block ends, what the context
    holds on all workers is let go, also after an exception.

    Raises:
        RpcError: there is a context here already.
    """
    present = current_context.get()
    if present is not None:
        raise RpcError(f"you are in autograd context {present.id} already; leave it before you enter another")
    contexts = contexts_of(current_agent())
    fresh = contexts.create()
    token = current_context.set(fresh)
    try:
        yield fresh.id
    finally:
        current_context.reset(token)
        contexts.release(fresh.id)


def get_gradients(context_id: int) -> dict[Tensor, Tensor]:
    """The gradients that a context has accumulated on this worker, by leaf tensor.

    Raises:
        RpcError: there is no such context.
    """
    gradients = contexts_of(current_agent()).find(context_id).graph.gradients()
    return {leaf: _as_tensor(gradient) for leaf, gradient in gradients.items()}


def _as_tensor(gradient: Any) -> Tensor:
    return gradient if isinstance(gradient, Tensor) else Tensor(gradient)  # a sparse one is a tensor already

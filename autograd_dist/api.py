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
    """Context in which remote calls are recorded for a backward (``torch.distributed.autograd.context``).

    Use it in a ``with`` block. When the block ends, also by an exception, all workers forget the context: its graph and its
    gradients.

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
    try:
        yield fresh.id
    finally:
        current_context.reset(token)
        contexts.release(fresh.id)


def get_gradients(context_id: int) -> dict[Tensor, Tensor]:
    """Return the gradients that a context has accumulated on this worker, by leaf tensor.

    Args:
        context_id: the id that ``autograd_dist.context()`` gave.

    Returns:
        For each leaf that a backward of the context reached, its gradient: of the leaf's shape and dtype. The leaves' ``.grad``
        is not touched.

    Raises:
        RpcError: there is no such context.
    """
    gradients = contexts_of(current_agent()).find(context_id).graph.gradients()
    return {leaf: _as_tensor(gradient) for leaf, gradient in gradients.items()}


def _as_tensor(gradient: Any) -> Tensor:
    return gradient if isinstance(gradient, Tensor) else Tensor(gradient)  # a sparse gradient is a tensor already

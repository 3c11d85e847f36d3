"""Accumulation into PyTorch's leaves by PyTorch's engine, which calls what is hooked to it, such as the reduction of
``torch.nn.parallel.DistributedDataParallel``.

Parts run by ``torch.autograd.grad``, which computes gradients and accumulates none. PyTorch's engine for RPC calls what is
hooked to the accumulation of a leaf once in a pass. So where PyTorch has a process group, the gradients of leaves are held
until no more are to come to this worker, and then accumulated, while other workers go on: a reduction waits for theirs.
``.grad`` is lent to PyTorch's engine for that time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import torch

_lent_now: set[int] = set()  # leaves, by id(): one accumulation has the .grad of a leaf at a time
_returned = threading.Condition()  # guards them


# Returns whether something may be hooked to accumulation: PyTorch has a process group.
is_watched: Callable[[], bool] = torch.distributed.is_initialized if torch.distributed.is_available() else lambda: False


def accumulate(held: dict[int, tuple[Any, Any]], give: Callable[[Any, Any], object]) -> None:
    """Accumulate gradients by PyTorch's engine, and give away what results.

    Args:
        held: leaves and their gradients, by ``id()`` of the leaf.
        give: gets each leaf and its gradient.
    """
    leaves, gradients = [leaf for leaf, _ in held.values()], [gradient for _, gradient in held.values()]
    with _alone(held.keys()), _lent(leaves):
        torch.autograd.backward(leaves, gradients)
        results = [None if leaf.grad is None else _own(leaf.grad) for leaf in leaves]
    for leaf, result in zip(leaves, results):
        if result is not None:
            give(leaf, result)


@contextmanager
def _alone(leaves: Collection[int]) -> Iterator[None]:
    """Wait until no other accumulation has any of some leaves. What is hooked to others may wait for this one."""
    with _returned:
        _returned.wait_for(lambda: _lent_now.isdisjoint(leaves))
        _lent_now.update(leaves)
    try:
        yield
    finally:
        with _returned:
            _lent_now.difference_update(leaves)
            _returned.notify_all()


@contextmanager
def _lent(leaves: list[Any]) -> Iterator[None]:
    """Let leaves have no gradients, and no hooks of tensors, which were called when the part ran."""
    former = [leaf.grad for leaf in leaves]
    tables = [table for leaf in leaves for table in (leaf._backward_hooks, leaf._post_accumulate_grad_hooks) if table]
    hooks = [dict(table) for table in tables]
    try:
        for leaf in leaves:
            leaf.grad = None
        for table in tables:
            table.clear()
        yield
    finally:
        for leaf, gradient in zip(leaves, former):
            leaf.grad = gradient
        for table, entries in zip(tables, hooks):
            table.update(entries)


def _own(gradient: torch.Tensor) -> torch.Tensor:
    """Return a gradient that is no view of the memory of a bucket, which the next pass fills."""
    if gradient.layout is torch.strided and gradient.untyped_storage().nbytes() > gradient.nbytes:
        return gradient.clone()
    return gradient

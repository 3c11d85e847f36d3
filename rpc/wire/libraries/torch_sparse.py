"""Sparse tensors of PyTorch, which travel as the dense ones that they are made of: their elements and the places of these.

PyTorch records that the elements are taken out, and that a tensor is made of those that arrived. So gradients of sparse tensors
go through messages as those of their elements.
"""

from __future__ import annotations

from typing import Any

import torch

from .torch_modes import recorded

COMPRESSED = {
    torch.sparse_csr: ("crow_indices", "col_indices"),
    torch.sparse_bsr: ("crow_indices", "col_indices"),
    torch.sparse_csc: ("ccol_indices", "row_indices"),
    torch.sparse_bsc: ("ccol_indices", "row_indices"),
}
"""Layouts beside ``torch.sparse_coo``, and the methods that return the places of their elements."""


def is_sparse(value: torch.Tensor) -> bool:
    """Return whether a tensor has one of the sparse layouts."""
    return value.layout is torch.sparse_coo or value.layout in COMPRESSED


@recorded
def parts_of(value: torch.Tensor) -> tuple[Any, ...]:
    """Return what ``made_of`` makes a sparse tensor of. One that requires grad is coalesced, because only then are its elements
    differentiable.

    Args:
        value: a sparse tensor.
    """
    with torch._C.DisableTorchFunctionSubclass():
        whole = value.coalesce() if value.requires_grad and value.layout is torch.sparse_coo else value
        kind = None if type(value) is torch.Tensor else type(value)
        layout, shape = str(value.layout).removeprefix("torch."), tuple(value.shape)
        if whole.layout in COMPRESSED:
            places = [getattr(whole, name)() for name in COMPRESSED[whole.layout]]
            return kind, layout, shape, True, whole.values(), *places
        values = whole.values() if value.requires_grad else whole._values()
        return kind, layout, shape, whole.is_coalesced(), values, whole._indices()


@recorded
def made_of(kind: type | None, layout: str, shape: tuple[int, ...], coalesced: bool, values: Any, *places: Any) -> Any:
    """Return the sparse tensor of parts that arrived.

    Args:
        kind: its class; ``None`` for ``torch.Tensor``. A tensor with a node is a ``torch.Tensor``.
        layout: name of its layout.
        shape: its shape.
        coalesced: no place is there twice, and they are in order.
        values: its elements. Where they have a node, the tensor has one, too.
        places: the places of the elements.

    Raises:
        RuntimeError: the parts are none of such a tensor.
    """
    given = values.detach() if values.is_leaf else values
    if layout == "sparse_coo":
        made = torch.sparse_coo_tensor(*places, given, shape, is_coalesced=coalesced, check_invariants=True)
    else:
        made = torch.sparse_compressed_tensor(
            *places, given, shape, layout=getattr(torch, layout), check_invariants=True
        )
    if not made.is_leaf:
        return made
    whole = made if kind is None else torch.Tensor._make_subclass(kind, made)
    return whole.requires_grad_(values.requires_grad)

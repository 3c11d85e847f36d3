"""The sparse tensors whose elements are leaves: gradients arrive at the elements, and users ask for those of the tensor."""

from __future__ import annotations

import weakref

from ..tensors import Tensor

_leaves: weakref.WeakValueDictionary[int, Tensor] = weakref.WeakValueDictionary()  # by the id of the elements


def note_leaf(elements: Tensor, sparse: Tensor) -> None:
    """Note that the elements of a sparse tensor became a leaf through it."""
    _leaves[id(elements)] = sparse


def leaf_with(elements: Tensor) -> Tensor:
    """Return the sparse leaf that has these elements; a leaf that is no sparse tensor's is returned as it is."""
    sparse = _leaves.get(id(elements))
    return sparse if sparse is not None and getattr(sparse, "_elements", None) is elements else elements

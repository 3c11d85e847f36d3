"""Pruning methods: each computes a mask of the elements of a parameter that stay (``torch.nn.utils.prune``)."""

from __future__ import annotations

from typing import Any

from ...core import linalg, rand, rand_like, topk, zeros_like
from ...core.extend import Tensor
from .pruning_amount import check_amount, check_structured, number_to_prune
from .pruning_hook import BasePruningMethod


class Identity(BasePruningMethod):
    """Method that prunes nothing, and adds the mask of ones."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return ``default_mask``."""
        return default_mask


class CustomFromMask(BasePruningMethod):
    """Method that prunes by a given mask.

    Args:
        mask: 0 for elements to prune and 1 for others, of the parameter's shape.
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the product of both masks."""
        return default_mask * self.mask.to(default_mask.dtype)


class RandomUnstructured(BasePruningMethod):
    """Method that prunes elements at random.

    Args:
        amount: share of the elements, a float from 0 to 1, or their number.

    Raises:
        TypeError: ``amount`` is no number.
        ValueError: it is negative, or a float above 1.
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        self.amount = check_amount(amount)

    def _importance(self, t: Tensor) -> Tensor:
        return rand_like(t)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return ``default_mask`` without the least important elements."""
        return _without_smallest(self._importance(t), default_mask, self.amount)


class L1Unstructured(RandomUnstructured):
    """Method that prunes the elements of smallest magnitude.

    Args:
        amount: share of the elements, a float from 0 to 1, or their number.

    Raises:
        TypeError: ``amount`` is no number.
        ValueError: it is negative, or a float above 1.
    """

    def _importance(self, t: Tensor) -> Tensor:
        return t.abs()


class RandomStructured(BasePruningMethod):
    """Method that prunes whole slices along a dimension, at random.

    Args:
        amount: share of the slices, a float from 0 to 1, or their number.
        dim: dimension along which slices are counted.

    Raises:
        TypeError: ``amount`` is no number.
        ValueError: it is negative, or a float above 1.
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        self.amount = check_amount(amount)
        self.dim = dim

    def _importance(self, t: Tensor) -> Tensor:
        return rand(t.shape[self.dim])

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return ``default_mask`` without the least important slices."""
        check_structured(t, self.dim)
        length = t.shape[self.dim]
        kept = topk(self._importance(t), length - number_to_prune(self.amount, length)).indices
        slices = zeros_like(default_mask)
        slices.index_fill_(self.dim, kept, 1.0)
        return slices * default_mask


class LnStructured(RandomStructured):
    """Method that prunes the slices of smallest norm along a dimension.

    Args:
        amount: share of the slices, a float from 0 to 1, or their number.
        n: order of the norm: a number, or "fro".
        dim: dimension along which slices are counted.

    Raises:
        TypeError: ``amount`` is no number.
        ValueError: it is negative, or a float above 1.
    """

    def __init__(self, amount: float, n: float | str, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _importance(self, t: Tensor) -> Tensor:
        order: Any = 2 if self.n == "fro" else self.n
        return linalg.vector_norm(t, order, tuple(axis for axis in range(t.ndim) if axis != self.dim % t.ndim))


def _without_smallest(importance: Tensor, mask: Tensor, amount: float) -> Tensor:
    count = number_to_prune(amount, importance.numel())
    kept = mask.clone().reshape(-1)
    if count:
        kept[topk(importance.reshape(-1), count, largest=False).indices] = 0
    return kept.reshape(mask.shape)

"""``EmbeddingBag``: the sum, mean or maximum of several learned vectors."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import numpy.typing as npt

from ..core.extend import Tensor
from . import functional as F
from .embedding import Table, lengths
from .functional.embedding_bag import MODES
from .module import unusual


class EmbeddingBag(Table):
    """Table of learned vectors, of which bags are summed or averaged; see ``functional.embedding_bag``.

    Args:
        num_embeddings: number of rows.
        embedding_dim: length of a row.
        max_norm: rows that are looked up and longer than this are first scaled down to it, in place.
        norm_type: order of the norm for ``max_norm``.
        scale_grad_by_freq: whether a row's gradient is divided by how often it was looked up.
        mode: "sum", "mean" or "max".
        sparse: whether the table's gradient is a sparse tensor that holds only the rows looked up.
        _weight: initial table instead of normally distributed numbers.
        include_last_offset: whether the last offset is the end of the last bag.
        padding_idx: index of a row that starts as zeros and is left out.
        device, dtype: of the table.

    Raises:
        ValueError: ``padding_idx`` is out of range, ``mode`` is unknown, or ``_weight`` has another shape.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: str | None = None,
        dtype: npt.DTypeLike | None = None,
    ) -> None:
        if mode not in MODES:
            raise ValueError(f'mode must be "sum", "mean" or "max", and you gave {mode!r}')
        options = (padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        super().__init__(num_embeddings, embedding_dim, *options, _weight, False, device, dtype)
        self.mode = mode
        self.include_last_offset = include_last_offset

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """Return an ``EmbeddingBag`` over a given table.

        Args:
            embeddings: the table, shape (rows, width).
            freeze: whether the table gets no gradient.
            max_norm, norm_type, scale_grad_by_freq, mode, sparse, include_last_offset, padding_idx: as for
                ``EmbeddingBag``.

        Raises:
            ValueError: the table has not two dimensions, ``padding_idx`` is out of range, or ``mode`` is unknown.
        """
        options = (max_norm, norm_type, scale_grad_by_freq, mode, sparse)
        rows, width = lengths(embeddings)
        bag = cls(rows, width, *options, embeddings, include_last_offset, padding_idx)
        bag.weight.requires_grad = not freeze
        return bag

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """Return the bags, shape (bags, embedding_dim).

        Args:
            input, offsets, per_sample_weights: as for ``functional.embedding_bag``.
        """
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        parts += unusual(self, {"max_norm": None, "norm_type": 2.0, "scale_grad_by_freq": False})
        return ", ".join([*parts, f"mode={self.mode!r}", *unusual(self, {"padding_idx": None})])

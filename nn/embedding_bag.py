"""``EmbeddingBag``: the sum, mean or maximum of several learned vectors."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import numpy.typing as npt

from ..core import empty, no_grad
from ..core.extend import Tensor
from . import functional as F
from . import init
from .embedding import unusual
from .functional.embedding import row_number
from .functional.embedding_bag import MODES
from .module import Module
from .parameter import Parameter


class EmbeddingBag(Module):
    """From bags of integers to vectors: (bags, embedding_dim). ``weight`` starts normal(0, 1).

    The parameters are those of ``functional.embedding_bag``; the row ``padding_idx`` starts as zeros and is not learned.

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
        super().__init__()
        if mode not in MODES:
            raise ValueError(f'mode must be "sum", "mean" or "max", and you gave {mode!r}')
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self.padding_idx = None if padding_idx is None else row_number(padding_idx, num_embeddings)
        table = empty(num_embeddings, embedding_dim, dtype=dtype, device=device) if _weight is None else _weight
        if table.shape != (num_embeddings, embedding_dim):
            raise ValueError(f"the weight must have shape {(num_embeddings, embedding_dim)}, not {table.shape}")
        self.weight = Parameter(table)
        if _weight is None:
            self.reset_parameters()

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
        """Bags of a table that exists, shape (rows, width); it is not learned unless ``freeze`` is false."""
        if embeddings.ndim != 2:
            raise ValueError(f"embeddings must have two dimensions (rows, width), not shape {embeddings.shape}")
        rows, width = embeddings.shape
        options = (max_norm, norm_type, scale_grad_by_freq, mode, sparse)
        bag = cls(rows, width, *options, embeddings, include_last_offset, padding_idx)
        bag.weight.requires_grad = not freeze
        return bag

    def reset_parameters(self) -> None:
        """Draw the table anew."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """From (bags, n), or (n,) with the offsets of the bags, to (bags, embedding_dim)."""
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

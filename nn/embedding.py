"""``Embedding``: a table of learned vectors."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import numpy.typing as npt

from ..core import empty, no_grad
from ..core.extend import Tensor
from . import functional as F
from . import init
from .functional.embedding import row_number
from .module import Module, unusual
from .parameter import Parameter


class Table(Module):
    """What embeddings are made of: a table ``weight`` (num_embeddings, embedding_dim), and how its rows are looked up."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None,
        max_norm: float | None,
        norm_type: float,
        scale_grad_by_freq: bool,
        sparse: bool,
        weight: Tensor | None,
        freeze: bool,
        device: str | None,
        dtype: npt.DTypeLike | None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = None if padding_idx is None else row_number(padding_idx, num_embeddings)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        table = empty(num_embeddings, embedding_dim, dtype=dtype, device=device) if weight is None else weight
        if table.shape != (num_embeddings, embedding_dim):
            raise ValueError(f"the weight must have shape {(num_embeddings, embedding_dim)}, not {table.shape}")
        self.weight = Parameter(table, requires_grad=not freeze)
        if weight is None:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the table anew."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0


def lengths(embeddings: Tensor) -> tuple[int, int]:
    """The rows and the width of a table that exists.

    Raises:
        ValueError: it has not two dimensions.
    """
    if embeddings.ndim != 2:
        raise ValueError(f"embeddings must have two dimensions (rows, width), not shape {embeddings.shape}")
    rows, width = embeddings.shape
    return rows, width


class Embedding(Table):
    """From integers of any shape to vectors: shape (..., embedding_dim). ``weight`` starts normal(0, 1).

    The parameters are those of ``functional.embedding``; the row ``padding_idx`` starts as zeros and is not learned.

    Raises:
        ValueError: ``padding_idx`` is out of range, or ``_weight`` has another shape.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: str | None = None,
        dtype: npt.DTypeLike | None = None,
    ) -> None:
        options = (padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        super().__init__(num_embeddings, embedding_dim, *options, _weight, _freeze, device, dtype)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """An embedding over a table that exists, shape (rows, width); it is not learned unless ``freeze`` is false."""
        rows, width = lengths(embeddings)
        options = (padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        return cls(rows, width, *options, _weight=embeddings, _freeze=freeze)

    def forward(self, input: Tensor) -> Tensor:
        """The rows that ``input`` names."""
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        usual = {
            "padding_idx": None,
            "max_norm": None,
            "norm_type": 2.0,
            "scale_grad_by_freq": False,
            "sparse": False,
        }
        return ", ".join([f"{self.num_embeddings}, {self.embedding_dim}", *unusual(self, usual)])

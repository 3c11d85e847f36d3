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
    """Base of embeddings: a table ``weight`` of shape (num_embeddings, embedding_dim), and options for looking up rows.

    Args:
        num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse: as for
            ``Embedding``.
        weight: initial table instead of normally distributed numbers.
        freeze: whether the table gets no gradient.
        device, dtype: of the table.

    Raises:
        ValueError: ``padding_idx`` is out of range, or ``weight`` has another shape.
    """

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
    """Return the number of rows and the width of a table.

    Raises:
        ValueError: it has not two dimensions.
    """
    if embeddings.ndim != 2:
        raise ValueError(f"embeddings must have two dimensions (rows, width), not shape {embeddings.shape}")
    rows, width = embeddings.shape
    return rows, width


class Embedding(Table):
    """Table of learned vectors, looked up by integers of any shape (...): the result has shape (..., embedding_dim).

    Args:
        num_embeddings: number of rows.
        embedding_dim: length of a row.
        padding_idx: index of a row that starts as zeros and gets no gradient; a negative one counts from the end.
        max_norm: rows that are looked up and longer than this are first scaled down to it, in place.
        norm_type: order of the norm for ``max_norm``.
        scale_grad_by_freq: whether a row's gradient is divided by how often it was looked up.
        sparse: whether the table's gradient is a sparse tensor that holds only the rows looked up.
        _weight: initial table instead of normally distributed numbers.
        _freeze: whether the table gets no gradient.
        device, dtype: of the table.

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
        """Return an embedding over a given table.

        Args:
            embeddings: the table, shape (rows, width).
            freeze: whether the table gets no gradient.
            padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse: as for ``Embedding``.

        Raises:
            ValueError: the table has not two dimensions, or ``padding_idx`` is out of range.
        """
        rows, width = lengths(embeddings)
        options = (padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        return cls(rows, width, *options, _weight=embeddings, _freeze=freeze)

    def forward(self, input: Tensor) -> Tensor:
        """Return the rows whose indices are in ``input``, shape (*input.shape, embedding_dim)."""
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

"""``MultiheadAttention``: attention with several heads."""

from __future__ import annotations

import math

import numpy.typing as npt

from ..core import empty, full
from ..core.extend import Tensor
from . import functional as F
from . import init
from .linear import Linear
from .module import Module
from .parameter import Parameter


class MultiheadAttention(Module):
    """Attention with several heads, each on its part of projections of query, key and value (Vaswani et al. 2017).

    Args:
        embed_dim: number of features of queries and results.
        num_heads: number of heads; each gets ``embed_dim // num_heads`` features.
        dropout: probability with which each attention weight is zeroed while training.
        bias: whether the projections have biases.
        add_bias_kv: whether a learned key and value is appended to all others.
        add_zero_attn: whether a key and a value of zeros is appended to all others.
        kdim, vdim: number of features of keys and values; ``embed_dim`` if ``None``.
        batch_first: whether inputs are (N, L, E) instead of (L, N, E).
        device, dtype: of the parameters.

    Raises:
        ValueError: ``embed_dim`` is not a positive multiple of ``num_heads``.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: str | None = None,
        dtype: npt.DTypeLike | None = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ValueError(
                f"MultiheadAttention: embed_dim must be a positive multiple of num_heads, and you gave {embed_dim} "
                f"and {num_heads}"
            )
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.add_zero_attn = add_zero_attn
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim

        def parameter(*shape: int) -> Parameter:
            return Parameter(empty(shape, dtype=dtype, device=device))

        same = self._qkv_same_embed_dim
        self.register_parameter("in_proj_weight", parameter(3 * embed_dim, embed_dim) if same else None)
        for name, size in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
            self.register_parameter(f"{name}_proj_weight", None if same else parameter(embed_dim, size))
        self.register_parameter("in_proj_bias", parameter(3 * embed_dim) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, parameter(1, 1, embed_dim) if add_bias_kv else None)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if (weight := self._parameters[name]) is not None:
                init.xavier_uniform_(weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)
        for name in ("bias_k", "bias_v"):
            if (vector := self._parameters[name]) is not None:
                init.xavier_normal_(vector)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the result of attention, and its weights.

        Args:
            query: shape (L, N, E), (N, L, E) with ``batch_first``, or (L, E).
            key, value: the same, with S instead of L.
            key_padding_mask: shape (N, S) or (S,): true for keys that are left out, or numbers added to the scores.
            need_weights: whether to return the attention weights.
            attn_mask: shape (L, S) or (N * num_heads, L, S): true where a query does *not* attend to a key, or numbers
                added to the scores.
            average_attn_weights: whether the weights are the mean of the heads' weights.
            is_causal: hint that ``attn_mask`` is the causal mask, which must be given too.

        Returns:
            The result, of the query's shape, and the weights, (N, L, S) or (N, num_heads, L, S), or ``None``.

        Raises:
            ValueError: the shapes do not fit, or ``is_causal`` comes without ``attn_mask``.
        """
        if query.shape[-1] != self.embed_dim:
            raise ValueError(
                f"MultiheadAttention: the query must have {self.embed_dim} features, and has {query.shape[-1]}"
            )
        swapped = self.batch_first and query.ndim == 3
        if swapped:
            alike = key is query and value is query
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
            key, value = (query, query) if alike else (key, value)
        out, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            self.training,
            key_padding_mask,
            need_weights,
            attn_mask,
            not self._qkv_same_embed_dim,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return out.transpose(0, 1) if swapped else out, weights


def square_subsequent_mask(size: int, dtype: npt.DTypeLike | None = None) -> Tensor:
    """Return a mask of shape (size, size): -inf above the diagonal, and 0 elsewhere."""
    return full((size, size), -math.inf, dtype=dtype).triu(1)

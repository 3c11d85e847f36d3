"""``MultiheadAttention``: attention with several heads."""

from __future__ import annotations

import math

import numpy.typing as npt

from ..core import cat, chunk, empty, linear, zeros
from ..core.extend import Tensor
from . import init
from .functional.attention import additive_mask, attention, causal_mask
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
        batched = query.ndim == 3
        if is_causal and attn_mask is None:
            raise ValueError("MultiheadAttention: is_causal=True is a hint about attn_mask, so give attn_mask too")
        if key.shape[:-1] != value.shape[:-1]:
            raise ValueError(
                f"MultiheadAttention: key {key.shape} and value {value.shape} must have one length and batch"
            )
        alike = key is query and value is query
        q, k, v = (self._batch_first(each, batched) for each in (query, key, value))
        q, k, v = self._projected(q, k, v, alike)
        padding = key_padding_mask if batched or key_padding_mask is None else key_padding_mask.unsqueeze(0)
        k, v, extra = self._appended(k, v)
        mask = self._mask(attn_mask, padding, (*q.shape[:2], k.shape[1]), extra, q)
        scale, dropout = self.head_dim**-0.5, self.dropout if self.training else 0.0
        # A query that attends to no key gets nan with weights and 0 without, as in PyTorch, which has a way for each.
        masked_weight = math.nan if need_weights else 0.0
        out, weights = attention(self._split(q), self._split(k), self._split(v), mask, dropout, scale, masked_weight)
        out = self.out_proj(out.transpose(1, 2).reshape(*q.shape))
        out = out.squeeze(0) if not batched else out if self.batch_first else out.transpose(0, 1)
        if not need_weights:
            return out, None
        weights = weights.mean(1) if average_attn_weights else weights
        return out, weights if batched else weights.squeeze(0)

    def _batch_first(self, x: Tensor, batched: bool) -> Tensor:
        if x.ndim != (3 if batched else 2):
            raise ValueError(
                f"MultiheadAttention takes query, key and value all with or without batches, not {x.shape}"
            )
        return x.unsqueeze(0) if not batched else x if self.batch_first else x.transpose(0, 1)

    def _projected(self, q: Tensor, k: Tensor, v: Tensor, alike: bool) -> tuple[Tensor, Tensor, Tensor]:
        for name, x, size in (("query", q, self.embed_dim), ("key", k, self.kdim), ("value", v, self.vdim)):
            if x.shape[-1] != size:
                raise ValueError(f"MultiheadAttention: the {name} must have {size} features, and has {x.shape[-1]}")
        if alike and self._qkv_same_embed_dim:
            # One product instead of three.
            one, two, three = chunk(linear(q, self.in_proj_weight, self.in_proj_bias), 3, -1)
            return one, two, three
        if self._qkv_same_embed_dim:
            weights = chunk(self.in_proj_weight, 3)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases = (None,) * 3 if self.in_proj_bias is None else chunk(self.in_proj_bias, 3)
        one, two, three = (linear(x, weight, bias) for x, weight, bias in zip((q, k, v), weights, biases))
        return one, two, three

    def _appended(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, int]:
        extra = 0
        if self.bias_k is not None and self.bias_v is not None:
            k, v = (cat([x, bias.expand(len(x), 1, -1)], 1) for x, bias in ((k, self.bias_k), (v, self.bias_v)))
            extra += 1
        if self.add_zero_attn:
            nothing = zeros(len(k), 1, self.embed_dim, dtype=k.dtype)
            k, v = cat([k, nothing], 1), cat([v, nothing], 1)
            extra += 1
        return k, v, extra

    def _split(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[:2], self.num_heads, self.head_dim).transpose(1, 2)

    def _mask(
        self, attn: Tensor | None, padding: Tensor | None, shape: tuple[int, ...], extra: int, like: Tensor
    ) -> Tensor | None:
        """Return both masks as one that is added to the scores (N, heads, L, S), with zeros for keys that were appended."""
        count, queries, keys = shape
        total: Tensor | None = None
        if attn is not None:
            if attn.shape not in ((queries, keys - extra), (count * self.num_heads, queries, keys - extra)):
                raise ValueError(
                    f"MultiheadAttention: attn_mask must have shape {(queries, keys - extra)} or "
                    f"{(count * self.num_heads, queries, keys - extra)}, and you gave {attn.shape}"
                )
            total = additive_mask(attn, like, False)
            total = total if attn.ndim == 2 else total.reshape(count, self.num_heads, queries, keys - extra)
        if padding is not None:
            if padding.shape != (count, keys - extra):
                raise ValueError(
                    f"MultiheadAttention: key_padding_mask must have shape {(count, keys - extra)}, and you gave "
                    f"{padding.shape}"
                )
            hidden = additive_mask(padding, like, False).reshape(count, 1, 1, -1)
            total = hidden if total is None else total + hidden
        if total is not None and extra:
            total = cat([total, zeros(*total.shape[:-1], extra, dtype=total.dtype)], -1)
        return total


def square_subsequent_mask(size: int, dtype: npt.DTypeLike | None = None) -> Tensor:
    """Return a mask of shape (size, size): -inf above the diagonal, and 0 elsewhere."""
    return causal_mask(size, size, empty(0, dtype=dtype))

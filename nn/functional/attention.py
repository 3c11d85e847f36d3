"""Scaled dot-product attention (Vaswani et al. 2017), as one operation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...core import dropout, repeat_interleave, softmax
from ...core.extend import Array, Tensor, fused, records

__all__ = ["scaled_dot_product_attention"]


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """``softmax(query @ key.mT * scale + mask) @ value``.

    Args:
        query: shape (N, ..., L, E).
        key: shape (N, ..., S, E).
        value: shape (N, ..., S, V).
        attn_mask: added to the scores, or, of booleans, false where not to look; broadcast to (N, ..., L, S).
        dropout_p: the share of weights that is zeroed.
        is_causal: let each query look only at keys up to its own place; instead of ``attn_mask``.
        scale: at first ``1 / sqrt(E)``.
        enable_gqa: let several heads of queries (dimension -3) share one of keys and values.

    Returns:
        Shape (N, ..., L, V).

    Raises:
        ValueError: the shapes do not fit, or there are two masks.
    """
    if is_causal and attn_mask is not None:
        raise ValueError("scaled_dot_product_attention() takes attn_mask or is_causal=True, and you gave both")
    if enable_gqa:
        key, value = (repeat_interleave(each, query.shape[-3] // each.shape[-3], -3) for each in (key, value))
    _check(query, key, value)
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    mask = causal_mask(query.shape[-2], key.shape[-2], query) if is_causal else added(attn_mask, query)
    out, _ = attention(query, key, value, mask, dropout_p, factor)
    return out


def attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float, scale: float
) -> tuple[Tensor, Tensor]:
    """The result, and the weights before dropout. ``mask`` is added to the scores."""
    plain = dropout_p or (mask is not None and mask.requires_grad) or len({query.shape[:-2], value.shape[:-2]}) > 1
    if plain or query.shape[:-2] != key.shape[:-2]:
        return _composed(query, key, value, mask, dropout_p, scale)
    weights = _weights(query._array, key._array, None if mask is None else mask._array, scale)
    out = np.matmul(weights, value._array)
    if not records(query, key, value):
        return Tensor(out), Tensor(weights)

    def backward(grads: Sequence[Array | None], wanted: Sequence[bool]) -> list[Array | None]:
        return _backward((query._array, key._array, value._array), weights, scale, grads)

    def replay(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        return _composed(query, key, value, mask, 0.0, scale)

    result, looked = fused("Attention", (query, key, value), (out, weights), backward, replay)
    return result, looked


def _composed(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float, scale: float
) -> tuple[Tensor, Tensor]:
    scores = (query * scale) @ key.mT
    weights = softmax(scores if mask is None else scores + mask, -1)
    return (dropout(weights, dropout_p) if dropout_p else weights) @ value, weights


def _weights(query: Array, key: Array, mask: Array | None, scale: float) -> Array:
    weights: Array = np.matmul(query * query.dtype.type(scale), key.swapaxes(-1, -2))
    if mask is not None:
        weights = weights + mask if mask.ndim > weights.ndim else np.add(weights, mask, out=weights)
    # A row of only -inf has no greatest score; its weights are nan, as PyTorch's.
    weights -= weights.max(-1, keepdims=True, initial=-np.inf)
    np.exp(weights, out=weights)
    weights /= weights.sum(-1, keepdims=True)
    return weights


def _backward(
    inputs: tuple[Array, Array, Array], weights: Array, scale: float, grads: Sequence[Array | None]
) -> list[Array | None]:
    query, key, value = inputs
    grad, of_weights = grads
    change = np.zeros_like(weights) if grad is None else np.matmul(grad, value.swapaxes(-1, -2))
    if of_weights is not None:
        change = change + of_weights
    of_value = np.zeros_like(value) if grad is None else np.matmul(weights.swapaxes(-1, -2), grad)
    # Of softmax: p * (g - sum(g * p)).
    change -= np.einsum("...i,...i->...", change, weights)[..., None]
    change *= weights
    change *= weights.dtype.type(scale)
    return [np.matmul(change, key), np.matmul(change.swapaxes(-1, -2), query), of_value]


def added(mask: Tensor | None, like: Tensor) -> Tensor | None:
    """A mask that is added to scores: a boolean one (true: look) becomes 0 and -inf."""
    if mask is None or mask.dtype.kind != "b":
        return None if mask is None else mask.to(like.dtype)
    return Tensor(np.where(mask.numpy(), 0, -np.inf).astype(like.dtype))


def causal_mask(queries: int, keys: int, like: Tensor) -> Tensor:
    """-inf above the diagonal, (queries, keys): nobody looks ahead."""
    return Tensor(np.triu(np.full((queries, keys), -np.inf, like.dtype), 1))


def _check(query: Tensor, key: Tensor, value: Tensor) -> None:
    if (
        min(query.ndim, key.ndim, value.ndim) < 2
        or query.shape[-1] != key.shape[-1]
        or key.shape[-2] != value.shape[-2]
    ):
        raise ValueError(
            "scaled_dot_product_attention() needs a query (..., L, E), a key (..., S, E) and a value (..., S, V), and you gave "
            f"{query.shape}, {key.shape} and {value.shape}"
        )

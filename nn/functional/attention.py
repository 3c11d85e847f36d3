"""Scaled dot-product attention (Vaswani et al. 2017), as one operation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...core import broadcast_to, dropout, masked_fill, ones, repeat_interleave, softmax
from ...core.extend import ARRAYS, Array, ArrayLike, Tensor, fused, operation, records, row_maxima, row_sums, wide

__all__ = ["scaled_dot_product_attention"]


@operation
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
    """Return ``softmax(query @ key.mT * scale + mask) @ value`` (Vaswani et al. 2017).

    Args:
        query: shape (N, ..., L, E), floating-point.
        key: shape (N, ..., S, E), of the query's dtype.
        value: shape (N, ..., S, V), of the query's dtype.
        attn_mask: broadcast to (N, ..., L, S): floating-point, added to the scores; or booleans, true where a query
            attends to a key. The result of a query that attends to no key is 0.
        dropout_p: probability with which each weight is zeroed.
        is_causal: whether each query attends only to keys up to its own position; instead of ``attn_mask``.
        scale: factor of the scores; ``1 / sqrt(E)`` if ``None``.
        enable_gqa: whether several heads of queries (dimension -3) share one of keys and values.

    Returns:
        Shape (N, ..., L, V), of the query's dtype.

    Raises:
        TypeError: the inputs are not all of one real floating-point dtype, or the mask is of integers.
        ValueError: the shapes do not fit, or there are two masks.
    """
    if is_causal and attn_mask is not None:
        raise ValueError("attn_mask and is_causal=True are two masks; give one of them")
    if not query.dtype == key.dtype == value.dtype:
        raise TypeError("query, key and value must be of one dtype")
    if not query.is_floating_point():
        raise TypeError("query, key and value must be of a real floating-point type")
    if enable_gqa:
        key, value = _shared(query, key), _shared(query, value)
    _check(query, key, value)
    factor = 1 / math.sqrt(query.shape[-1] or 1) if scale is None else scale
    if is_causal:
        attn_mask = causal_mask(query.shape[-2], key.shape[-2], query)
    mask = None if attn_mask is None else additive_mask(attn_mask, query)
    return attention(query, key, value, mask, dropout_p, factor)[0]


@operation
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout_p: float,
    scale: float,
    masked_weight: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Return the result of attention, and the weights after dropout.

    Args:
        query, key, value: as for ``scaled_dot_product_attention``.
        mask: added to the scores.
        dropout_p: probability with which each weight is zeroed.
        scale: factor of the scores.
        masked_weight: weights of a query that the mask lets attend to no key.

    Returns:
        Shapes (N, ..., L, V) and (N, ..., L, S).

    Raises:
        ValueError: the shapes do not fit.
    """
    query, key, value = _broadcast(query, key, value, mask)
    # Halves are computed in float32, where products are fast and sums do not overflow.
    q, k, v = (wide(each._array) for each in (query, key, value))
    q = q * q.dtype.type(scale)
    weights, hidden = _weights(q, k, None if mask is None else wide(mask._array), masked_weight)
    drops = dropout(ones(weights.shape, dtype=weights.dtype), dropout_p) if dropout_p else None
    dropped = weights if drops is None else weights * drops._array
    outputs = [_narrow(each, query) for each in (np.matmul(dropped, v), dropped)]
    if not records(query, key, value, *(() if mask is None else (mask,))):
        return Tensor(outputs[0]), Tensor(outputs[1])

    def backward(grads: Sequence[Array | None], wanted: Sequence[bool]) -> list[Array | None]:
        change, of_value = _backward(v, weights, dropped, None if drops is None else drops._array, grads)
        of_mask = ARRAYS.fit(change, mask.shape, mask.dtype) if mask is not None and wanted[3] else None
        of_query = np.matmul(change, k) if wanted[0] else None
        if of_query is not None:
            of_query *= of_query.dtype.type(scale)
        of_key = np.matmul(change.swapaxes(-1, -2), q) if wanted[1] else None
        found = [None if each is None else _narrow(each, query) for each in (of_query, of_key, of_value)]
        return [*found, of_mask]

    def replay(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        scores = (query * scale) @ key.mT
        scores = scores if mask is None else scores + mask
        # A query that attends to no key has scores of -inf only, which get no gradient.
        weights = softmax(scores if hidden is None else masked_fill(scores, hidden, 0), -1)
        weights = weights if hidden is None else masked_fill(weights, hidden, masked_weight)
        weights = weights if drops is None else weights * drops.to(weights.dtype)
        return weights @ value, weights

    result, given = fused("ScaledDotProductAttention", (query, key, value, mask), outputs, backward, replay)
    return result, given


def _weights(query: Array, key: Array, mask: Array | None, masked_weight: float) -> tuple[Array, Tensor | None]:
    """Return the weights, and which queries (..., L, 1) attend to no key (``None``: none of them)."""
    weights: Array = np.matmul(query, key.swapaxes(-1, -2))
    if mask is not None:
        weights += mask
    top = row_maxima(weights)
    hidden = None if mask is None else top == -np.inf
    # Both ways give the same bits if no query is hidden; an ArrayLike cannot tell, and takes the longer one.
    if hidden is None or not (isinstance(hidden, ArrayLike) or hidden.any()):
        weights -= top
        np.exp(weights, out=weights)
        weights /= row_sums(weights)
        return weights, None
    weights -= np.where(hidden, 0, top)
    np.exp(weights, out=weights)
    weights /= np.where(hidden, 1, row_sums(weights))
    if masked_weight:
        weights += np.where(hidden, weights.dtype.type(masked_weight), weights.dtype.type(0))
    return weights, Tensor(hidden)


def _backward(
    value: Array, weights: Array, dropped: Array, drops: Array | None, grads: Sequence[Array | None]
) -> tuple[Array, Array]:
    """Return the gradients of the scores and of the values."""
    grad, of_weights = (None if each is None else each.astype(weights.dtype, copy=False) for each in grads)
    change = np.zeros_like(weights) if grad is None else np.matmul(grad, value.swapaxes(-1, -2))
    if of_weights is not None:
        change += of_weights
    of_value = np.zeros_like(value) if grad is None else np.matmul(dropped.swapaxes(-1, -2), grad)
    if drops is not None:
        change *= drops
    # Of softmax: p * (g - sum(g * p)).
    change -= np.einsum("...i,...i->...", change, weights)[..., None]
    change *= weights
    return change, of_value


def _broadcast(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return the inputs, broadcast to the same leading dimensions.

    Raises:
        ValueError: they do not fit each other or the mask.
    """
    scores = (query.shape[-2], key.shape[-2])
    front: tuple[int, ...] = query.shape[:-2]
    if not front == key.shape[:-2] == value.shape[:-2]:
        front = np.broadcast_shapes(front, key.shape[:-2], value.shape[:-2])
    if mask is not None:
        try:
            fits = np.broadcast_shapes((*front, *scores), mask.shape)
        except ValueError:
            fits = ()
        if fits[-2:] != scores:
            raise ValueError(f"a mask of shape {mask.shape} does not fit scores of shape {(*front, *scores)}")
        front = fits[:-2]
    broadcast = (x if x.shape[:-2] == front else broadcast_to(x, (*front, *x.shape[-2:])) for x in (query, key, value))
    query, key, value = broadcast
    return query, key, value


def _shared(query: Tensor, x: Tensor) -> Tensor:
    """Return ``x`` with each head repeated for the queries' heads that share it."""
    if min(query.ndim, x.ndim) < 3 or not x.shape[-3] or query.shape[-3] % x.shape[-3]:
        raise ValueError("enable_gqa=True needs heads of key and value (dimension -3) that divide the query's evenly")
    return repeat_interleave(x, query.shape[-3] // x.shape[-3], -3)


def _narrow(x: Array, like: Tensor) -> Array:
    return x if x.dtype == like.dtype else x.astype(like.dtype)


@operation
def additive_mask(mask: Tensor, like: Tensor, attend_if: bool = True) -> Tensor:
    """Return a mask to add to scores; one of booleans becomes 0 where it equals ``attend_if``, and -inf elsewhere.

    Args:
        mask: booleans, or floating-point numbers that are added as they are.
        like: tensor with the dtype of the scores.
        attend_if: value of booleans where a query attends to a key.

    Raises:
        TypeError: the mask is of integers or complex numbers.
    """
    if mask.dtype.kind == "b":
        return Tensor(np.where(mask.numpy() == attend_if, 0, -np.inf).astype(like.dtype))
    if not mask.is_floating_point():
        raise TypeError(f"a mask must be of booleans or of floating point, not {mask.dtype}; convert it with to(bool)")
    return mask.to(like.dtype)


def causal_mask(queries: int, keys: int, like: Tensor) -> Tensor:
    """Return a mask of shape (queries, keys): -inf above the diagonal, so that no query attends to a later key.

    Args:
        queries, keys: number of each.
        like: tensor with the dtype of the scores.
    """
    return Tensor(np.triu(np.full((queries, keys), -np.inf, like.dtype), 1))


def _check(query: Tensor, key: Tensor, value: Tensor) -> None:
    if (
        min(query.ndim, key.ndim, value.ndim) < 2
        or query.shape[-1] != key.shape[-1]
        or key.shape[-2] != value.shape[-2]
    ):
        raise ValueError(
            f"it needs a query (..., L, E), a key (..., S, E) and a value (..., S, V), not {query.shape}, {key.shape} and "
            f"{value.shape}"
        )

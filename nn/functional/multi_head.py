"""Attention with several heads, each on its part of projections of query, key and value (Vaswani et al. 2017)."""

from __future__ import annotations

import math
from typing import NamedTuple

from ...core import cat, chunk, linear, zeros
from ...core.extend import Tensor
from .attention import additive_mask, attention

__all__ = ["multi_head_attention_forward"]


class Projections(NamedTuple):
    """Parameters of the projections of query, key and value: ``packed`` (3 * E, E), or three apart; their biases (3 * E,)."""

    packed: Tensor | None
    apart: tuple[Tensor | None, Tensor | None, Tensor | None]
    bias: Tensor | None


class Keys(NamedTuple):
    """Keys and values beside those that are given: learned ones of shape (E,), and zeros."""

    key: Tensor | None
    value: Tensor | None
    zeros: bool


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Return the result of attention with several heads, and its weights. ``MultiheadAttention`` is the layer.

    Args:
        query: shape (L, N, E) or (L, E).
        key, value: the same, with S instead of L.
        embed_dim_to_check: E, a multiple of ``num_heads``.
        num_heads: number of heads.
        in_proj_weight: projections of query, key and value, (3 * E, E).
        in_proj_bias: their biases, (3 * E,).
        bias_k, bias_v: a key and a value that are appended to all others, E elements.
        add_zero_attn: whether a key and a value of zeros is appended to all others.
        dropout_p: probability with which each attention weight is zeroed while training.
        out_proj_weight, out_proj_bias: projection of the result, (E, E) and (E,).
        training: whether weights are zeroed.
        key_padding_mask: shape (N, S) or (S,): true for keys that are left out, or numbers added to the scores.
        need_weights: whether to return the attention weights.
        attn_mask: shape (L, S) or (N * num_heads, L, S): true where a query does *not* attend to a key, or numbers added to
            the scores.
        use_separate_proj_weight: whether the next three are used instead of ``in_proj_weight``.
        q_proj_weight, k_proj_weight, v_proj_weight: projections, (E, features).
        static_k, static_v: must be ``None``.
        average_attn_weights: whether the weights are the mean of the heads' weights.
        is_causal: hint that ``attn_mask`` is the causal mask, which must be given too.

    Returns:
        The result, of the query's shape, and the weights, (N, L, S) or (N, num_heads, L, S), or ``None``.

    Raises:
        ValueError: the shapes do not fit, ``is_causal`` comes without ``attn_mask``, or there are static keys or values.
    """
    if static_k is not None or static_v is not None:
        raise ValueError("multi-head attention takes no static_k and static_v; give key and value")
    if query.shape[-1] != embed_dim_to_check or embed_dim_to_check % num_heads:
        raise ValueError(
            f"multi-head attention: embed_dim_to_check={embed_dim_to_check} must be the query's features, "
            f"{query.shape[-1]}, and a multiple of {num_heads} heads"
        )
    if is_causal and attn_mask is None:
        raise ValueError("multi-head attention: is_causal=True is a hint about attn_mask, so give attn_mask too")
    batched = query.ndim == 3
    apart = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else (None,) * 3
    alike = key is query and value is query
    q, k, v = (_batch_first(each, batched) for each in (query, key, value))
    _check_lengths(k, v)
    q, k, v = _projected(
        q, k, v, alike, Projections(None if use_separate_proj_weight else in_proj_weight, apart, in_proj_bias)
    )
    k, v, extra = _appended(k, v, Keys(bias_k, bias_v, add_zero_attn))
    padding = key_padding_mask if batched or key_padding_mask is None else key_padding_mask.unsqueeze(0)
    mask = _mask(attn_mask, padding, (len(q), num_heads, q.shape[1], k.shape[1]), extra, q)
    # A query that attends to no key gets nan with weights and 0 without, as in PyTorch, which has a way for each.
    empty_weight = math.nan if need_weights else 0.0
    scale = (embed_dim_to_check // num_heads) ** -0.5
    one, two, three = (_split(each, num_heads) for each in (q, k, v))
    out, weights = attention(one, two, three, mask, dropout_p if training else 0.0, scale, empty_weight)
    out = linear(out.transpose(1, 2).reshape(*q.shape), out_proj_weight, out_proj_bias)
    out = out.transpose(0, 1) if batched else out.squeeze(0)
    if not need_weights:
        return out, None
    weights = weights.mean(1) if average_attn_weights else weights
    return out, weights if batched else weights.squeeze(0)


def _batch_first(x: Tensor, batched: bool) -> Tensor:
    if x.ndim != (3 if batched else 2):
        raise ValueError(f"multi-head attention takes query, key and value all with or without batches, not {x.shape}")
    return x.transpose(0, 1) if batched else x.unsqueeze(0)


def _check_lengths(k: Tensor, v: Tensor) -> None:
    if k.shape[:-1] != v.shape[:-1]:
        raise ValueError(f"multi-head attention: key {k.shape} and value {v.shape} must have one length and batch")


def _projected(q: Tensor, k: Tensor, v: Tensor, alike: bool, by: Projections) -> tuple[Tensor, Tensor, Tensor]:
    weights = by.apart if by.packed is None else chunk(by.packed, 3)
    given = [_checked(name, x, weight) for name, x, weight in zip(("query", "key", "value"), (q, k, v), weights)]
    if alike and by.packed is not None:
        # One product instead of three.
        one, two, three = chunk(linear(q, by.packed, by.bias), 3, -1)
        return one, two, three
    biases = (None,) * 3 if by.bias is None else chunk(by.bias, 3)
    one, two, three = (linear(x, weight, bias) for x, weight, bias in zip((q, k, v), given, biases))
    return one, two, three


def _checked(name: str, x: Tensor, weight: Tensor | None) -> Tensor:
    if weight is None:
        raise ValueError(f"multi-head attention: there is no projection of the {name}; give its weight")
    if x.shape[-1] != weight.shape[-1]:
        raise ValueError(
            f"multi-head attention: the {name} must have {weight.shape[-1]} features, and has {x.shape[-1]}"
        )
    return weight


def _appended(k: Tensor, v: Tensor, more: Keys) -> tuple[Tensor, Tensor, int]:
    extra = 0
    if more.key is not None and more.value is not None:
        k, v = (
            cat([x, bias.reshape(1, 1, -1).expand(len(x), 1, -1)], 1) for x, bias in ((k, more.key), (v, more.value))
        )
        extra += 1
    if more.zeros:
        nothing = zeros(len(k), 1, k.shape[-1], dtype=k.dtype)
        k, v = cat([k, nothing], 1), cat([v, nothing], 1)
        extra += 1
    return k, v, extra


def _split(x: Tensor, heads: int) -> Tensor:
    return x.reshape(*x.shape[:2], heads, x.shape[-1] // heads).transpose(1, 2)


def _mask(
    attn: Tensor | None, padding: Tensor | None, shape: tuple[int, int, int, int], extra: int, like: Tensor
) -> Tensor | None:
    """Return both masks as one that is added to the scores (N, heads, L, S), with zeros for keys that were appended."""
    count, heads, queries, keys = shape[0], shape[1], shape[2], shape[3] - extra
    total: Tensor | None = None
    if attn is not None:
        if attn.shape not in ((queries, keys), (count * heads, queries, keys)):
            raise ValueError(
                f"multi-head attention: attn_mask must have shape {(queries, keys)} or {(count * heads, queries, keys)}, "
                f"and you gave {attn.shape}"
            )
        total = additive_mask(attn, like, False)
        total = total if attn.ndim == 2 else total.reshape(count, heads, queries, keys)
    if padding is not None:
        if padding.shape != (count, keys):
            raise ValueError(
                f"multi-head attention: key_padding_mask must have shape {(count, keys)}, and you gave {padding.shape}"
            )
        hidden = additive_mask(padding, like, False).reshape(count, 1, 1, keys)
        total = hidden if total is None else total + hidden
    if total is not None and extra:
        total = cat([total, zeros(*total.shape[:-1], extra, dtype=total.dtype)], -1)
    return total

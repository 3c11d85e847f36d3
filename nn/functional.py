"""Layers and losses as functions (``torch.nn.functional``)."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .. import core
from ..core import no_grad, sigmoid, tanh
from ..core.extend import Array, Row, Tensor, keep, keep_result, record, records

__all__ = [
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "dropout",
    "embedding",
    "l1_loss",
    "layer_norm",
    "linear",
    "log_softmax",
    "logsigmoid",
    "mse_loss",
    "nll_loss",
    "relu",
    "relu_",
    "sigmoid",
    "softmax",
    "softplus",
    "tanh",
]

linear = core.linear

_EMBEDDING = Row("embedding", lambda xp, g, shape, rows, share: xp.add_rows(shape, rows, g * share))
# exp(a - softplus(a)) is sigmoid(a), and overflows nowhere.
_SOFTPLUS = Row("softplus", lambda xp, g, a, out: g * xp.exp(a - out))


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of ``weight``, shape (rows, width), that the integers ``input``, of any shape, name.

    Args:
        input: the rows' numbers.
        weight: the table.
        padding_idx: a row that gets no gradient; a negative one counts from the end.
        max_norm: rows that are looked up and longer than this are first scaled down to it, in place.
        norm_type: the norm that ``max_norm`` means.
        scale_grad_by_freq: divide a row's gradient by how often it was looked up.
        sparse: must be false; gradients are dense.

    Raises:
        IndexError: a row is out of range.
        ValueError: ``sparse``, or ``padding_idx`` is out of range.
    """
    if sparse:
        raise ValueError("there are no sparse gradients; call embedding() with sparse=False")
    if max_norm is not None:
        _shorten_rows(weight, input, max_norm, norm_type)
    result = core.embedding(weight, input)
    if (padding_idx is None and not scale_grad_by_freq) or not records(weight):
        return result
    share = _shares(input.numpy(), weight, padding_idx, scale_grad_by_freq)
    return record(_EMBEDDING, Tensor(result.numpy(force=True)), (weight,), (), weight.shape, input.numpy(), share)


def row_number(index: int, rows: int) -> int:
    """``padding_idx`` counted from 0.

    Raises:
        ValueError: it is out of range.
    """
    if not -rows <= index < rows:
        raise ValueError(f"padding_idx must be within the {rows} rows of the table, and you gave {index}")
    return index % rows


def _shares(rows: Array, weight: Tensor, padding_idx: int | None, by_frequency: bool) -> Array:
    """What part of its gradient each looked-up row passes on: shape (*rows.shape, 1)."""
    share = np.ones(rows.shape, weight.dtype)
    if by_frequency:
        share /= np.bincount(rows.reshape(-1), minlength=1)[rows]
    if padding_idx is not None:
        share[rows == row_number(padding_idx, len(weight))] = 0
    return share[..., None]


def _shorten_rows(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    rows = np.unique(input.numpy())
    with no_grad():
        table = weight.numpy(force=True)[rows]
        norms = np.linalg.norm(table, norm_type, axis=1)
        long = norms > max_norm
        if long.any():
            weight[rows[long]] = Tensor(table[long] * (max_norm / (norms[long] + 1e-7))[:, None].astype(table.dtype))


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(input, 0)``; its gradient at 0 is 0."""
    return input.relu_() if inplace else core.relu(input)


def relu_(input: Tensor) -> Tensor:
    """``relu`` in place."""
    return input.relu_()


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: npt.DTypeLike | None = None) -> Tensor:
    """``exp(input)`` divided by its sum along ``dim``."""
    return core.softmax(input, _given_dim("softmax", dim, input, _stacklevel), dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: npt.DTypeLike | None = None
) -> Tensor:
    """The logarithm of ``softmax``, precise where that is tiny."""
    return core.log_softmax(input, _given_dim("log_softmax", dim, input, _stacklevel), dtype)


def _given_dim(name: str, dim: int | None, input: Tensor, stacklevel: int) -> int:
    if dim is not None:
        return dim
    chosen = 0 if input.ndim in (0, 1, 3) else 1
    warnings.warn(f"{name}() without dim is deprecated; write dim={chosen} to keep what it does", stacklevel=stacklevel)
    return chosen


def softplus(input: Tensor) -> Tensor:
    """``log(1 + exp(input))``, without overflow."""
    result = Tensor(np.logaddexp(np.zeros((), input.dtype), input.numpy(force=True)))
    return record(_SOFTPLUS, result, (input,), (keep(input), keep_result(result))) if records(input) else result


def logsigmoid(input: Tensor) -> Tensor:
    """``log(sigmoid(input))``, precise where that is tiny."""
    return -softplus(-input)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """While training, zero each element with probability ``p`` and scale the others by ``1 / (1 - p)``.

    Raises:
        ValueError: ``p`` is not within 0 and 1.
    """
    result = core.dropout(input, p, training)
    return input.copy_(result) if inplace and result is not input else result


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """Shift and scale to mean 0 and variance 1 over the last dimensions, those of ``normalized_shape``.

    Raises:
        ValueError: the input's last dimensions are others.
    """
    shape = tuple(normalized_shape)
    if not shape or input.shape[-len(shape) :] != shape:
        raise ValueError(f"layer_norm() over {shape} needs an input of shape (..., *{shape}), not {input.shape}")
    dims = tuple(range(-len(shape), 0))
    centred = input - input.mean(dims, True)
    result = centred / ((centred * centred).mean(dims, True) + eps).sqrt()
    result = result if weight is None else result * weight
    return result if bias is None else result + bias


# -- losses. `size_average` and `reduce` are the deprecated form of `reduction`; they keep their places.


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of ``softmax(input)`` and ``target``.

    Args:
        input: scores, shape (N, C), (C,) or (N, C, d1, ...).
        target: class indices, shape (N,), () or (N, d1, ...); or probabilities, of the input's shape.
        weight: of each class, shape (C,); the mean over class indices is a weighted one.
        ignore_index: targets of this value count nothing.
        reduction: "mean", "sum" or "none".
        label_smoothing: how much of the target is replaced by the uniform distribution, 0 to 1.

    Raises:
        IndexError: a class is out of range.
        ValueError: the shapes do not fit, or an unknown reduction.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    return core.cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of class indices under log-probabilities; arguments as those of ``cross_entropy``."""
    return core.nll_loss(input, target, weight, ignore_index, chosen_reduction(size_average, reduce, reduction))


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squared differences, reduced; the mean of weighted ones is divided by the weights' sum."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    if weight is None:
        return core.mse_loss(input, target, reduction)
    return _weighted(core.mse_loss(input, target, "none"), weight, reduction)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The absolute differences, reduced; the mean of weighted ones is divided by the weights' sum."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    if weight is None:
        return core.l1_loss(input, target, reduction)
    return _weighted(core.l1_loss(input, target, "none"), weight, reduction)


def _weighted(losses: Tensor, weight: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return (losses * weight).sum() / weight.sum()
    return _reduced(losses * weight, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """The binary cross entropy of ``sigmoid(input)`` and ``target``, computed without overflow.

    Args:
        input: scores, of any shape.
        target: probabilities, of the same shape.
        weight: factors of the losses, broadcast to them.
        reduction: "mean", "sum" or "none".
        pos_weight: factors of the losses of positive targets, broadcast.

    Raises:
        ValueError: the shapes differ, or an unknown reduction.
    """
    if target.shape != input.shape:
        raise ValueError(f"the target must have the input's shape {input.shape}, not {target.shape}")
    # -log(sigmoid(x)) is softplus(-x), and -log(1 - sigmoid(x)) is softplus(-x) + x.
    positive = 1 if pos_weight is None else (pos_weight - 1) * target + 1
    losses = (1 - target) * input + softplus(-input) * positive
    return _reduced(losses if weight is None else losses * weight, chosen_reduction(size_average, reduce, reduction))


def _reduced(losses: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return losses
    return losses.mean() if reduction == "mean" else losses.sum()


def chosen_reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    if size_average is not None or reduce is not None:
        chosen = "none" if reduce is False else "sum" if size_average is False else "mean"
        warnings.warn(f'size_average and reduce are deprecated; use reduction="{chosen}"', stacklevel=3)
        return chosen
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f'reduction must be "mean", "sum" or "none", and you gave {reduction!r}')
    return reduction

"""``bilinear`` and ``one_hot``; ``linear`` comes from the core."""

from __future__ import annotations

import numpy as np

from ...core import linear
from ...core.extend import Tensor, operation

__all__ = ["bilinear", "linear", "one_hot"]


@operation
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``input1 @ weight[k] @ input2 + bias[k]`` for each output k.

    Args:
        input1: shape (..., in1), floating-point.
        input2: shape (..., in2), with the same leading dimensions.
        weight: shape (out, in1, in2).
        bias: shape (out,).

    Returns:
        Shape (..., out).

    Raises:
        ValueError: the shapes do not fit.
    """
    fits = weight.ndim == 3 and input1.shape[-1:] == weight.shape[1:2] and input2.shape[-1:] == weight.shape[2:]
    if not fits or input1.shape[:-1] != input2.shape[:-1]:
        raise ValueError(
            f"a weight of shape {weight.shape} (out, in1, in2) does not fit inputs of shapes {input1.shape} and "
            f"{input2.shape}"
        )
    outputs, first, second = weight.shape
    # One matrix product over all pairs of the inputs' elements.
    pairs = input1.unsqueeze(-1) * input2.unsqueeze(-2)
    return linear(pairs.reshape(*input1.shape[:-1], first * second), weight.reshape(outputs, first * second), bias)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Return for each class a vector with 1 at its index and 0 elsewhere.

    Args:
        tensor: classes, of any integer dtype and shape (...).
        num_classes: number of classes; -1 for one more than the largest.

    Returns:
        Shape (..., num_classes), int64.

    Raises:
        TypeError: not integers.
        ValueError: a class is negative or too large, or there are no classes to take the largest of.
    """
    classes = tensor.numpy()
    if classes.dtype.kind not in "iu":
        raise TypeError(f"one_hot() takes integers, not {classes.dtype}")
    if num_classes < 0 and not classes.size:
        raise ValueError("one_hot() of no classes needs num_classes")
    count = int(classes.max()) + 1 if num_classes < 0 else num_classes
    if classes.size and (classes.min() < 0 or classes.max() >= count):
        raise ValueError(f"one_hot() needs classes from 0 to {count - 1}, and got {classes.min()} to {classes.max()}")
    result = np.zeros((*classes.shape, count), np.int64)
    result.reshape(-1)[np.arange(classes.size) * count + classes.reshape(-1)] = 1
    return Tensor(result)

"""Shared arithmetic of optimizers: blocks, buffers, and checks of options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ..core.extend import Array, Tensor, aligned_memory

# Elements. A block's temporaries stay in the processor's cache; a whole parameter's go to memory and back in every
# line of arithmetic. Of 4,096 to 131,072 this was the fastest, and up to twice as fast as no blocks.
BLOCK = 65_536
PLAIN = frozenset({float, int, bool, type(None)})  # types of most options


def in_blocks(*arrays: Array) -> Iterable[tuple[Array, ...]]:
    """Return matching blocks of arrays of one shape, to be written into; small arrays are one block."""
    size = arrays[0].size
    small = arrays[0].ndim > 0 and size <= BLOCK  # NumPy makes numbers of 0-d results, which cannot be written into
    if small or not all(array.ndim == 1 or array.flags.c_contiguous for array in arrays):
        return (arrays,)
    return _blocks([array.reshape(-1) for array in arrays], size)


def _blocks(flat: list[Array], size: int) -> Iterator[tuple[Array, ...]]:
    for start in range(0, size, BLOCK):
        yield tuple([array[start : start + BLOCK] for array in flat])


def with_spare(blocks: Iterable[tuple[Array, ...]]) -> Iterator[tuple[Array, tuple[Array, ...]]]:
    """Yield with each block an array like its first one, to write results to: the same one, so it stays in the cache."""
    spare: Array | None = None
    for block in blocks:
        if spare is None:
            spare = aligned_memory(block[0].shape, block[0].dtype)
        last = spare.shape != block[0].shape  # the last block is shorter
        yield spare[: len(block[0])] if last else spare, block


def scalar(value: float, like: Array) -> Array:
    """Return a number as an array without dimensions, of the dtype of another array.

    A call of NumPy takes 0.3 us less with it than with a number, which is converted in each call. Results are the same.
    """
    return np.array(value, like.dtype)


def one_number(array: Array) -> Array:
    """Return an array of one element if all its elements are one in memory, as in the gradient of a sum; others as they are.

    NumPy has vector instructions for a number and an array, but none for steps of 0 bytes: 73 us for a step of SGD with 500,000
    elements instead of 386.
    """
    return array[(slice(1),) * array.ndim] if array.size > 1 and not any(array.strides) else array


def number(value: Any) -> Any:
    """Return the number in a tensor of one element; anything else as it is."""
    return value.item() if isinstance(value, Tensor) else value


def numbers(group: dict[str, Any]) -> dict[str, Any]:
    """Return the options of ``group``, with tensors as numbers: updates compute on arrays, and with a tensor make tensors."""
    return {
        name: value if type(value) in PLAIN else tuple(map(number, value)) if type(value) is tuple else number(value)
        for name, value in group.items()
        if name != "params"
    }


def descent(grad: Array, value: Array, group: dict[str, Any]) -> Array:
    """Return the gradient to descend: ``grad``, negated for ``maximize``, plus ``weight_decay * value``.

    It may be ``grad`` itself, so it must not be written into.

    Args:
        grad: the gradient.
        value: the parameter's array.
        group: the options of its group.
    """
    direction = -grad if group["maximize"] else grad  # as signed(), without a call for each parameter
    return direction + group["weight_decay"] * value if group["weight_decay"] else direction


def decayed_descent(grad: Array, value: Array, group: dict[str, Any]) -> Array:
    """Return ``descent``; with ``decoupled_weight_decay``, multiply ``value`` by ``1 - lr * weight_decay`` instead.

    Args:
        grad: the gradient.
        value: the parameter's array.
        group: the options of its group.
    """
    if not group["decoupled_weight_decay"]:
        return descent(grad, value, group)
    if group["weight_decay"]:
        value *= 1 - group["lr"] * group["weight_decay"]
    return signed(grad, group)


def signed(grad: Array, group: dict[str, Any]) -> Array:
    """Return ``grad``, negated for ``maximize``."""
    return -grad if group["maximize"] else grad


def average_in(average: Array, new: Array, share: float, spare: Array | None = None) -> None:
    """Update a running average in place: ``average += share * (new - average)``.

    Args:
        average: the average.
        new: array of the same shape.
        share: the weight of ``new``, from 0 to 1.
        spare: array like both, to be written over.
    """
    step = np.subtract(new, average, out=spare)
    step *= share
    average += step


def average_square_in(square: Array, new: Array, beta: float, spare: Array | None = None) -> None:
    """Update a running average of squares in place: ``square = beta * square + (1 - beta) * new**2``.

    Args:
        square: the average of squares.
        new: array of the same shape.
        beta: the weight of the former average, from 0 to 1.
        spare: array like both, to be written over.
    """
    step = np.multiply(new, new, out=spare)
    step *= 1 - beta
    square *= beta
    square += step


def next_step(state: dict[str, Any]) -> int:
    """Count a step, and return its number, from 1."""
    step: int = state.get("step", 0) + 1
    state["step"] = step
    return step


def buffer(state: dict[str, Any], name: str, like: Array, fill: float = 0.0) -> Array:
    """Return the array of a tensor in ``state``, which is made on first use, of the shape and dtype of ``like``.

    Args:
        state: the state of a parameter.
        name: the entry.
        like: array of the shape and dtype.
        fill: the first value of each element.
    """
    if name not in state:
        state[name] = Tensor(np.full(like.shape, fill, like.dtype))
    array: Array = state[name].numpy()
    return array


def at_least(name: str, value: float, low: float = 0.0) -> None:
    """Check that ``value >= low``.

    Args:
        name: the option, for the error.
        value: its value.
        low: the smallest value that is allowed.

    Raises:
        ValueError: it is not.
    """
    if not value >= low:
        raise ValueError(f"{name} must be at least {low:g}, and you gave {value}")


def check_betas(betas: tuple[float, float]) -> None:
    """Check that each beta is at least 0 and below 1.

    Raises:
        ValueError: one is not.
    """
    for index, beta in enumerate(betas):
        if not 0 <= beta < 1:
            raise ValueError(f"betas[{index}] must be at least 0 and below 1, and you gave {beta}")


def not_differentiable(differentiable: bool) -> None:
    """Check that ``differentiable``, which is not offered, is False.

    Raises:
        ValueError: it is True.
    """
    if differentiable:
        raise ValueError("a step cannot be recorded; make the optimizer with differentiable=False")

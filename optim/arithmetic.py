"""What the arithmetic of several optimizers shares: blocks, buffers, and checks of options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core.extend import Array, Tensor

# Elements. A block's temporaries stay in the processor's cache; a whole parameter's go to memory and back in every
# line of arithmetic. Of 4,096 to 131,072 this was the fastest, and up to twice as fast as no blocks.
BLOCK = 65_536


def in_blocks(*arrays: Array) -> Iterator[tuple[Array, ...]]:
    """Matching pieces of arrays of one shape, to be written into; the arrays themselves where they are small."""
    size = arrays[0].size
    small = arrays[0].ndim > 0 and size <= BLOCK  # NumPy makes numbers of 0-d results, which cannot be written into
    if small or not all(array.flags.c_contiguous for array in arrays):
        yield arrays
        return
    flat = [array.reshape(-1) for array in arrays]
    for start in range(0, size, BLOCK):
        yield tuple(array[start : start + BLOCK] for array in flat)


def number(value: Any) -> Any:
    """The number in a tensor of one element; anything else as it is."""
    return value.item() if isinstance(value, Tensor) else value


def numbers(group: dict[str, Any]) -> dict[str, Any]:
    """The options of ``group``, tensors as numbers: updates compute on arrays, beside which a tensor makes a tensor."""
    return {
        name: tuple(number(item) for item in value) if type(value) is tuple else number(value)
        for name, value in group.items()
        if name != "params"
    }


def descent(grad: Array, value: Array, group: dict[str, Any]) -> Array:
    """The direction to go against: ``grad``, with its sign turned for ``maximize``, and with ``weight_decay``.

    It is ``grad`` itself where neither is asked for, so it must not be written into.
    """
    direction = turned(grad, group)
    return direction + group["weight_decay"] * value if group["weight_decay"] else direction


def decayed_descent(grad: Array, value: Array, group: dict[str, Any]) -> Array:
    """``descent``; but with ``decoupled_weight_decay`` it is ``value`` itself that decays, here and now."""
    if not group["decoupled_weight_decay"]:
        return descent(grad, value, group)
    if group["weight_decay"]:
        value *= 1 - group["lr"] * group["weight_decay"]
    return turned(grad, group)


def turned(grad: Array, group: dict[str, Any]) -> Array:
    """``grad``, with its sign turned for ``maximize``."""
    return -grad if group["maximize"] else grad


def average_in(average: Array, new: Array, share: float) -> None:
    """Move a running average towards ``new`` by ``share`` of the way."""
    step = new - average
    step *= share
    average += step


def average_square_in(square: Array, new: Array, beta: float) -> None:
    """Move a running average of squares: ``beta`` of it stays."""
    step = new * new
    step *= 1 - beta
    square *= beta
    square += step


def next_step(state: dict[str, Any]) -> int:
    """Count a step, and return its number: 1 for the first."""
    step: int = state.get("step", 0) + 1
    state["step"] = step
    return step


def buffer(state: dict[str, Any], name: str, like: Array, fill: float = 0.0) -> Array:
    """The array of a tensor in ``state``; made on first use, of the shape and dtype of ``like``."""
    if name not in state:
        state[name] = Tensor(np.full(like.shape, fill, like.dtype))
    array: Array = state[name].numpy()
    return array


def at_least(name: str, value: float, low: float = 0.0) -> None:
    """Raise ``ValueError`` unless ``value >= low``."""
    if not value >= low:
        raise ValueError(f"{name} must be at least {low:g}, and you gave {value}")


def check_betas(betas: tuple[float, float]) -> None:
    """Raise ``ValueError`` unless each is at least 0 and below 1."""
    for index, beta in enumerate(betas):
        if not 0 <= beta < 1:
            raise ValueError(f"betas[{index}] must be at least 0 and below 1, and you gave {beta}")


def not_differentiable(differentiable: bool) -> None:
    """Raise ``ValueError`` for an option that is not offered."""
    if differentiable:
        raise ValueError("a step cannot be recorded; make the optimizer with differentiable=False")

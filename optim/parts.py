"""Complex parameters as pairs of real numbers: as in PyTorch, each part has steps of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.extend import Array, Tensor

State = dict[str, Any]


def parts(x: Array) -> Array:
    """Return a view of a complex array as real numbers, with a last dimension of 2; a real array as it is."""
    return x[..., None].view(x.real.dtype) if x.dtype.kind == "c" else x


def update_parts(update: Callable[[Array, Array, State], None], value: Array, grad: Array, state: State) -> None:
    """Call ``update`` with the parts of its arguments; arrays that it adds to ``state`` are kept as complex numbers.

    Args:
        update: updates arrays of real numbers in place.
        value: the parameter's array.
        grad: its gradient.
        state: its state.
    """
    within = {name: Tensor(parts(item.numpy())) if isinstance(item, Tensor) else item for name, item in state.items()}
    update(parts(value), parts(grad), within)
    for name, item in within.items():
        state[name] = _joined(item, value) if isinstance(item, Tensor) else item


def _joined(item: Tensor, value: Array) -> Tensor:
    array = item.numpy()
    return Tensor(array.view(value.dtype)[..., 0]) if array.shape == (*value.shape, 2) else item

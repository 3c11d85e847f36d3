"""NumPy's reductions as its ufuncs have them.

The methods of arrays do the same a Python call later, and warn of ``inf - inf`` in NumPy's name instead of ours. Typed
loosely, because the stubs know no ``keepdims`` that is a variable.
"""

from typing import Any

import numpy as np

add_reduce: Any = np.add.reduce
multiply_reduce: Any = np.multiply.reduce
maximum_reduce: Any = np.maximum.reduce
minimum_reduce: Any = np.minimum.reduce

BLOCK = 512  # with 128, sums over a few hundred rows took twice as long


def pairwise_sum(x: Any, dims: Any, keepdims: bool = False) -> Any:
    """The sum over ``dims``, along a long one in blocks of ``BLOCK``, so that errors do not grow with its length.

    NumPy does so along the last dimension only: along others it adds row after row to one sum.
    """
    if dims is None or not x.ndim:
        return add_reduce(x, None, keepdims=keepdims)
    axis = max(dims, key=lambda dim: x.shape[dim], default=x.ndim - 1)
    if axis >= x.ndim - 1 or x.shape[axis] < 2 * BLOCK or not x.flags.c_contiguous:
        return add_reduce(x, dims, keepdims=keepdims)
    before, length, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    whole = length - length % BLOCK
    along = np.moveaxis(x, axis, 0)
    blocks = np.moveaxis(along[:whole], 0, axis).reshape(*before, -1, BLOCK, *after)
    parts = add_reduce(blocks, axis + 1)
    if whole < length:
        rest = np.expand_dims(add_reduce(along[whole:], 0), axis)
        parts = np.concatenate([parts, rest], axis)
    return pairwise_sum(parts, dims, keepdims)

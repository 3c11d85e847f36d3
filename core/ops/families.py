"""All families of operations: what a new one is added to, here and in ``core/__init__.py``.

A family is a module with ``__all__`` (functions for users), ``METHODS`` (names that are methods of tensors too), and, where
it has such, ``IN_PLACE`` (``"add_"``: function) and ``PROPERTIES`` (``"T"``: function).
"""

from . import (
    casting,
    convolution,
    elementwise,
    filling,
    indexing,
    interpolation,
    joining,
    layouts,
    linalg,
    losses,
    pooling,
    reductions,
    shaping,
    softmax,
    unpooling,
)

FAMILIES = (
    elementwise,
    reductions,
    softmax,
    linalg,
    shaping,
    interpolation,
    joining,
    layouts,
    indexing,
    casting,
    filling,
    losses,
    convolution,
    pooling,
    unpooling,
)

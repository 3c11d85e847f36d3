"""The operations: table rows (forward and gradient rules) by family, and the functions that users call."""

from . import casting, elementwise, indexing, joining, linalg, losses, namespaces, reductions, shaping, softmax
from . import methods as _methods
from . import recorded as _recorded

__all__ = [
    "casting",
    "elementwise",
    "indexing",
    "joining",
    "linalg",
    "losses",
    "namespaces",
    "reductions",
    "shaping",
    "softmax",
]

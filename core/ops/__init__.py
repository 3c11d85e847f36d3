"""The operations: table rows (forward and gradient rules) by family, and the functions that users call."""

from . import casting, elementwise, indexing, joining, linalg, losses, namespaces, reductions, shaping, softmax
from . import methods as _methods  # noqa: F401 - hangs the operations on Tensor
from . import recorded as _recorded  # noqa: F401 - fills TENSORS

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

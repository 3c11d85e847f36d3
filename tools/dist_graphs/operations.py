"""Operations of random expressions: each takes two tensors of one shape, perhaps sparse leaves, and returns one.

They are written so that they work with tensors of PyTorch as well.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ...core import matmul, sin, sparse, tanh, tensor
from ...core.extend import Tensor
from ...nn.functional import embedding

Operation = Callable[[Tensor, Tensor], Tensor]
ROWS = (1, 1, 3)  # of the table that is looked up


def dense(value: Tensor) -> Tensor:
    """Return a tensor as a dense one."""
    return value.to_dense() if getattr(value, "is_sparse", False) else value


def looked_up(table: Tensor, other: Tensor) -> Tensor:
    """Look up rows of a leaf, which gets a sparse gradient, and add their sum to each row of the other operand."""
    return dense(other) * 0.5 + _rows(table).tanh().sum(0)


def _rows(table: Any) -> Any:
    if isinstance(table, Tensor):
        return embedding(tensor(ROWS), table, sparse=True)
    torch = sys.modules["torch"]
    return torch.nn.functional.embedding(torch.tensor(ROWS), table, sparse=True)


def in_place(left: Tensor, right: Tensor) -> Tensor:
    """Change a copy of the first operand, and a view of it, in place."""
    result = dense(left) * 1.0
    result.mul_(dense(right))
    result[1:].add_(0.5)
    return result.tanh()


def hooked(left: Tensor, right: Tensor) -> Tensor:
    """Return a product, to whose gradient a hook adds a half."""
    result = dense(left) * dense(right)
    result.register_hook(lambda gradient: gradient * 1.5)
    return result


def gate(left: Tensor, right: Tensor) -> Tensor:
    """Let the first operand through where the second is positive; no gradient goes to the second."""
    return dense(left) * (dense(right).detach() > 0)


OPERATIONS: dict[str, Operation] = {
    "add": lambda left, right: dense(left).add(dense(right), alpha=0.5),
    "product": lambda left, right: (dense(left) * dense(right)).tanh(),
    "sine": lambda left, right: dense(left).sin() - dense(right) * 0.25,
    "matrices": lambda left, right: (dense(left) @ dense(right).t() @ dense(left)).tanh(),
    "mean": lambda left, right: dense(left) - dense(right).mean(0),
    "in place": in_place,
    "hooked": hooked,
}
# The first operand is a leaf; a sparse gradient goes no further, as in PyTorch.
OF_LEAVES: dict[str, Operation] = {"looked up": looked_up}
# The first operand is a sparse leaf.
SPARSE: dict[str, Operation] = {
    "sparse product": lambda left, right: sin((left * dense(right)).to_dense()),
    "sparse matrices": lambda left, right: tanh(matmul(sparse.mm(left, dense(right).t()), dense(right))),
    "sparse sum": lambda left, right: (left + left).to_dense() * dense(right),
}
DETACHING: dict[str, Operation] = {"gate": gate}
ALL = {**OPERATIONS, **OF_LEAVES, **SPARSE, **DETACHING}


def apply(name: str, left: Tensor, right: Tensor) -> Tensor:
    """Run an operation."""
    return ALL[name](left, right)

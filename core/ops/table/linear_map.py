"""``LinearMap``: an operation that is linear in its one input, given as a function on arrays and its adjoint.

Each is the gradient of the other, so such an operation can be differentiated any number of times without another rule:
flipping, padding, triangles, diagonals, windows, reading at an index.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...tensors import Tensor
from ...types import Array
from .nodes import record, records
from .rows import ARRAYS, Row
from .views import view_of


class LinearMap:
    """Linear operation on one tensor.

    Args:
        name: name of the operation; its node is called ``NameBackward``.
        forward: function on arrays, ``forward(x, *params)``.
        adjoint: its adjoint, ``adjoint(gradient, x.shape, *params)``.
        view: whether the result of ``forward`` is a view, and that of the operation as well.
    """

    __slots__ = ("adjoint", "adjoint_row", "forward", "row")

    def __init__(
        self, name: str, forward: Callable[..., Array], adjoint: Callable[..., Array], *, view: bool = False
    ) -> None:
        self.forward, self.adjoint = forward, adjoint
        self.row = Row(name, self._rule, view=forward if view else None, holomorphic=False)
        self.adjoint_row = Row(f"{name}_adjoint", self._adjoint_rule, holomorphic=False)

    def __call__(self, input: Tensor, *params: Any) -> Tensor:
        """Return the result of the operation, as a new tensor."""
        x = input._array
        result = Tensor(self.forward(x, *params))
        return record(self.row, result, (input,), (), x.shape, *params) if records(input) else result

    def view(self, input: Tensor, *params: Any) -> Tensor:
        """Return the result of the operation, as a view of ``input``."""
        x = input._array
        return view_of(input, self.forward(x, *params), self.row, params, (x.shape, *params))

    def transposed(self, gradient: Tensor, shape: tuple[int, ...], *params: Any) -> Tensor:
        """Return the result of the adjoint, recorded.

        Args:
            gradient: of the shape of the operation's result.
            shape: shape of the operation's input, and of this result.
            params: further arguments, those of the operation.
        """
        result = Tensor(self.adjoint(gradient._array, shape, *params))
        return record(self.adjoint_row, result, (gradient,), (), shape, *params) if records(gradient) else result

    def _rule(self, xp: Any, g: Any, shape: tuple[int, ...], *params: Any) -> Any:
        return self.adjoint(g, shape, *params) if xp is ARRAYS else self.transposed(g, shape, *params)

    def _adjoint_rule(self, xp: Any, g: Any, shape: tuple[int, ...], *params: Any) -> Any:
        return self.forward(g, *params) if xp is ARRAYS else self(g, *params)

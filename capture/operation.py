"""``Operation``: one operation of the recorded call, with its arguments as they were before it ran."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.extend import Tensor, gradient_edge
from .trees import tensors_of


class Operation:
    """An operation that has run.

    Attributes:
        function: the operation.
        args, kwargs: its arguments.
        edges: the edges of the tensors among them before it ran; an operation in place changes them.
        result: what it returned.
        drew: whether it drew random numbers.
        written: arguments that it changed in place.
    """

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.name = getattr(function, "__name__", str(function))
        self.tensors = tensors_of((args, kwargs))
        self.edges = [gradient_edge(tensor) for tensor in self.tensors]
        self.result: Any = None
        self.drew = False
        self.written: list[Tensor] = []

    def outputs(self) -> list[Tensor]:
        """Return the results, and the arguments that it changed."""
        results = tensors_of(self.result)
        return results + [each for each in self.written if not any(each is result for result in results)]

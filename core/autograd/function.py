"""``Function``: operations that users define, with a gradient of their own.

Ownership: the node owns the context and the saved tensors; the context refers to its node weakly. So a saved output makes
no reference cycle, and a context that outlives its node raises an error when it is asked for the saved tensors.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...base.errors import AutogradError
from ..interception import NOT_TAKEN, offer
from ..interception import active as interceptors
from ..ops.table.rows import TENSORS
from ..tensors import Tensor
from ..types import DType
from .accumulate import AccumulateGrad
from .edges import gradient_edge
from .function_context import FunctionContext
from .grad_mode import is_grad_enabled, no_grad
from .hook_calls import to_tensor
from .node import Edges, Node
from .saved_values import SavingNode

_NEW_FORM = """write it with static methods and call apply:
    class {name}(Function):
        @staticmethod
        def forward(ctx, x): ...
        @staticmethod
        def backward(ctx, grad): ...
    y = {name}.apply(x)"""


class Function:
    """Subclass it with static methods ``forward`` and ``backward``, and call ``YourFunction.apply(...)``.

    ``forward(ctx, *args)`` computes; or ``forward(*args)`` does and ``setup_context(ctx, inputs, output)`` saves.
    ``backward(ctx, *grads)`` takes one gradient for each output and returns one for each argument of ``forward``: ``None``
    for arguments that are not tensors or need no gradient. ``ctx`` is a ``FunctionContext``.

    Example:
        >>> class Square(Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         (x,) = ctx.saved_tensors
        ...         return 2 * x * grad
        >>> x = Tensor([3.0], requires_grad=True)
        >>> Square.apply(x).backward()
        >>> x.grad
        tensor([6.])
    """

    def __init__(self) -> None:
        raise AutogradError(f"a Function is not instantiated; {_NEW_FORM.format(name=type(self).__name__)}")

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the output, a tensor or a tuple, from ``(ctx, *args)``."""
        raise NotImplementedError("your Function must define the static method forward")

    @staticmethod
    def setup_context(ctx: FunctionContext, inputs: tuple[Any, ...], output: Any) -> None:
        """Save what ``backward`` needs, if ``forward`` takes no context.

        Args:
            ctx: the context.
            inputs: the arguments of ``forward``.
            output: what it returned.
        """

    @staticmethod
    def backward(ctx: FunctionContext, *grad_outputs: Any) -> Any:
        """Return the gradients of the arguments, given those of the outputs."""
        raise NotImplementedError("your Function must define the static method backward")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run ``forward`` without recording it, and record this function in its place.

        Raises:
            AutogradError: ``forward`` or ``backward`` is not a static method (the form of PyTorch before 1.3).
        """
        if interceptors and (taken := offer(cls.apply, args, {})) is not NOT_TAKEN:
            return taken
        _check_form(cls)
        ctx = FunctionContext()
        tensors = [arg for arg in args if isinstance(arg, Tensor)]
        ctx.needs_input_grad = tuple(isinstance(arg, Tensor) and arg._requires_grad for arg in args)
        with no_grad():
            if cls.setup_context is Function.setup_context:
                output = cls.forward(ctx, *args)
            else:
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
        if not is_grad_enabled() or not any(ctx.needs_input_grad):
            return output
        edges = tuple(gradient_edge(tensor) for tensor in tensors)
        outputs = output if isinstance(output, tuple) else (output,)
        node = FunctionNode(cls, ctx, args, edges, len(outputs))
        results = node.adopt_outputs(outputs, tensors)
        return results if isinstance(output, tuple) else results[0]


class OutputInfo(NamedTuple):
    """The shape and dtype of an output, for zero gradients."""

    shape: tuple[int, ...]
    dtype: DType


class FunctionNode(SavingNode):
    """The node of a custom function.

    Args:
        function: the class.
        ctx: its context.
        args: the arguments of ``forward``.
        edges: of those that are tensors.
        outputs: the number of outputs.
    """

    __slots__ = ("arguments", "ctx", "function", "outputs")

    tape: ClassVar[bool] = False

    def __init__(
        self, function: type[Function], ctx: FunctionContext, args: tuple[Any, ...], edges: Edges, outputs: int
    ) -> None:
        super().__init__(edges, outputs)
        self.function = function
        self.ctx = ctx
        # For each argument of forward that is a tensor, the shape and dtype of its gradient.
        self.arguments = [(arg.shape, arg.dtype) if isinstance(arg, Tensor) else None for arg in args]
        self.outputs: list[OutputInfo | None] = []

    def adopt_outputs(self, outputs: tuple[Any, ...], inputs: list[Tensor]) -> tuple[Any, ...]:
        """Make ``outputs`` this node's, and take the tensors to save from the context."""
        ctx, results = self.ctx, []
        for slot, output in enumerate(outputs):
            if not isinstance(output, Tensor):
                self.outputs.append(None)
                results.append(output)
                continue
            self.outputs.append(OutputInfo(output.shape, output.dtype))
            results.append(ctx.adopt(self, slot, output, inputs, results))
        self.saved = ctx.take_saved(self, outputs, tuple(results))
        return tuple(results)

    def apply(self, grads: tuple[Any, ...]) -> list[Any]:
        """Run the user's ``backward`` on arrays."""
        results = self._run([to_tensor(grad) for grad in grads])
        # Copies, because the user may keep these tensors, and their arrays would become some leaf's .grad.
        return [
            None if result is None else result.detach().clone() if result.is_sparse else result._array.copy()
            for result in results
        ]

    def apply_graph(self, grads: tuple[Any, ...]) -> list[Any]:
        """Run the user's ``backward`` on tensors, recording it."""
        return self._run(list(grads))

    def _run(self, grads: list[Any]) -> list[Any]:
        if self.ctx.materialize_grads:
            for slot, info in enumerate(self.outputs):
                if grads[slot] is None and info is not None:
                    grads[slot] = Tensor(np.zeros(info.shape, info.dtype))
        returned = self.function.backward(self.ctx, *grads)
        results = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        return self._checked(results)

    def _checked(self, results: list[Any]) -> list[Any]:
        name, expected = self.function.__name__, len(self.arguments)
        while len(results) > expected and results[-1] is None:
            results.pop()
        if len(results) != expected:
            raise AutogradError(
                f"{name}.backward returned {len(results)} gradients, and forward took {expected} arguments; "
                "return one for each, None where there is none"
            )
        checked: list[Any] = []
        for place, (result, target) in enumerate(zip(results, self.arguments)):
            if target is not None:
                leaf = _is_leaf(self.next_edges[len(checked)])
                checked.append(None if result is None else _fitted(name, place, result, *target, keep_sparse=leaf))
            elif result is not None:
                raise AutogradError(f"{name}.backward returned a gradient for argument {place}, which is not a tensor")
        return checked

    def name(self) -> str:
        """Return the function's name with ``Backward`` after it."""
        return f"{self.function.__name__}Backward"


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a ``backward`` that cannot be differentiated again: doing so is an error instead of a wrong result."""

    @functools.wraps(backward)
    def wrapper(ctx: FunctionContext, *grads: Any) -> Any:
        with no_grad():
            results = backward(ctx, *grads)
        if not is_grad_enabled():
            return results
        single = not isinstance(results, tuple)
        guarded = tuple(_guarded(result, ctx) for result in ((results,) if single else results))
        return guarded[0] if single else guarded

    return wrapper


class OnceDifferentiable(Node):
    """The node of gradients of a ``once_differentiable`` backward; it raises when a pass reaches it."""

    __slots__ = ("function",)

    def __init__(self, function: str) -> None:
        super().__init__()
        self.function = function

    def apply(self, grads: tuple[Any, ...]) -> list[Any]:
        """Raise an error."""
        raise AutogradError(f"{self.function} is marked once_differentiable, so its gradient has no gradient")

    def apply_graph(self, grads: tuple[Any, ...]) -> list[Any]:
        """Raise an error."""
        return self.apply(grads)


def _guarded(result: Any, ctx: FunctionContext) -> Any:
    if not isinstance(result, Tensor):
        return result
    return Tensor(result._array, True, (OnceDifferentiable(ctx.name()), 0))


def _is_leaf(edge: Any) -> bool:
    return edge is None or isinstance(edge[0], AccumulateGrad)


def _fitted(name: str, place: int, result: Any, shape: tuple[int, ...], dtype: Any, keep_sparse: bool) -> Tensor:
    if not isinstance(result, Tensor):
        raise TypeError(
            f"{name}.backward must return tensors and None, and argument {place} got {type(result).__name__}"
        )
    if result.shape != shape:
        try:
            fits = np.broadcast_shapes(shape, result.shape) == result.shape
        except ValueError:
            fits = False
        if not fits:
            raise AutogradError(
                f"{name}.backward returned a gradient of shape {result.shape} for argument {place}, of shape {shape}"
            )
    if result.is_sparse:
        if keep_sparse and (result.shape, result.dtype) == (shape, dtype):
            return result
        result = result.to_dense()  # a gradient rule needs an array
    return TENSORS.fit(result, shape, dtype)


def _check_form(cls: type[Function]) -> None:
    for method in ("forward", "backward"):
        if not isinstance(inspect.getattr_static(cls, method), staticmethod):
            raise AutogradError(
                f"{cls.__name__}.{method} is not a static method; {_NEW_FORM.format(name=cls.__name__)}"
            )

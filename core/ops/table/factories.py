"""From a NumPy function and gradient rules to an operation on tensors: the path that every element-wise call takes.

These closures are the library's hottest code: one Python frame for the call, one each for the new tensor and node.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from ...autograd.edges import gradient_edge
from ...autograd.grad_mode import is_grad_enabled
from ...autograd.node import Edges
from ...dtypes import to_float
from ...interception import NOT_TAKEN, active, offer
from ...tensors import Operand, Tensor
from ...types import Array, Counter
from .call_errors import FAILURES, explained
from .in_place import write_out
from .nodes import BroadcastNode, OpNode, Saved, keep, keep_result, record
from .operands import coerce, not_a_tensor, real_only
from .operation import Declaration, Keeps, published
from .registry import OPERATIONS, PACKAGE, named
from .rows import Row, Rule

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Unary(Protocol):
    """Signature of operations made by ``unary``."""

    __name__: str

    def __call__(self, input: Tensor, *, out: Tensor | None = None) -> Tensor: ...


class Binary(Protocol):
    """Signature of operations made by ``binary`` and ``comparison``."""

    __name__: str

    def __call__(self, input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...


Numbers = Literal["either", "second", "neither"]

_ndarray = np.ndarray
_CONSTANT: Counter = [0]  # the version counter of operands that cannot change


def unary(
    name: str,
    forward: Callable[[Array], Any],
    rule: Rule,
    *,
    saves: str,
    doc: str,
    module: str | None = None,
    by_names: Callable[..., Any] | None = None,
    **declaration: Unpack[Declaration],
) -> Unary:
    """Return an operation on one tensor that computes in floating point.

    Args:
        name: name of the operation.
        forward: function on arrays.
        rule: gradient rule, ``rule(xp, grad, saved)``.
        saves: "a" if the rule takes the input, "o" if it takes the result, "" if neither.
        doc: docstring of the operation.
        module: module in which the operation is found by its name, if it is not a function of ``telegrad``.
        by_names: function that is called instead where the call has no tensor, but arguments by other names.
        declaration: where users find it; see ``Declaration``.
    """
    row = Row(name, rule)
    saves_input, saves_result = "a" in saves, "o" in saves

    def operation(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        if active and (taken := _offer(operation, (input,), out)) is not NOT_TAKEN:
            return taken
        try:
            x = input._array
        except AttributeError:
            raise TypeError(f"{name}() takes a tensor, not {type(input).__name__}") from None
        used = row
        if x.dtype.kind == "f":
            result = Tensor(forward(x))
        else:
            x = to_float(x)
            used = row.of(x.dtype)
            try:
                # NumPy computes bfloat16 with Python numbers in float32.
                result = Tensor(forward(x) if x.dtype.kind != "V" else forward(x.astype(np.float32)).astype(x.dtype))
            except FAILURES as error:
                raise explained(error, name, (input,), {}) from None
        if input._requires_grad and is_grad_enabled():
            saved: tuple[Saved, ...] = ()
            if saves_input:
                counter = input._counter
                saved = ((x, input, counter, counter[0]),)
            elif saves_result:
                saved = ((result._array, None, result._counter, 0),)
            result._edge = (OpNode(used, (input._edge or gradient_edge(input),), saved), 0)
            result._requires_grad = True
        return result if out is None else write_out(name, result, out)

    if by_names is not None:
        operation = _or_by_names(name, operation, by_names)  # interceptors see this one, too, for it is what users have
    return declared(operation, name, doc, declaration, module, "keep" if saves_input else "overwrite")


def _or_by_names(name: str, compute: Unary, by_names: Callable[..., Any]) -> Unary:
    def operation(input: Tensor | None = None, *, out: Tensor | None = None, **named: Any) -> Tensor:
        if input is not None and not named:
            return compute(input, out=out)
        if input is None and out is None:
            return by_names(**named)
        raise TypeError(
            f"{name}() takes a tensor, or values by name; it got both: {', '.join(sorted(named) or ['out'])}"
        )

    operation.__signature__ = inspect.signature(compute)  # type: ignore[attr-defined]  # of the method, too
    return operation


def binary(
    name: str,
    forward: Callable[[Any, Any], Any],
    rule_a: Rule,
    rule_b: Rule,
    *,
    saves: tuple[str, str],
    doc: str,
    floats: bool = False,
    numbers: Numbers = "either",
    module: str | None = None,
    **declaration: Unpack[Declaration],
) -> Binary:
    """Return an operation on two operands that are broadcast together; at least one is a tensor.

    Args:
        name: name of the operation.
        forward: function on two arrays, or an array and a number.
        rule_a: gradient rule of the first operand, ``rule(xp, grad, *saved)``.
        rule_b: gradient rule of the second operand.
        saves: for each rule, the values that it takes: "a", "b" and "o" (the result). Both rules are passed the values that
            either takes, in this order; those that only the other one needs may be ``None``.
        doc: docstring of the operation.
        floats: whether integers are converted to the default floating-point dtype.
        numbers: which operand may be a number.
        module: module in which the operation is found by its name, if it is not a function of ``telegrad``.
        declaration: where users find it; see ``Declaration``.
    """
    row = Row(name, rule_a, rule_b)
    letters = [letter for letter in "abo" if letter in saves[0] + saves[1]]
    # Indexed by (a requires grad) + 2 * (b requires grad).
    plans = [
        tuple(letter if letter in needed else "" for letter in letters)
        for needed in ("", saves[0], saves[1], saves[0] + saves[1])
    ]

    def operation(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
        if active and (taken := _offer(operation, (input, other), out)) is not NOT_TAKEN:
            return taken
        x: Any = input
        y: Any = other
        needs = 0
        if isinstance(input, Tensor):
            x = input._array
            if input._requires_grad:
                needs = 1
        elif numbers != "either":
            raise not_a_tensor(name, "input", input)
        if isinstance(other, Tensor):
            y = other._array
            if other._requires_grad:
                needs += 2
        elif numbers == "neither":
            raise not_a_tensor(name, "other", other)
        alike = type(x) is _ndarray and type(y) is _ndarray and x.dtype is y.dtype
        if not alike or (floats and x.dtype.kind in "biu"):
            x, y = coerce(name, x, y, floats)
        try:
            result = Tensor(forward(x, y))
        except FAILURES as error:
            raise explained(error, name, (input, other), {}) from None
        if needs and is_grad_enabled():
            used = row if result._array.dtype.kind == "f" else row.of(result._array.dtype)
            plan = plans[needs]
            saved = _saved(plan, result, input, other, x, y) if plan else ()
            edge_a = (input._edge or gradient_edge(input)) if needs & 1 else None  # type: ignore[union-attr, arg-type]
            edge_b = (other._edge or gradient_edge(other)) if needs & 2 else None  # type: ignore[union-attr, arg-type]
            if alike and x.shape == y.shape:
                node = OpNode(used, (edge_a, edge_b), saved)
            else:
                node = _fitting(used, (edge_a, edge_b), saved, result._array.shape, input, other, x, y)
            result._edge = (node, 0)
            result._requires_grad = True
        return result if out is None else write_out(name, result, out)

    keeps: Keeps = "keep" if "a" in saves[0] else "keep_for_other" if "a" in saves[1] else "overwrite"
    return declared(operation, name, doc, declaration, module, keeps)


def _saved(plan: tuple[str, ...], result: Tensor, a: Any, b: Any, x: Any, y: Any) -> tuple[Saved, ...]:
    saved: list[Saved] = []
    for letter in plan:
        if letter == "a":
            saved.append((x, a, a._counter, a._counter[0]) if isinstance(a, Tensor) else (x, x, _CONSTANT, 0))
        elif letter == "b":
            saved.append((y, b, b._counter, b._counter[0]) if isinstance(b, Tensor) else (y, y, _CONSTANT, 0))
        else:
            saved.append((result._array, None, result._counter, 0) if letter else None)
    return tuple(saved)


def _fitting(
    row: Row, edges: Edges, saved: tuple[Saved, ...], shape: tuple[int, ...], a: Any, b: Any, x: Any, y: Any
) -> OpNode:
    """Return the node of operands that may have been broadcast or converted; then it fits their gradients."""
    target_a = target_b = None
    if edges[0] is not None and (x is not a._array or x.shape != shape):
        target_a = (a._array.shape, a._array.dtype)
    if edges[1] is not None and (y is not b._array or y.shape != shape):
        target_b = (b._array.shape, b._array.dtype)
    if target_a is target_b:  # both None
        return OpNode(row, edges, saved)
    return BroadcastNode(row, edges, saved, (target_a, target_b))


def comparison(
    name: str,
    forward: Callable[[Any, Any], Any],
    doc: str,
    *,
    ordered: bool = False,
    numbers: Numbers = "either",
    **declaration: Unpack[Declaration],
) -> Binary:
    """Return an operation on two operands, broadcast together, without gradient.

    Args:
        name: name of the operation.
        forward: function on two arrays, or an array and a number.
        doc: docstring of the operation.
        ordered: whether complex numbers are refused, because they have no order.
        numbers: which operand may be a number.
        declaration: where users find it; see ``Declaration``.
    """
    if ordered:
        forward = real_only(forward)

    def operation(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
        if active and (taken := _offer(operation, (input, other), out)) is not NOT_TAKEN:
            return taken
        x: Any = input
        y: Any = other
        if isinstance(input, Tensor):
            x = input._array
        elif numbers != "either":
            raise not_a_tensor(name, "input", input)
        if isinstance(other, Tensor):
            y = other._array
        elif numbers == "neither":
            raise not_a_tensor(name, "other", other)
        if type(x) is not _ndarray or type(y) is not _ndarray or x.dtype is not y.dtype:
            x, y = coerce(name, x, y)
        try:
            result = Tensor(forward(x, y))
        except FAILURES as error:
            raise explained(error, name, (input, other), {}) from None
        return result if out is None else write_out(name, result, out)

    return declared(operation, name, doc, declaration)


def same_dtype(
    name: str,
    forward: Callable[[Array], Any],
    rule: Rule | None,
    *,
    saves: str = "",
    doc: str,
    **declaration: Unpack[Declaration],
) -> Unary:
    """Return an operation on one tensor that keeps its dtype, integers included.

    Args:
        name: name of the operation.
        forward: function on arrays.
        rule: gradient rule, ``rule(xp, grad, saved)``; if ``None``, the gradient is 0.
        saves: "a" if the rule takes the input, "o" if it takes the result, "" if neither.
        doc: docstring of the operation.
        declaration: where users find it; see ``Declaration``.
    """
    row = Row(name, zero_gradient if rule is None else rule)

    def operation(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        if active and (taken := _offer(operation, (input,), out)) is not NOT_TAKEN:
            return taken
        try:
            result = Tensor(forward(input._array))
        except FAILURES as error:
            raise explained(error, name, (input,), {}) from None
        if input._requires_grad and is_grad_enabled():
            saved = (keep(input),) if saves == "a" else (keep_result(result),) if saves == "o" else ()
            record(row, result, (input,), saved)
        return result if out is None else write_out(name, result, out)

    return declared(operation, name, doc, declaration, keeps="keep" if "a" in saves else "overwrite")


def predicate(name: str, forward: Callable[[Array], Any], doc: str, **declaration: Unpack[Declaration]) -> Unary:
    """Return an operation on one tensor without gradient, as ``isnan``.

    Args:
        name: name of the operation.
        forward: function on arrays.
        doc: docstring of the operation.
        declaration: where users find it; see ``Declaration``.
    """

    def operation(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        if active and (taken := _offer(operation, (input,), out)) is not NOT_TAKEN:
            return taken
        try:
            result = Tensor(forward(input._array))
        except FAILURES as error:
            raise explained(error, name, (input,), {}) from None
        return result if out is None else write_out(name, result, out)

    return declared(operation, name, doc, declaration)


def declared(
    operation: Any,
    name: str,
    doc: str,
    declaration: Declaration,
    module: str | None = None,
    keeps: Keeps = "overwrite",
) -> Any:
    """Return a closure with the name of its operation, published as its declaration says.

    Args:
        operation: the closure.
        name: name of the operation.
        doc: docstring of the operation.
        declaration: where users find it; see ``Declaration``.
        module: module in which the operation is found by its name, if it is not a function of ``telegrad``.
        keeps: value of ``in_place`` if the declaration has ``True``.
    """
    path = declaration.get("function")
    if isinstance(path, str):
        module = f"{PACKAGE}.{path.rpartition('.')[0]}"
    if declaration.get("in_place") is True:
        declaration = {**declaration, "in_place": keeps}
    return published(**declaration)(named(operation, name, doc, module))


def zero_gradient(xp: Any, g: Any, *saved: Any) -> Any:
    """Return zeros: the gradient rule of functions that are constant between jumps, as ``floor``."""
    return xp.zeros_like(g)


def _offer(operation: Callable[..., Any], operands: tuple[Any, ...], out: Tensor | None) -> Any:
    # The public function of that name, which may be this one with further parameters (``add`` has ``alpha``).
    operation = OPERATIONS.get(operation.__name__, operation)
    return offer(operation, operands, {} if out is None else {"out": out})

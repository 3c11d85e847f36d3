"""Reverse-mode transforms: ``grad``, ``grad_and_value``, ``vjp``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..base.errors import AutogradError
from ..core import Tensor, autograd, ones_like, zeros_like
from .arguments import chosen, with_chosen
from .recording import record
from .trees import checked, replaced


def grad(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return the function that computes the gradient of ``func``.

    Args:
        func: returns a tensor of one element; if ``has_aux``, a pair of it and anything.
        argnums: the positional arguments to differentiate by: trees of floating-point tensors.
        has_aux: whether ``func`` returns a pair; then the function returns ``(gradient, aux)``.

    Returns:
        A function of the same arguments. Its result has the form of the argument; for a tuple of numbers, it is a tuple.

    Raises:
        AutogradError: at the call: the output has not one element.
        ValueError: at the call: there is no such argument, or it holds something else than tensors.

    >>> grad(lambda x: (x**3).sum())(Tensor([1.0, 2.0]))
    tensor([ 3., 12.])
    """
    both = grad_and_value(func, argnums, has_aux)

    @wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return the function that computes the gradient of ``func`` and its value: ``(gradient, output)``.

    Args:
        func, argnums: as for ``grad``, as are the errors.
        has_aux: whether ``func`` returns a pair; then the value is ``(output, aux)``.
    """

    @wraps(func)
    def both(*args: Any, **kwargs: Any) -> Any:
        arguments = chosen(argnums, args)
        called = record(with_chosen(func, argnums, args, kwargs), arguments, has_aux)
        output = called.result
        if not isinstance(output, Tensor) or output.numel() != 1:
            raise AutogradError(
                f"grad() needs a function that returns a tensor of one element, and it returned {_described(output)}"
            )
        found = pulled([output], called.inputs, [ones_like(output)], called.nested)
        tree = replaced(arguments, found)
        value = called.released(output)
        return tree if isinstance(argnums, tuple) else tree[0], (value, called.aux) if has_aux else value

    return both


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return ``func(*primals)``, and the function of a vector that gives its product with the Jacobian.

    Args:
        func: returns a tree of tensors; if ``has_aux``, a pair of it and anything.
        primals: trees of floating-point tensors.
        has_aux: whether ``func`` returns a pair; then the result is ``(output, vjp_fn, aux)``.

    Returns:
        ``(output, vjp_fn)``. ``vjp_fn`` takes a vector of the form and shapes of the output, any number of times, and returns a
        tuple of the forms of the primals, or the only one of them.

    Raises:
        ValueError: a primal, the output or the vector is not a tree of tensors, or the vector does not fit.

    >>> output, vjp_fn = vjp(lambda x: x * x, Tensor([1.0, 2.0]))
    >>> vjp_fn(Tensor([1.0, 10.0]))
    (tensor([ 2., 40.]),)
    """
    called = record(func, primals, has_aux)

    def vjp_fn(cotangents: Any) -> Any:
        vectors = checked(cotangents, "the vector of vjp_fn()")
        if [vector.shape for vector in vectors] != [output.shape for output in called.outputs]:
            raise ValueError(
                f"vjp_fn() needs a vector of the shapes {[tuple(each.shape) for each in called.outputs]}, and you gave "
                f"{[tuple(each.shape) for each in vectors]}"
            )
        nested = called.nested or any(vector.requires_grad for vector in vectors)
        return replaced(primals, pulled(called.outputs, called.inputs, vectors, nested))

    value = called.released(called.result)
    return (value, vjp_fn, called.aux) if has_aux else (value, vjp_fn)


def pulled(
    outputs: list[Tensor], inputs: list[Tensor], vectors: list[Tensor], create_graph: bool
) -> tuple[Tensor, ...]:
    """Return the product of vectors with a Jacobian: a tensor for each input. The graph is kept.

    Args:
        outputs: tensors of the graph.
        inputs: tensors that require gradients.
        vectors: one for each output, of its shape.
        create_graph: record the product.
    """
    starts = [(output, vector) for output, vector in zip(outputs, vectors) if output.requires_grad]
    if not starts:
        return tuple(zeros_like(each) for each in inputs)
    ends, given = zip(*starts)
    return autograd.grad(ends, inputs, given, True, create_graph, allow_unused=True, materialize_grads=True)


def _described(value: Any) -> str:
    return f"one of shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"

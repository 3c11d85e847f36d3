"""Derivatives of functions: ``jacobian``, ``hessian``, and their products with vectors (``torch.autograd.functional``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...base.errors import AutogradError
from ..ops.shape.joining import stack
from ..tensors import Tensor
from .forward import push_forward
from .grad_mode import enable_grad
from .gradients import grad

Function = Callable[..., Any]
Inputs = Tensor | Sequence[Tensor]


def jacobian(
    func: Function,
    inputs: Inputs,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the derivative of each element of ``func(*inputs)`` by each element of the inputs.

    Args:
        func: returns a tensor or a tuple of tensors.
        inputs: a tensor, or several.
        create_graph: record the computation, so that the result can be differentiated.
        strict: raise where an output does not depend on an input, instead of returning zeros.
        vectorize, strategy: have no effect: rows are computed one by one, backward.

    Returns:
        A tensor of shape ``(*output.shape, *input.shape)``; of several outputs or inputs, tuples of them, outputs first.

    Raises:
        AutogradError: ``strict``, and an output does not depend on an input.

    >>> jacobian(lambda x: x * x, Tensor([1.0, 3.0]))
    tensor([[2., 0.],
            [0., 6.]])
    """
    given, outputs = _evaluated(func, inputs, create_graph)
    rows = tuple(_rows(output, given, create_graph, strict, number) for number, output in enumerate(_tuple(outputs)))
    by_output = tuple(row[0] if isinstance(inputs, Tensor) else row for row in rows)
    return by_output[0] if isinstance(outputs, Tensor) else by_output


def hessian(
    func: Function,
    inputs: Inputs,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the second derivatives of ``func(*inputs)`` by each pair of elements of the inputs.

    Args:
        func: returns a tensor of one element.
        inputs: a tensor, or several.
        create_graph: record the computation, so that the result can be differentiated.
        strict: raise where the gradient does not depend on an input, instead of returning zeros.
        vectorize, outer_jacobian_strategy: have no effect: rows are computed one by one, backward.

    Returns:
        A tensor of shape ``(*input.shape, *input.shape)``; of several inputs, a tuple of tuples.

    Raises:
        AutogradError: the result has more than one element; ``strict``, and a derivative is missing.
    """

    def gradient(*own: Tensor) -> Any:
        value = _one(func(*own))
        found = grad(value, own, create_graph=True, allow_unused=True, materialize_grads=True)
        return found[0] if isinstance(inputs, Tensor) else found

    return jacobian(gradient, inputs, create_graph, strict)


def vjp(func: Function, inputs: Inputs, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return ``func(*inputs)``, and the product of the vector ``v`` with the Jacobian.

    Args:
        func: returns a tensor or a tuple of tensors.
        inputs: a tensor, or several.
        v: the vector, of the shapes of the outputs; may be left out if there is one output of one element.
        create_graph: record the computation, so that the result can be differentiated.
        strict: raise where an output does not depend on an input, instead of returning zeros.

    Returns:
        The outputs, and the product, of the shapes of the inputs.

    Raises:
        AutogradError: ``v`` does not fit; ``strict``, and an input takes no part.
    """
    given, outputs = _evaluated(func, inputs, create_graph)
    vectors = _vectors(v, _tuple(outputs), "v")
    products = grad(
        _tuple(outputs),
        given,
        vectors,
        create_graph=create_graph,
        allow_unused=not strict,
        materialize_grads=not strict,
    )
    return _freed(outputs, create_graph), products[0] if isinstance(inputs, Tensor) else products


def jvp(func: Function, inputs: Inputs, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return ``func(*inputs)``, and the product of the Jacobian with the vector ``v``.

    Args:
        func: returns a tensor or a tuple of tensors.
        inputs: a tensor, or several.
        v: the vector, of the shapes of the inputs; may be left out if there is one input of one element.
        create_graph: record the computation, so that the result can be differentiated.
        strict: raise where an output does not depend on an input, instead of returning zeros.

    Returns:
        The outputs, and the product, of the shapes of the outputs.

    Raises:
        AutogradError: ``v`` does not fit; ``strict``, and an input takes no part.
    """
    given, outputs = _evaluated(func, inputs, True)
    products = push_forward(_tuple(outputs), given, strict)(_vectors(v, given, "v"), create_graph)
    return _freed(outputs, create_graph), products[0] if isinstance(outputs, Tensor) else products


def vhp(func: Function, inputs: Inputs, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return ``func(*inputs)``, and the product of the vector ``v`` with the Hessian.

    Args:
        func: returns a tensor of one element.
        inputs: a tensor, or several.
        v: the vector, of the shapes of the inputs; may be left out if there is one input of one element.
        create_graph: record the computation, so that the result can be differentiated.
        strict: raise where the output does not depend on an input, instead of returning zeros.

    Returns:
        The output, and the product, of the shapes of the inputs.

    Raises:
        AutogradError: the output has more elements; ``v`` does not fit; ``strict``, and an input takes no part.
    """
    given, outputs = _evaluated(func, inputs, True)
    value = _one(outputs)
    first = grad(value, given, create_graph=True, allow_unused=not strict, materialize_grads=not strict)
    used = [(slope, vector) for slope, vector in zip(first, _vectors(v, given, "v")) if slope.requires_grad]
    products = tuple(Tensor(np.zeros(tensor.shape, tensor.dtype)) for tensor in given)
    if used:
        slopes, vectors = zip(*used)
        products = grad(slopes, given, vectors, create_graph=create_graph, allow_unused=True, materialize_grads=True)
    return _freed(outputs, create_graph), products[0] if isinstance(inputs, Tensor) else products


def hvp(func: Function, inputs: Inputs, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return ``func(*inputs)``, and the product of the Hessian with the vector ``v``: that of ``vhp``, by symmetry.

    Args:
        func: returns a tensor of one element.
        inputs: a tensor, or several.
        v: the vector, of the shapes of the inputs; may be left out if there is one input of one element.
        create_graph: record the computation, so that the result can be differentiated.
        strict: raise where the output does not depend on an input, instead of returning zeros.

    Returns:
        The output, and the product, of the shapes of the inputs.

    Raises:
        AutogradError: the output has more elements; ``v`` does not fit; ``strict``, and an input takes no part.
    """
    return vhp(func, inputs, v, create_graph, strict)


def _evaluated(func: Function, inputs: Inputs, create_graph: bool) -> tuple[tuple[Tensor, ...], Any]:
    # With create_graph, aliases in the graph; else leaves, so that nothing else is differentiated.
    given = tuple(
        tensor.view_as(tensor) if create_graph and tensor.requires_grad else tensor.detach().requires_grad_()
        for tensor in _tuple(inputs)
    )
    with enable_grad():
        outputs = func(*given)
    for number, output in enumerate(_tuple(outputs)):
        if not isinstance(output, Tensor):
            raise TypeError(
                f"the function must return tensors, and output {number} is of class {type(output).__name__}"
            )
    return given, outputs


def _rows(
    output: Tensor, given: tuple[Tensor, ...], create_graph: bool, strict: bool, number: int
) -> tuple[Tensor, ...]:
    """Return the derivatives of one output by each input."""
    found: list[list[Tensor]] = [[] for _ in given]
    for place in range(output.numel()):
        start = np.zeros(output.shape, output.dtype)
        start.reshape(-1)[place] = 1
        grads: Any = (None,) * len(given)
        if output.requires_grad:
            grads = grad(output, given, Tensor(start), retain_graph=True, create_graph=create_graph, allow_unused=True)
        for index, (gradient, tensor) in enumerate(zip(grads, given)):
            if gradient is None and strict:
                raise AutogradError(f"output {number} does not depend on input {index}, and strict=True")
            found[index].append(Tensor(np.zeros(tensor.shape, output.dtype)) if gradient is None else gradient)
    return tuple(
        stack(parts).reshape(*output.shape, *tensor.shape)
        if parts
        else Tensor(np.zeros((*output.shape, *tensor.shape), output.dtype))
        for parts, tensor in zip(found, given)
    )


def _one(value: Any) -> Tensor:
    if not isinstance(value, Tensor) or value.numel() != 1:
        shape = value.shape if isinstance(value, Tensor) else type(value).__name__
        raise AutogradError(f"a Hessian is that of one number, and the function returned {shape}")
    return value.reshape(())


def _vectors(v: Any, like: tuple[Tensor, ...], name: str) -> tuple[Tensor, ...]:
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise AutogradError(f"{name} can be left out only for one element; give {[tuple(t.shape) for t in like]}")
        return (Tensor(np.ones(like[0].shape, like[0].dtype)),)
    vectors = _tuple(v)
    if [vector.shape for vector in vectors] != [tensor.shape for tensor in like]:
        raise AutogradError(
            f"{name} must have the shapes {[tuple(t.shape) for t in like]}, and you gave {[tuple(t.shape) for t in vectors]}"
        )
    return vectors


def _tuple(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, (tuple, list)) else (values,)


def _freed(outputs: Any, create_graph: bool) -> Any:
    if create_graph:
        return outputs
    return outputs.detach() if isinstance(outputs, Tensor) else tuple(output.detach() for output in outputs)

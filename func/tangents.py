"""Forward-mode transforms: ``jvp`` and ``linearize``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core import Tensor, autograd
from .recording import Recorded, record
from .trees import checked, replaced


def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Any:
    """Return ``func(*primals)``, and the product of the Jacobian with the tangents.

    Args:
        func: returns a tree of tensors; if ``has_aux``, a pair of it and anything.
        primals: trees of floating-point tensors.
        tangents: of the forms and shapes of the primals.
        strict: raise where an input takes no part, instead of taking its derivative for 0.
        has_aux: whether ``func`` returns a pair; then the result is ``(output, product, aux)``.

    Raises:
        AutogradError: ``strict``, and an input takes no part.
        ValueError: primals, tangents or the output are not trees of tensors, or the tangents do not fit.

    >>> jvp(lambda x: x * x, (Tensor([1.0, 2.0]),), (Tensor([1.0, 10.0]),))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    called = record(func, tuple(primals), has_aux)
    product = pushed(called, autograd.push_forward(called.outputs, called.inputs, strict), tangents)
    value = called.released(called.result)
    return (value, product, called.aux) if has_aux else (value, product)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return ``func(*primals)``, and the function of tangents that gives their products with the Jacobian there.

    ``func`` is called once, however many tangents follow. Arguments and errors are those of ``jvp``.
    """
    called = record(func, primals, False)
    push = autograd.push_forward(called.outputs, called.inputs)
    return called.released(called.result), lambda *tangents: pushed(called, push, tangents)


def pushed(called: Recorded, push: Callable[..., tuple[Tensor, ...]], tangents: Any) -> Any:
    """Return the product of a recorded call's Jacobian with tangents, in the form of its result.

    Args:
        called: the call.
        push: of its outputs and inputs, from ``push_forward``.
        tangents: a tree of tensors of the shapes of the inputs.

    Raises:
        ValueError: the tangents do not fit.
    """
    vectors = checked(tangents, "tangents")
    if [vector.shape for vector in vectors] != [each.shape for each in called.inputs]:
        raise ValueError(
            f"tangents have the shapes of the primals, {[tuple(each.shape) for each in called.inputs]}, and you gave "
            f"{[tuple(each.shape) for each in vectors]}"
        )
    nested = called.nested or any(vector.requires_grad for vector in vectors)
    return replaced(called.result, push(vectors, nested))

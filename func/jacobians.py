"""Whole Jacobians and Hessians: ``jacrev`` by rows, ``jacfwd`` by columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any

from ..core import Tensor, autograd, stack, zeros_like
from .arguments import chosen, with_chosen
from .gradients import pulled
from .recording import Recorded, record
from .trees import replaced

Blocks = list[list[Tensor]]  # by output, then by input
Numbers = int | tuple[int, ...]


def jacrev(
    func: Callable[..., Any], argnums: Numbers = 0, has_aux: bool = False, *, chunk_size: int | None = None
) -> Callable[..., Any]:
    """Return the function that computes the Jacobian of ``func``, with a backward pass for each element of the output.

    Args:
        func: returns a tree of tensors; if ``has_aux``, a pair of it and anything.
        argnums: the positional arguments to differentiate by: trees of floating-point tensors.
        has_aux: whether ``func`` returns a pair; then the function returns ``(jacobian, aux)``.
        chunk_size: has no effect: rows are computed one by one.

    Returns:
        A function of ``func``'s arguments. Its result has the form of the output, with a tree of the form of the argument (or a
        tuple of such, for a tuple of numbers) in the place of each tensor; its tensors are ``(*output.shape, *input.shape)``.

    Raises:
        ValueError: at the call: there is no such argument, or it or the output holds something else than tensors.

    >>> jacrev(lambda x: x * x)(Tensor([1.0, 3.0]))
    tensor([[2., 0.],
            [0., 6.]])
    """
    return _transformed(func, argnums, has_aux, _by_rows)


def jacfwd(
    func: Callable[..., Any], argnums: Numbers = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """Return the function that computes the Jacobian of ``func``, with a pass for each element of the arguments.

    Args:
        func, argnums, has_aux: as for ``jacrev``, as are the result and the errors.
        randomness: has no effect: ``func`` is called once.
    """
    return _transformed(func, argnums, has_aux, _by_columns)


def hessian(func: Callable[..., Any], argnums: Numbers = 0) -> Callable[..., Any]:
    """Return the function that computes the second derivatives of ``func``: ``jacfwd(jacrev(func))``.

    >>> hessian(lambda x: (x**3).sum())(Tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def _transformed(
    func: Callable[..., Any], argnums: Numbers, has_aux: bool, blocks: Callable[[Recorded], Blocks]
) -> Callable[..., Any]:
    @wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        arguments = chosen(argnums, args)
        called = record(with_chosen(func, argnums, args, kwargs), arguments, has_aux)
        rows = [replaced(arguments, row) for row in blocks(called)]
        found = replaced(called.result, rows if isinstance(argnums, tuple) else [row[0] for row in rows])
        return (found, called.aux) if has_aux else found

    return jacobian


def _by_rows(called: Recorded) -> Blocks:
    return [_rows(called, place, output) for place, output in enumerate(called.outputs)]


def _rows(called: Recorded, place: int, output: Tensor) -> list[Tensor]:
    found = [pulled([output], called.inputs, [start], called.nested) for start in _basis(output)]
    return [_shaped([row[number] for row in found], 0, output, each) for number, each in enumerate(called.inputs)]


def _by_columns(called: Recorded) -> Blocks:
    push = autograd.push_forward(called.outputs, called.inputs)
    zeros = [zeros_like(each) for each in called.inputs]
    blocks: Blocks = [[] for _ in called.outputs]
    for number, each in enumerate(called.inputs):
        columns = [push([*zeros[:number], start, *zeros[number + 1 :]], called.nested) for start in _basis(each)]
        for place, output in enumerate(called.outputs):
            blocks[place].append(_shaped([column[place] for column in columns], -1, output, each))
    return blocks


def _basis(tensor: Tensor) -> Iterator[Tensor]:
    """Yield, for each element, a tensor of this shape with 1 there and 0 elsewhere."""
    for place in range(tensor.numel()):
        start = zeros_like(tensor)
        start.view(-1)[place] = 1
        yield start


def _shaped(parts: Sequence[Tensor], dim: int, output: Tensor, each: Tensor) -> Tensor:
    shape = (*output.shape, *each.shape)
    return stack(parts, dim).reshape(shape) if parts else output.new_zeros(shape)

"""Dimensions in another order: ``permute``, ``transpose``, ``movedim``, ``.T`` and their kin, all views."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .complex_parts import conj
from .dims import one_dim
from .operation import operation
from .table import Row
from .views import view_of

__all__ = ["adjoint", "moveaxis", "movedim", "permute", "swapaxes", "swapdims", "t", "transpose"]
METHODS = ("adjoint", "moveaxis", "movedim", "permute", "swapaxes", "swapdims", "t", "transpose")

PERMUTE = Row(
    "permute",
    lambda xp, g, inverse: xp.transpose(g, inverse),
    view=lambda x, order: x.transpose(order),
    holomorphic=False,
)


@operation
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """A view with two dimensions exchanged.

    Raises:
        IndexError: there is no such dimension.
    """
    order = exchanged(input._array.ndim, dim0, dim1)
    return view_of(input, input._array.transpose(order), PERMUTE, (order,), (order,))


def exchanged(ndim: int, dim0: int, dim1: int) -> tuple[int, ...]:
    """The order of dimensions after ``transpose``; it is its own inverse."""
    order = list(range(ndim))
    first, second = one_dim(dim0, ndim), one_dim(dim1, ndim)
    if order:
        order[first], order[second] = second, first
    return tuple(order)


@operation
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """``transpose`` under NumPy's name."""
    return transpose(input, axis0, axis1)


@operation
def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """``transpose`` under another name."""
    return transpose(input, dim0, dim1)


@operation
def permute(input: Tensor, *dims: Any) -> Tensor:
    """A view with the dimensions in the order ``dims``.

    Raises:
        IndexError: there is no such dimension.
        ValueError: ``dims`` does not name each dimension once.
    """
    given = tuple(dims[0]) if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    ndim = input._array.ndim
    order = tuple([one_dim(dim, ndim) for dim in given])
    if sorted(order) != list(range(ndim)):
        raise ValueError(f"permute() must name each of the {ndim} dimensions once, and you gave {given}")
    return _permuted(input, order)


@operation
def movedim(input: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...]) -> Tensor:
    """A view with the dimensions ``source`` moved to the places ``destination``; the others keep their order.

    Raises:
        IndexError: there is no such dimension.
        ValueError: the two are of unequal numbers, or name a dimension twice.
    """
    ndim = input._array.ndim
    sources, places = (
        [one_dim(dim, ndim) for dim in ((given,) if isinstance(given, int) else given)]
        for given in (source, destination)
    )
    if len(sources) != len(places) or len({*sources}) != len(sources) or len({*places}) != len(places):
        raise ValueError(f"movedim() needs as many different places as dimensions: {source} and {destination}")
    if not ndim:
        return _permuted(input, ())
    order = [dim for dim in range(ndim) if dim not in sources]
    for place, dim in sorted(zip(places, sources)):
        order.insert(place, dim)
    return _permuted(input, tuple(order))


@operation
def moveaxis(input: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...]) -> Tensor:
    """``movedim`` under NumPy's name."""
    return movedim(input, source, destination)


@operation
def t(input: Tensor) -> Tensor:
    """A view of a matrix with rows and columns exchanged; of fewer dimensions, as it is.

    Raises:
        ValueError: more than two dimensions.
    """
    if input.ndim > 2:
        raise ValueError(f"t() takes at most 2 dimensions, and the shape is {input.shape}; use transpose(), or .mT")
    return _reversed(input)


def _reversed(input: Tensor) -> Tensor:
    return _permuted(input, tuple(reversed(range(input._array.ndim))))


def _permuted(input: Tensor, order: tuple[int, ...]) -> Tensor:
    inverse = list(order)
    for place, dim in enumerate(order):
        inverse[dim] = place
    return view_of(input, input._array.transpose(order), PERMUTE, (order,), (tuple(inverse),))


@operation
def reversed_dims(input: Tensor) -> Tensor:
    """``.T``: a view with all dimensions in reverse order."""
    return _reversed(input)


@operation
def matrix_transpose(input: Tensor) -> Tensor:
    """``.mT``: a view with the last two dimensions exchanged.

    Raises:
        ValueError: fewer than two dimensions.
    """
    if input._array.ndim < 2:
        raise ValueError(f".mT needs at least 2 dimensions, and the shape is {input.shape}")
    return transpose(input, -2, -1)


@operation
def adjoint(input: Tensor) -> Tensor:
    """The conjugate transposed matrices: the last two dimensions exchanged; a view of what is real.

    Raises:
        ValueError: fewer than two dimensions.
    """
    return conj(matrix_transpose(input))


@operation
def hermitian(input: Tensor) -> Tensor:
    """``.H``: the conjugate transpose of a matrix.

    Raises:
        ValueError: not two dimensions.
    """
    if input._array.ndim not in (0, 2):
        raise ValueError(f".H takes matrices, and the shape is {input.shape}; use .mH for batches of them")
    return conj(_reversed(input))


PROPERTIES = {"H": hermitian, "T": reversed_dims, "mH": adjoint, "mT": matrix_transpose}

"""Views with the dimensions in another order: ``permute``, ``transpose``, ``movedim``, ``t``, ``.T``, ``.mT``, ``.mH``."""

from __future__ import annotations

from typing import Any

from ...shapes import listed
from ...tensors import Tensor
from ..elementwise.complex_numbers import conj
from ..table.dims import one_dim
from ..table.operation import operation
from ..table.rows import Row
from ..table.views import view_of


def _inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    inverse = list(order)
    for position, dim in enumerate(order):
        inverse[dim] = position
    return tuple(position % max(len(order), 1) for position in inverse)


# The rules call methods that arrays and tensors both have.
SWAP = Row(
    "transpose",
    lambda xp, g, dim0, dim1: g.swapaxes(dim0, dim1),
    view=lambda x, dim0, dim1: x.swapaxes(dim0, dim1),
    holomorphic=False,
)
_REVERSE = Row("t", lambda xp, g: g.T, view=lambda x: x.T, holomorphic=False)
_PERMUTE = Row(
    "permute",
    lambda xp, g, order: xp.transpose(g, _inverse(order)),
    view=lambda x, order: x.transpose(order),
    holomorphic=False,
)


@operation(method=True, synonyms=("swapdims",))
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Return a view with two dimensions exchanged.

    Args:
        input: any shape and dtype.
        dim0: one dimension.
        dim1: the other dimension.

    Raises:
        IndexError: there is no such dimension.
    """
    x = input._array
    if not x.ndim:
        one_dim(dim0, 0), one_dim(dim1, 0)
        return _reversed(input)
    try:
        out = x.swapaxes(dim0, dim1)
    except ValueError:
        raise _no_such_dim(dim0, dim1, x.ndim) from None
    return view_of(input, out, SWAP, (dim0, dim1), (dim0, dim1))


def _no_such_dim(dim0: int, dim1: int, ndim: int) -> Exception:
    try:
        one_dim(dim0, ndim)
        one_dim(dim1, ndim)
    except IndexError as error:
        return error
    return IndexError(f"dims {dim0} and {dim1} are out of range")


@operation(method=True)
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Return ``transpose`` under NumPy's name.

    Args:
        input: any shape and dtype.
        axis0: one dimension.
        axis1: the other dimension.
    """
    return transpose(input, axis0, axis1)


@operation(method=True)
def permute(input: Tensor, *dims: Any) -> Tensor:
    """Return a view with the dimensions in the order ``dims``.

    Raises:
        IndexError: there is no such dimension.
        ValueError: ``dims`` does not name each dimension once.
    """
    order = listed(dims)
    x = input._array
    try:
        out = x.transpose(order) if order else x.transpose(())
    except ValueError:
        for dim in order:
            one_dim(dim, x.ndim)
        raise ValueError(f"permute() must name each of the {x.ndim} dimensions once, and you gave {order}") from None
    return view_of(input, out, _PERMUTE, (order,), (order,))


@operation(method=True, synonyms=("moveaxis",))
def movedim(input: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...]) -> Tensor:
    """Return a view with the dimensions ``source`` moved to the positions ``destination``; the others keep their order.

    Args:
        input: any shape and dtype.
        source: the dimension or dimensions to move.
        destination: their new positions.

    Raises:
        IndexError: there is no such dimension.
        ValueError: the two differ in length, or name a dimension twice.
    """
    ndim = input._array.ndim
    sources, positions = (
        [one_dim(dim, ndim) for dim in ((given,) if isinstance(given, int) else given)]
        for given in (source, destination)
    )
    if len(sources) != len(positions) or len({*sources}) != len(sources) or len({*positions}) != len(positions):
        raise ValueError(f"movedim() needs as many different positions as dimensions: {source} and {destination}")
    order = [dim for dim in range(ndim) if dim not in sources]
    for position, dim in sorted(zip(positions, sources)):
        order.insert(position, dim)
    return permute(input, tuple(order) if ndim else ())


@operation(method=True)
def t(input: Tensor) -> Tensor:
    """Return a view of a matrix with rows and columns exchanged; a tensor of fewer dimensions as it is.

    Raises:
        ValueError: more than two dimensions.
    """
    if input.ndim > 2:
        raise ValueError(f"t() takes at most 2 dimensions, and the shape is {input.shape}; use transpose(), or .mT")
    return _reversed(input)


def _reversed(input: Tensor) -> Tensor:
    return view_of(input, input._array.T, _REVERSE, ())


@operation(property="T")
def reversed_dims(input: Tensor) -> Tensor:
    """Return ``.T``: a view with all dimensions in reverse order."""
    return _reversed(input)


@operation(property="mT")
def matrix_transpose(input: Tensor) -> Tensor:
    """Return ``.mT``: a view with the last two dimensions exchanged.

    Raises:
        ValueError: fewer than two dimensions.
    """
    if input._array.ndim < 2:
        raise ValueError(f".mT needs at least 2 dimensions, and the shape is {input.shape}")
    return transpose(input, -2, -1)


@operation(method=True, property="mH")
def adjoint(input: Tensor) -> Tensor:
    """Return the conjugate transposes of matrices ``(..., m, n)``, ``(..., n, m)``; a view if they are real.

    Raises:
        ValueError: fewer than two dimensions.
    """
    return conj(matrix_transpose(input))


@operation(property="H")
def hermitian(input: Tensor) -> Tensor:
    """Return ``.H``: the conjugate transpose of a matrix.

    Raises:
        ValueError: ``input`` is neither 0-d nor 2-d.
    """
    if input._array.ndim not in (0, 2):
        raise ValueError(f".H takes matrices, and the shape is {input.shape}; use .mH for batches of them")
    return conj(_reversed(input))

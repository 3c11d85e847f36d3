"""Arguments of a call on a mesh of which each worker gets a part of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from ...base.errors import ArgumentKindError, ArgumentValueError


class ScatteredPart:
    """Stands in a call for the argument of which each worker gets its own part.

    Args:
        number: place among the scattered arguments of the call.
    """

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return ScatteredPart, (self.number,)


class Scattered:
    """Argument of which each worker of a mesh gets its part. ``rpc.scattered`` and ``rpc.sharded`` make it.

    Args:
        parts: returns the parts for a number of workers.
    """

    def __init__(self, parts: Any) -> None:
        self.parts = parts

    def __reduce__(self) -> Any:
        raise ArgumentKindError(
            "rpc.scattered() and rpc.sharded() are arguments of calls on a mesh, and not inside of others"
        )


def scattered(values: Iterable[Any]) -> Scattered:
    """Give each worker of a mesh one value, in the order of the mesh.

    Args:
        values: as many as the mesh has workers.

    Raises:
        ArgumentKindError: they are no list, and nothing else to iterate.

    Example:
        >>> from telegrad import rpc
        >>> from telegrad.testing import cluster
        >>> with cluster(3):
        ...     print(list(rpc.mesh().call(pow, (2, rpc.scattered([1, 2, 3])))))
        [2, 4, 8]
    """
    try:
        values = list(values)
    except TypeError:
        raise ArgumentKindError(
            f"rpc.scattered() takes a list of values, one for each worker; you gave {values!r}"
        ) from None

    def parts(count: int) -> Sequence[Any]:
        if len(values) != count:
            raise ArgumentValueError(
                f"rpc.scattered() has {len(values)} values, and the mesh {count} workers; give one for each"
            )
        return values

    return Scattered(parts)


def sharded(tensor: Any, dim: int = 0) -> Scattered:
    """Give each worker of a mesh a part of a tensor or array, split along a dimension.

    Args:
        tensor: a tensor, or a NumPy array, with at least as many elements along ``dim`` as the mesh has workers. The lengths
            of the parts differ by one at most, the first are longer.
        dim: the dimension.

    Example:
        >>> import telegrad as tg
        >>> from telegrad import rpc
        >>> from telegrad.testing import cluster
        >>> with cluster(2):
        ...     print(rpc.mesh().call(tg.sum, (rpc.sharded(tg.arange(5)),)).values())
        [tensor(3), tensor(7)]
    """
    shape = getattr(tensor, "shape", None)
    if shape is None or not len(shape):
        raise ArgumentKindError(f"rpc.sharded() splits a tensor or array of one dimension or more; you gave {tensor!r}")
    if not isinstance(dim, int) or not -len(shape) <= dim < len(shape):
        raise ArgumentValueError(f"dim={dim!r} is no dimension of a tensor of shape {tuple(shape)}")

    def parts(count: int) -> Sequence[Any]:
        if shape[dim] < count:
            raise ArgumentValueError(
                f"rpc.sharded() cannot give {count} workers parts of a dimension of length {shape[dim]}; use a smaller mesh"
            )
        length, longer = divmod(shape[dim], count)
        ends = [length * place + min(place, longer) for place in range(count + 1)]
        before = (slice(None),) * (dim % len(shape))
        spans = [(*before, slice(start, end)) for start, end in itertools.pairwise(ends)]
        return [tensor[span] for span in spans]

    return Scattered(parts)


def take_parts(
    args: Sequence[Any], kwargs: dict[str, Any], count: int
) -> tuple[tuple[Any, ...], dict[str, Any], list[list[Any]]]:
    """Return the arguments with a ``ScatteredPart`` in the place of each scattered one, and the parts of each worker.

    Args:
        args: positional arguments.
        kwargs: keyword arguments.
        count: number of workers.
    """
    scattered_arguments: list[Sequence[Any]] = []

    def replaced(value: Any) -> Any:
        if type(value) is not Scattered:
            return value
        scattered_arguments.append(value.parts(count))
        return ScatteredPart(len(scattered_arguments) - 1)

    left, named = tuple(map(replaced, args)), {name: replaced(value) for name, value in kwargs.items()}
    rows = [list(row) for row in zip(*scattered_arguments)]
    return left, named, rows

"""Shape of a mesh: named dimensions, and the places of its workers in them. Pure."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any

from ...base.errors import ArgumentIndexError, ArgumentKindError, ArgumentValueError, UnknownWorkerError
from ..links.worker_info import WorkerInfo


def check_shape(shape: Mapping[str, int], count: int) -> dict[str, int]:
    """Return a shape for ``count`` workers.

    Raises:
        ArgumentKindError: it is no mapping of names to whole numbers.
        ArgumentValueError: it has another number of places.
    """
    if not isinstance(shape, Mapping):
        raise ArgumentKindError(f'shape= names the dimensions, as {{"host": 2, "rank": 4}}; you gave {shape!r}')
    for name, size in shape.items():
        if not isinstance(name, str) or not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ArgumentKindError(f"shape= has names and whole numbers above 0; you gave {name!r}: {size!r}")
    if math.prod(shape.values()) != count:
        raise ArgumentValueError(
            f"shape={dict(shape)!r} has {math.prod(shape.values())} places, and the mesh {count} workers; give a shape for "
            f"{count}, or name the workers with workers="
        )
    return dict(shape)


def places(shape: Mapping[str, int], chosen: Mapping[str, int | slice]) -> tuple[list[int], dict[str, int]]:
    """Return the places that have the chosen coordinates, in order, and the shape that is left.

    Args:
        shape: of the mesh.
        chosen: for a dimension a coordinate, which leaves the dimension out, or a slice.

    Raises:
        ArgumentValueError: the mesh has no such dimension, or a slice is empty.
        ArgumentIndexError: a coordinate is not in it.
        ArgumentKindError: a coordinate is neither a whole number nor a slice.
    """
    ranges: list[Sequence[int]] = []
    left = {}
    for name in chosen:
        if name not in shape:
            known = ", ".join(shape) or "none"
            raise ArgumentValueError(f"the mesh has no dimension {name!r}; its dimensions are {known}")
    for name, size in shape.items():
        wanted = chosen.get(name, slice(None))
        if isinstance(wanted, slice):
            ranges.append(range(size)[wanted])
            left[name] = len(ranges[-1])
        else:
            ranges.append((_coordinate(name, size, wanted),))
    strides = _strides(shape)
    found = [sum(map(int.__mul__, coordinates, strides)) for coordinates in itertools.product(*ranges)]
    if not found:
        raise ArgumentValueError(f"no worker of the mesh is at {dict(chosen)!r}")
    return found, left


def place_of(shape: Mapping[str, int], coordinates: Mapping[str, int]) -> int:
    """Return the place that has these coordinates, one for each dimension.

    Raises:
        ArgumentValueError: a dimension is missing, or not there; also ``ArgumentIndexError`` and ``ArgumentKindError``.
    """
    if missing := [name for name in shape if name not in coordinates]:
        raise ArgumentValueError(f"a worker has a coordinate in each dimension; give {', '.join(missing)}, too")
    for name, coordinate in coordinates.items():
        if isinstance(coordinate, slice):
            raise ArgumentKindError(f"{name}= is one coordinate here; you gave {coordinate!r}")
    return places(shape, coordinates)[0][0]


def find_place(workers: Sequence[WorkerInfo], shape: Mapping[str, int], worker: Any) -> int:
    """Return the place of a worker in a mesh.

    Args:
        workers: of the mesh, in its order.
        shape: of the mesh.
        worker: the worker's name or ``WorkerInfo``, its place, or its coordinates, a tuple.

    Raises:
        UnknownWorkerError: the mesh has no such worker.
        ArgumentIndexError: the mesh has no such place.
        ArgumentValueError: there are other numbers of coordinates and dimensions.
        ArgumentKindError: it is none of these.
    """
    if isinstance(worker, (str, WorkerInfo)):
        name = worker if isinstance(worker, str) else worker.name
        for place, info in enumerate(workers):
            if info.name == name:
                return place
        raise UnknownWorkerError(f"there is no worker {name!r} in this mesh")
    if isinstance(worker, tuple):
        if len(worker) > len(shape):
            raise ArgumentValueError(
                f"coordinates are {len(shape)} in this mesh ({', '.join(shape)}); you gave {worker!r}"
            )
        return place_of(shape, dict(zip(shape, worker)))
    if not hasattr(worker, "__index__") or isinstance(worker, bool):
        raise ArgumentKindError(f"a worker of a mesh is named by its name, place or coordinates; you gave {worker!r}")
    place, count = operator.index(worker), len(workers)
    if not -count <= place < count:
        raise ArgumentIndexError(f"place {place} is not in this mesh of {count} workers")
    return place % count


def _coordinate(name: str, size: int, coordinate: object) -> int:
    if not isinstance(coordinate, int) or isinstance(coordinate, bool):
        raise ArgumentKindError(f"{name}= is a whole number or a slice; you gave {coordinate!r}")
    if not -size <= coordinate < size:
        raise ArgumentIndexError(f"{name}={coordinate} is not in the mesh, whose {name!r} has {size} places")
    return coordinate % size


def _strides(shape: Mapping[str, int]) -> list[int]:
    strides, stride = [], 1
    for size in reversed(list(shape.values())):
        strides.append(stride)
        stride *= size
    return strides[::-1]

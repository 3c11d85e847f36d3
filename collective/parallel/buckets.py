"""Buckets: parameters whose gradients travel together, in one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import Tensor
from ...core.extend import Array

MIB = 1 << 20
FIRST_BYTES = MIB  # the first bucket is small, so that the first all_reduce starts early
DEFAULT_MIB = 25.0


class Bucket:
    """Parameters of one dtype, and the place of each in the array of their gradients.

    Args:
        index: of the bucket, in the order in which buckets are reduced.
        members: places of the parameters in the module.
        parameters: the parameters, in the same order.
    """

    def __init__(self, index: int, members: Sequence[int], parameters: Sequence[Tensor]) -> None:
        self.index = index
        self.members = tuple(members)
        self.parameters = tuple(parameters)
        self.dtype = parameters[0].dtype
        self._shapes = [tuple(parameter.shape) for parameter in parameters]
        self._ends = [0, *np.cumsum([parameter.numel() for parameter in parameters]).tolist()]

    def size(self) -> int:
        """Return the number of elements of all gradients."""
        return int(self._ends[-1])

    def part(self, row: Array, place: int) -> Array:
        """Return the gradient of one parameter: a view of the array of all."""
        return row[self._ends[place] : self._ends[place + 1]].reshape(self._shapes[place])

    def parts(self, row: Array) -> list[Array]:
        """Return the gradient of each parameter, as views of the array of all."""
        return [self.part(row, place) for place in range(len(self.members))]


def make_buckets(parameters: Sequence[Tensor], limit: float, places: Sequence[int]) -> list[Bucket]:
    """Return buckets of the parameters from the last to the first, which is about the order of a backward pass.

    Args:
        parameters: of the module, in its order.
        limit: bytes of a bucket; a larger parameter has one of its own.
        places: of the parameters that get a bucket, in ascending order.
    """
    open_members: dict[Any, list[int]] = {}
    sizes: dict[Any, int] = {}
    closed: list[list[int]] = []
    for index in reversed(places):
        parameter = parameters[index]
        members = open_members.setdefault(parameter.dtype, [])
        members.append(index)
        sizes[parameter.dtype] = sizes.get(parameter.dtype, 0) + parameter._array.nbytes
        if sizes[parameter.dtype] >= (limit if closed else min(FIRST_BYTES, limit)):
            closed.append(open_members.pop(parameter.dtype))
            sizes[parameter.dtype] = 0
    closed += open_members.values()
    return [Bucket(number, members, [parameters[i] for i in members]) for number, members in enumerate(closed)]


def bucket_bytes(mib: float) -> float:
    """Return the bytes of a bucket of some MiB.

    Raises:
        ValueError: it is not above 0.
    """
    if not mib > 0:
        raise ValueError(f"bucket_cap_mb must be a number of MiB above 0; you gave {mib!r}")
    return mib * MIB


class GradBucket:
    """Gradients of one bucket, as a communication hook gets them (``torch.distributed.GradBucket``).

    Args:
        bucket: its parameters.
        row: their gradients, one after the other.
        is_last: whether no bucket follows in this backward.
    """

    def __init__(self, bucket: Bucket, row: Array, is_last: bool) -> None:
        self._bucket = bucket
        self._buffer = Tensor(row)
        self._is_last = is_last

    def index(self) -> int:
        """Return the bucket's number: buckets are reduced in this order."""
        return self._bucket.index

    def buffer(self) -> Tensor:
        """Return all gradients as a tensor of one dimension, which the hook may change."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Use another tensor of gradients."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """Return the gradient of each parameter, in the memory of the buffer."""
        return [Tensor(part) for part in self._bucket.parts(self._buffer._array)]

    def parameters(self) -> list[Tensor]:
        """Return the parameters."""
        return list(self._bucket.parameters)

    def is_last(self) -> bool:
        """Return whether this is the last bucket of the backward."""
        return self._is_last

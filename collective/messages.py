"""Tensors from one rank to another (``torch.distributed.send`` and its kin)."""

from __future__ import annotations

from typing import Any

from ..core import Tensor
from .arrays import check_tensor, fill, flat
from .group import ProcessGroup, Work
from .registry import find, member


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send a tensor, which may be changed when this returns; its receiver may not have called ``recv`` yet.

    Args:
        tensor: what to send.
        dst: rank of the receiver.
        group: ``None`` for the default group.
        tag: the receiver gives the same one.
        group_dst: the receiver by its index in the group, in place of ``dst``.

    Raises:
        ValueError: the receiver is this process, or not in the group.
        WorkerLostError: the receiver is lost.
    """
    if (found := find(group)) is None:
        return
    found.send(flat(check_tensor("tensor", tensor)), _other(found, dst, group_dst, "dst"), tag)


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Fill a tensor with one that another rank sent.

    Args:
        tensor: of the sent tensor's number of elements and dtype; changed.
        src: rank of the sender.
        group: ``None`` for the default group.
        tag: of the tensor; those of one tag come in the order in which they were sent.
        group_src: the sender by its index in the group, in place of ``src``.

    Returns:
        The rank of the sender; -1 on a process that is not in the group.

    Raises:
        CollectiveTimeoutError: nothing came within the group's time-out.
        ValueError: the sender is this process, or not in the group; or the tensor that came has another size or dtype.
        WorkerLostError: the sender is lost.
    """
    if (found := find(group)) is None:
        return -1
    source = _other(found, src, group_src, "src")
    _receive(found, check_tensor("tensor", tensor), source, tag)
    return found.ranks[source]


def isend(
    tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """Send a tensor in the background; it must not be changed before the work is done.

    Args:
        tensor, dst, group, tag, group_dst: as for ``send``.
    """
    if (found := find(group)) is None:
        return None
    target, row = _other(found, dst, group_dst, "dst"), flat(check_tensor("tensor", tensor))
    return found.run(lambda: found.send(row, target, tag), True)


def irecv(
    tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work | None:
    """Receive a tensor in the background; it must not be used before the work is done.

    Args:
        tensor, src, group, tag, group_src: as for ``recv``.
    """
    if (found := find(group)) is None:
        return None
    source, mine = _other(found, src, group_src, "src"), check_tensor("tensor", tensor)

    def body() -> Tensor:
        _receive(found, mine, source, tag)
        return tensor

    return found.run(body, True)


def _receive(group: ProcessGroup, tensor: Tensor, source: int, tag: int) -> None:
    row = group.receive(source, tag)
    if row.size != tensor.numel() or row.dtype != tensor._array.dtype:
        raise ValueError(
            f"tensor has {tensor.numel()} elements of {tensor.dtype}, and rank {group.ranks[source]} sent {row.size} of "
            f"{row.dtype}"
        )
    fill(tensor, row)


def _other(group: ProcessGroup, rank: int | None, index: int | None, name: str) -> int:
    found = member(group, rank, index, name)
    if found == group.index:
        raise ValueError(f"{name} is this process; a rank cannot send to itself")
    return found

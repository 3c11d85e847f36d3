"""Collectives of Python objects (``torch.distributed.*_object*``): anything that can be sent to another worker.

The objects of other ranks are unpickled, which runs code that their senders choose: a job's ranks trust one another.
"""

from __future__ import annotations

from typing import Any

from .registry import find, member


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Fill a list with everybody's objects.

    Args:
        object_list: one place for each member; changed.
        obj: this rank's.
        group: ``None`` for the default group.

    Raises:
        ValueError: the list has another length.
    """
    if (found := find(group)) is None:
        return
    _check_length("object_list", object_list, found.size())
    object_list[:] = found.all_gather(found.begin("all_gather_object", None), obj)


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> None:
    """Give everybody the objects of one rank.

    Args:
        object_list: of equal length on all ranks; changed, but at the source.
        src: rank of the source; 0 if it is not given.
        group: ``None`` for the default group.
        device: not used.
        group_src: the source by its index in the group, in place of ``src``.
    """
    if (found := find(group)) is None:
        return
    source = member(found, src, group_src, "src", 0)
    call = found.begin("broadcast_object_list", f"{len(object_list)} objects from {found.ranks[source]}")
    object_list[:] = found.broadcast(call, list(object_list), source)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Fill a list of one rank with everybody's objects.

    Args:
        obj: this rank's.
        object_gather_list: at the target, one place for each member; changed. ``None`` elsewhere.
        dst: rank of the target; 0 if it is not given.
        group: ``None`` for the default group.
        group_dst: the target by its index in the group, in place of ``dst``.

    Raises:
        ValueError: the list is missing at the target, has another length, or is given elsewhere.
    """
    if (found := find(group)) is None:
        return
    target = member(found, dst, group_dst, "dst", 0)
    if (found.index == target) != (object_gather_list is not None):
        raise ValueError(f"object_gather_list is given at rank {found.ranks[target]}, the target, and nowhere else")
    if object_gather_list is not None:
        _check_length("object_gather_list", object_gather_list, found.size())
    objects = found.gather(found.begin("gather_object", f"to {found.ranks[target]}"), obj, target)
    if object_gather_list is not None:
        object_gather_list[:] = objects or ()


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Give each member one object of a list of one rank.

    Args:
        scatter_object_output_list: its first item becomes the object.
        scatter_object_input_list: at the source, one object for each member.
        src: rank of the source; 0 if it is not given.
        group: ``None`` for the default group.
        group_src: the source by its index in the group, in place of ``src``.

    Raises:
        ValueError: a list has another length.
    """
    if (found := find(group)) is None:
        return
    source = member(found, src, group_src, "src", 0)
    if not scatter_object_output_list:
        raise ValueError("scatter_object_output_list must have a first item, which becomes the object")
    if found.index == source:
        _check_length("scatter_object_input_list", scatter_object_input_list, found.size())
    call = found.begin("scatter_object_list", f"from {found.ranks[source]}")
    scatter_object_output_list[0] = found.scatter(call, scatter_object_input_list, source)


def _check_length(name: str, objects: Any, size: int) -> None:
    if not isinstance(objects, list) or len(objects) != size:
        given = len(objects) if isinstance(objects, list) else type(objects).__name__
        raise ValueError(f"{name} must be a list of {size}, one place for each member of the group; you gave {given}")

"""Collectives of tensors (``torch.distributed``): called by all ranks of a group, in the same order.

``group=None`` is the default group. On a process that is not in the group nothing happens. With ``async_op=True`` the call
returns a ``Work``, a future, at once; its tensors must not be used before it is done. Without it the result is ``None``.
All raise ``CollectiveError`` where ranks called different collectives, shapes or dtypes, ``CollectiveTimeoutError`` when
somebody does not come within the group's time-out, and ``WorkerLostError`` when a rank is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from ..core import Tensor
from .arrays import check_list, check_same, check_tensor, describe, fill, flat
from .group import ProcessGroup, Work
from .reduction import ReduceOp, check_op
from .registry import find, member


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Replace everybody's tensor by the combination of all, the same on every rank to the bit.

    Args:
        tensor: of equal shape and dtype on all ranks; changed.
        op: how to combine.
        group: see above.
        async_op: see above.
    """
    if (found := find(group)) is None:
        return None
    mine = check_tensor("tensor", tensor)
    check_op(op, mine._array.dtype)
    row = flat(mine)
    call = found.begin("all_reduce", f"{describe(mine)}, {op.name}", row.nbytes)

    def body() -> Tensor:
        found.all_reduce(call, row, op)
        fill(mine, row)
        return tensor

    return found.run(body, async_op)


def broadcast(
    tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """Give everybody the tensor of one rank.

    Args:
        tensor: of equal shape and dtype on all ranks; changed, but at the source.
        src: rank of the source.
        group: see above.
        async_op: see above.
        group_src: the source by its index in the group, in place of ``src``.
    """
    if (found := find(group)) is None:
        return None
    source = member(found, src, group_src, "src")
    mine = check_tensor("tensor", tensor)
    call = found.begin("broadcast", f"{describe(mine)} from {found.ranks[source]}")

    def body() -> Tensor:
        row = found.broadcast(call, flat(mine), source)
        if found.index != source:
            fill(mine, row)
        return tensor

    return found.run(body, async_op)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Replace the tensor of one rank by the combination of all.

    Args:
        tensor: of equal shape and dtype on all ranks; changed at the target alone.
        dst: rank of the target.
        op: how to combine.
        group: see above.
        async_op: see above.
        group_dst: the target by its index in the group, in place of ``dst``.
    """
    if (found := find(group)) is None:
        return None
    target = member(found, dst, group_dst, "dst")
    mine = check_tensor("tensor", tensor)
    check_op(op, mine._array.dtype)
    call = found.begin("reduce", f"{describe(mine)}, {op.name} to {found.ranks[target]}")

    def body() -> Tensor:
        if (row := found.reduce(call, flat(mine), op, target)) is not None:
            fill(mine, row)
        return tensor

    return found.run(body, async_op)


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Fill a list with everybody's tensors.

    Args:
        tensor_list: one tensor for each member; changed. They may differ in shape, as the members' tensors do.
        tensor: this rank's.
        group: see above.
        async_op: see above.
    """
    if (found := find(group)) is None:
        return None
    outputs = check_list("tensor_list", tensor_list, found.size())
    mine = check_tensor("tensor", tensor)
    check_same("tensor_list[rank]", outputs[found.index], mine, "tensor")
    call = found.begin("all_gather", str(mine.dtype))

    def body() -> list[Tensor]:
        for output, row in zip(outputs, found.all_gather(call, flat(mine)), strict=True):
            fill(output, row)
        return tensor_list

    return found.run(body, async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Fill a tensor with everybody's tensors, one after the other.

    Args:
        output_tensor: of as many elements as all inputs have; changed.
        input_tensor: this rank's, of equal shape and dtype on all ranks.
        group: see above.
        async_op: see above.
    """
    if (found := find(group)) is None:
        return None
    parts = _equal_parts("output_tensor", output_tensor, found)
    check_same(
        "a part of output_tensor", parts[found.index], check_tensor("input_tensor", input_tensor), "input_tensor"
    )
    return all_gather(parts, input_tensor, group, async_op)


def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Combine the tensors that everybody has for this rank.

    Args:
        output: changed.
        input_list: one tensor for each member.
        op: how to combine.
        group: see above.
        async_op: see above.
    """
    if (found := find(group)) is None:
        return None
    inputs = check_list("input_list", input_list, found.size())
    mine = check_tensor("output", output)
    check_op(op, mine._array.dtype)
    check_same("output", mine, inputs[found.index], "input_list[rank]")
    call = found.begin("reduce_scatter", f"{mine.dtype}, {op.name}")

    def body() -> Tensor:
        fill(mine, found.reduce_scatter(call, [flat(each) for each in inputs], op))
        return output

    return found.run(body, async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,  # noqa: A002 - PyTorch's name
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Combine everybody's tensors, and keep this rank's part.

    Args:
        output: changed.
        input: of as many elements as all outputs have.
        op: how to combine.
        group: see above.
        async_op: see above.
    """
    if (found := find(group)) is None:
        return None
    return reduce_scatter(output, _equal_parts("input", input, found), op, group, async_op)


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Work | None:
    """Give each member one tensor, and get one of each.

    Args:
        output_tensor_list: one tensor for each member; changed.
        input_tensor_list: likewise; shapes may differ from member to member.
        group: see above.
        async_op: see above.
    """
    if (found := find(group)) is None:
        return None
    outputs = check_list("output_tensor_list", output_tensor_list, found.size())
    inputs = check_list("input_tensor_list", input_tensor_list, found.size())
    check_same("output_tensor_list[rank]", outputs[found.index], inputs[found.index], "input_tensor_list[rank]")
    call = found.begin("all_to_all", str(inputs[0].dtype))

    def body() -> list[Tensor]:
        rows = found.all_to_all(call, [flat(each) for each in inputs])
        for output, row in zip(outputs, rows, strict=True):
            fill(output, row)
        return output_tensor_list

    return found.run(body, async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,  # noqa: A002 - PyTorch's name
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Give each member a part of a tensor, and put together the parts that the members give.

    Args:
        output: C-contiguous; changed.
        input: the tensor whose parts are given.
        output_split_sizes: how many rows come from each member; ``None`` for equal parts.
        input_split_sizes: how many rows each member gets; ``None`` for equal parts.
        group: see above.
        async_op: see above.
    """
    if (found := find(group)) is None:
        return None
    inputs = _parts("input", input, input_split_sizes, found.size())
    outputs = _parts("output", output, output_split_sizes, found.size())
    return all_to_all(outputs, inputs, group, async_op)


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Fill a list of one rank with everybody's tensors.

    Args:
        tensor: this rank's.
        gather_list: at the target, one tensor for each member; changed. ``None`` elsewhere.
        dst: rank of the target; 0 if it is not given.
        group: see above.
        async_op: see above.
        group_dst: the target by its index in the group, in place of ``dst``.
    """
    if (found := find(group)) is None:
        return None
    mine = check_tensor("tensor", tensor)
    target, outputs = _list_at(found, ("dst", dst, group_dst), "gather_list", gather_list)
    call = found.begin("gather", f"{mine.dtype} to {found.ranks[target]}")

    def body() -> list[Tensor] | None:
        for output, row in zip(outputs, found.gather(call, flat(mine), target) or (), strict=True):
            fill(output, row)
        return gather_list

    return found.run(body, async_op)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Give each member one tensor of a list of one rank.

    Args:
        tensor: changed.
        scatter_list: at the source, one tensor for each member. ``None`` elsewhere.
        src: rank of the source; 0 if it is not given.
        group: see above.
        async_op: see above.
        group_src: the source by its index in the group, in place of ``src``.
    """
    if (found := find(group)) is None:
        return None
    mine = check_tensor("tensor", tensor)
    source, inputs = _list_at(found, ("src", src, group_src), "scatter_list", scatter_list)
    call = found.begin("scatter", f"{mine.dtype} from {found.ranks[source]}")

    def body() -> Tensor:
        row = found.scatter(call, [flat(each) for each in inputs] or None, source)
        if row.size != mine.numel():
            raise ValueError(f"tensor has {mine.numel()} elements, and rank {found.ranks[source]} gave {row.size}")
        fill(mine, row)
        return tensor

    return found.run(body, async_op)


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait until every rank of the group has called this.

    Args:
        group: see above.
        async_op: see above.
        device_ids: not used.
    """
    if (found := find(group)) is None:
        return None
    call = found.begin("barrier", None)
    return found.run(lambda: found.all_gather(call, None) and None, async_op)


def _parts(name: str, tensor: Tensor, sizes: Sequence[int] | None, count: int) -> list[Tensor]:
    tensor = check_tensor(name, tensor)
    rows = tensor.shape[0] if tensor.dim() else 0
    if sizes is None:
        if rows % count:
            raise ValueError(
                f"{name} has {rows} rows, which {count} members cannot share equally; give its split sizes"
            )
        sizes = [rows // count] * count
    if len(sizes) != count or sum(sizes) != rows:
        raise ValueError(f"{name}_split_sizes must be {count} numbers whose sum is {rows}; you gave {list(sizes)}")
    return list(cast(Any, tensor.detach()).split(list(sizes)))


def _equal_parts(name: str, tensor: Tensor, group: ProcessGroup) -> list[Tensor]:
    tensor = check_tensor(name, tensor)
    if tensor.numel() % group.size() or not tensor.is_contiguous():
        raise ValueError(f"{name} must be contiguous, with elements that {group.size()} members share equally")
    return list(cast(Any, tensor.detach().view(-1)).chunk(group.size()))


def _list_at(
    group: ProcessGroup,
    place: tuple[str, int | None, int | None],
    name: str,
    tensors: list[Tensor] | None,
) -> tuple[int, list[Tensor]]:
    """Return the index of the rank that has a list of tensors, and the list; an empty one elsewhere.

    Args:
        group: the group.
        place: name of the argument for the rank, the rank, and the index in its place.
        name: of the list.
        tensors: the list; ``None`` elsewhere.
    """
    argument, rank, given = place
    index = member(group, rank, given, argument, 0)
    if group.index == index:
        return index, check_list(name, tensors, group.size())
    if tensors:
        raise ValueError(f"{name} is for rank {group.ranks[index]} alone; give None on the other ranks")
    return index, []

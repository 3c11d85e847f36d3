"""Collectives through which gradients flow (``torch.distributed.nn.functional``).

Each is a linear map of the tensors of all members, and its backward is the adjoint: another collective, which all members run.
They return new tensors, and change none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..... import collective
from .....collective import ReduceOp, get_group_rank, get_rank, get_world_size
from .....core import Function, zeros_like

Tensors = tuple[Any, ...]
SUM = ReduceOp.SUM


class _Collective(Function):
    """Collective whose backward is another."""

    @staticmethod
    def forward(ctx: Any, forth: Callable[..., Any], back: Callable[..., Tensors], *tensors: Any) -> Any:
        """Return the results of ``forth``, and remember ``back``, which returns a gradient for each tensor.

        Args:
            ctx: of the function.
            forth: the collective.
            back: its adjoint.
            tensors: arguments of the collective.
        """
        ctx.back = back
        return forth(*tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the gradients of the tensors."""
        return (None, None, *ctx.back(*grads))


def all_reduce(tensor: Any, op: ReduceOp = SUM, group: Any = None) -> Any:
    """Return the sum, or another reduction, of the tensors of all members. Its backward reduces the gradients in the same way.

    Args:
        tensor: equal shapes everywhere.
        op: the reduction.
        group: the process group; ``None`` for the default one.
    """

    def forth(tensor: Any) -> Any:
        result = tensor.clone()
        collective.all_reduce(result, op, group)
        return result

    return _Collective.apply(forth, lambda grad: (all_reduce(grad, op, group),), tensor)


def broadcast(tensor: Any, src: int, group: Any = None) -> Any:
    """Return the tensor of the member ``src``. Its backward adds the gradients of all members up there.

    Args:
        tensor: equal shapes everywhere.
        src: rank in the job.
        group: as for ``all_reduce``.
    """

    def forth(tensor: Any) -> Any:
        result = tensor.clone()
        collective.broadcast(result, src, group)
        return result

    return _Collective.apply(forth, lambda grad: (reduce(grad, src, SUM, group),), tensor)


def reduce(tensor: Any, dst: int, op: ReduceOp = SUM, group: Any = None) -> Any:
    """Return the reduction of the tensors of all members at ``dst``, and zeros elsewhere. Its backward is ``broadcast``.

    Args:
        tensor: equal shapes everywhere.
        dst: rank in the job.
        op: the reduction.
        group: as for ``all_reduce``.
    """

    def forth(tensor: Any) -> Any:
        result = tensor.clone()
        collective.reduce(result, dst, op, group)
        return result if _is_here(dst, group) else zeros_like(result)

    return _Collective.apply(forth, lambda grad: (broadcast(grad, dst, group),), tensor)


def gather(tensor: Any, dst: int = 0, group: Any = None) -> Tensors:
    """Return the tensors of all members at ``dst``, and zeros elsewhere. Its backward is ``scatter``.

    Args:
        tensor: equal shapes everywhere.
        dst: rank in the job.
        group: as for ``all_reduce``.
    """

    def forth(tensor: Any) -> Tensors:
        results = _blanks(tensor, group)
        collective.gather(tensor, results if _is_here(dst, group) else None, dst, group)
        return tuple(results)

    return tuple(_Collective.apply(forth, lambda *grads: (scatter(grads, dst, group),), tensor))


def scatter(tensors: Sequence[Any], src: int = 0, group: Any = None) -> Any:
    """Return this member's one of the tensors that the member ``src`` gives. Its backward is ``gather``.

    Args:
        tensors: a tensor for each member, of equal shapes everywhere; only those of ``src`` are sent.
        src: rank in the job.
        group: as for ``all_reduce``.
    """

    def forth(*tensors: Any) -> Any:
        result = zeros_like(tensors[0])
        collective.scatter(result, list(tensors) if _is_here(src, group) else None, src, group)
        return result

    return _Collective.apply(forth, lambda grad: gather(grad, src, group), *tensors)


def all_gather(tensor: Any, group: Any = None) -> Tensors:
    """Return the tensors of all members. Its backward adds up the gradients that all members have for this one.

    Args:
        tensor: equal shapes everywhere.
        group: as for ``all_reduce``.
    """

    def forth(tensor: Any) -> Tensors:
        results = _blanks(tensor, group)
        collective.all_gather(results, tensor, group)
        return tuple(results)

    def back(*grads: Any) -> Tensors:
        return (reduce_scatter(zeros_like(grads[0]), grads, SUM, group),)

    return tuple(_Collective.apply(forth, back, tensor))


def reduce_scatter(output: Any, input_list: Sequence[Any], op: ReduceOp = SUM, group: Any = None) -> Any:
    """Return the reduction of the tensors that all members give for this one. Its backward is ``all_gather``.

    Args:
        output: of the shape of the result; not changed.
        input_list: a tensor for each member, of equal shapes everywhere.
        op: the reduction.
        group: as for ``all_reduce``.
    """

    def forth(*tensors: Any) -> Any:
        result = zeros_like(output)
        collective.reduce_scatter(result, list(tensors), op, group)
        return result

    return _Collective.apply(forth, lambda grad: all_gather(grad, group), *input_list)


def all_to_all(output_tensor_list: Sequence[Any], input_tensor_list: Sequence[Any], group: Any = None) -> Tensors:
    """Return the tensors that the members give for this one. Its backward sends the gradients the way back.

    Args:
        output_tensor_list: a tensor of the shape that each member gives; not changed.
        input_tensor_list: a tensor for each member.
        group: as for ``all_reduce``.
    """

    def forth(*tensors: Any) -> Tensors:
        results = [zeros_like(each) for each in output_tensor_list]
        collective.all_to_all(results, list(tensors), group)
        return tuple(results)

    back = partial(_sent_back, input_tensor_list, group)
    return tuple(_Collective.apply(forth, back, *input_tensor_list))


def all_to_all_single(
    output: Any,
    input: Any,  # noqa: A002 - PyTorch's name
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
) -> Any:
    """Return the parts that the members give for this one, as one tensor. Its backward sends the gradients the way back.

    Args:
        output: of the shape of the result; not changed.
        input: the tensor whose parts are given.
        output_split_sizes: how many rows come from each member; ``None`` for equal parts.
        input_split_sizes: how many rows each member gets; ``None`` for equal parts.
        group: as for ``all_reduce``.
    """

    def forth(tensor: Any) -> Any:
        result = zeros_like(output)
        collective.all_to_all_single(result, tensor, output_split_sizes, input_split_sizes, group)
        return result

    def back(grad: Any) -> Tensors:
        return (all_to_all_single(input.detach(), grad, input_split_sizes, output_split_sizes, group),)

    return _Collective.apply(forth, back, input)


def _sent_back(given: Sequence[Any], group: Any, *grads: Any) -> Tensors:
    return all_to_all([each.detach() for each in given], grads, group)


def _is_here(rank: int, group: Any) -> bool:
    """Return whether this process has that rank in the job."""
    return get_rank(group) == (rank if group is None else get_group_rank(group, rank))


def _blanks(tensor: Any, group: Any) -> list[Any]:
    """Return a tensor of zeros for each member."""
    return [zeros_like(tensor) for _ in range(get_world_size(group))]

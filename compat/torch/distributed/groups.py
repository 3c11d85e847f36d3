"""The default group under PyTorch's names, its former names of operations, and several messages at a time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ....collective import GroupMember, ProcessGroup, ReduceOp, Work, irecv, isend
from ....collective.extend import registry


class _World(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:  # noqa: N802 - PyTorch's name
        """The default group; ``None`` while there is none."""
        return registry.default


class group(GroupMember, metaclass=_World):  # noqa: N801 - PyTorch's name
    """Holder of ``WORLD``, the default group (``torch.distributed.group``), and of ``NON_GROUP_MEMBER``."""


def _get_default_group() -> ProcessGroup:
    """Return the default group.

    Raises:
        CollectiveError: there is none.
    """
    return registry.world()


class _FormerOps:
    """``ReduceOp`` under the name that it had before (``torch.distributed.reduce_op``)."""

    def __getattr__(self, name: str) -> ReduceOp:
        if name not in ReduceOp.__members__:
            raise AttributeError(f"reduce_op has no {name}; it has {', '.join(ReduceOp.__members__)}")
        warnings.warn("torch.distributed.reduce_op is old: use ReduceOp", FutureWarning, stacklevel=2)
        return ReduceOp[name]


reduce_op = _FormerOps()


class P2POp:
    """Message of ``batch_isend_irecv`` (``torch.distributed.P2POp``).

    Args:
        op: ``isend`` or ``irecv``.
        tensor: what is sent, or is written into.
        peer: rank of the other process in the job.
        group: the group; ``None`` for the default one.
        tag: as for ``isend`` and ``irecv``.

    Raises:
        ValueError: ``op`` is another function.
    """

    def __init__(self, op: Callable[..., Work | None], tensor: Any, peer: int, group: Any = None, tag: int = 0) -> None:
        if op not in (isend, irecv):
            raise ValueError(f"op must be torch.distributed.isend or irecv; you gave {op!r}")
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Any]:
    """Begin several messages, and return what ``isend`` and ``irecv`` return for each.

    Args:
        p2p_op_list: the messages.

    Raises:
        ValueError: something else is in the list.
    """
    for each in p2p_op_list:
        if not isinstance(each, P2POp):
            raise ValueError(f"p2p_op_list must hold P2POp; you gave {each!r}")
    return [each.op(each.tensor, each.peer, group=each.group, tag=each.tag) for each in p2p_op_list]

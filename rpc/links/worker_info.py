"""Name and rank of a worker, as users see them, and the characters that a name can have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from ...base.errors import ArgumentKindError, ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from ...proto.rpc_pb2 import WorkerRecord

NAME = re.compile(r"[A-Za-z0-9_:.\-]{1,128}")


class _NameAndRank(NamedTuple):
    name: str
    id: int


class WorkerInfo(_NameAndRank):
    """A worker of the job (``torch.distributed.rpc.WorkerInfo``): its name and its rank.

    Args:
        name: its name, 1 to 128 letters, digits, ``_``, ``-``, ``:`` and ``.``.
        id: its rank.

    Raises:
        ArgumentTypeError: the name is no text (an ``ArgumentKindError``), or the rank no whole number.
        ArgumentValueError: the name has other characters.
    """

    __slots__ = ()

    def __new__(cls, name: str, id: int) -> WorkerInfo:  # noqa: A002  # PyTorch's name
        check_name(name)
        if not isinstance(id, int):
            raise ArgumentTypeError(f"a worker's id is its rank, a whole number; you gave {id!r}")
        return super().__new__(cls, name, id)


def check_name(name: object) -> None:
    """Raise an error unless a worker can have that name."""
    wrong = f"a worker's name is 1 to 128 letters, digits, '_', '-', ':' or '.'; you gave {name!r}"
    if not isinstance(name, str):
        raise ArgumentKindError(wrong)
    if not NAME.fullmatch(name):
        raise ArgumentValueError(wrong)


def info_of(record: WorkerRecord) -> WorkerInfo:
    """Return name and rank of the worker that a record describes; they were checked when it started."""
    return WorkerInfo._make((record.name, record.rank))

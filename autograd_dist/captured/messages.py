"""Encoding of the messages of a replay: a text of numbers, and arrays. This form needs no pickle (``pass_messages.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ...core.extend import Array, Tensor

LONGEST_REASON = 1000  # of a reason
Body: TypeAlias = tuple[str, tuple[Tensor, ...], dict[str, Any]]
ACCEPTED = "accepted"


def pack(words: Sequence[object], arrays: Sequence[Array | None]) -> Body:
    """Return the body of a message.

    Args:
        words: numbers and texts without spaces.
        arrays: ``None`` for those that are not there.
    """
    mask = "".join(["0" if each is None else "1" for each in arrays])
    return " ".join(map(str, [*words, f"m{mask}"])), tuple([Tensor(each) for each in arrays if each is not None]), {}


def unpack(body: Body) -> tuple[list[str], list[Tensor | None]]:
    """Return the words and the tensors of a message."""
    text, tensors, _ = body
    *words, mask = text.split()
    given = iter(tensors)
    return words, [next(given) if each == "1" else None for each in mask[1:]]


def refusal(reason: str, final: bool) -> Body:
    """Return the answer of a worker that cannot take part in a replay.

    Args:
        reason: why.
        final: whether it will not be otherwise later.
    """
    return f"{int(final)} {reason[:LONGEST_REASON]}", (), {}


def refused(body: Body) -> tuple[str, bool] | None:
    """Return the reason of an answer, and whether it is final; ``None`` if the worker takes part."""
    if body[0].startswith(ACCEPTED):
        return None
    final, _, reason = body[0].partition(" ")
    return reason, final == "1"


def laid_out(array: Array, like: Array) -> Array:
    """Return an array with the strides of the recorded one: results of NumPy depend on them in the last bits.

    Args:
        array: that arrived.
        like: the recorded one; of the same shape and dtype.
    """
    if array.strides == like.strides:
        return array
    result = np.empty_like(like)  # keeps the order of its dimensions
    result[...] = array
    return result

"""Encoding of the messages of a replay: a text of numbers, and arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.extend import Array
from ...rpc.extend import RawBody

LONGEST_REASON = 1000  # of a reason
ACCEPTED = "accepted"


def pack(words: Sequence[object], arrays: Sequence[Array | None]) -> RawBody:
    """Return the body of a message.

    Args:
        words: numbers and texts without spaces.
        arrays: ``None`` for those that are not there.
    """
    given, mask = [each for each in arrays if each is not None], "m"
    if len(given) < len(arrays):
        mask += "".join(["0" if each is None else "1" for each in arrays])
    return RawBody(" ".join([*map(str, words), mask]).encode(), given)


def unpack(body: RawBody) -> tuple[list[str], Sequence[Array | None]]:
    """Return the words and the arrays of a message."""
    *words, mask = body.words.decode().split()
    if mask == "m":  # all are there
        return words, body.arrays
    given = iter(body.arrays)
    return words, [next(given) if each == "1" else None for each in mask[1:]]


def refusal(reason: str, final: bool) -> RawBody:
    """Return the answer of a worker that cannot take part in a replay.

    Args:
        reason: why.
        final: whether it will not be otherwise later.
    """
    return RawBody(f"{int(final)} {reason[:LONGEST_REASON]}".encode(), ())


def refused(body: RawBody) -> tuple[str, bool] | None:
    """Return the reason of an answer, and whether it is final; ``None`` if the worker takes part."""
    text = body.words.decode()
    if text.startswith(ACCEPTED):
        return None
    final, _, reason = text.partition(" ")
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

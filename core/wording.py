"""What NumPy says of wrong operands, in our words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_NAMED = re.compile(r"'(\w+)'")
_NUMBER = re.compile(r"-?\d+")
_SHAPE = re.compile(r"\(([\d, ]*)\)")


def in_our_words(text: str) -> str:
    """A message of NumPy's, said as ours are; any other stays as it is."""
    for pattern, reworded in _PHRASES:
        if pattern in text:
            return reworded(text)
    return text


def misfit(shapes: Sequence[tuple[int, ...]]) -> str:
    """That shapes cannot be broadcast together, and in which dimension."""
    different = list(dict.fromkeys(shapes))
    text = f"the shapes {' and '.join(map(str, different))} cannot be broadcast together"
    for dim in range(1, max(map(len, different)) + 1):
        lengths = dict.fromkeys(shape[-dim] for shape in different if len(shape) >= dim and shape[-dim] != 1)
        if len(lengths) > 1:
            return f"{text}: in dimension {-dim} their lengths are {' and '.join(map(str, lengths))}, and none is 1"
    return text


def _shapes(text: str) -> list[tuple[int, ...]]:
    return [tuple(int(part) for part in found.split(",") if part.strip()) for found in _SHAPE.findall(text)]


def _broadcast(text: str) -> str:
    return misfit(_shapes(text))


def _narrow(text: str) -> str:
    target, result = _shapes(text)
    return f"a result of shape {result} does not fit into a tensor of shape {target}"


def _needed(what: str) -> Callable[[str], str]:
    return lambda text: f"{what} is needed where a {_NAMED.findall(text)[0]} came"


def _dimension(text: str) -> str:
    dim, ndim = _NUMBER.findall(text)[:2]
    return f"dim {dim} is out of range: the tensor has {ndim} dimensions"


def _always(words: str) -> Callable[[str], str]:
    return lambda text: words


_UNSUPPORTED = _always("there is no such function of these dtypes; convert one of them, as by float() or abs()")
_READ_ONLY = _always(
    "this memory cannot be written to: several elements of an expanded or unfolded tensor share it, or it came "
    "read-only from elsewhere; clone() the tensor first"
)
_PHRASES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("non-broadcastable output operand", _narrow),
    ("could not be broadcast together with shapes", _broadcast),
    ("cannot be broadcast to a single shape", _broadcast),
    ("boolean subtract", _always("booleans cannot be subtracted; use logical_xor(), or convert them, as by float()")),
    ("boolean negative", _always("booleans have no negative; use logical_not(), or convert them, as by float()")),
    ("not supported for the input types", _UNSUPPORTED),
    ("did not contain a loop with signature", _UNSUPPORTED),
    ("could not be promoted by", _UNSUPPORTED),
    ("Cannot cast ufunc", _always("the result's dtype is of a higher category than that of the tensor it is for")),
    ("is read-only", _READ_ONLY),
    ("object cannot be interpreted as an integer", _needed("an integer")),
    ("object is not iterable", _needed("a sequence")),
    ("has no len()", _needed("a sequence")),
    ("is out of bounds for array of dimension", _dimension),
    ("inhomogeneous shape", _always("nested sequences must be of equal lengths in each dimension")),
    ("cannot convert float NaN to integer", _always("whole numbers hold no nan")),
    ("cannot convert float infinity to integer", _always("whole numbers hold no infinity")),
    ("Integers to negative integer powers", _always("whole numbers have no negative powers; convert them by float()")),
)

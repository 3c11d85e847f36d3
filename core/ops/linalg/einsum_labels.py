"""What ``einsum`` is called with, as labels: the equation, or the form with a list of labels behind each operand."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

Subscripts = tuple[Any, ...]  # labels (integers), and Ellipsis at most once


@lru_cache(maxsize=1024)
def parse(equation: str) -> tuple[tuple[Subscripts, ...], Subscripts | None]:
    """The subscripts of the operands, and those of the result if ``->`` gives them.

    Raises:
        ValueError: something else than letters, ``...``, commas and one ``->``.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    return tuple(_subscripts(part, equation) for part in left.split(",")), _subscripts(
        right, equation
    ) if arrow else None


def _subscripts(text: str, equation: str) -> Subscripts:
    before, dots, after = text.partition("...")
    for letter in before + after:
        if not (letter.isascii() and letter.isalpha()):
            raise ValueError(
                f"einsum() takes letters, commas, ... and -> in its equation, and {equation!r} has {letter!r}"
            )
    labels = [tuple(ord(letter) for letter in part) for part in (before, after)]
    return (*labels[0], Ellipsis, *labels[1]) if dots else labels[0]


def from_lists(args: tuple[Any, ...]) -> tuple[list[Any], tuple[Subscripts, ...], Subscripts | None]:
    """Operands and subscripts of ``einsum(op1, [0, 1], op2, [1, 2], [0, 2])``.

    Raises:
        ValueError: a label is not between 0 and 51.
    """
    out = _listed(args[-1]) if len(args) % 2 else None
    pairs = args[: len(args) - len(args) % 2]
    return list(pairs[::2]), tuple(_listed(each) for each in pairs[1::2]), out


def _listed(labels: Any) -> Subscripts:
    for label in labels:
        if label is not Ellipsis and not (isinstance(label, int) and 0 <= label < 52):
            raise ValueError(f"einsum() takes labels from 0 to 51 and ... in its lists, and you gave {label!r}")
    return tuple(labels)


@lru_cache(maxsize=1024)
def resolve(
    inputs: tuple[Subscripts, ...], out: Subscripts | None, ndims: tuple[int, ...]
) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """Labels for every dimension: those that ``...`` stands for are negative, -1 the last of them.

    Raises:
        ValueError: an operand has another number of dimensions, or the result names what no operand has, or twice.
    """
    widths = [ndim - sum(label is not Ellipsis for label in labels) for labels, ndim in zip(inputs, ndims)]
    for place, (labels, width) in enumerate(zip(inputs, widths)):
        if width < 0 or (width and Ellipsis not in labels):
            raise ValueError(
                f"einsum() operand {place} has {ndims[place]} dimensions, and its subscripts name {ndims[place] - width}"
            )
    resolved = [_replace(labels, width) for labels, width in zip(inputs, widths)]
    widest = max([width for labels, width in zip(inputs, widths) if Ellipsis in labels], default=0)
    if out is None:
        named = [label for labels in resolved for label in labels if label >= 0]
        result = (*range(-widest, 0), *sorted(label for label in named if named.count(label) == 1))
    else:
        result = _replace(out, widest)
    known = {label for labels in resolved for label in labels}
    for label in result:
        if label not in known or result.count(label) > 1:
            raise ValueError(
                f"einsum() names {_shown(label)} in the result, where it must be once and come from an operand"
            )
    return tuple(resolved), result


def _replace(labels: Subscripts, width: int) -> tuple[int, ...]:
    if Ellipsis not in labels:
        return labels
    place = labels.index(Ellipsis)
    return (*labels[:place], *range(-width, 0), *labels[place + 1 :])


def _shown(label: int) -> str:
    return repr(chr(label)) if label >= 65 else str(label)

"""Logical and bitwise operations, element by element."""

from __future__ import annotations

import numpy as np

from ..table.factories import comparison, predicate

logical_and = comparison(
    "logical_and",
    np.logical_and,
    "Return whether both elements are not zero, a boolean tensor.",
    method=True,
    in_place=True,
    numbers="neither",
)
logical_or = comparison(
    "logical_or",
    np.logical_or,
    "Return whether at least one of the two elements is not zero, a boolean tensor.",
    method=True,
    in_place=True,
    numbers="neither",
)
logical_xor = comparison(
    "logical_xor",
    np.logical_xor,
    "Return whether exactly one of the two elements is not zero, a boolean tensor.",
    method=True,
    in_place=True,
    numbers="neither",
)
bitwise_and = comparison(
    "bitwise_and",
    np.bitwise_and,
    "Return ``input & other``, element by element, for integers or booleans.",
    operator="and",
    method=True,
    in_place=True,
)
bitwise_or = comparison(
    "bitwise_or",
    np.bitwise_or,
    "Return ``input | other``, element by element, for integers or booleans.",
    operator="or",
    method=True,
    in_place=True,
)
bitwise_xor = comparison(
    "bitwise_xor",
    np.bitwise_xor,
    "Return ``input ^ other``, element by element, for integers or booleans.",
    operator="xor",
    method=True,
    in_place=True,
)
bitwise_left_shift = comparison(
    "bitwise_left_shift",
    np.left_shift,
    "Return ``input << other``, element by element, for integers.",
    operator="lshift",
    method=True,
    in_place=True,
)
bitwise_right_shift = comparison(
    "bitwise_right_shift",
    np.right_shift,
    "Return ``input >> other``, element by element, for integers.",
    operator="rshift",
    method=True,
    in_place=True,
)
bitwise_not = predicate(
    "bitwise_not",
    np.invert,
    "Return ``~input``: the inverted bits of integers, the negation of booleans.",
    method=True,
    in_place=True,
    operator="invert",
)

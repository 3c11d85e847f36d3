"""Logic on truth values, and on the bits of integers."""

from __future__ import annotations

import numpy as np

from ..table.factories import comparison
from ..table.in_place import inplace
from . import basic

__all__ = [
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "logical_and",
    "logical_or",
    "logical_xor",
]
METHODS = __all__

logical_and = comparison("logical_and", np.logical_and, "Where both are true (not zero).")
logical_or = comparison("logical_or", np.logical_or, "Where at least one is true (not zero).")
logical_xor = comparison("logical_xor", np.logical_xor, "Where exactly one is true (not zero).")
bitwise_and = comparison("bitwise_and", np.bitwise_and, "``input & other``, of integers or booleans.")
bitwise_or = comparison("bitwise_or", np.bitwise_or, "``input | other``, of integers or booleans.")
bitwise_xor = comparison("bitwise_xor", np.bitwise_xor, "``input ^ other``, of integers or booleans.")
bitwise_left_shift = comparison("bitwise_left_shift", np.left_shift, "``input << other``, of integers.")
bitwise_right_shift = comparison("bitwise_right_shift", np.right_shift, "``input >> other``, of integers.")
bitwise_not = basic.invert

IN_PLACE = {
    **{f"{each.__name__}_": inplace(each) for each in (bitwise_and, bitwise_or, bitwise_xor, bitwise_not)},
    **{f"{each.__name__}_": inplace(each) for each in (bitwise_left_shift, bitwise_right_shift)},
    **{f"{each.__name__}_": inplace(each) for each in (logical_and, logical_or, logical_xor)},
}

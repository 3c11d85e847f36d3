"""Checks of the element-wise operations."""

from __future__ import annotations

import numpy as np

from ... import core as tg
from .check import OpCheck
from .samples import binary, unary

CHECKS = [
    OpCheck("add", tg.add, binary(), reference=np.add),
    OpCheck("sub", tg.sub, binary(), reference=np.subtract),
    OpCheck("mul", tg.mul, binary(), reference=np.multiply),
    OpCheck("div", tg.div, binary(), reference=np.true_divide),
    OpCheck("exp", tg.exp, unary(), reference=np.exp),
    OpCheck("eq", tg.eq, binary(), orders=0, reference=np.equal),
]

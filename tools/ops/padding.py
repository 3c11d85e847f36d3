"""Checks of padding."""

from __future__ import annotations

from functools import partial

from ... import core as tg
from ...nn import functional as F
from ...testing.ops import OpCheck, Samples


def _of(*shapes: tuple[int, ...]) -> Samples:
    return lambda make: [(make(*shape),) for shape in shapes]


CHECKS = [
    OpCheck("pad", partial(F.pad, pad=(1, 2), value=3.0), _of((3,), (2, 3), (0, 2), (2, 0))),
    OpCheck(
        "constant_pad_nd", partial(tg.constant_pad_nd, pad=(1, -1, 2, 0), value=2.0), _of((2, 3), (2, 2, 2), (0, 2))
    ),
    OpCheck("pad:cut", partial(F.pad, pad=(-1, 2, 1, -1)), _of((2, 3), (2, 2, 2))),
    OpCheck("pad:reflect", partial(F.pad, pad=(1, 2, 0, 1), mode="reflect"), _of((1, 2, 3), (2, 1, 2, 4))),
    OpCheck("pad:replicate", partial(F.pad, pad=(2, 1), mode="replicate"), _of((2, 3), (1, 2, 2))),
    OpCheck("pad:circular", partial(F.pad, pad=(2, 1), mode="circular"), _of((2, 3), (1, 2, 2))),
]

"""Layers by PyTorch's modules (``torch.nn.modules``), of which this module is every one: ``conv``, ``loss`` and so on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

from ... import nn
from .places import NN_MODULES


def _base(layer: type, name: str) -> Any:
    """Return the class of a layer's own classes that has that name here."""
    return next(each for each in layer.__mro__ if each.__name__ == name)


_ConvNd = _base(nn.Conv1d, "_ConvNd")
_BatchNorm = _base(nn.BatchNorm1d, "_BatchNorm")
_InstanceNorm = _base(nn.InstanceNorm1d, "_InstanceNorm")
_NormBase = _base(nn.BatchNorm1d, "_WithRunningStats")
_DropoutNd = _base(nn.Dropout, "_Dropout")
_Loss = _base(nn.MSELoss, "_Loss")
_WeightedLoss = _base(nn.NLLLoss, "_WeightedLoss")


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that makes a tuple of ``n`` of a number, and of an iterable a tuple of what is in it.

    Args:
        n: the length.
        name: of the function.
    """

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def __getattr__(name: str) -> Any:
    return sys.modules[__name__] if name in NN_MODULES else getattr(nn, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(nn), *NN_MODULES})

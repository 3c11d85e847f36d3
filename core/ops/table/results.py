"""What operations with several results return: named tuples with PyTorch's names."""

from __future__ import annotations

from typing import NamedTuple

from ...tensors import Tensor


class ValuesIndices(NamedTuple):
    """Chosen elements, and where along the dimension they are."""

    values: Tensor
    indices: Tensor


class MinMax(NamedTuple):
    """What ``aminmax`` returns."""

    min: Tensor
    max: Tensor

"""Tensors whose in-place changes go unnoticed, for parameters that several threads change on purpose (Hogwild)."""

from __future__ import annotations

from typing import Any

from ..tensors import Tensor


class _Still(list[int]):
    """Version counter that does not count."""

    def __setitem__(self, index: Any, value: Any) -> None:
        pass


def ignore_changes(tensor: Tensor) -> None:
    """Let backward passes use the memory of a leaf as it is then, although it was changed after their forward."""
    tensor._counter = _Still([0])

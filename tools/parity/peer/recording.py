"""Programs: the calls of torch's public functions that an operation of the database comes down to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._pytree import tree_flatten


class Recorder(TorchFunctionMode):  # type: ignore[misc]
    """Notes each outermost call: its public name, arguments and result."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[tuple[str, Any, Any]] = []
        self.places: dict[int, Any] = {}
        self.kept: list[Any] = []  # ids stay unique only while the objects live

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = resolve_name(func) or str(func)
        if not name.endswith("__get__") or tensors(result):  # shape, dtype and the like are plain data
            self.add(name, args, kwargs or {}, result)
        return result

    def add(self, name: str, args: Any, kwargs: Any, result: Any) -> None:
        """Note a call that was made."""
        number = len(self.steps)
        self.steps.append((name, args, kwargs))
        self.kept.append((args, kwargs, result))
        self._place(result, ("result", number, ()))

    def argument(self, number: int, tensor: torch.Tensor) -> None:
        """Name an argument of the whole program."""
        self.kept.append(tensor)
        self.places[id(tensor)] = ("leaf", number)

    def _place(self, value: Any, place: tuple[str, int, tuple[int, ...]]) -> None:
        if isinstance(value, torch.Tensor):
            self.places.setdefault(id(value), place)  # an in-place operation returns its argument
        elif isinstance(value, (tuple, list)) and type(value) is not torch.Size:
            for number, item in enumerate(value):
                self._place(item, (place[0], place[1], (*place[2], number)))


def tensors(values: Any) -> list[torch.Tensor]:
    """The tensors in nested ``values``."""
    return [value for value in tree_flatten(values)[0] if isinstance(value, torch.Tensor)]

"""Random nested objects: what Python programs keep arrays in, with references that are shared and that go round."""

from __future__ import annotations

import enum
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from importlib import import_module
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from . import arrays

DEEPEST = 4


@dataclass
class Record:
    """Dataclass."""

    first: Any
    rest: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Frozen:
    """Dataclass that cannot be changed, without a dictionary."""

    first: Any
    second: Any


class Slotted:
    """Object with slots, one of which may be empty, and a dictionary."""

    __slots__ = ("__dict__", "empty", "value")

    def __init__(self, value: Any, other: Any) -> None:
        self.value = value
        self.other = other


class Reduced:
    """Object with a reduction of its own."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.later: Any = None

    def __reduce__(self) -> Any:
        return Reduced, (self.value,), {"later": self.later}


class Stated:
    """Object that chooses its state."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __getstate__(self) -> Any:
        return [self.value]

    def __setstate__(self, state: Any) -> None:
        (self.value,) = state


class Pair(NamedTuple):
    """Named tuple."""

    left: Any
    right: Any


class Named(dict[str, Any]):
    """Dictionary with attributes."""


class Colour(enum.Enum):
    """Members of an enumeration are one object in a process."""

    RED = 1
    BLUE = 2


class Maker:
    """Maker of one random object.

    Args:
        seed: decides the object.
        libraries: whose arrays it has.
    """

    def __init__(self, seed: int, libraries: tuple[str, ...] = arrays.LIBRARIES) -> None:
        for name in libraries:
            import_module(name)
        self.random = Random(seed)
        self.libraries = libraries
        self._made: list[Any] = []  # to be referred to again; those at the front are complete

    def make(self, depth: int = 0) -> Any:
        """Return an object, or one that was made before."""
        random = self.random
        if self._made and random.random() < 0.12:
            return random.choice(self._made)
        if depth >= DEEPEST or random.random() < 0.45:
            made = self._view() if self._made and random.random() < 0.15 else self._leaf()
        else:
            made = self._container(depth)
        self._made.append(made)
        return made

    def _leaf(self) -> Any:
        random = self.random
        kind = random.randrange(12)
        if kind < 9:
            return arrays.make(random, random.choice(self.libraries))
        return random.choice(
            [random.random(), "text", b"bytes", bytearray(b"more"), Colour.BLUE, None, 1 << 70, {1, 2}]
        )

    def _view(self) -> Any:
        """Return a view of an array that is sent, too."""
        arrays_made = [each for each in self._made if getattr(each, "ndim", 0) == 2 and min(each.shape) > 1]
        if not arrays_made:
            return None
        return self.random.choice(arrays_made)[1:, :]

    def _container(self, depth: int) -> Any:
        random = self.random
        parts = [self.make(depth + 1) for _ in range(random.randrange(4))]
        first, second = self.make(depth + 1), self.make(depth + 1)
        if random.random() < 0.3:
            return self._round(first)
        if random.random() < 0.1 and "torch" in self.libraries:
            return self._module(first)
        return random.choice(
            [
                parts, tuple(parts), {str(key): part for key, part in enumerate(parts)}, deque(parts), Record(first, parts),
                Frozen(first, second), Slotted(first, second), Reduced(first), Stated(first), Pair(first, second),
                OrderedDict(a=first, b=second), defaultdict(list, a=first), SimpleNamespace(a=first, b=parts),
                Named(a=first), slice(first, second),
            ]
        )  # fmt: skip

    def _round(self, first: Any) -> Any:
        """Return an object that refers to itself."""
        made: Any = self.random.choice([[first], {"a": first}, Record(first), Slotted(first, None), Reduced(first)])
        if isinstance(made, list):
            made.append(made)
        elif isinstance(made, dict):
            made["self"] = made
        elif isinstance(made, Record):
            made.rest.append((made, first))
        elif isinstance(made, Reduced):
            made.later = {"back": made}
        else:
            made.other = {"back": made}
        return made

    def _module(self, first: Any) -> Any:
        nn = import_module("torch.nn")
        model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
        model.note = first
        if self.random.random() < 0.5:
            model[1].weight.requires_grad_(False)
            return model
        return model.state_dict()


def memory(value: Any) -> np.ndarray[Any, Any] | None:
    """Return the elements of an array whose library lets views share memory; ``None`` for everything else."""
    if isinstance(value, np.ndarray):
        return None if value.dtype.hasobject else value
    if hasattr(value, "requires_grad") and hasattr(value, "detach"):
        if "torch" in type(value).__module__:
            return None if value.requires_grad else _torch_memory(value)
        elements: np.ndarray[Any, Any] = value.detach().numpy()
        return elements
    return None


def _torch_memory(value: Any) -> np.ndarray[Any, Any] | None:
    torch = import_module("torch")
    if value.is_conj() or value.is_neg() or (0 in value.stride() and value.numel()):
        return None
    width = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}.get(value.element_size())
    elements: np.ndarray[Any, Any] = (value.detach() if width is None else value.detach().view(width)).numpy()
    return elements

"""Comparison of an object with what arrived of it: structure, kinds, elements, and which of its parts are one object."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np

from .objects import memory

IDENTICAL = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    type,
    tuple,
    slice,
    frozenset,
)  # the number of copies is open


class Comparison:
    """Comparison of an object with what arrived of it.

    Attributes:
        problems: what was found.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._there: dict[int, Any] = {}  # what arrived, by id() of the original
        self._originals: dict[int, Any] = {}  # by id() of what arrived
        self._kept: list[Any] = []  # temporary objects, so that no id() is used twice
        self._arrays: list[tuple[str, Any, Any]] = []

    def run(self, wanted: Any, got: Any) -> list[str]:
        """Compare two objects, and return how they differ."""
        self._compare("it", wanted, got)
        self._compare_sharing()
        return self.problems

    def _compare(self, path: str, wanted: Any, got: Any) -> None:
        if type(wanted) is not type(got):
            self.problems.append(f"{path} is a {type(got).__name__}, not a {type(wanted).__name__}")
        elif not self._met(path, wanted, got):
            describe = _describer(wanted)
            if describe is not None:
                self._compare_arrays(path, wanted, got, describe)
            for name, part, other in self._parts(path, wanted, got):
                self._compare(f"{path}{name}", part, other)

    def _met(self, path: str, wanted: Any, got: Any) -> bool:
        """Return whether this pair was met before, and note it if one of the two was met with another."""
        if isinstance(wanted, IDENTICAL):
            if id(wanted) in self._there:
                return True
            self._there[id(wanted)] = got
            return False
        there, original = self._there.get(id(wanted), self), self._originals.get(id(got), self)
        if there is self and original is self:
            self._there[id(wanted)], self._originals[id(got)] = got, wanted
            return False
        if there is not self and there is not got:
            self.problems.append(f"{path} was one object with another part, and is one no more")
        elif original is not wanted:
            self.problems.append(f"{path} is one object with another part, and was not")
        return True

    def _compare_arrays(self, path: str, wanted: Any, got: Any, describe: Callable[[Any], Any]) -> None:
        before, after = describe(wanted), describe(got)
        if before != after:
            self.problems.append(f"{path} is {str(after)[:200]}, not {str(before)[:200]}")
        self._arrays.append((path, wanted, got))

    def _parts(self, path: str, wanted: Any, got: Any) -> Iterator[tuple[str, Any, Any]]:
        for name, split in _SPLITS:
            before, after = split(wanted), split(got)
            self._kept += (before, after)
            if [*before] != [*after]:
                self.problems.append(f"{path} has the {name} {[*after]}, not {[*before]}")
                return
            for key in before:
                yield f"{'.' if name == 'attributes' else ''}{key}", before[key], after[key]
        if _is_value(wanted) and wanted != got:
            self.problems.append(f"{path} is {got!r}, not {wanted!r}")

    def _compare_sharing(self) -> None:
        shown = [(path, memory(wanted), memory(got)) for path, wanted, got in self._arrays]
        both = [(path, before, after) for path, before, after in shown if before is not None and after is not None]
        for path, before, after in both:
            if not after.flags.writeable and 0 not in before.strides:
                self.problems.append(f"{path} cannot be written to")
        for (one, a, a2), (other, b, b2) in combinations(both, 2):
            spread = 0 in (*a.strides, *b.strides)  # arrives with all its elements
            if a is not b and not spread and np.may_share_memory(a, b) != np.may_share_memory(a2, b2):
                self.problems.append(
                    f"{one} and {other} share memory {'no more' if np.may_share_memory(a, b) else 'now'}"
                )


def _items(value: Any) -> dict[Any, Any]:
    if isinstance(value, dict):
        return {f"[{key!r}]": part for key, part in value.items()}
    if isinstance(value, (list, tuple, deque)):
        return {f"[{index}]": part for index, part in enumerate(value)}
    return {"start": value.start, "stop": value.stop} if isinstance(value, slice) else {}


def _attributes(value: Any) -> dict[str, Any]:
    if callable(getattr(value, "state_dict", None)):  # a module makes its own attributes anew
        return {"state_dict": value.state_dict(), "note": getattr(value, "note", None)}
    if _describer(value) is not None or isinstance(value, type) or type(value).__name__ == "Colour":
        return {}
    names = [
        name for kind in type(value).__mro__ for name in _slots(kind) if name != "__dict__" and hasattr(value, name)
    ]
    return {**{name: getattr(value, name) for name in names}, **getattr(value, "__dict__", {})}


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


_SPLITS = (("items", _items), ("attributes", _attributes))


def _is_value(value: Any) -> bool:
    return (
        isinstance(value, (int, float, complex, str, bytes, bytearray, set, frozenset))
        or type(value).__name__ == "Colour"
    )


def _describer(value: Any) -> Callable[[Any], Any] | None:
    if isinstance(value, np.ndarray):
        return _describe_numpy
    root = type(value).__module__.partition(".")[0]
    if hasattr(value, "requires_grad") and hasattr(value, "detach"):
        return _describe_torch if root == "torch" else _describe_ours
    if root in ("jax", "jaxlib"):
        return _describe_jax
    return _describe_standard if hasattr(value, "__dlpack__") else None


def _describe_numpy(array: Any) -> Any:
    return array.dtype, array.shape, array.tolist() if array.dtype.hasobject else array.tobytes()


def _describe_ours(tensor: Any) -> Any:
    return tensor.dtype, tuple(tensor.shape), tensor.requires_grad, tensor.detach().numpy().tobytes()


def _describe_torch(tensor: Any) -> Any:
    from torch import uint8

    plain = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return str(tensor.dtype), tuple(tensor.shape), tensor.requires_grad, plain.view(uint8).numpy().tobytes()


def _describe_jax(array: Any) -> Any:
    import jax

    if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
        return str(array.dtype), jax.random.key_data(array).tolist()
    return str(array.dtype), array.shape, np.asarray(array).tobytes()


def _describe_standard(array: Any) -> Any:
    return str(array.dtype), array.shape, np.from_dlpack(array).tobytes()

"""Parameters in lists and dictionaries: ``ParameterList`` and ``ParameterDict``. Plain tensors in them become parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import index as to_index
from typing import Any

from ..core.extend import Tensor
from .module import Module
from .parameter import Parameter


def _registered(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


class ParameterList(Module):
    """List of parameters, registered under the names "0", "1", ...; other values than tensors are kept as they are.

    Args:
        values: the first members.
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _name(self, index: int) -> str:
        number = to_index(index)
        if not -self._size <= number < self._size:
            raise IndexError(f"index {number} is out of range: the ParameterList holds {self._size} values")
        return str(number % self._size)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([self[number] for number in range(*index.indices(self._size))])
        return getattr(self, self._name(index))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._name(index), _registered(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[number] for number in range(self._size))

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def append(self, value: Any) -> ParameterList:
        """Add a value at the end."""
        self._size += 1
        self[-1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add values at the end."""
        for value in list(values):
            self.append(value)
        return self

    def pop(self, index: int = -1) -> Any:
        """Remove a value and return it."""
        values = list(self)
        value = values.pop(index)
        for number in range(self._size):
            delattr(self, str(number))
        self._size = 0
        self.extend(values)
        return value

    def extra_repr(self) -> str:
        return "\n".join(f"({number}): {_described(value)}" for number, value in enumerate(self))


class ParameterDict(Module):
    """Dictionary of parameters; other values than tensors are kept as they are.

    Args:
        parameters: a mapping of names to values, or such pairs.
    """

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(f"the keys of a ParameterDict are strings, not {type(key).__name__}")
        if key not in self._keys and hasattr(self, key):
            raise KeyError(f"ParameterDict has an attribute {key!r} already; choose another key")
        self._keys[key] = None
        setattr(self, key, _registered(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def keys(self) -> Iterable[str]:
        """Return the names."""
        return self._keys.keys()

    def values(self) -> Iterable[Any]:
        """Return the parameters."""
        return (self[key] for key in self._keys)

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return the names and parameters."""
        return ((key, self[key]) for key in self._keys)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the parameter of that name, or ``default``."""
        return getattr(self, key) if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the parameter of that name, after adding ``default`` if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Remove a parameter and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove the last parameter and return its name and itself."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def clear(self) -> None:
        """Remove all parameters."""
        for key in list(self._keys):
            del self[key]

    def copy(self) -> ParameterDict:
        """Return another dictionary of the same parameters."""
        return ParameterDict(dict(self.items()))

    @classmethod
    def fromkeys(cls, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a dictionary in which each of ``keys`` has the value ``default``."""
        return cls(dict.fromkeys(keys, default))

    def update(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Add or replace parameters."""
        for key, value in dict(parameters).items():
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(f"({key}): {_described(value)}" for key, value in self.items())


def _described(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    return f"{type(value).__name__} containing: [{value.dtype} of size {'x'.join(map(str, value.shape))}]"

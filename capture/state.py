"""``State``: the Python objects that a function reads beside its arguments, as they were at some time.

A recording is of what a function did with the globals, closures, attributes, lists and dictionaries that it found. So it can be
replayed only while these are the same; and if a call changes one of them, a replay would not. Tensors are compared by identity,
and by their kinds.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Sequence
from operator import is_
from typing import Any

import numpy as np

from ..core import get_default_dtype
from ..core.extend import Tensor, is_grad_enabled
from .found import Found
from .objects import MISSING, attribute, contents
from .search import ANY_NAME, Search

_VALUES = (bool, int, float, complex, str, bytes, type(None))


class State:
    """Objects that a function reads, as they are now.

    Args:
        roots: the function and the objects among its arguments.
        besides: code of a function that it does not call.
        given: tensors among its arguments, which are not of the state.

    Attributes:
        names: those of globals and attributes in the code of users.

    Raises:
        Unrecordable: there is too much, or it cannot be known.
    """

    def __init__(self, *roots: Any, besides: types.CodeType | None = None, given: Sequence[Tensor] = ()) -> None:
        self._found = search = Search(besides, given)
        search.run(roots)
        self.names = search.names
        self._asks = not search.names.isdisjoint({*ANY_NAME, "AttributeError"})  # for attributes that there may not be
        self._tensors = Found(search.tensors)
        # Most dictionaries and sets are empty ones of modules: one call looks at all of them.
        pairs = [*((each, keys) for each, keys, _ in search.dicts), *search.sets]
        self._empty = [each for each, former in pairs if not former and not hasattr(type(each), "__bool__")]
        done = {*map(id, self._empty)}
        self._dicts = [row for row in search.dicts if id(row[0]) not in done]
        self._sets = [row for row in search.sets if id(row[0]) not in done]
        self._generators = [(each, _state_of(each.bit_generator.state)) for each in search.generators]
        self._legacy = _legacy_state()
        self._modes = _modes()

    def same(self) -> bool:
        """Return whether all of it is as it was."""
        try:
            return next(self.differences(), None) is None
        except Exception:  # another thread changes a dictionary meanwhile, or a weak proxy has lost its object
            return False

    def fits(self, tensors: Iterable[Tensor]) -> bool:
        """Return whether all of it is as it was, and nothing in these arguments is read but tensors."""
        return self.same() and not (self._asks and any(map(self.reads, tensors)))

    def reads(self, tensor: Tensor) -> bool:
        """Return whether an argument has attributes of its own that may be read."""
        return bool(attributes := vars(tensor)) and (self._asks or not self.names.isdisjoint(attributes))

    def differences(self) -> Iterator[str]:
        """Return descriptions of what is not as it was."""
        found = self._found
        for names, name, value in found.items:
            if (now := names.get(name, MISSING)) is not value and not _equal(now, value):
                yield f"{name} was changed"
        for each, name, value in found.slots:
            if (now := attribute(each, name)) is not value and not _equal(now, value):
                yield f"{name} was changed"
        for cell, value in found.cells:
            if (now := contents(cell)) is not value and not _equal(now, value):
                yield "a variable of an enclosing function was changed"
        for space in found.spaces:
            if len(space.attributes) != space.length and (new := space.added(self.names)):
                yield f"{new} was added"
        for each, kind, attributes in found.owners:
            if type(each) is not kind or each.__dict__ is not attributes:
                yield f"the class or the __dict__ of a {kind.__name__} was changed"
        yield from self._contents()

    def _contents(self) -> Iterator[str]:
        found = self._found
        if any(self._empty):
            yield "a dictionary or set was filled that was empty"
        for table, keys, values in self._dicts:
            same = len(table) == len(values)
            if same and values:
                same = all(map(is_, table.values(), values)) and all(map(is_, table, keys))
            if not same and not (_alike(table, keys) and _alike(table.values(), values)):
                yield f"a dictionary was changed ({', '.join(map(str, keys[:3]))}, ...)"
        for sequence, length, values in found.lists:
            if len(sequence) != length or not (all(map(is_, sequence, values)) or all(map(_equal, sequence, values))):
                yield f"a list was changed (it had {length} elements)"
        for given, former in self._sets:
            if len(given) != len(former) or (former and {*map(id, given)} != {*map(id, former)}):
                yield "a set was changed"
        for each, read, value in found.contents:
            if (now := read()) is not value and not _equal(now, value):
                yield f"the elements of a {type(each).__name__} were changed"
        if not self._tensors.same():
            yield "the shape, dtype or requires_grad of a tensor was changed"

    def has(self, each: Any) -> bool:
        """Return whether an object is one of the lists, sets and dictionaries of the state."""
        found = self._found
        return any(each is other[0] for part in (found.lists, found.dicts, found.sets) for other in part)

    def changed(self) -> list[str]:
        """Return the names of attributes and variables that are not as they were, and keys of dictionaries."""
        found = self._found
        named = [(name, now.get(name, MISSING), value) for now, name, value in found.items]
        named += [(name, attribute(each, name), value) for each, name, value in found.slots]
        for table, keys, values in found.dicts:
            named += [(key, table.get(key, MISSING), value) for key, value in zip(keys, values) if isinstance(key, str)]
        return [name for name, now, value in named if not _equal(now, value)]

    def modes_differ(self) -> bool:
        """Return whether the grad mode or the default dtype is another one."""
        return _modes() != self._modes

    def drawn(self) -> bool:
        """Return whether random numbers of NumPy were drawn since."""
        now = [(each, _state_of(each.bit_generator.state)) for each, _ in self._generators]
        return now != self._generators or _legacy_state() != self._legacy


def _equal(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if type(one) is types.MethodType is type(other):  # made anew when it is read
        return one.__func__ is other.__func__ and one.__self__ is other.__self__
    return (
        type(one) is type(other)
        and isinstance(one, _VALUES)
        and one == other
        and (type(one) not in (float, complex) or repr(one) == repr(other))
    )


def _alike(one: Iterable[Any], others: Sequence[Any]) -> bool:
    """Return whether there are as many objects, and each is the same or has the same value."""
    objects = tuple(one)
    return len(objects) == len(others) and all(map(_equal, objects, others))


def _modes() -> Any:
    return is_grad_enabled(), get_default_dtype()


def _legacy_state() -> Any:
    return _state_of(np.random.get_state(legacy=False))


def _state_of(state: Any) -> Any:
    """Return the state of a generator of random numbers as an object to compare: its texts take milliseconds."""
    if isinstance(state, dict):
        return {name: _state_of(each) for name, each in state.items()}
    return state.tobytes() if isinstance(state, np.ndarray) else state

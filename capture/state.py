"""``State``: the Python objects that a function reads beside its arguments, as they were at some time.

A recording is of what a function did with the globals, closures, attributes, lists and dictionaries that it found. So it can be
replayed only while these are the same; and if a call changes one of them, a replay would not. Tensors are compared by identity.

The search starts from the function. Of the attributes of an object it follows those whose names are in the code that
was found so far.
"""

from __future__ import annotations

import collections
import functools
import sys
import types
from collections.abc import Iterator, Mapping
from operator import is_
from typing import Any

import numpy as np
import numpy.random  # before a recording: to import it is to draw numbers for its seed

from .. import nn, optim
from ..amp import GradScaler
from ..core.extend import Generator, Tensor
from .errors import Unrecordable, check_library

PACKAGE = __name__.rpartition(".capture")[0]
_APPLICATIONS = tuple([f"{PACKAGE}.{name}." for name in ("examples", "tools", "benchmarks")])  # as a user's programs
_ELSEWHERE = tuple([f"{PACKAGE}.{name}." for name in ("autograd_dist", "rpc", "rref")])
_LONG = 1024  # elements; of longer lists only the length is compared
_MOST = 20_000  # objects
_LEAVES = (
    Tensor,
    np.ndarray,
    np.generic,
    optim.Optimizer,
    Generator,
    str,
    bytes,
    int,
    float,
    complex,
    type(None),
)
_VALUES = (bool, int, float, complex, str, bytes, type(None))
_INHERITED = (  # attributes that the library reads, whatever names the user's code has
    (nn.Module, ("training", "_parameters", "_buffers", "_modules", "_hooks")),
    (GradScaler, ("_enabled", "_scale")),  # the others change in each step; what reads them is not recorded
)
_ANY_NAME = frozenset(["getattr", "vars", "__dict__", "hasattr"])
_MAKING = frozenset(["__init__", "__new__", "__post_init__", "__init_subclass__"])
_MISSING = object()


class State:
    """Objects that a function reads, as they are now.

    Args:
        roots: the function and the objects among its arguments.
        besides: code of a function that it does not call.

    Attributes:
        names: those of globals and attributes in the code of users.

    Raises:
        Unrecordable: there is too much, or it cannot be known.
    """

    def __init__(self, *roots: Any, besides: types.CodeType | None = None) -> None:
        self._items: list[tuple[Mapping[str, Any], str, Any]] = []
        self._slots: list[tuple[Any, str, Any]] = []
        self._cells: list[tuple[types.CellType, Any]] = []
        self._dicts: list[tuple[dict[Any, Any], tuple[Any, ...], tuple[Any, ...]]] = []
        self._lists: list[tuple[Any, int, tuple[Any, ...]]] = []
        self._sets: list[tuple[Any, Any]] = []
        self._generators: list[tuple[Any, Any]] = []
        self.names = _Search(self, besides).run(roots)
        self._legacy = _legacy_state()

    def same(self) -> bool:
        """Return whether all of it is as it was."""
        return next(self.differences(), None) is None

    def differences(self) -> Iterator[str]:
        """Return descriptions of what is not as it was."""
        for names, name, value in self._items:
            if (now := names.get(name, _MISSING)) is not value and not _equal(now, value):
                yield f"{name} was changed"
        for each, name, value in self._slots:
            if (now := getattr(each, name, _MISSING)) is not value and not _equal(now, value):
                yield f"{name} was changed"
        for cell, value in self._cells:
            if (now := _contents(cell)) is not value and not _equal(now, value):
                yield "a variable of an enclosing function was changed"
        for table, keys, values in self._dicts:
            same = len(table) == len(values) and all(map(is_, table.values(), values)) and tuple(table) == keys
            if not same and (tuple(table) != keys or not all(map(_equal, table.values(), values))):
                yield f"a dictionary was changed ({', '.join(map(str, keys[:3]))}, ...)"
        for sequence, length, values in self._lists:
            if len(sequence) != length or not (all(map(is_, sequence, values)) or all(map(_equal, sequence, values))):
                yield f"a list was changed (it had {length} elements)"
        for given, former in self._sets:
            if len(given) != len(former) or {*map(id, given)} != {*map(id, former)}:
                yield "a set was changed"

    def changed(self) -> list[str]:
        """Return the names of attributes and variables that are not as they were, and keys of dictionaries."""
        named = [(name, now.get(name, _MISSING), value) for now, name, value in self._items]
        named += [(name, getattr(each, name, _MISSING), value) for each, name, value in self._slots]
        for table, keys, values in self._dicts:
            named += [
                (key, table.get(key, _MISSING), value) for key, value in zip(keys, values) if isinstance(key, str)
            ]
        return [name for name, now, value in named if not _equal(now, value)]

    def drawn(self) -> bool:
        """Return whether random numbers of NumPy were drawn since."""
        now = [(each, _state_of(each.bit_generator.state)) for each, _ in self._generators]
        return now != self._generators or _legacy_state() != self._legacy


class _Search:
    """The search for what a function reads; it fills the lists of a ``State``."""

    def __init__(self, state: State, besides: types.CodeType | None) -> None:
        self._state, self._besides = state, besides
        self._seen: dict[int, Any] = {}
        self._names: set[str] = set()
        self._classes: set[tuple[type, bool]] = set()
        self._todo: list[Any] = []
        self._objects: list[tuple[Mapping[str, Any], set[str], bool]] = []  # attributes, names followed, follow all?

    def run(self, roots: tuple[Any, ...]) -> set[str]:
        """Search, and return the names in the code that was found."""
        self._todo.extend(roots)
        while self._todo:
            while self._todo:
                self._visit(self._todo.pop())
            for attributes, done, whole in self._objects:
                wanted = attributes.keys() if whole or not self._names.isdisjoint(_ANY_NAME) else self._wanted()
                for name in [each for each in attributes if each in wanted and each not in done]:
                    done.add(name)
                    self._item(attributes, name)
        return self._names

    def _wanted(self) -> set[str]:
        return self._names | _MAKING if "type" in self._names or "__class__" in self._names else self._names

    def _item(self, names: Mapping[str, Any], name: str) -> None:
        value = names[name]
        self._state._items.append((names, name, value))
        self._todo.append(value)

    def _visit(self, each: Any) -> None:
        if isinstance(each, _LEAVES) or id(each) in self._seen or _is_elsewhere(type(each)):
            return
        self._seen[id(each)] = each
        check_library(each.__name__ if isinstance(each, types.ModuleType) else type(each).__module__ or "")
        if len(self._seen) > _MOST:
            raise Unrecordable(f"it reads more than {_MOST} objects")
        if isinstance(each, types.FunctionType):
            if not each.__module__ or not _is_ours(each.__module__):
                self._function(each)
        elif isinstance(each, types.MethodType):
            self._todo += [each.__func__, each.__self__]
        elif type(each).__module__.startswith(f"{PACKAGE}.capture."):
            self._todo.append(each.__wrapped__)
        elif isinstance(each, functools.partial):
            self._todo += [each.func, each.args, each.keywords]
        elif isinstance(each, dict):
            self._state._dicts.append((each, tuple(each), tuple(each.values())))
            self._todo.extend(each.values())
        elif isinstance(each, (staticmethod, classmethod)):
            self._todo.append(each.__func__)
        elif isinstance(each, property):
            self._todo += [each.fget, each.fset]
        elif isinstance(each, type):
            self._class(each)
        elif isinstance(each, (list, tuple, collections.deque)):
            if type(each) is not tuple:
                self._state._lists.append((each, len(each), tuple(each) if len(each) <= _LONG else ()))
            self._todo.extend(tuple(each) if len(each) <= _LONG else ())
        elif isinstance(each, (set, frozenset)):
            self._state._sets.append((each, tuple(each)))
        elif isinstance(each, types.ModuleType):
            if not _is_ours(each.__name__) and each.__name__.partition(".")[0] not in sys.stdlib_module_names:
                self._objects.append((vars(each), set(), False))
        elif isinstance(each, np.random.Generator):
            self._state._generators.append((each, _state_of(each.bit_generator.state)))
        else:
            self._object(each)

    def _function(self, function: types.FunctionType) -> None:
        if function.__code__ is self._besides:
            return
        names = set(_names_of(function.__code__))
        if "param_groups" in names:
            raise Unrecordable("it reads param_groups, which change from step to step", ("param_groups",))
        self._names |= names
        for name in names:
            if name in function.__globals__:
                self._item(function.__globals__, name)
        for cell in function.__closure__ or ():
            value = _contents(cell)
            self._state._cells.append((cell, value))
            self._todo.append(value)
        self._todo += [function.__defaults__, function.__kwdefaults__, getattr(function, "__wrapped__", None)]

    def _object(self, each: Any) -> None:
        kind = type(each)
        if isinstance(attributes := getattr(each, "__dict__", None), dict):
            # What the package's own classes read is not in the names of a user's code.
            inherited = next((names for base, names in _INHERITED if isinstance(each, base)), ())
            whole = _is_ours(kind.__module__) and kind is not GradScaler
            done: set[str] = set()
            for name in inherited:
                if name in attributes:
                    done.add(name)
                    self._item(attributes, name)
            self._objects.append((attributes, done, whole))
        self._todo.append(getattr(each, "__wrapped__", None))
        for base in kind.__mro__:
            self._class(base, called=False)
            slots = vars(base).get("__slots__", ()) if _is_users(base) else ()
            for name in (slots,) if isinstance(slots, str) else slots:
                value = getattr(each, name, _MISSING)
                self._state._slots.append((each, name, value))
                self._todo.append(value)

    def _class(self, each: type, called: bool = True) -> None:
        """Search a class, which may be called to make an object, or of which there is one."""
        if not _is_users(each) or (each, called) in self._classes:
            return
        self._classes.add((each, called))
        methods = (types.FunctionType, staticmethod, classmethod, property)
        # The library calls forward(), and Python __call__(), which no code of the user names.
        library = any(_is_ours(base.__module__) for base in each.__mro__)
        making = () if called else _MAKING
        done = {
            name
            for name, value in vars(each).items()
            if isinstance(value, methods) and name not in making and (library or name.startswith("__"))
        }
        for name in done:
            self._item(vars(each), name)
        self._objects.append((vars(each), done, False))
        for base in each.__bases__ if called else ():
            self._class(base)


def _is_elsewhere(kind: type) -> bool:
    """Return whether objects of a class have to do with other workers, as references: they are not followed."""
    return kind.__module__.startswith(_ELSEWHERE)


def _is_ours(module: str) -> bool:
    """Return whether a module is the library's or NumPy's, whose functions are known; and none of the programs beside it."""
    return f"{module}.".startswith((f"{PACKAGE}.", "numpy.")) and not f"{module}.".startswith(_APPLICATIONS)


def _is_users(kind: type) -> bool:
    module = kind.__module__
    return module == "__main__" or not (_is_ours(module) or module.partition(".")[0] in sys.stdlib_module_names)


def _names_of(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_of(constant)


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def _equal(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if type(one) is types.MethodType is type(other):  # made anew when it is read
        return one.__func__ is other.__func__ and one.__self__ is other.__self__
    return type(one) is type(other) and isinstance(one, _VALUES) and one == other and repr(one) == repr(other)


def _legacy_state() -> Any:
    return _state_of(np.random.get_state(legacy=False))


def _state_of(state: Any) -> Any:
    """Return the state of a generator of random numbers as an object to compare: its texts take milliseconds."""
    if isinstance(state, dict):
        return {name: _state_of(each) for name, each in state.items()}
    return state.tobytes() if isinstance(state, np.ndarray) else state

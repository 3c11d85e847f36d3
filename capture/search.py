"""``Search``: the search for the objects that a function reads beside its arguments; ``State`` compares them.

It starts from the function. Of the attributes of an object it follows those whose names are in the code that was found so far;
all of them where code that is not looked at, the library's and Python's own, may read them.
"""

from __future__ import annotations

import builtins
import collections
import functools
import io
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.random  # before a recording: to import it is to draw numbers for its seed

from .. import nn, optim
from ..amp import GradScaler
from ..core.extend import Generator, Tensor
from .code_names import global_names, imported_modules, names_of
from .errors import Unrecordable, check_library
from .objects import (
    LONG,
    MISSING,
    PACKAGE,
    attributes_of,
    contents,
    is_elsewhere,
    is_ours,
    is_users,
    library_reads,
    reader,
    slots_of,
)

_MOST = 20_000  # objects
_LEAVES = (np.generic, Generator, str, bytes, int, float, complex, type(None))
_INHERITED = (  # attributes that the library reads, whatever names the user's code has
    (nn.Module, ("training", "_parameters", "_buffers", "_modules", "_hooks", "forward")),
    (GradScaler, ("_enabled", "_scale")),  # the others change in each step; what reads them is not recorded
)
_STEPPING = (optim.Optimizer, GradScaler)  # their steps run as they are
ANY_NAME = frozenset(["getattr", "vars", "__dict__", "hasattr", "attrgetter", "asdict", "astuple"])
_MAKING = frozenset(["__init__", "__new__", "__post_init__", "__init_subclass__"])
_READ_ALL = frozenset(["globals", "eval", "exec"])
_METHODS = (types.FunctionType, staticmethod, classmethod, property)


class Space(NamedTuple):
    """Attributes of an object, or of a class or module.

    Attributes:
        attributes: by name, as they are now.
        length: their former number.
        known: names of those that are compared.
        whole: whether all are; ``None``: those alone whose names are in the code, even if that reads any attribute.
    """

    attributes: Mapping[str, Any]
    length: int
    known: set[str]
    whole: bool | None

    def added(self, names: set[str]) -> str | None:
        """Return the name of an attribute that there was not, and that is read; ``None`` if there is none.

        Args:
            names: those in the code of users.
        """
        whole = reads_all(self.whole, names)
        new = [each for each in self.attributes if each not in self.known and (whole or each in names)]
        return new[0] if new else None


class Search:
    """Search for what a function reads. Its findings are lists of objects, and what these have now.

    Args:
        besides: code of a function that is not called.
        given: tensors that are left out.

    Attributes:
        items: mappings, names in them, and values; ``MISSING`` for what there is not.
        slots: objects, names of attributes, and values.
        cells: variables of enclosing functions, and values.
        dicts: dictionaries, keys, and values.
        lists: lists, lengths, and elements.
        sets: sets, and elements.
        contents: other objects, functions that read them, and what these return.
        generators: NumPy's generators of random numbers.
        spaces: attributes of objects.
        owners: objects other than tensors, their classes, and their attributes.
        tensors: tensors.
        names: those of globals and attributes in the code of users.
    """

    def __init__(self, besides: types.CodeType | None, given: Sequence[Tensor] = ()) -> None:
        self.items: list[tuple[Mapping[str, Any], str, Any]] = []
        self.slots: list[tuple[Any, str, Any]] = []
        self.cells: list[tuple[types.CellType, Any]] = []
        self.dicts: list[tuple[Mapping[Any, Any], tuple[Any, ...], tuple[Any, ...]]] = []
        self.lists: list[tuple[Any, int, tuple[Any, ...]]] = []
        self.sets: list[tuple[Any, Any]] = []
        self.contents: list[tuple[Any, Callable[[], Any], Any]] = []
        self.generators: list[np.random.Generator] = []
        self.spaces: list[Space] = []
        self.owners: list[tuple[Any, type, Any]] = []
        self.tensors: list[Tensor] = []
        self.names: set[str] = set()
        self._besides = besides
        self._seen: dict[int, Any] = {id(each): each for each in given}
        self._classes: set[tuple[type, bool]] = set()
        self._todo: list[tuple[Any, str]] = []
        self._from = ""  # the name in the function's own code that leads to what is searched
        # Attributes of objects, the names that were followed, whether to follow all, and what led there.
        self._objects: list[tuple[Mapping[str, Any], set[str], bool | None, str]] = []
        self._libraries: list[
            tuple[Mapping[str, Any], set[str]]
        ] = []  # of the library's modules, and names that are noted

    def run(self, roots: tuple[Any, ...]) -> None:
        """Search.

        Raises:
            Unrecordable: there is too much, or it cannot be known.
        """
        self._follow(*roots)
        while self._todo:
            while self._todo:
                self._try(*self._todo.pop())
            for attributes, done, whole, name_before in self._objects:
                self._from = name_before
                wanted = attributes.keys() if reads_all(whole, self.names) else self._wanted()
                for name in [each for each in attributes if each in wanted and each not in done]:
                    done.add(name)
                    self._item(attributes, name)
            for functions, noted in self._libraries:
                self._note_functions(functions, noted)
        self.spaces = [Space(each, len(each), done, whole) for each, done, whole, _ in self._objects]
        self._objects, self._libraries, self._seen = [], [], {}

    def _try(self, each: Any, name: str) -> None:
        self._from = name
        try:
            self._visit(each)
        except Unrecordable as error:
            error.names += (self._from,) * bool(self._from)
            raise

    def _follow(self, *objects: Any, name: str = "") -> None:
        self._todo += [(each, self._from or name) for each in objects]

    def _wanted(self) -> set[str]:
        return self.names | _MAKING if "type" in self.names or "__class__" in self.names else self.names

    def _item(self, names: Mapping[str, Any], name: str) -> None:
        value = names.get(name, MISSING)
        self.items.append((names, name, value))
        self._follow(value, name=name)

    def _note_functions(self, functions: Mapping[str, Any], noted: set[str]) -> None:
        """Note the functions of a module of the library that the user's code names: a program may replace them."""
        for name in [each for each in self.names - noted if each in functions]:
            noted.add(name)
            value = functions[name]
            if isinstance(value, types.ModuleType):
                self._follow(value, name=name)
            elif callable(value):
                self.items.append((functions, name, value))

    def _visit(self, each: Any) -> None:
        if isinstance(each, _LEAVES) or id(each) in self._seen or is_elsewhere(type(each)):
            return
        self._seen[id(each)] = each
        check_library(each.__name__ if isinstance(each, types.ModuleType) else type(each).__module__ or "")
        if len(self._seen) > _MOST:
            raise Unrecordable(f"it reads more than {_MOST} objects")
        if isinstance(each, types.FunctionType):
            if not each.__module__ or not is_ours(each.__module__):
                self._function(each)
        elif isinstance(each, (types.MethodType, types.BuiltinMethodType, types.MethodWrapperType)):
            self._follow(getattr(each, "__func__", None), each.__self__)
        elif type(each).__module__.startswith(f"{PACKAGE}.capture."):
            self._follow(each.__wrapped__)
        elif isinstance(each, functools.partial):
            self._follow(each.func, each.args, each.keywords)
        elif isinstance(each, (staticmethod, classmethod)):
            self._follow(each.__func__)
        elif isinstance(each, property):
            self._follow(each.fget, each.fset)
        elif isinstance(each, type):
            self._class(each)
        elif isinstance(each, types.ModuleType):
            if is_ours(each.__name__):
                self._libraries.append((vars(each), set()))
            elif each.__name__.partition(".")[0] not in sys.stdlib_module_names:
                self._objects.append((vars(each), set(), False, self._from))
        elif isinstance(each, Iterator) and not isinstance(each, io.IOBase) and not is_users(type(each)):
            raise Unrecordable(f"it reads a {type(each).__name__}, which gives something else each time")
        else:
            self._container(each)
            self._object(each)

    def _container(self, each: Any) -> None:
        """Search an object that holds others."""
        if isinstance(each, (dict, types.MappingProxyType)):
            self.dicts.append((each, tuple(each), tuple(each.values())))
            self._follow(*each.values())
        elif isinstance(each, (list, tuple, collections.deque)):
            if type(each) is not tuple:
                self.lists.append((each, len(each), tuple(each) if len(each) <= LONG else ()))
            self._follow(*(tuple(each) if len(each) <= LONG else ()))
        elif isinstance(each, (set, frozenset)):
            self.sets.append((each, tuple(each)))
            self._follow(*(tuple(each) if len(each) <= LONG else ()))
        elif isinstance(each, np.random.Generator):
            self.generators.append(each)
        elif (read := reader(each)) is not None:
            self.contents.append((each, read, value := read()))
            self._follow(value)

    def _function(self, function: types.FunctionType) -> None:
        code = function.__code__
        if code is self._besides:
            return
        names = set(names_of(code))
        if "param_groups" in names:
            raise Unrecordable("it reads param_groups, which change from step to step", ("param_groups",))
        self.names |= names
        found, read = function.__globals__, global_names(code)
        for name in read & _READ_ALL:
            if getattr(builtins, name) is found.get(name, getattr(builtins, name)):
                raise Unrecordable(f"it calls {name}(), which may read anything", (name,))
        for name in names & found.keys() | read:
            self._item(found, name)
        for name in imported_modules(code, found.get("__package__")):
            if name in sys.modules:
                self._item(sys.modules, name)
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            value = contents(cell)
            self.cells.append((cell, value))
            self._follow(value, name=name)
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            value = getattr(function, name)
            self.slots.append((function, name, value))
            self._follow(value)
        self._objects.append((function.__dict__, set(), False, self._from))
        self._follow(function.__dict__.get("__wrapped__"))

    def _object(self, each: Any) -> None:
        kind = type(each)
        if isinstance(attributes := attributes_of(each), dict):
            if isinstance(each, Tensor):
                self.tensors.append(each)
            else:
                self.owners.append((each, kind, attributes))
            # What the package's own classes read is not in the names of a user's code.
            inherited = next((names for base, names in _INHERITED if isinstance(each, base)), ())
            done = set[str]()
            for name in inherited:
                if name in attributes:
                    done.add(name)
                    self._item(attributes, name)
                elif name == "forward":
                    self.items.append((attributes, name, MISSING))
            whole = None if isinstance(each, _STEPPING) else library_reads(kind)
            self._objects.append((attributes, done, whole, self._from))
            self._follow(attributes.get("__wrapped__"))
        for base in kind.__mro__:
            self._class(base, called=False)
            self.slots += (found := list(slots_of(each, base)))
            for _, name, value in found:
                self._follow(value, name=name)

    def _class(self, each: type, called: bool = True) -> None:
        """Search a class, which may be called to make an object, or of which there is one."""
        if not is_users(each) or (each, called) in self._classes:
            return
        self._classes.add((each, called))
        # The library calls forward(), and Python __call__(), which no code of the user names.
        library = any(is_ours(base.__module__) for base in each.__mro__)
        making = () if called else _MAKING
        done = {
            name
            for name, value in vars(each).items()
            if isinstance(value, _METHODS) and name not in making and (library or name.startswith("__"))
        }
        for name in done:
            self._item(vars(each), name)
        self._objects.append((vars(each), done, False, self._from))
        for base in each.__bases__ if called else ():
            self._class(base)
        self._class(type(each))


def reads_all(whole: bool | None, names: set[str]) -> bool:
    """Return whether all attributes are compared.

    Args:
        whole: whether code that is not looked at may read them: see ``Space``.
        names: those in the code of users.
    """
    return bool(whole) or (whole is not None and not names.isdisjoint(ANY_NAME))

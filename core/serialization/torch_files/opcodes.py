"""Interpreter of pickles that imports nothing and calls nothing but what it is given.

The library's ``pickletools.genops`` splits a pickle into opcodes; their meaning is in CPython's ``Lib/pickletools.py``. A
global is looked up in a table of names, and only a ``Builder`` of that table can be called. Opcodes that would make an object
of any class (``NEWOBJ``, ``INST``, …) are not there, so they are refused with the rest.
"""

from __future__ import annotations

import pickletools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ..limits import Limits, check_depth


def _nothing(*_: Any) -> Iterable[Any]:
    return ()


class Builder(NamedTuple):
    """Function that a pickle may call, with the arguments that it holds.

    ``hashed`` and ``copied`` return, of the same arguments, the keys that it hashes and the tensors that it reads or copies.
    ``inner`` returns, of the same arguments, another builder to call instead, and its arguments.
    """

    function: Callable[..., Any]
    hashed: Callable[..., Iterable[Any]] = _nothing
    copied: Callable[..., Iterable[Any]] = _nothing
    inner: Callable[..., tuple[Any, Any]] | None = None


def evaluate(file: Any, names: Mapping[str, Any], stored: Callable[[Any], Any], limits: Limits) -> Any:
    """Return the object that a pickle describes.

    Args:
        file: a buffered binary file, which is read to the end of the pickle and no further.
        names: by module and name, joined by a dot: the value of each global that may be in the pickle.
        stored: returns the object that a persistent id stands for.
        limits: what may still be done for the file.

    Raises:
        ValueError: the pickle is damaged, names another global, uses an opcode that is not supported, or is beyond the limits.
        Exception: what builders and ``stored`` raise, and ``IndexError``, ``KeyError`` and ``TypeError`` of a damaged pickle.
    """
    machine = _Machine(names, stored, limits)
    for opcode, argument, _ in pickletools.genops(file):
        if opcode.name == "STOP":
            return machine.stack.pop()
        machine.step(opcode.name, argument)
    raise ValueError("its pickle has no end")


class _Machine:
    """Stack, marks in it, and memo of a pickle that is under evaluation."""

    def __init__(self, names: Mapping[str, Any], stored: Callable[[Any], Any], limits: Limits) -> None:
        self.names, self.stored, self.limits = names, stored, limits
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []  # the stacks under each mark
        self.memo: dict[int, Any] = {}
        # By id: how deep a tuple is, and the tuple, so that no other object gets its id.
        self.tuples: dict[int, tuple[int, Any]] = {}

    def step(self, name: str, argument: Any) -> None:
        """Carry out one opcode."""
        if name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        elif name in _LITERALS:
            self.stack.append(argument)
        elif name in _OPERATIONS:
            _OPERATIONS[name](self, argument)
        else:
            raise ValueError(f"its pickle has the opcode {name}, which checkpoints of tensors do not need")

    def push(self, item: Any) -> None:
        """Put an item on the stack, which ``to_mark`` may have replaced."""
        self.stack.append(item)

    def to_mark(self) -> list[Any]:
        """Remove the last mark, and return the items above it."""
        items, self.stack = self.stack, self.below.pop()
        return items

    def push_mark(self, _: Any) -> None:
        self.below.append(self.stack)
        self.stack = []

    def push_tuple(self, made: tuple[Any, ...]) -> None:
        """Put a tuple on the stack, after a check of how deep it is: CPython hashes tuples by recursion, without a check."""
        depth = 1 + max((self.tuples[id(item)][0] for item in made if id(item) in self.tuples), default=0)
        check_depth(depth)
        self.tuples[id(made)] = depth, made
        self.stack.append(made)

    def push_stack_global(self, _: Any) -> None:
        attribute, module = self.stack.pop(), self.stack.pop()
        if not isinstance(attribute, str) or not isinstance(module, str):
            raise ValueError("its pickle names a global by another object than text")
        self.push_global(f"{module} {attribute}")

    def push_global(self, name: str) -> None:
        module, _, attribute = name.partition(" ")
        full = f"{_RENAMED.get(module, module)}.{attribute}"
        if full not in self.names:
            raise ValueError(
                f"it names {full}, which is not among the types and functions that a checkpoint may name; nothing of it "
                "was run. Save state_dict() instead of a whole object, and numbers instead of NumPy scalars"
            )
        self.stack.append(self.names[full])

    def reduce(self, _: Any) -> None:
        arguments, function = self.stack.pop(), self.stack.pop()
        while isinstance(function, Builder) and function.inner:
            function, arguments = function.inner(*arguments)
        if not isinstance(function, Builder) or type(arguments) is not tuple:
            raise ValueError(f"its pickle calls an object of class {type(function).__name__}")
        self.limits.read(arguments)
        for key in function.hashed(*arguments):
            self.limits.hash(key)
        for tensor in function.copied(*arguments):
            self.limits.allocate(tensor.nbytes)
        made = function.function(*arguments)
        (self.push_tuple if isinstance(made, tuple) else self.push)(made)

    def build(self, _: Any) -> None:
        state, made = self.stack.pop(), self.stack[-1]
        self.limits.read(state)
        if type(made) is not OrderedDict or type(state) is not dict or not all(type(key) is str for key in state):
            raise ValueError(f"its pickle sets attributes of an object of class {type(made).__name__}")
        vars(made).update(state)  # PyTorch keeps the versions of modules in ``_metadata`` of a state dict

    def put(self, where: Any) -> None:
        self.memo[len(self.memo) if where is None else where] = self.stack[-1]

    def extend(self, _: Any) -> None:
        items = self.to_mark()
        self._top(list).extend(items)

    def append(self, _: Any) -> None:
        item = self.stack.pop()
        self._top(list).append(item)

    def add(self, _: Any) -> None:
        items = self.to_mark()
        self._top(set).update(self.hashable(items))

    def set_item(self, _: Any) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.limits.hash(key)
        self._top(dict)[key] = value

    def set_items(self, _: Any) -> None:
        items = self.to_mark()
        self._top(dict).update(zip(self.hashable(items[::2]), items[1::2], strict=True))

    def hashable(self, items: list[Any]) -> list[Any]:
        """Return keys, after they have been counted."""
        for key in items:
            self.limits.hash(key)
        return items

    def tuple_of(self, count: int) -> None:
        items = [self.stack.pop() for _ in range(count)]
        self.push_tuple(tuple(reversed(items)))

    def _top(self, kind: type) -> Any:
        if not isinstance(self.stack[-1], kind):
            raise ValueError(f"its pickle adds items to an object of class {type(self.stack[-1]).__name__}")
        return self.stack[-1]


_RENAMED = {"__builtin__": "builtins"}
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_LITERALS = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
}
_OPERATIONS: dict[str, Callable[[_Machine, Any], None]] = {
    "PROTO": lambda machine, _: None,
    "FRAME": lambda machine, _: None,
    "MARK": _Machine.push_mark,
    "POP": lambda machine, _: machine.stack.__delitem__(-1),
    "POP_MARK": lambda machine, _: machine.to_mark().clear(),
    "DUP": lambda machine, _: machine.push(machine.stack[-1]),
    "EMPTY_LIST": lambda machine, _: machine.push([]),
    "EMPTY_DICT": lambda machine, _: machine.push({}),
    "EMPTY_SET": lambda machine, _: machine.push(set()),
    "LIST": lambda machine, _: machine.push(machine.to_mark()),
    "TUPLE": lambda machine, _: machine.push_tuple(tuple(machine.to_mark())),
    "TUPLE1": lambda machine, _: machine.tuple_of(1),
    "TUPLE2": lambda machine, _: machine.tuple_of(2),
    "TUPLE3": lambda machine, _: machine.tuple_of(3),
    "FROZENSET": lambda machine, _: machine.push(frozenset(machine.hashable(machine.to_mark()))),
    "APPEND": _Machine.append,
    "APPENDS": _Machine.extend,
    "ADDITEMS": _Machine.add,
    "SETITEM": _Machine.set_item,
    "SETITEMS": _Machine.set_items,
    "GLOBAL": _Machine.push_global,
    "STACK_GLOBAL": _Machine.push_stack_global,
    "REDUCE": _Machine.reduce,
    "BUILD": _Machine.build,
    "BINPERSID": lambda machine, _: machine.push(machine.stored(machine.stack.pop())),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"), _Machine.put),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), lambda machine, where: machine.push(machine.memo[where])),
}

"""Interpreter of pickles that imports nothing and calls nothing but what it is given.

The library's ``pickletools.genops`` splits a pickle into opcodes; their meaning is in CPython's ``Lib/pickletools.py``. A
global is looked up in a table of names, and only a ``Builder`` of that table can be called. Opcodes that would make an object
of any class (``NEWOBJ``, ``INST``, …) are not there, so they are refused with the rest.
"""

from __future__ import annotations

import pickletools
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Builder(NamedTuple):
    """Function that a pickle may call, with the arguments that it holds."""

    function: Callable[..., Any]


def evaluate(file: Any, names: Mapping[str, Any], stored: Callable[[Any], Any]) -> Any:
    """Return the object that a pickle describes.

    Args:
        file: a buffered binary file, which is read to the end of the pickle and no further.
        names: by module and name, joined by a dot: the value of each global that may be in the pickle.
        stored: returns the object that a persistent id stands for.

    Raises:
        ValueError: the pickle is damaged, names another global, or uses an opcode that is not supported.
        Exception: what builders and ``stored`` raise, and ``IndexError``, ``KeyError`` and ``TypeError`` of a damaged pickle.
    """
    machine = _Machine(names, stored)
    for opcode, argument, _ in pickletools.genops(file):
        if opcode.name == "STOP":
            return machine.stack.pop()
        machine.step(opcode.name, argument)
    raise ValueError("its pickle has no end")


class _Machine:
    """Stack, marks in it, and memo of a pickle that is under evaluation."""

    def __init__(self, names: Mapping[str, Any], stored: Callable[[Any], Any]) -> None:
        self.names, self.stored = names, stored
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []  # the stacks under each mark
        self.memo: dict[int, Any] = {}

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
        if not isinstance(function, Builder) or type(arguments) is not tuple:
            raise ValueError(f"its pickle calls {function!r}, which is not a function of checkpoints")
        self.stack.append(function.function(*arguments))

    def build(self, _: Any) -> None:
        state, made = self.stack.pop(), self.stack[-1]
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
        self._top(set).update(items)

    def set_item(self, _: Any) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._top(dict)[key] = value

    def set_items(self, _: Any) -> None:
        items = self.to_mark()
        self._top(dict).update(zip(items[::2], items[1::2], strict=True))

    def tuple_of(self, count: int) -> None:
        items = [self.stack.pop() for _ in range(count)]
        self.stack.append(tuple(reversed(items)))

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
    "TUPLE": lambda machine, _: machine.push(tuple(machine.to_mark())),
    "TUPLE1": lambda machine, _: machine.tuple_of(1),
    "TUPLE2": lambda machine, _: machine.tuple_of(2),
    "TUPLE3": lambda machine, _: machine.tuple_of(3),
    "FROZENSET": lambda machine, _: machine.push(frozenset(machine.to_mark())),
    "APPEND": _Machine.append,
    "APPENDS": _Machine.extend,
    "ADDITEMS": _Machine.add,
    "SETITEM": _Machine.set_item,
    "SETITEMS": _Machine.set_items,
    "GLOBAL": _Machine.push_global,
    "STACK_GLOBAL": lambda machine, _: machine.push_global(f"{machine.stack.pop(-2)} {machine.stack.pop()}"),
    "REDUCE": _Machine.reduce,
    "BUILD": _Machine.build,
    "BINPERSID": lambda machine, _: machine.push(machine.stored(machine.stack.pop())),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"), _Machine.put),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), lambda machine, where: machine.push(machine.memo[where])),
}

"""Writes ``core/signatures.py``: what methods tensors have, for type checkers, from the texts of the families.

``python -m telegrad.core.ops.write_signatures`` writes it; with ``--check`` it fails if the file is not fresh. It reads
source texts and runs none, so annotations and overloads arrive as they were written.
"""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Iterator
from pathlib import Path

OPS = Path(__file__).parent
TARGET = OPS.parent / "signatures.py"

OUT = "*, out: Tensor | None = None"
# The signatures of what the factories make.
FACTORIES = {
    "unary": f"(self, {OUT}) -> Tensor",
    "exact": f"(self, {OUT}) -> Tensor",
    "test": f"(self, {OUT}) -> Tensor",
    "binary": f"(self, other: Operand, {OUT}) -> Tensor",
    "comparison": f"(self, other: Operand, {OUT}) -> Tensor",
    "_scaled": "(self, other: Operand, *, alpha: Scalar = 1, out: Tensor | None = None) -> Tensor",
    "_converter": "(self) -> Tensor",
}
OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]

HEADER = '''"""What operations a tensor has as methods, for type checkers only: ``ops/methods.py`` hangs them on the class.

Written by ``python -m telegrad.core.ops.write_signatures``; do not edit.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy.typing as npt

from .tensors import Operand
from .types import Array, Dims, DType, Scalar

if TYPE_CHECKING:
'''

CLASS = '''
    class TensorMethods:
        """The functions of ``ops`` whose first argument is a tensor."""

        __slots__ = ()

'''


def main() -> None:
    """Write the file, or check that it is fresh."""
    text = signatures()
    if "--check" in sys.argv[1:]:
        if TARGET.read_text() != text:
            sys.exit(f"{TARGET} is not fresh: run python -m telegrad.core.ops.write_signatures")
    else:
        TARGET.write_text(text)


def signatures() -> str:
    """The text of ``signatures.py``."""
    families = [Family(path) for path in sorted(OPS.rglob("*.py")) if "\nMETHODS = " in path.read_text()]
    others = {family.name: family for family in families}
    for family in families:
        family.others = others
    imports = sorted({line for family in families for line in family.imports()})
    lines = [line for family in families for line in family.lines()]
    # A method that is named as a type comes last: below it, the class body would take the name for the method.
    lines.sort(key=lambda line: any(f"def {name}(" in line for name in ("bool", "float", "int")))
    body = "\n".join("        " + line for line in [*lines, *_operators()])
    return HEADER + "".join(f"    {line}\n" for line in imports) + CLASS + body + "\n"


class Family:
    """One module of operations, as text."""

    def __init__(self, path: Path) -> None:
        self.name = path.stem
        self.module = ("ops", *path.relative_to(OPS).with_suffix("").parts)
        self.tree = ast.parse(path.read_text())
        self.public: list[str] = []
        self.methods: list[str] = []
        self.in_place: list[str] = []
        self.properties: list[str] = []
        self.made_by: dict[str, str] = {}  # name -> the factory that made it
        self.functions: dict[str, list[ast.FunctionDef]] = {}
        self.synonyms: dict[str, tuple[str, str]] = {}  # name -> (module, name there)
        self.others: dict[str, Family] = {}
        for node in self.tree.body:
            self._read(node)

    def _read(self, node: ast.stmt) -> None:
        if isinstance(node, ast.FunctionDef):
            self.functions.setdefault(node.name, []).append(node)
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            return
        name, value = node.targets[0].id, node.value
        if name == "__all__":
            self.public = list(ast.literal_eval(value))
        elif name == "METHODS":
            self.methods = self.public if isinstance(value, ast.Name) else list(ast.literal_eval(value))
        elif name in ("IN_PLACE", "PROPERTIES"):
            (self.in_place if name == "IN_PLACE" else self.properties).extend(_keys(value))
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            if value.func.id in FACTORIES:
                self.made_by[name] = value.func.id
        elif isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name):
            self.synonyms[name] = (value.value.id, value.attr)

    def lines(self) -> Iterator[str]:
        """The methods, a line each."""
        for name in self.methods:
            yield from self._method(name, name, False)
        for name in self.in_place:
            yield from self._method(name, name[:-1], True)
        for name in self.properties:
            yield f"@property\n        def {name}(self) -> Tensor: ...{'  # noqa: N802' if name[0].isupper() else ''}"

    def _method(self, name: str, function: str, in_place: bool) -> Iterator[str]:
        if function in self.synonyms:
            module, function = self.synonyms[function]
            yield from self.others[module]._method(name, function, in_place)
            return
        if function in self.made_by:
            signature = FACTORIES[self.made_by[function]]
            if in_place:
                signature = signature.replace(", " + OUT, "").replace(", out: Tensor | None = None", "")
            yield f"def {name}{signature}: ..."
            return
        definitions = self.functions[function]
        overloads = definitions[:-1]
        for number, definition in enumerate(overloads):
            ignore = "  # type: ignore[no-overload-impl]" if not number else ""
            yield f"@overload{ignore}\n        def {name}{_signature(definition, in_place)}: ..."
        if not overloads:
            yield f"def {name}{_signature(definitions[0], in_place)}: ..."

    def imports(self) -> Iterator[str]:
        """What the annotations name that is neither built in nor in the header: import lines."""
        wanted = set().union(*(_names(line) for line in self.lines())) if self.methods else set()
        known = {
            alias.asname or alias.name for node in ast.walk(ast.parse(HEADER + "    pass")) for alias in _aliases(node)
        }
        for node in ast.walk(self.tree):  # imports for type checkers only are further in
            if isinstance(node, ast.ClassDef) and node.name in wanted:
                yield f"from .{'.'.join(self.module)} import {node.name}"
            elif isinstance(node, ast.ImportFrom):
                place = node.module or ""
                module = ".".join(["", *self.module[: -node.level], place]) if node.level else place
                for alias in node.names:
                    if alias.name in wanted - known and alias.asname is None:
                        yield f"from {module} import {alias.name}"


def _aliases(node: ast.AST) -> list[ast.alias]:
    return node.names if isinstance(node, (ast.Import, ast.ImportFrom)) else []


def _names(line: str) -> set[str]:
    (definition,) = ast.parse("class C:\n        " + line).body[0].body  # type: ignore[attr-defined]
    return {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}


def _keys(value: ast.expr) -> Iterator[str]:
    if isinstance(value, ast.DictComp):  # {f"{each.__name__}_": inplace(each) for each in (abs, cos)}
        for name in getattr(value.generators[0].iter, "elts", []):
            yield f"{name.id}_"
    elif isinstance(value, ast.Dict):
        for key, item in zip(value.keys, value.values):
            if isinstance(key, ast.Constant):
                yield str(key.value)
            else:  # **{...}
                yield from _keys(item)


def _signature(definition: ast.FunctionDef, in_place: bool) -> str:
    arguments = copy.deepcopy(definition.args)
    (arguments.posonlyargs or arguments.args)[0] = ast.arg("self")
    if in_place:
        kept = [place for place, arg in enumerate(arguments.kwonlyargs) if arg.arg != "out"]
        arguments.kw_defaults = [arguments.kw_defaults[place] for place in kept]
        arguments.kwonlyargs = [arguments.kwonlyargs[place] for place in kept]
    returns = ast.unparse(definition.returns) if definition.returns else "Any"
    return f"({ast.unparse(arguments)}) -> {'Tensor' if in_place else returns}"


def _operators() -> Iterator[str]:
    for name in OPERATORS:
        kind = "Tensor" if name == "matmul" else "Operand"
        yield f"def __{name}__(self, other: {kind}) -> Tensor: ..."
        yield f"def __r{name}__(self, other: {kind}) -> Tensor: ..."
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"):
        yield f"def __i{name}__(self, other: Operand) -> Tensor: ..."
    for name in ("neg", "pos", "abs", "invert"):
        yield f"def __{name}__(self) -> Tensor: ..."
    for name in COMPARISONS:
        ignore = "  # type: ignore[override]" if name in ("eq", "ne") else ""
        yield f"def __{name}__(self, other: Operand) -> Tensor: ...{ignore}"
    yield "def __getitem__(self, index: Any) -> Tensor: ..."
    yield "def __setitem__(self, index: Any, value: Operand) -> None: ..."


if __name__ == "__main__":
    main()

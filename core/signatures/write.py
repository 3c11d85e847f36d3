"""Writes the stubs beside it: what ``telegrad``, its namespaces and tensors offer, for type checkers.

``python -m telegrad.core.signatures.write`` writes them; with ``--check`` it fails if one is not fresh. The registry says
what there is, the source texts with which annotations and overloads.
"""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from ..namespaces import functions_of
from ..ops.table.registry import FUNCTIONS, METHODS, PACKAGE, Method

FOLDER = Path(__file__).parent
OPS = f"{PACKAGE}.core.ops"
HEADER = '"""{}: written by ``python -m telegrad.core.signatures.write``; do not edit."""\n\n'
IMPORTS = """import builtins
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy.typing as npt

from ..tensors import Operand, Tensor
from ..types import Array, Dims, DType, Scalar
"""


def main() -> None:
    """Write the stubs, or check that they are fresh."""
    for path, text in stubs().items():
        if "--check" not in sys.argv[1:]:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            sys.exit(f"{path} is not fresh: run python -m telegrad.core.signatures.write")


def stubs() -> dict[Path, str]:
    """Return the text of each stub."""
    namespaces = sorted({place.rpartition(".")[0] for place in FUNCTIONS})
    texts = {FOLDER / f"{namespace or 'functions'}.pyi": _functions(namespace) for namespace in namespaces}
    return {**texts, FOLDER / "methods.pyi": _methods()}


def _functions(namespace: str) -> str:
    lines = []
    for name, function in functions_of(namespace).items():
        module, attribute = _homes()[id(function)]
        lines.append(f"from ..{module.removeprefix(f'{PACKAGE}.core.')} import {attribute} as {name}\n")
    names = "".join(f'    "{name}",\n' for name in sorted(functions_of(namespace)))
    head = HEADER.format(f"Functions of ``{f'{PACKAGE}.{namespace}'.rstrip('.')}``")
    return f"{head}{''.join(sorted(lines))}\n__all__ = [\n{names}]\n"


@cache
def _homes() -> dict[int, tuple[str, str]]:
    """Return the module and name under which each function is written, by its identity."""
    modules = {name: module for name, module in sys.modules.items() if name.startswith(f"{OPS}.")}
    return {
        id(vars(module)[attribute]): (name, attribute)
        for name, module in sorted(modules.items())
        for attribute in _written(module)
    }


def _written(module: ModuleType) -> Iterator[str]:
    for node in _tree(module).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


@cache
def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


def _methods() -> str:
    imports: set[str] = set()
    lines: list[tuple[bool, str, str]] = []
    for name, method in METHODS.items():
        text = "".join(_signatures(name, method, imports))
        # A method that is named as a type comes last: below it, the class body would take the name for the method.
        lines.append((name in ("bool", "float", "int"), name, text))
    head = '\nclass TensorMethods:\n    """Methods, operators and properties that operations give to tensors."""\n\n'
    body = "".join(text for _, _, text in sorted(lines))
    return HEADER.format("Methods of tensors") + IMPORTS + "".join(sorted(imports)) + head + body


def _signatures(name: str, method: Method, imports: set[str]) -> Iterator[str]:
    definitions = _definitions(method.operation)
    if method.kind == "property":
        yield f"    @property\n    def {name}(self) -> Tensor: ...\n"
        return
    overloads = definitions[:-1] if method.kind == "method" else []
    for definition in overloads or definitions[-1:]:
        arguments, returns = _form(definition, method.kind)
        for node in ast.walk(ast.parse(f"def f({arguments}) -> {returns}: ...")):
            if isinstance(node, ast.Name):
                imports.update(_import(node.id, method.operation))
        ignore = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
        yield ("    @overload\n" if overloads else "") + f"    def {name}({arguments}) -> {returns}: ...{ignore}\n"


def _definitions(operation: Callable[..., Any]) -> list[ast.FunctionDef]:
    """Return the definitions of a function in its module, overloads first, or one made from a closure's signature."""
    written = inspect.unwrap(operation)
    module = sys.modules[written.__module__]
    tree = _tree(module) if module.__name__.startswith(OPS) else ast.Module([], [])
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == written.__name__]
    if not found:
        (made,) = ast.parse(f"def made{inspect.signature(written)}: ...").body
        assert isinstance(made, ast.FunctionDef)
        found = [made]
    return found


def _form(definition: ast.FunctionDef, kind: str) -> tuple[str, str]:
    """Return the arguments and the result of a form of an operation."""
    arguments = copy.deepcopy(definition.args)
    if kind == "operator":
        required = len(arguments.args) - len(arguments.defaults)
        arguments = ast.arguments([], arguments.args[:required], None, [], [], None, [])
        for argument in arguments.args[1:2]:
            argument.arg = argument.arg if argument.arg == "index" else "other"
    if kind == "in_place":
        kept = [place for place, argument in enumerate(arguments.kwonlyargs) if argument.arg != "out"]
        arguments.kw_defaults = [arguments.kw_defaults[place] for place in kept]
        arguments.kwonlyargs = [arguments.kwonlyargs[place] for place in kept]
    (arguments.posonlyargs or arguments.args)[0] = ast.arg("self")
    returns = ast.unparse(_plain(definition.returns)) if definition.returns and kind != "in_place" else "Tensor"
    for node in ast.walk(arguments):
        if isinstance(node, ast.arg) and node.annotation:
            node.annotation = _plain(node.annotation)
    return ast.unparse(arguments), returns


def _plain(annotation: ast.expr) -> ast.expr:
    """Return an annotation as it was written: a closure's signature has it as a string."""
    quoted = isinstance(annotation, ast.Constant) and isinstance(annotation.value, str)
    return ast.parse(annotation.value, mode="eval").body if quoted else annotation  # type: ignore[attr-defined]


def _import(name: str, operation: Callable[..., Any]) -> Iterator[str]:
    """Yield the import of a name in an annotation, if it is neither built in nor in ``IMPORTS``."""
    known = {alias.name for node in ast.parse(IMPORTS).body for alias in getattr(node, "names", ())}
    if name in known or hasattr(builtins, name):
        return
    module = inspect.unwrap(operation).__module__
    for node in ast.walk(_tree(sys.modules[module])):  # imports for type checkers only are further in
        if isinstance(node, ast.ClassDef) and node.name == name:
            yield f"from ..{module.removeprefix(f'{PACKAGE}.core.')} import {name}\n"
        elif isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
            place = (
                ".".join([*module.split(".")[: -node.level], node.module or ""]) if node.level else node.module or ""
            )
            inside = place.removeprefix(f"{PACKAGE}.core.")
            yield f"from {f'..{inside}' if node.level else place} import {name}\n"


if __name__ == "__main__":
    main()

"""Names of the public packages: which there are, in which file each is written, and under which path it is documented."""

from __future__ import annotations

import ast
import importlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from reference_table import ELSEWHERE, INTERNAL, PACKAGES

ROOT = Path(__file__).resolve().parents[1]
MISSING = object()  # the value of a name whose module needs a library that is not here


@dataclass(frozen=True)
class Entry:
    """Public name: its package, the file in which it is written, and its object, or ``MISSING``."""

    package: str
    name: str
    home: Path
    value: Any

    @property
    def path(self) -> str:
        """Path that users write."""
        return f"{self.package}.{self.name}"


@cache
def exports(file: Path) -> dict[str, Path]:
    """Return the public names of a module, and the file in which each is written.

    Public are the names of ``__all__``, what is imported under the same name (``import x as x``) or with a star, and without
    an ``__all__`` what the module itself defines.
    """
    tree, found, homes = ast.parse(file.read_text()), {}, {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            source = _imported(file, node)
            for alias in node.names:
                if alias.name == "*" and source:
                    found.update(exports(source))
                home = source or file
                homes[alias.asname or alias.name] = home
                if alias.asname == alias.name:
                    found[alias.name] = home
    listed = _listed(tree)
    own = _defined(tree) if listed is None else listed
    return {**found, **{name: homes.get(name, found.get(name, file)) for name in own}}


def _written(name: str, file: Path) -> Path:
    """Return the file in which a name is written, where a package exports what another one exports."""
    seen: set[Path] = set()
    while file.name == "__init__.py" and file not in seen:
        seen.add(file)
        file = exports(file).get(name, file)
    return file


def _imported(file: Path, node: ast.ImportFrom) -> Path | None:
    folder = file.parents[node.level - 1]
    base = folder.joinpath(*(node.module or "").split("."))
    places = (base / "__init__.py", base.with_suffix(".py"), base.with_suffix(".pyi"))
    return next((place for place in places if place.exists()), None)


def _listed(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(each.value) for each in ast.walk(node.value) if isinstance(each, ast.Constant)]
    return None


def _defined(tree: ast.Module) -> list[str]:
    names = []
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [name for name in names if not name.startswith("_")]


def entries(package: str) -> list[Entry]:
    """Return the names of a package that users write, without its modules, which have pages of their own."""
    try:
        module = importlib.import_module(package)
        file = Path(module.__file__ or "")
    except ImportError:  # it needs a library that is not here
        module, file = None, ROOT.joinpath(*package.split(".")[1:]).with_suffix(".py")
    left_out = {
        *INTERNAL.get(package, "").split(),
        *(path.rpartition(".")[2] for path in PACKAGES if path.startswith(f"{package}.")),
    }
    names = {name: home for name, home in exports(file).items() if name not in left_out and not name.startswith("__")}
    found = [Entry(package, name, _written(name, home), getattr(module, name, MISSING)) for name, home in names.items()]
    return [entry for entry in found if not isinstance(entry.value, ModuleType)]


def documented() -> dict[str, list[Entry]]:
    """Return the entries of each package."""
    return {package: entries(package) for package in PACKAGES}


def homes(found: dict[str, list[Entry]]) -> dict[int, Entry]:
    """Return the entry that documents an object, by its identity: that of the first package that has it."""
    first: dict[int, Entry] = {}
    for entry in (entry for each in found.values() for entry in each):
        if callable(entry.value) and entry.name not in ELSEWHERE.get(entry.package, "").split():
            first.setdefault(id(entry.value), entry)
    return first


def public_paths() -> dict[str, str]:
    """Return the path that users write of each class, by the path of its module, and by its name if no other has that."""
    classes = [entry for entry in homes(documented()).values() if isinstance(entry.value, type)]
    paths = {f"{entry.value.__module__}.{entry.value.__qualname__}": entry.path for entry in classes}
    names = [entry.name for entry in classes]
    return {**{entry.name: entry.path for entry in classes if names.count(entry.name) == 1}, **paths}

"""Second import names of modules: ``import telegrad.futures`` finds ``telegrad.core.futures``.

Python imports the real module. Type checkers, which do not run this, read a stub beside it: ``futures.pyi``.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from importlib.abc import Loader


class KeepsFunctions(ModuleType):
    """Module whose functions stay when a module of the same name below it is imported, as PyTorch's do."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and callable(vars(self).get(name))):
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Callable[[str], ModuleType], tuple[str]]:
        return importlib.import_module, (self.__name__,)  # picklers know modules by their type


class ImportAliases:
    """Finder and loader of modules, and of those below them, under other names; each is the same module object under both.

    It has no base class of ``importlib.abc``: that brings tempfile, shutil and three libraries of compression.

    Args:
        package: the package that has the other names.
        places: from the other name, below ``package``, to the real one, below the package of which that is a part.
    """

    def __init__(self, package: str, places: Mapping[str, str]) -> None:
        self._prefix = f"{package}."
        self._root = package.partition(".")[0]
        self._places = places

    def install(self) -> None:
        """Let ``import`` ask this finder first: the path of an aliased package would give second copies of its modules."""
        sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for an alias, and ``None`` for any other name.

        Args:
            fullname: the name to import.
            path, target: not used.
        """
        place = self._place(fullname.removeprefix(self._prefix)) if fullname.startswith(self._prefix) else None
        if place is None or importlib.util.find_spec(place) is None:
            return None
        return ModuleSpec(fullname, cast("Loader", self), origin=place)

    def _place(self, name: str) -> str | None:
        known, below = name, ""
        while known not in self._places:
            known, dot, last = known.rpartition(".")
            if not dot:
                return None
            below = f".{last}{below}"
        return f"{self._root}.{self._places[known]}{below}"

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module of the real name."""
        module = importlib.import_module(str(spec.origin))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's own spec, which the import system replaced by the alias's; the module has run already."""
        spec = module.__spec__
        assert spec is not None
        module.__spec__ = spec.loader_state
        above, _, name = spec.name.rpartition(".")
        if callable(getattr(sys.modules[above], name, None)):  # also a function that is imported when it is looked up
            sys.modules[above].__class__ = KeepsFunctions  # the import system is about to set the attribute
        self._offer_modules_below(module, spec.name)

    def _offer_modules_below(self, module: ModuleType, alias: str) -> None:
        """Let a module have the aliases below it: as attributes before they are imported, and as a package has modules."""
        below = f"{alias.removeprefix(self._prefix)}."
        names = {place.removeprefix(below).partition(".")[0] for place in self._places if place.startswith(below)}
        if not names:
            return
        own = getattr(module, "__getattr__", None)

        def find(name: str) -> object:
            try:
                if own is not None:
                    return own(name)  # first: a function of the name comes before the module
            except AttributeError:
                if name not in names:
                    raise
            if name in names:
                return importlib.import_module(f"{alias}.{name}")
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

        vars(module).setdefault("__path__", [])
        vars(module)["__getattr__"] = find

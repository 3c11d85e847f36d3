"""``import telegrad.futures`` finds ``telegrad.core.futures``: modules that have a shorter name for users than a place."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class ImportAliases(MetaPathFinder, Loader):
    """Finds modules under other names, and what is below them; each is the same module object under both.

    Args:
        package: whose modules they are.
        places: from the short name to the place, both below ``package``.
    """

    def __init__(self, package: str, places: Mapping[str, str]) -> None:
        self._package, self._places = package, places

    def install(self) -> None:
        """Let ``import`` ask here first: the path of an aliased package would give it second copies of its modules."""
        sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A spec for an alias; ``None`` for everything else."""
        package, _, rest = fullname.partition(".")
        short, dot, below = rest.partition(".")
        if package != self._package or short not in self._places:
            return None
        place = f"{package}.{self._places[short]}{dot}{below}"
        return None if importlib.util.find_spec(place) is None else ModuleSpec(fullname, self, origin=place)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module in its place."""
        module = importlib.import_module(str(spec.origin))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It ran when it was imported; the import system has only put the alias's spec in place of its own."""
        spec = module.__spec__
        assert spec is not None
        module.__spec__ = spec.loader_state

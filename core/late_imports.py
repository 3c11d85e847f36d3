"""Names of a package that are imported when they are first used: its ``__getattr__``."""

import importlib
import sys
from collections.abc import Callable, Mapping

_FROM_ABOVE: dict[str, Mapping[str, str]] = {}


def add_names(package: str, places: Mapping[str, str]) -> None:
    """Give a package names of packages above it, which it does not know; its ``__getattr__`` must be of ``late_imports``.

    Args:
        package: its ``__name__``.
        places: as in ``late_imports``.
    """
    _FROM_ABOVE[package] = places


def late_imports(package: str, places: Mapping[str, str]) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a package (PEP 562); each name is looked up once, and is then the package's own.

    To type checkers a module with ``__getattr__`` has every name: call this under ``if not TYPE_CHECKING``, and import the
    names under ``if TYPE_CHECKING``.

    Args:
        package: its ``__name__``.
        places: from a name to the module that has it, relative to the package. The last part of a place may be the name
            itself: then the module is the value.

    Returns:
        A function that raises ``AttributeError`` for other names.
    """

    def find(name: str) -> object:
        place = places.get(name) or _FROM_ABOVE.get(package, {}).get(name)
        if place is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(place, package)
        value = module if place.rpartition(".")[2] == name else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return find

"""Names of a package that are imported when they are first used: its ``__getattr__``."""

import gc
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate
from types import ModuleType

_FROM_ABOVE: dict[str, Mapping[str, str]] = {}


def add_names(package: str, places: Mapping[str, str]) -> None:
    """Give a package names of packages above it, which it does not know; its ``__getattr__`` must be of ``late_imports``.

    Args:
        package: its ``__name__``.
        places: as in ``late_imports``.
    """
    _FROM_ABOVE[package] = places


@contextmanager
def collector_paused() -> Iterator[None]:
    """Let the garbage collector pause: it would look at what is imported again and again, and modules are no garbage."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def import_place(place: str, package: str) -> ModuleType:
    """Import and return the module of a place, in any thread.

    Its packages are imported first: else a thread that imports the module and one that imports its package could each wait for
    the other.

    Args:
        place: the module's name, relative to the package.
        package: the package's ``__name__``.
    """
    name = place.lstrip(".")
    dots = place[: len(place) - len(name)]
    with collector_paused():
        *_, module = (
            importlib.import_module(dots + each, package) for each in accumulate(name.split("."), "{}.{}".format)
        )
    return module


def late_imports(package: str, places: Mapping[str, str], rest: str = "") -> Callable[[str], object]:
    """Return the ``__getattr__`` of a package (PEP 562); each name is looked up once, and is then the package's own.

    To type checkers a module with ``__getattr__`` has every name: call this under ``if not TYPE_CHECKING``, and import the
    names under ``if TYPE_CHECKING``.

    Args:
        package: its ``__name__``.
        places: from a name to the module that has it, relative to the package. The last part of a place may be the name
            itself: then the module is the value, unless it has one of that name.
        rest: place of a module whose public names, but for modules, are the package's too: all of them, once one that is
            not in ``places`` is looked up. They are what a star import of the package brings.

    Returns:
        A function that raises ``AttributeError`` for other names.
    """

    def find(name: str) -> object:
        place = places.get(name) or _FROM_ABOVE.get(package, {}).get(name)
        if place is None:
            return find_rest(name)
        module = import_place(place, package)
        is_module = place.rpartition(".")[2] == name and not hasattr(module, name)
        value = module if is_module else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    def find_rest(name: str) -> object:
        if rest and (name == "__all__" or not name.startswith("_")):
            values = _public(import_place(rest, package))
            vars(sys.modules[package]).update(values)
            if name == "__all__":
                return sorted(values)
            if name in values:
                return values[name]
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find


def _public(module: ModuleType) -> dict[str, object]:
    """Return the names of a module that are neither private nor modules, with their values."""
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }

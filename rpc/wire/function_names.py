"""Names of functions, by which another worker finds its own: by module and qualified name, never by value if that works.

``__main__`` counts as the same module on both sides when both run the same script, so a program whose workers share a
script keeps its module globals. ``__mp_main__`` (a spawned child) and the name given to ``python -m`` are aliases of it.
"""

from __future__ import annotations

import importlib
import os
import pickle
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ...core.errors import SerializationError

MAIN = "__main__"
MAIN_NAMES = frozenset({MAIN, "__mp_main__"})


def main_script() -> str:
    """Return what identifies this process's ``__main__``: the same text on every worker that runs the same script.

    Empty for an interactive interpreter or ``python -c``, whose functions travel by value.
    """
    main = sys.modules.get(MAIN)
    path = getattr(main, "__file__", None)
    text = f"{main_module_name() or ''}:{os.path.realpath(path)}" if path else ""
    return text.encode("utf-8", "backslashreplace").decode()  # a path may hold bytes that are no text


def main_module_name() -> str | None:
    """Return the importable name of ``__main__`` when it was started with ``python -m``."""
    spec = getattr(sys.modules.get(MAIN), "__spec__", None)
    name = getattr(spec, "name", None)
    if name in MAIN_NAMES:
        return None
    return name.removesuffix(".__main__") if isinstance(name, str) else None


def reference(function: Any, same_main: bool) -> str | None:
    """Return ``module:qualified.name`` if the callee can find ``function`` by it, else ``None`` (it must travel by value)."""
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or "<" in name:
        return None
    if getattr(function, "__self__", None) is not None and not isinstance(function.__self__, (ModuleType, type)):
        return None  # a method of an object: the object must travel
    if module in MAIN_NAMES:
        if not same_main:
            return None
        module = MAIN
    try:
        found = _walk(_loaded(module), name)
    except (AttributeError, KeyError):
        return None
    return f"{module}:{name}" if found is function or found == function else None


def resolve(name: str) -> Callable[..., Any]:
    """Return the function of this process that another worker named.

    Raises:
        SerializationError: there is none; the message says what to do.
    """
    module_name, _, qualified = name.partition(":")
    try:
        try:
            module = _loaded(module_name)
        except KeyError:
            module = importlib.import_module(module_name)
        found = _walk(module, qualified)
    except (ImportError, AttributeError) as error:
        raise SerializationError(
            f"the callee cannot find {qualified!r} in module {module_name!r} ({error}); define it at module level in a "
            f"module that every worker can import, or pass a lambda or a local function, which travels by value"
        ) from error
    if not callable(found):
        raise SerializationError(f"{name!r} is not callable on the callee; it is a {type(found).__name__} there")
    return found


def _loaded(name: str) -> ModuleType:
    if name in MAIN_NAMES or name == main_module_name():
        return sys.modules[MAIN]
    return sys.modules[name]


def _walk(module: ModuleType, qualified: str) -> Any:
    found: Any = module
    for part in qualified.split("."):
        found = getattr(found, part)
    return found


class Unpickler(pickle.Unpickler):
    """Unpickler for which ``__main__`` has one meaning, whatever it was called where the pickle was made."""

    def find_class(self, module: str, name: str) -> Any:
        """Look up a global by name."""
        return super().find_class(MAIN if module in MAIN_NAMES else module, name)

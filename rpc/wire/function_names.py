"""Names of functions: module and qualified name, by which another worker finds its own function of the same name.

A function travels by value only if it cannot be found by name. ``__main__`` counts as the same module on both sides when both
run the same script, so the functions of a common script use the globals of their own process. ``__mp_main__`` (a spawned
child) and the name given to ``python -m`` are aliases of ``__main__``.
"""

from __future__ import annotations

import importlib
import os
import pickle
import sys
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from ...base.errors import SerializationError
from .users_code import advice_to_install, users_error

MAIN = "__main__"
MAIN_NAMES = frozenset({MAIN, "__mp_main__"})
MOST_FOUND = 1024  # functions that are kept


class Found:
    """Function that was found by its name.

    Args:
        text: the name, ``module:qualified.name``.
        module_name: name of the module.
        module: the module.
        part: the function's name in the module.
        function: the function.
    """

    __slots__ = ("function", "module", "module_name", "names", "part", "text")

    def __init__(
        self, text: str, module_name: str, module: ModuleType, part: str, function: Callable[..., Any]
    ) -> None:
        self.text = text
        self.module_name = module_name
        self.module = module
        self.names = module.__dict__
        self.part = part
        self.function = function

    def is_there(self) -> bool:
        """Return whether the name still leads to this function."""
        return sys.modules.get(self.module_name) is self.module and self.names.get(self.part) is self.function


_found: dict[Any, Found] = {}  # by name and by function; only functions of modules whose import has ended


def main_script() -> str:
    """Return a text that identifies this process's ``__main__``: the same on every worker that runs the same script.

    It is empty for an interactive interpreter and for ``python -c``, whose functions travel by value.
    """
    main = sys.modules.get(MAIN)
    path = getattr(main, "__file__", None)
    text = f"{main_module_name() or ''}:{os.path.realpath(path)}" if path else ""
    return text.encode("utf-8", "backslashreplace").decode()  # a path may have bytes that are no UTF-8


def main_module_name() -> str | None:
    """Return the importable name of ``__main__`` when it was started with ``python -m``."""
    spec = getattr(sys.modules.get(MAIN), "__spec__", None)
    if spec is None or (name := getattr(spec, "name", None)) in MAIN_NAMES:
        return None
    return name.removesuffix(".__main__") if isinstance(name, str) else None


def reference(function: Any, same_main: bool) -> str | None:
    """Return ``module:qualified.name`` if the callee can find ``function`` by it; ``None`` if it must travel by value."""
    if type(function) is FunctionType or type(function) is BuiltinFunctionType:
        found = _found.get(function) or _find_global(function, same_main)
        if found is not None and found.is_there():
            return found.text if same_main or found.module_name != MAIN else None
    return _reference(function, same_main)


def _reference(function: Any, same_main: bool) -> str | None:
    # TorchScript's functions all have the name of their class; those that they were made of have their own.
    named = getattr(function, "_torchdynamo_inline", function)
    module = getattr(named, "__module__", None)
    name = getattr(named, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or "<" in name:
        return None
    if getattr(function, "__self__", None) is not None and not isinstance(function.__self__, (ModuleType, type)):
        return None  # a method of an object, which must travel too
    if module in MAIN_NAMES:
        if not same_main:
            return None
        module = MAIN
    try:
        found = _walk(_loaded(module), name)
    except (AttributeError, KeyError):
        return None
    return f"{module}:{name}" if found is function or found == function else None


def _find_global(function: FunctionType | BuiltinFunctionType, same_main: bool) -> Found | None:
    """Return a function that is a global of the module in which it was defined, and keep it; ``None`` if it is not."""
    home = MAIN if function.__module__ in MAIN_NAMES else function.__module__
    module, name = sys.modules.get(home), function.__qualname__
    if type(module) is not ModuleType or (names := module.__dict__).get(name) is not function:
        return None
    if getattr(function, "__globals__", names) is not names:  # of another module of that name
        return None
    known = same_main if home == MAIN else names.get("__name__") == home != main_module_name()
    return _keep(function, Found(f"{home}:{name}", home, module, name, function)) if known else None


def _keep(key: Any, found: Found) -> Found:
    if len(_found) >= MOST_FOUND:
        _found.clear()
    _found[key] = found
    return found


def resolve(name: str, worker: str) -> Callable[..., Any]:
    """Return the function of this process that has the name which another worker sent.

    Args:
        name: of the function.
        worker: name of this worker, for errors.

    Raises:
        SerializationError: there is no such function; the message says what to do.
    """
    if (known := _found.get(name)) is not None and known.is_there():
        return known.function
    return _find(name, worker)


def _find(name: str, worker: str) -> Callable[..., Any]:
    module_name, _, qualified = name.partition(":")
    if _is_main(module_name):
        module_name = MAIN
    try:
        module = _imported(module_name)
        found = _walk(module, qualified)
    except (ImportError, AttributeError) as error:
        raise SerializationError(
            f"worker {worker!r} cannot find {qualified!r} in module {module_name!r} ({error}); "
            f"{advice_to_install(error)}define it at module level in a module that every worker can import, or pass a lambda "
            f"or a local function, which travels by value"
        ) from users_error(error)
    if not callable(found):
        raise SerializationError(f"{name!r} is not callable on worker {worker!r}; it is a {type(found).__name__} there")
    if "." not in qualified and type(module) is ModuleType:
        _keep(name, Found(name, module_name, module, qualified, found))
    return found


def found_by_name(name: str) -> Any:
    """Return the object of this process that has a name of ``reference``. A pickle calls this.

    Args:
        name: ``module:qualified.name``.

    Raises:
        ImportError, AttributeError: there is none.
    """
    module, _, qualified = name.partition(":")
    return _walk(_imported(module), qualified)


def _imported(name: str) -> ModuleType:
    # Also if the module is in sys.modules: another thread may still be importing it, and this waits for that thread.
    return sys.modules[MAIN] if _is_main(name) else importlib.import_module(name)


def _loaded(name: str) -> ModuleType:
    return sys.modules[MAIN if _is_main(name) else name]


def _is_main(name: str) -> bool:
    return name in MAIN_NAMES or name == main_module_name()


def _walk(module: ModuleType, qualified: str) -> Any:
    found: Any = module
    for part in qualified.split("."):
        found = getattr(found, part)
    return found


class Unpickler(pickle.Unpickler):
    """Unpickler that finds ``__main__`` also by the name that it had where the pickle was made."""

    def find_class(self, module: str, name: str) -> Any:
        """Look up a global by name."""
        return super().find_class(MAIN if module in MAIN_NAMES else module, name)

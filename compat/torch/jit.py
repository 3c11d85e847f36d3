"""TorchScript (``torch.jit``): nothing is compiled, so decorators and ``trace`` return what they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ...core.futures import Future as Future
from ...nn import Module

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
NOT_COMPILED = "a TorchScript file holds a compiled program, and nothing is compiled here: {} the state_dict instead"


class ScriptModule(Module):
    """Base class of modules that PyTorch compiles; here an ordinary module."""


def script(obj: F, *args: Any, **options: Any) -> F:
    """Return ``obj`` itself.

    Args:
        obj: a function, a class or a module.
        args, options: those of ``torch.jit.script``, which are not used.
    """
    return obj


def trace(func: F | None = None, example_inputs: Any = None, *args: Any, **options: Any) -> Any:
    """Return ``func`` itself, which is not called; without a function, a decorator.

    Args:
        func: a function or a module.
        example_inputs: not used.
        args, options: those of ``torch.jit.trace``, which are not used.
    """
    return trace if func is None else func


def interface(obj: T) -> T:
    """Return a class itself: interfaces are not checked.

    Args:
        obj: a class whose methods a module or class is expected to have.

    Raises:
        RuntimeError: ``obj`` is no class, as in PyTorch.
    """
    if not isinstance(obj, type):
        raise RuntimeError(f"interface must be applied to a class; you gave {obj!r}")
    return obj


ignore = export = unused = script_method = script_if_tracing = script
freeze = optimize_for_inference = script


def annotate(the_type: Any, the_value: T) -> T:
    """Return a value.

    Args:
        the_type: not used.
        the_value: the value.
    """
    return the_value


def fork(func: Callable[..., T], *args: Any, **kwargs: Any) -> Future[T]:
    """Return a completed future of a call, as PyTorch does outside of TorchScript.

    Args:
        func: called at once.
        args, kwargs: its arguments.
    """
    done: Future[T] = Future()
    done.set_result(func(*args, **kwargs))
    return done


def wait(future: Future[T]) -> T:
    """Return the value of a future of ``fork``."""
    return future.wait()


def is_scripting() -> bool:
    """Return ``False``."""
    return False


is_tracing = is_scripting


def save(m: Any, f: Any, **options: Any) -> None:
    """Refuse to write a compiled program.

    Raises:
        RuntimeError: always; ``torch.save(module.state_dict(), file)`` writes the weights.
    """
    raise RuntimeError(NOT_COMPILED.format("save"))


def load(f: Any, map_location: Any = None, **options: Any) -> Any:
    """Refuse to read a compiled program.

    Raises:
        RuntimeError: always; ``module.load_state_dict(torch.load(file))`` reads weights.
    """
    raise RuntimeError(NOT_COMPILED.format("load"))

"""``compile`` (``torch.compile``): ``telegrad.compile`` with PyTorch's options, and modules that stay modules."""

from __future__ import annotations

import functools
from typing import Any

from ...capture import compile as recorded
from ...nn import Module


class OptimizedModule(Module):
    """A module whose calls are recorded and replayed; its ``state_dict`` has the prefix ``_orig_mod.``, as PyTorch's.

    Args:
        model: the module.
    """

    def __init__(self, model: Module) -> None:
        super().__init__()
        self._orig_mod = model
        object.__setattr__(self, "_recorded", recorded(model))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self._recorded(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "_orig_mod":
                raise
            return getattr(self._orig_mod, name)


def compile(  # noqa: A001
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Return ``model`` with its calls recorded and replayed by ``telegrad.compile``; without a model, a decorator.

    Results are those of eager calls, bit by bit. What cannot be recorded runs eagerly, with a warning that says why.

    Args:
        model: a function or a module.
        fullgraph, dynamic, mode, options: not used.
        backend: ``"eager"`` leaves the model as it is; any other is not used.
        disable: whether to return ``model`` itself.

    Raises:
        TypeError: ``model`` cannot be called.
    """
    if model is None:
        return functools.partial(compile, backend=backend, disable=disable)
    if not callable(model):
        raise TypeError(f"model must be a function or a module; you gave {model!r}")
    if disable or backend == "eager":
        return model
    return OptimizedModule(model) if isinstance(model, Module) else recorded(model)

"""Forward-mode derivatives (``torch.autograd.forward_ad``): tensors with tangents, inside a level.

A tangent is computed when it is asked for (``forward.py``), from the graph that operations on dual tensors record; so it needs
gradients to be enabled, and operations that can be differentiated twice.

>>> with dual_level():
...     y = make_dual(Tensor([3.0]), Tensor([1.0])) ** 2
...     unpack_dual(y).tangent
tensor([6.])
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Any, NamedTuple

from ...base.errors import AutogradError
from ..tensors import Tensor
from .forward import push_forward
from .grad_mode import enable_grad, is_grad_enabled
from .reached import reached


class _Level:
    """Dual tensors of one level, with their tangents."""

    def __init__(self) -> None:
        self.duals: list[Tensor] = []
        self.tangents: list[Tensor] = []


_current: ContextVar[_Level | None] = ContextVar("dual_level", default=None)


class UnpackedDualTensor(NamedTuple):
    """Result of ``unpack_dual``.

    Attributes:
        primal: the tensor without its tangent.
        tangent: of the same shape, or ``None`` if the tensor depends on no dual tensor.
    """

    primal: Tensor
    tangent: Tensor | None


class dual_level:  # noqa: N801 - PyTorch's name
    """Context in which tensors can have tangents; they end with it. Levels cannot be nested, as in PyTorch."""

    _token: Token[_Level | None]

    def __enter__(self) -> dual_level:
        if _current.get() is not None:
            raise AutogradError("you opened a dual_level() inside another; nested forward mode is not supported")
        self._token = _current.set(_Level())
        return self

    def __exit__(self, *_: Any) -> None:
        _current.reset(self._token)


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return ``tensor`` with a tangent, for the current level.

    Args:
        tensor: any shape, floating-point or complex.
        tangent: the shape and dtype of ``tensor``.
        level: has no effect: there is one level.

    Raises:
        AutogradError: there is no level; or gradients are disabled.
        ValueError: the tangent is of another shape or dtype.
    """
    if tangent.shape != tensor.shape or tangent.dtype != tensor.dtype:
        raise ValueError(
            f"a tangent has the shape and dtype of its tensor, {tuple(tensor.shape)} {tensor.dtype}, and you gave "
            f"{tuple(tangent.shape)} {tangent.dtype}"
        )
    if not is_grad_enabled():
        raise AutogradError("make_dual() needs gradients to be enabled; leave out no_grad() here")
    opened = _opened("make_dual")
    dual = tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
    opened.duals.append(dual)
    opened.tangents.append(tangent)
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return a tensor's value and its tangent.

    Args:
        tensor: made by ``make_dual``, or computed of such.
        level: has no effect: there is one level.

    Raises:
        AutogradError: there is no level.
    """
    opened = _opened("unpack_dual")
    depends = reached([tensor], opened.duals)
    if not depends.inputs:
        return UnpackedDualTensor(tensor, None)
    recorded = depends.others or any(tangent.requires_grad for tangent in opened.tangents)
    with enable_grad():
        (tangent,) = push_forward([tensor], opened.duals)(opened.tangents, recorded)
    return UnpackedDualTensor(tensor if recorded else tensor.detach(), tangent)


def _opened(name: str) -> _Level:
    found = _current.get()
    if found is None:
        raise AutogradError(f"{name}() works inside `with dual_level():` only")
    return found

"""``BasePruningMethod``, the hook that multiplies a parameter by a mask, and several of them for one parameter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ...core import no_grad, ones_like
from ...core.extend import Tensor
from ..module import Module


class BasePruningMethod(ABC):
    """Hook that sets a parameter, before each call of its module, to the original times a mask.

    Subclasses define ``compute_mask(t, default_mask)``, and ``PRUNING_TYPE``: "unstructured" to see only elements that
    are not pruned yet, "structured" to see only slices with such an element, "global" to see all.

    Attributes:
        PRUNING_TYPE: which part of a parameter that is pruned already the method sees.
    """

    PRUNING_TYPE: str = "global"
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the new mask: 0 for elements to prune, of the shape of ``t``.

        Args:
            t: importance of each element.
            default_mask: the mask so far, which the result must not exceed.
        """

    def apply_mask(self, module: Module) -> Tensor:
        """Return the original parameter of ``module`` times its mask."""
        original = getattr(module, self._tensor_name + "_orig")
        return original * getattr(module, self._tensor_name + "_mask").to(original.dtype)

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """Return ``t`` times the mask, without changing a module.

        Args:
            t: tensor to prune.
            default_mask: mask so far; all ones if ``None``.
            importance_scores: importance of each element, of the shape of ``t``; ``t`` itself if ``None``.

        Raises:
            ValueError: ``importance_scores`` has another shape.
        """
        scores = _scores(t, importance_scores)
        return t * self.compute_mask(scores, ones_like(t) if default_mask is None else default_mask)

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune the parameter ``name`` of ``module``, on top of what is pruned of it already; return the hook.

        Args:
            module: module with the parameter.
            name: name of the parameter.
            args, kwargs: of the method's class.
            importance_scores: importance of each element, of the parameter's shape; the parameter itself if ``None``.

        Raises:
            ValueError: ``importance_scores`` has another shape, or the amount does not fit.
        """
        method = cls(*args, **kwargs)
        method._tensor_name = name
        former = hook_of(module, name)
        hook = method if former is None else PruningContainer(former, method)
        original = getattr(module, name) if former is None else getattr(module, name + "_orig")
        present = getattr(module, name).detach()
        mask = ones_like(present) if former is None else getattr(module, name + "_mask")
        with no_grad():
            mask = hook.compute_mask(_scores(present, importance_scores), mask)
        _install(module, name, hook, original, mask)
        return hook

    def remove(self, module: Module) -> None:
        """Make the pruned parameter of ``module`` a plain parameter again: the same object, with its present values."""
        name = self._tensor_name
        original = module._parameters[name + "_orig"]
        assert original is not None
        value = self.apply_mask(module).detach()
        for ending in ("", "_orig", "_mask"):
            delattr(module, name + ending)
        original.data = value
        module.register_parameter(name, original)


class PruningContainer(BasePruningMethod):
    """Several pruning methods of one parameter; the mask is computed by the last one, on what the others left.

    Args:
        args: the methods, all for the same parameter.

    Raises:
        TypeError: one is no pruning method.
        ValueError: they are for parameters of different names.
    """

    PRUNING_TYPE = "container"

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Add a method.

        Raises:
            TypeError: it is no pruning method.
            ValueError: it is for a parameter of another name.
        """
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"a PruningContainer takes pruning methods, not {type(method).__name__}")
        if self._pruning_methods and method._tensor_name != self._tensor_name:
            raise ValueError(
                f"the methods of a PruningContainer prune one parameter: {self._tensor_name!r}, not {method._tensor_name!r}"
            )
        self._tensor_name = method._tensor_name
        inner = method._pruning_methods if isinstance(method, PruningContainer) else (method,)
        self._pruning_methods += inner

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask of the last method, computed of the elements that it sees."""
        method = self._pruning_methods[-1]
        seen = _seen(method, default_mask)
        mask = default_mask.clone()
        mask[seen] = method.compute_mask(t[seen], default_mask[seen]).to(mask.dtype)
        return mask


def hook_of(module: Module, name: str | None = None) -> BasePruningMethod | None:
    """Return the pruning hook of the parameter ``name`` of a module, or of any if ``name`` is ``None``."""
    for hook, _ in () if module._hooks is None else module._hooks.before.values():
        if isinstance(hook, BasePruningMethod) and name in (None, hook._tensor_name):
            return hook
    return None


def remove_hook(module: Module, hook: BasePruningMethod) -> None:
    """Remove a pruning hook from a module, and leave the parameter as it is."""
    assert module._hooks is not None
    before = module._hooks.before
    before.pop(next(key for key, (own, _) in before.items() if own is hook))


def _install(module: Module, name: str, hook: BasePruningMethod, original: Any, mask: Tensor) -> None:
    former = hook_of(module, name)
    if former is None:
        del module._parameters[name]
        module.register_parameter(name + "_orig", original)
    else:
        remove_hook(module, former)
    module.register_buffer(name + "_mask", mask.to(original.dtype))
    hook(module, ())
    module.register_forward_pre_hook(hook)


def _scores(t: Tensor, scores: Tensor | None) -> Tensor:
    if scores is not None and scores.shape != t.shape:
        raise ValueError(f"importance_scores must have the parameter's shape {t.shape}, and yours have {scores.shape}")
    return t if scores is None else scores


def _seen(method: BasePruningMethod, mask: Tensor) -> Any:
    """Return the index of the part of a parameter that ``method`` sees."""
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    if method.PRUNING_TYPE == "structured":
        dim = method.dim % mask.ndim  # type: ignore[attr-defined]
        others = tuple(axis for axis in range(mask.ndim) if axis != dim)
        return (*[slice(None)] * dim, mask.sum(others) != 0)
    if method.PRUNING_TYPE == "global":
        return ...
    raise ValueError(f"PRUNING_TYPE must be unstructured, structured or global, and it is {method.PRUNING_TYPE!r}")

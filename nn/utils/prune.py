"""Pruning: parameters some of whose elements are kept at 0 by a mask (``torch.nn.utils.prune``).

A pruned parameter ``name`` becomes ``<name>_orig``, which is learned, and the buffer ``<name>_mask``; a hook sets
``name`` to their product before each call of the module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...core import cat, ones_like
from ...core.extend import Tensor
from ..module import Module
from .pruning_hook import BasePruningMethod as BasePruningMethod
from .pruning_hook import PruningContainer as PruningContainer
from .pruning_hook import hook_of, remove_hook
from .pruning_methods import CustomFromMask as CustomFromMask
from .pruning_methods import Identity as Identity
from .pruning_methods import L1Unstructured as L1Unstructured
from .pruning_methods import LnStructured as LnStructured
from .pruning_methods import RandomStructured as RandomStructured
from .pruning_methods import RandomUnstructured as RandomUnstructured


def identity(module: Module, name: str) -> Module:
    """Give a parameter a mask of ones, and return the module.

    Args:
        module: module with the parameter.
        name: name of the parameter.
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune elements of a parameter at random, and return the module.

    Args:
        module: module with the parameter.
        name: name of the parameter.
        amount: share of the elements that are not pruned yet, a float from 0 to 1, or their number.

    Raises:
        ValueError: ``amount`` is negative, a float above 1, or more than there are.
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Tensor | None = None) -> Module:
    """Prune the elements of smallest magnitude of a parameter, and return the module.

    Args:
        module: module with the parameter.
        name: name of the parameter.
        amount: share of the elements that are not pruned yet, a float from 0 to 1, or their number.
        importance_scores: numbers to compare instead of the elements, of the parameter's shape.

    Raises:
        ValueError: ``amount`` is negative, a float above 1, or more than there are; or the scores have another shape.
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune whole slices of a parameter at random, and return the module.

    Args:
        module: module with the parameter.
        name: name of the parameter.
        amount: share of the slices that are not pruned yet, a float from 0 to 1, or their number.
        dim: dimension along which slices are counted.

    Raises:
        IndexError: the parameter has no dimension ``dim``.
        ValueError: ``amount`` is negative, a float above 1, or more than there are; or there are no two dimensions.
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: float, n: float | str, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Prune the slices of smallest norm of a parameter, and return the module.

    Args:
        module: module with the parameter.
        name: name of the parameter.
        amount: share of the slices that are not pruned yet, a float from 0 to 1, or their number.
        n: order of the norm: a number, or "fro".
        dim: dimension along which slices are counted.
        importance_scores: numbers whose norms are compared instead, of the parameter's shape.

    Raises:
        IndexError: the parameter has no dimension ``dim``.
        ValueError: ``amount`` is negative, a float above 1, or more than there are; or there are no two dimensions.
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune the elements of a parameter where ``mask`` is 0, and return the module.

    Args:
        module: module with the parameter.
        name: name of the parameter.
        mask: zeros and ones, of the parameter's shape.
    """
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: Mapping[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune elements of several parameters together, as if they were one vector.

    Args:
        parameters: modules, and the names of their parameters.
        pruning_method: class of the method, whose ``PRUNING_TYPE`` is "unstructured".
        importance_scores: numbers to compare instead of the elements, by (module, name).
        kwargs: arguments of the method.

    Raises:
        TypeError: the method is not unstructured.
        ValueError: ``amount`` does not fit.
    """
    pairs, given = list(parameters), importance_scores or {}
    if pruning_method.PRUNING_TYPE != "unstructured":
        raise TypeError(f"only unstructured methods prune globally, and {pruning_method.__name__} is not")
    values = [getattr(module, name).detach() for module, name in pairs]
    masks = [getattr(module, name + "_mask", ones_like(value)) for (module, name), value in zip(pairs, values)]
    scores = [given.get(pair, value) for pair, value in zip(pairs, values)]
    method = pruning_method(**kwargs)
    method._tensor_name = "together"
    mask = PruningContainer(method).compute_mask(_vector(scores), _vector(masks))
    for (module, name), part in zip(pairs, mask.split([value.numel() for value in values])):
        custom_from_mask(module, name, part.reshape(getattr(module, name).shape))


def _vector(tensors: list[Tensor]) -> Tensor:
    return cat([tensor.reshape(-1) for tensor in tensors])


def is_pruned(module: Module) -> bool:
    """Return whether a parameter of the module, or of one inside it, is pruned."""
    return any(hook_of(inner) is not None for inner in module.modules())


def remove(module: Module, name: str) -> Module:
    """Make a pruned parameter a plain parameter again, with its present values; return the module.

    Args:
        module: module with the parameter.
        name: name of the parameter.

    Raises:
        ValueError: it is not pruned.
    """
    hook = hook_of(module, name)
    if hook is None:
        raise ValueError(f"{name!r} of {type(module).__name__} is not pruned")
    hook.remove(module)
    remove_hook(module, hook)
    return module

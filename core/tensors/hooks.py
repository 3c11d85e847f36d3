"""Hooks of tensors: functions that a backward pass calls with a gradient, and gradients that non-leaves retain."""

from __future__ import annotations

import weakref

from ...base.errors import AutogradError
from ..autograd.hooks import Hook, NodeHooks, RemovableHandle
from .state import TensorState


class Hookable(TensorState):
    """The part of ``Tensor`` that registers hooks."""

    __slots__ = ()

    def retain_grad(self) -> None:
        """Let backward passes store the gradient of this non-leaf tensor in ``.grad``.

        Raises:
            AutogradError: the tensor requires no grad.
        """
        if not self._requires_grad:
            raise AutogradError("this tensor does not require grad, so it will have no gradient to retain")
        if self._edge is not None:
            node, slot = self._edge
            node._hook_tables().retained[slot] = weakref.ref(self)

    @property
    def retains_grad(self) -> bool:
        """True if backward passes store the gradient of this non-leaf tensor."""
        if self._edge is None or self._edge[0]._hooks is None:
            return False
        reference = self._edge[0]._hooks.retained.get(self._edge[1])
        return reference is not None and reference() is self

    def register_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(grad)`` with this tensor's gradient in every backward pass; a returned tensor replaces it.

        Raises:
            AutogradError: the tensor requires no grad.
        """
        if not self._requires_grad:
            raise AutogradError("this tensor does not require grad, so a hook on it would never be called")
        if self._edge is None:
            return self._leaf_hooks().tensor.add((0, hook))
        node, slot = self._edge
        return node._hook_tables().tensor.add((slot, hook))

    def register_post_accumulate_grad_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(self)`` after a gradient was added to this leaf's ``.grad``.

        Raises:
            AutogradError: the tensor is not a leaf that requires grad.
        """
        if not self._requires_grad or self._edge is not None:
            raise AutogradError("only a leaf that requires grad accumulates gradients; use register_hook here")
        return self._leaf_hooks().after.add(hook)

    def _leaf_hooks(self) -> NodeHooks:
        if self._hooks is None:
            self._hooks = NodeHooks()
        return self._hooks

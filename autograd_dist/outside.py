"""Warning about calls with tensors that require grad outside a context: no gradients come back from them."""

from __future__ import annotations

import logging

from ..core.extend import is_grad_enabled
from ..rpc.extend import FrameKind, Method, Outgoing

logger = logging.getLogger("telegrad.autograd_dist")


class OutsideContext:
    """Warning of one agent, which is given once.

    Args:
        worker: the agent's name.
    """

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._told = False

    def __call__(self, message: Outgoing) -> None:
        """Warn of a message without a context, if it is a call that such tensors were given to."""
        if self._told or (message.kind, message.method) != (FrameKind.REQUEST, Method.CALL) or not is_grad_enabled():
            return
        if any(tensor._requires_grad for tensor in message.attached.tensors):
            self._told = True
            logger.warning(
                "worker %r makes %s with tensors that require grad, outside an autograd context: no gradients come back "
                "from it. Call inside `with autograd_dist.context() as context:`, or under no_grad(), or send "
                "tensor.detach(). This is told once",
                self._worker,
                message.what,
            )

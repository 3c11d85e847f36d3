"""Distributed autograd: gradients through remote calls (``torch.distributed.autograd``), and optimizers for them."""

from typing import TYPE_CHECKING

from ..base.late_imports import late_imports

if TYPE_CHECKING:
    from .api import backward, backward_async, context, get_gradients
    from .drawing import draw
    from .optimizer import DistributedOptimizer
else:  # every agent looks at ``current_context``; few programs have contexts
    __getattr__ = late_imports(
        __name__,
        {
            **dict.fromkeys(("backward", "backward_async", "context", "get_gradients"), ".api"),
            "draw": ".drawing",
            "DistributedOptimizer": ".optimizer",
        },
    )

__all__ = ["DistributedOptimizer", "backward", "backward_async", "context", "draw", "get_gradients"]

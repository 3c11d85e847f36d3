"""Communication hooks, uneven inputs, and averages of models (``torch.distributed.algorithms``)."""

from ..... import collective as join
from . import ddp_comm_hooks as ddp_comm_hooks
from . import model_averaging as model_averaging

__all__ = ["ddp_comm_hooks", "join", "model_averaging"]

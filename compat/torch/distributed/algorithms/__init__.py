"""Communication hooks, uneven inputs, and averages of models (``torch.distributed.algorithms``)."""

from ..... import collective as join
from .....collective import Join as Join
from .....collective import Joinable as Joinable
from .....collective import JoinHook as JoinHook
from . import ddp_comm_hooks as ddp_comm_hooks
from . import model_averaging as model_averaging

__all__ = ["Join", "JoinHook", "Joinable", "ddp_comm_hooks", "join", "model_averaging"]

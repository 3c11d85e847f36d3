"""Communication hooks of ``DistributedDataParallel``, and averages of models (``torch.distributed.algorithms``)."""

from . import ddp_comm_hooks as ddp_comm_hooks
from . import model_averaging as model_averaging

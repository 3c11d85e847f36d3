"""Communication hooks by PyTorch's modules (``torch.distributed.algorithms.ddp_comm_hooks``): ours are all in one."""

from ......collective.parallel import comm_hooks

default_hooks = comm_hooks
powerSGD_hook = comm_hooks  # noqa: N816 - PyTorch's name
post_localSGD_hook = comm_hooks  # noqa: N816 - PyTorch's name

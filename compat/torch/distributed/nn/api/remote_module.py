"""``RemoteModule`` by the path of its definition (``torch.distributed.nn.api.remote_module``)."""

from ......rref import RemoteModule as RemoteModule

__all__ = ["RemoteModule"]

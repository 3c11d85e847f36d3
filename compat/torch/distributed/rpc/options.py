"""Options of PyTorch's TensorPipe agent, for an agent of ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .....rpc import GrpcRpcBackendOptions
from .....rpc.extend import device_name


class TensorPipeRpcBackendOptions(GrpcRpcBackendOptions):
    """Options of an agent, as PyTorch's TensorPipe agent takes them.

    Args:
        num_worker_threads: how many user functions run at a time on this worker.
        rpc_timeout: in seconds, of calls that have none of their own; 0 for none.
        init_method: where the workers find one another.
        device_maps: for each worker's name, a device there for a device here.
        devices: the devices that this worker uses. Nothing depends on them.
        _transports, _channels: names of TensorPipe's transports, which are not used.

    Raises:
        ValueError: an argument has a value that is not possible.
    """

    def __init__(
        self,
        *,
        num_worker_threads: int = 16,
        rpc_timeout: float = 60.0,
        init_method: str = "env://",
        device_maps: Mapping[str, Mapping[Any, Any]] | None = None,
        devices: Iterable[Any] | None = None,
        _transports: list[str] | None = None,
        _channels: list[str] | None = None,
    ) -> None:
        maps = {to: dict(given) for to, given in (device_maps or {}).items()}
        super().__init__(
            num_worker_threads=num_worker_threads, rpc_timeout=rpc_timeout, init_method=init_method, device_maps=maps
        )
        self.set_devices(devices or ())

    def set_devices(self, devices: Iterable[Any]) -> None:
        """Set the devices that this worker uses.

        Raises:
            ValueError: one has no name.
        """
        self.devices = [device_name(device) for device in devices]

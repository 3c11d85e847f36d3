"""Options of PyTorch's TensorPipe agent, for an agent of ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .....core.extend import check_device
from .....rpc import GrpcRpcBackendOptions


class TensorPipeRpcBackendOptions(GrpcRpcBackendOptions):
    """Options of an agent, as PyTorch's TensorPipe agent takes them. Devices can only be the CPU.

    Args:
        num_worker_threads: how many user functions run at a time on this worker.
        rpc_timeout: in seconds, of calls that have none of their own; 0 for none.
        init_method: where the workers find one another.
        device_maps: for each worker's name, a device there for a device here.
        devices: the devices that this worker uses.
        _transports, _channels: names of TensorPipe's transports, which are not used.

    Raises:
        ValueError: a device is not the CPU, or another argument has a value that is not possible.
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
        super().__init__(num_worker_threads=num_worker_threads, rpc_timeout=rpc_timeout, init_method=init_method)
        self.set_devices(devices or ())
        self.device_maps: dict[str, dict[Any, Any]] = {}
        for to, device_map in (device_maps or {}).items():
            self.set_device_map(to, device_map)

    def set_device_map(self, to: str, device_map: Mapping[Any, Any]) -> None:
        """Set which device of worker ``to`` gets the tensors of a device here.

        Raises:
            ValueError: a device is not the CPU.
        """
        for device in (*device_map.keys(), *device_map.values()):
            check_device(device)
        self.device_maps.setdefault(to, {}).update(device_map)

    def set_devices(self, devices: Iterable[Any]) -> None:
        """Set the devices that this worker uses.

        Raises:
            ValueError: a device is not the CPU.
        """
        self.devices = list(devices)
        for device in self.devices:
            check_device(device)

"""Adapter of CuPy: its arrays travel through the memory of the CPU, and arrive on the receiver's current GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cupy  # type: ignore[import-not-found, unused-ignore]
import numpy as np

from .array_library import ArrayLibrary, MissingDeviceError, PackedArray

if TYPE_CHECKING:
    from ....core.extend import Array


class CupyArrays(ArrayLibrary):
    """Adapter of CuPy."""

    name = "cupy"
    install = "cupy"

    def pack(self, value: Any) -> PackedArray | None:
        """Return an array as what travels, copied from the GPU; ``None`` if the object is no array."""
        if not isinstance(value, cupy.ndarray):
            return None
        return PackedArray(np.asarray(cupy.asnumpy(value)), device=f"cuda:{value.device.id}")

    def unpack(self, array: Array, details: tuple[Any, ...], requires_grad: bool) -> Any:
        """Return the array of a ``PackedArray`` that arrived, copied to the current GPU.

        Args:
            array, details, requires_grad: see ``ArrayLibrary.unpack``.
        """
        return cupy.asarray(array)

    def to_device(self, value: Any, device: str) -> Any:
        """Return an array that arrived, moved to a GPU.

        Args:
            value, device: see ``ArrayLibrary.to_device``.

        Raises:
            MissingDeviceError: there is no such GPU here.
        """
        kind, _, index = device.partition(":")
        count = cupy.cuda.runtime.getDeviceCount()
        if kind != "cuda" or int(index) >= count:
            raise MissingDeviceError(
                f"device_maps place it on {device!r}, but CuPy there has {count} GPUs; correct device_maps, or "
                f"CUDA_VISIBLE_DEVICES there"
            )
        with cupy.cuda.Device(int(index)):
            return cupy.asarray(value)


library = CupyArrays()

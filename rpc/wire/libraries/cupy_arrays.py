"""Adapter of CuPy: its arrays travel through the memory of the CPU, and arrive on the receiver's current GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cupy  # type: ignore[import-not-found, unused-ignore]
import numpy as np

from .array_library import ArrayLibrary, PackedArray

if TYPE_CHECKING:
    from ....core.extend import Array


class CupyArrays(ArrayLibrary):
    """Adapter of CuPy."""

    name = "cupy"
    install = "cupy"

    def pack(self, value: Any) -> PackedArray | None:
        """Return an array as what travels, copied from the GPU; ``None`` if the object is no array."""
        return PackedArray(np.asarray(cupy.asnumpy(value))) if isinstance(value, cupy.ndarray) else None

    def unpack(self, array: Array, details: tuple[Any, ...], requires_grad: bool) -> Any:
        """Return the array of a ``PackedArray`` that arrived, copied to the current GPU.

        Args:
            array, details, requires_grad: see ``ArrayLibrary.unpack``.
        """
        return cupy.asarray(array)


library = CupyArrays()

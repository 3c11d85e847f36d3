"""Adapter of JAX: its arrays, also typed keys of random numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from .array_edges import ArrayEdges
from .array_library import ArrayLibrary, MissingDeviceError, PackedArray
from .forks import check_forked

if TYPE_CHECKING:
    from ....core.extend import Array, Edge

JAX_INTEGERS = {1: np.uint8, 2: np.uint16}
"""By bytes of an element: what elements travel as whose type NumPy does not have, such as bfloat16."""


class JaxArrays(ArrayLibrary):
    """Adapter of JAX. The details are the name of a type unknown to NumPy, the kind of a key of random numbers, and whether the
    type is weak: such an array takes over the type of another in arithmetic.

    JAX's arrays have no graph. Those that arrived in an autograd context, or that a recorded call returned, are in a table.
    """

    name = "jax"
    install = "jax"

    def __init__(self) -> None:
        self._edges = ArrayEdges()

    def pack(self, value: Any) -> PackedArray | None:
        """Return an array as what travels; ``None`` if the object is no array."""
        if not isinstance(value, jax.Array):
            return None
        if problem := _problem(value):
            raise TypeError(problem)
        key, original = "", value
        if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
            key, value = str(jax.random.key_impl(value)), jax.random.key_data(value)
        array: Any = np.asarray(value)
        name = array.dtype.name if array.dtype.kind == "V" or array.dtype.type.__module__ != "numpy" else ""
        packed = array.view(JAX_INTEGERS[array.itemsize]) if name else array
        details = (name, key, "weak") if getattr(value, "weak_type", False) else (name, key)
        return PackedArray(packed, details, self._edges.find(original) is not None, _device_of(original))

    def unpack(self, array: Array, details: tuple[Any, ...], requires_grad: bool) -> Any:
        """Return the array of a ``PackedArray`` that arrived, over the same memory where JAX can use it.

        Args:
            array, details, requires_grad: see ``ArrayLibrary.unpack``.

        Raises:
            TypeError: its elements have 64 bits, and JAX is set to 32 bits here.
            MissingDeviceError: this process was forked from one that had used JAX.
        """
        name, key, *weak = details
        check_forked("JAX")
        if name:
            array = array.view(jax.numpy.dtype(name))
        if jax.dtypes.canonicalize_dtype(array.dtype) != array.dtype:
            raise TypeError(
                f"a jax.Array of {array.dtype} arrived, and JAX here has types of 32 bits only; set jax_enable_x64 here, too"
            )
        made = jax.device_put(array, may_alias=True)  # the copy of `asarray` takes a hundred times as long
        if weak:
            made.aval = made.aval.update(weak_type=True)  # as JAX's own unpickling does
        return jax.random.wrap_key_data(made, impl=key) if key else made

    def connect(self, array: Array, details: tuple[Any, ...], edge: Edge) -> Any:
        """Return the array of one that arrived as the output of a node.

        Args:
            array, details, edge: see ``ArrayLibrary.connect``.
        """
        return self.record(self.unpack(array, details, False), edge)

    def to_device(self, value: Any, device: str) -> Any:
        """Return an array that arrived, moved to a device.

        Args:
            value, device: see ``ArrayLibrary.to_device``.

        Raises:
            MissingDeviceError: JAX has no such device here.
        """
        here = {_device_name(each): each for each in jax.devices()}
        if device not in here:
            raise MissingDeviceError(
                f"device_maps place it on {device!r}, but JAX there has the devices {sorted(here)}; correct device_maps, or "
                f"make the device visible there"
            )
        moved, edge = jax.device_put(value, here[device]), self._edges.find(value)
        return moved if edge is None else self.record(moved, edge)

    def record(self, array: Any, edge: Edge) -> Any:
        """Return an array, which is from now on the output of a node of our graph."""
        self._edges.set(array, edge)
        return array

    def edge(self, value: Any) -> Edge | None:
        """Return node and slot of our graph for the gradient of an array; ``None`` if it is not recorded."""
        return self._edges.find(value)


def _problem(value: Any) -> str:
    """Return why an array cannot be sent; empty if it can."""
    if isinstance(value, jax.core.Tracer):
        return (
            "it is a tracer of JAX, inside jit, grad or vmap; send arrays outside of the transform. For gradients across "
            "workers, let interop.jax.call(function, *args) run what is before and after the message"
        )
    if value.is_deleted():
        return "it is a JAX array whose memory was donated or deleted"
    if not value.is_fully_addressable:
        return "it is a JAX array of which other processes have parts; send what addressable_data() gives"
    return ""


def _device_of(value: Any) -> str:
    """Return the name of an array's device; empty for the host's first, and for an array that is spread over several."""
    devices = value.devices()
    name = _device_name(next(iter(devices))) if len(devices) == 1 else ""
    return "" if name == "cpu:0" else name


def _device_name(device: Any) -> str:
    kind = "cuda" if device.platform == "gpu" else device.platform
    return f"{kind}:{device.id}"


library = JaxArrays()

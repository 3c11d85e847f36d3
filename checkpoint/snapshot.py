"""``Snapshot``: the states of parts as they are now, while training goes on.

Small arrays, and all that optimizers do not change, are copied at once. The large ones that an optimizer changes, its
parameters and its state, are copied by the thread that writes the checkpoint; the optimizer's next step waits until that is
done. So training pauses only if a forward and a backward take less time than the copying. Any other change of these
parameters in that time is seen by their version counters, and makes the snapshot fail: no checkpoint mixes two steps.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np

from ..base.errors import CheckpointError
from ..core import Tensor
from ..core.extend import Array

SMALL = 1 << 18  # bytes of an array that is copied at once
NICENESS = 10  # of a thread that writes: about a tenth of a core's time where training wants the rest


class Buffers:
    """Memory of the copies of large arrays, used again by the next snapshot: new memory costs more time than the copying."""

    def __init__(self) -> None:
        self._free: list[Array] = []

    def like(self, array: Array) -> Array:
        """Return memory for a copy of an array, for one snapshot."""
        for place, buffer in enumerate(self._free):
            if (buffer.shape, buffer.dtype, buffer.strides) == (array.shape, array.dtype, array.strides):
                return self._free.pop(place)
        return np.empty_like(array)

    def give_back(self, buffers: Iterable[Array]) -> None:
        """Let the next snapshot use the memory of one that has been written; what that one left over is freed."""
        self._free = list(buffers)


class Snapshot:
    """Copies of the states of parts.

    Args:
        states: by name of the part.
        parts: the parts; those with ``register_step_pre_hook`` are optimizers.
        buffers: memory for the copies.

    Attributes:
        states: the copies; complete when ``finish`` has returned.
    """

    def __init__(self, states: dict[str, Any], parts: Iterable[Any], buffers: Buffers) -> None:
        optimizers = [part for part in parts if hasattr(part, "register_step_pre_hook")]
        self._parameters = [p for each in optimizers for group in each.param_groups for p in group["params"]]
        self._versions = [parameter._version for parameter in self._parameters]
        self._guarded = {id(array) for optimizer in optimizers for array in _large_arrays(optimizer)}
        self._buffers = buffers
        self._copies: dict[Any, Array] = {}
        self._tensors: dict[int, tuple[Tensor, Tensor]] = {}  # the original is kept, so that its id is not used again
        self._pending: list[tuple[Array, Array]] = []
        self._copying = threading.Lock()
        self.states = {name: self._copy(state) for name, state in states.items()}
        self._changed = 0  # parameters, while they were copied
        self._hooks = [each.register_step_pre_hook(lambda *_: self.finish()) for each in optimizers if self._pending]

    def finish(self) -> None:
        """Copy what is left. Called by the writing thread, and by an optimizer that is about to step."""
        with self._copying:
            while self._pending:
                source, target = self._pending.pop()
                np.copyto(target, source)
            hooks, self._hooks = self._hooks, []
            if hooks:
                now = [parameter._version for parameter in self._parameters]
                self._changed = sum(a != b for a, b in zip(now, self._versions))
            for hook in hooks:
                hook.remove()

    def check(self) -> None:
        """Raise if the copies are of more than one step.

        Raises:
            CheckpointError: a parameter was changed before it was copied, and not by its optimizer.
        """
        if self._changed:
            raise CheckpointError(
                f"{self._changed} parameters were changed after save_async() and before they were copied, and not by their "
                "optimizer's step; use save() where you change them otherwise"
            )

    def release(self) -> None:
        """Give the memory of the large copies back, when the states have been written."""
        self._buffers.give_back(copy for copy in self._copies.values() if copy.nbytes > SMALL)
        self.states = {}

    def _copy(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.clone() if value.is_sparse else self._copy_tensor(value)
        if isinstance(value, np.ndarray):
            return self._copy_array(value)
        if type(value) in (list, tuple):
            return type(value)(self._copy(each) for each in value)
        if type(value) in (dict, OrderedDict):
            return type(value)((key, self._copy(each)) for key, each in value.items())
        return value

    def _copy_tensor(self, tensor: Tensor) -> Tensor:
        if id(tensor) not in self._tensors:
            copy = Tensor(self._copy_array(tensor.numpy(force=True))).requires_grad_(tensor.requires_grad)
            self._tensors[id(tensor)] = tensor, copy
        return self._tensors[id(tensor)][1]

    def _copy_array(self, array: Array) -> Array:
        region = array.__array_interface__["data"][0], array.shape, array.strides, array.dtype
        if array.size and region in self._copies:
            return self._copies[region]
        large = array.nbytes > SMALL
        copy = self._copies[region] = self._buffers.like(array) if large else np.empty_like(array)
        if large and id(array) in self._guarded:
            self._pending.append((array, copy))
        else:
            np.copyto(copy, array)
        return copy


def go_behind_others() -> None:
    """Lower the priority of this thread, where the system has one for each: its checksums would slow training's threads."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


def _large_arrays(optimizer: Any) -> Iterable[Array]:
    """Return the large arrays that a step changes: those of the parameters and of the state."""
    inner = getattr(optimizer, "optim", None) or optimizer
    for group in optimizer.param_groups:
        yield from (each for parameter in group["params"] if (each := parameter.numpy(force=True)).nbytes > SMALL)
    for state in inner.state.values():
        for value in state.values():
            array = value.numpy(force=True) if isinstance(value, Tensor) else value
            if isinstance(array, np.ndarray) and array.nbytes > SMALL:
                yield array

"""Bytes that are copied between an array and the frame that a lane sends, and between a frame and the array that arrives.

Lanes handle the parts of a frame alike, whatever library they come from. So it suffices to look at the parts.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from ...core import tensor
from ...rpc.calls.codec import Codec
from ...rpc.wire.frames import decode, encode
from ...rpc.wire.messages import Incoming, Outgoing
from ...rpc.wire.payload import pack_pickled
from ...rpc.wire.tables import TABLE_ALIGNMENT
from .arrays import LAYOUTS, LIBRARIES, TENSOR_LAYOUTS

SIZES = {"small": (6, 4), "medium": (300, 400), "large": (1200, 1000)}
LIMIT = 1 << 30
LINE_BYTES = 64
ONLY_NUMPY = ("negative",)
SPREAD = ("expanded",)  # PyTorch and NumPy arrive with all elements, because these can be written to


def check() -> list[str]:
    """Return for which libraries, sizes and layouts more is copied than for our own tensors."""
    problems = []
    for size, shape in SIZES.items():
        base = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
        for layout in LAYOUTS:
            if layout in (*ONLY_NUMPY, *SPREAD) or (layout == "turned" and size != "small"):
                continue
            ours = copied(_made("telegrad", base, layout))
            for library in LIBRARIES:
                if library in ("telegrad", "array_api_strict", "jax") and layout != "matrix":
                    continue  # their arrays have no strides, or are ours
                if (theirs := copied(_made(library, base, layout))) > ours:
                    problems.append(f"{size}, {layout}, {library}: {theirs} bytes are copied, and of ours {ours}")
    return problems


def _made(library: str, base: Any, layout: str) -> Any:
    if library == "numpy":
        return np.asarray(LAYOUTS[layout](base))
    if library == "jax":
        return import_module("jax").device_put(base)
    if library == "array_api_strict":
        return import_module("array_api_strict").asarray(base)
    make: Callable[[Any], Any] = tensor if library == "telegrad" else import_module("torch").from_numpy
    return TENSOR_LAYOUTS.get(layout, LAYOUTS[layout])(make(base))


def copied(value: Any) -> int:
    """Return how many bytes are copied to send an array beside another part of its memory, and to open it."""
    message = Outgoing(1, 1, 0.0, 1)
    pack_pickled(message, [value], (), True, lambda body: [("it", body)], LIMIT)
    parts = encode(message)
    begin, end = np.lib.array_utils.byte_bounds(_elements(value))
    buffers = [
        part for part in parts[1 + len(message.pickled) :] if len(part) >= TABLE_ALIGNMENT
    ]  # others may be padding
    sent = sum(len(part) for part in buffers if not begin <= _address(part) < end)
    last = len(parts[-1])
    if len(parts) == 1:  # a small array is in one piece with its tables
        sent = last = int(_elements(value).nbytes)
    frame = _aligned_frame(b"".join(parts), last)
    (got,) = Codec(LIMIT, "there").open(decode(frame, True, Incoming()))
    arrived, start = _elements(got), _address(frame)
    inside = not arrived.size or start <= arrived.__array_interface__["data"][0] < start + len(frame)
    return sent + (0 if inside else int(arrived.nbytes))


def _aligned_frame(data: bytes, last: int) -> Any:
    """Return a frame whose last bytes begin at a line of the processor's cache, as large arrays arrive; JAX copies others."""
    room: Any = np.empty(len(data) + LINE_BYTES, np.uint8)
    start = -(_address(room) + len(data) - last) % LINE_BYTES
    room[start : start + len(data)] = np.frombuffer(data, np.uint8)
    return memoryview(room)[start : start + len(data)]


def _elements(value: Any) -> Any:
    return value.detach().numpy() if hasattr(value, "detach") else np.asarray(value)


def _address(part: Any) -> int:
    return np.frombuffer(part, np.uint8).__array_interface__["data"][0] if len(part) else 0

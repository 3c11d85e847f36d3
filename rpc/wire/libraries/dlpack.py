"""Arrays of libraries without an adapter: those of the array API standard travel by DLPack, views of buffers as buffers."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from ....core.extend import Tensor


def reduce_by_dlpack(obj: Any) -> Any:
    """Return a reduction of an array as one of NumPy, which the pickler replaces; ``None`` if the object is no such array.

    The receiver makes the array with the function ``from_dlpack`` of its library, as the standard has it.
    """
    if type(obj) is memoryview:
        return _reduce_view(obj)
    if not hasattr(type(obj), "__dlpack__") or isinstance(obj, (Tensor, np.ndarray, np.generic)):
        return None
    namespace = getattr(type(obj), "__array_namespace__", None)
    make = None if namespace is None else getattr(namespace(obj), "from_dlpack", None)
    return None if make is None else (make, (np.from_dlpack(obj),))


def _reduce_view(view: memoryview) -> Any:
    if not view.nbytes:
        return view_of, (b"", view.format, ())
    whole = view if view.c_contiguous else view.tobytes()
    return view_of, (pickle.PickleBuffer(whole), view.format, view.shape)


def view_of(buffer: Any, form: str, shape: tuple[int, ...]) -> memoryview:
    """Return a view of a buffer that arrived.

    Args:
        buffer: its memory.
        form: format of an element, as ``memoryview`` has it.
        shape: lengths of its dimensions; of an empty buffer none.
    """
    flat: Any = memoryview(buffer).cast("B")
    return flat.cast(form, shape) if shape else flat.cast(form)

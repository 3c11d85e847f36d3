"""Random arrays of every library, element type and layout."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from random import Random
from typing import Any

import ml_dtypes
import numpy as np

from ...core import tensor
from ...nn import Parameter

LIBRARIES = ("telegrad", "numpy", *(name for name in ("torch", "jax", "array_api_strict") if find_spec(name)))
INTEGERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS = (*INTEGERS, "float16", "float32", "float64", "complex64", "complex128")
NARROW = ("bfloat16", "float8_e4m3fn")
WIDE = ("int64", "uint64", "float64", "complex128")  # of 64 bits a number: not in JAX, as it is set
UNSIGNED = ("uint16", "uint32", "uint64")
DTYPES = {
    "telegrad": (*(name for name in NUMBERS if name not in UNSIGNED), "bfloat16"),
    "numpy": (*NUMBERS, *NARROW, "int4", ">f4", "M8[ns]", "U5", "S3", "a i4, b f8", "O"),
    "torch": (
        *NUMBERS, *NARROW, "complex32", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
        "float4_e2m1fn_x2",
    ),
    "jax": (*(name for name in NUMBERS if name not in WIDE), *NARROW, "int4", "uint2"),
    "array_api_strict": ("bool", "int8", "int64", "uint8", "float32", "float64", "complex128"),
}  # fmt: skip
STRANGE = {"float8_e8m0fnu": 1, "float4_e2m1fn_x2": 1, "complex32": 4}  # made of bits; their bytes
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "matrix": lambda a: a,
    "0-d": lambda a: a[0, 0],
    "empty": lambda a: a[:0],
    "transposed": lambda a: a.T,
    "strided": lambda a: a[:, ::2],
    "part": lambda a: a[1:3, 1:],
    "row": lambda a: a[2],
    "turned": lambda a: a.reshape(1, 2, 3, 4).transpose(0, 3, 1, 2),
    "negative": lambda a: a[::-1, ::-1],
    "expanded": lambda a: np.broadcast_to(a[:1], (3, a.shape[1])),
}
TENSOR_LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "turned": lambda t: t.reshape(1, 2, 3, 4).permute(0, 3, 1, 2),
    "expanded": lambda t: t[:1].expand(3, t.shape[1]),
}
LARGE_SHARE = 0.03  # of all arrays


def make(random: Random, library: str) -> Any:
    """Return an array of a library, of a random element type and layout."""
    name, layout = random.choice(DTYPES[library]), random.choice([*LAYOUTS])
    large = random.random() < LARGE_SHARE
    return MAKERS[library](random, name, layout, (300, 400) if large and layout != "turned" else (6, 4))


def _numbers(random: Random, shape: tuple[int, int]) -> Any:
    return np.random.default_rng(random.randrange(1 << 30)).integers(0, 100, shape)


def _numpy(random: Random, name: str, layout: str, shape: tuple[int, int]) -> Any:
    kind = getattr(ml_dtypes, name, None) or (np.dtype([("a", "i4"), ("b", "f8")]) if "," in name else name)
    array = LAYOUTS[layout](_numbers(random, shape).astype(kind))
    return array if isinstance(array, np.ndarray) else np.asarray(array)


def _telegrad(random: Random, name: str, layout: str, shape: tuple[int, int]) -> Any:
    array = _numbers(random, shape).astype(getattr(ml_dtypes, name, None) or name)
    if layout == "negative":
        layout = "matrix"
    made = TENSOR_LAYOUTS.get(layout, LAYOUTS[layout])(tensor(array))
    if "float" in name and random.random() < 0.3:
        return Parameter(made) if random.random() < 0.5 else made.detach().requires_grad_()
    return made


def _torch(random: Random, name: str, layout: str, shape: tuple[int, int]) -> Any:
    torch: Any = sys.modules["torch"]
    dtype, numbers = getattr(torch, name), torch.from_numpy(_numbers(random, shape))
    carrier = {1: torch.uint8, 4: torch.int32}.get(STRANGE.get(name, 0))
    whole = numbers.to(dtype) if carrier is None else numbers.to(carrier).view(dtype)
    made = TENSOR_LAYOUTS.get(layout, LAYOUTS["matrix" if layout == "negative" else layout])(whole)
    if dtype.is_complex and name != "complex32" and random.random() < 0.5:
        made = random.choice([made.conj(), made.conj().imag])  # bits that conjugate or negate when elements are read
    if (made.dtype.is_floating_point or made.dtype.is_complex) and random.random() < 0.3:
        return torch.nn.Parameter(made.detach(), requires_grad=random.random() < 0.5)
    return made.detach().requires_grad_() if made.dtype.is_floating_point and random.random() < 0.2 else made


def _jax(random: Random, name: str, layout: str, shape: tuple[int, int]) -> Any:
    jax: Any = sys.modules["jax"]
    if random.random() < 0.05:
        return jax.random.key(random.randrange(99))
    return jax.device_put(_numpy(random, name, layout, shape))


def _array_api_strict(random: Random, name: str, layout: str, shape: tuple[int, int]) -> Any:
    strict: Any = sys.modules["array_api_strict"]
    return strict.asarray(np.ascontiguousarray(_numpy(random, name, layout, shape)))


MAKERS = {
    "telegrad": _telegrad,
    "numpy": _numpy,
    "torch": _torch,
    "jax": _jax,
    "array_api_strict": _array_api_strict,
}

"""Mutated headers and structures of safetensors files, with the checksum that belongs to them."""

from __future__ import annotations

import hashlib
import json
import random
import struct
from collections.abc import Callable
from typing import Any

_CHECKSUM = b'"telegrad.sha256":"'
_NUMBERS = (0, 1, -1, 255, 2**31, 2**32 - 1, 2**63, -(2**63), 2**64 - 1, 2**1000, 1e308)
_TEXTS = ("", "tensor", "dict", "tuple", "sparse", "bytes", "object", "F64", "U8", "BOOL", "a", "\0", "x" * 5000)


def split(content: bytes) -> tuple[Any, bytes]:
    """Return the header of a file, in the order of its names, and what follows it."""
    end = 8 + struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:end], object_pairs_hook=lambda pairs: dict(sorted(pairs)))
    return header, content[end:]


def joined(header: Any, rest: bytes) -> bytes:
    """Return a file with a header and the checksum that belongs to it."""
    text = json.dumps(header, separators=(",", ":")).encode()
    content = struct.pack("<Q", len(text)) + text + rest
    at = content.find(_CHECKSUM) + len(_CHECKSUM)
    if at < len(_CHECKSUM):
        return content
    blank = content[:at] + b"0" * 64 + content[at + 64 :]
    return content[:at] + hashlib.sha256(blank).hexdigest().encode() + content[at + 64 :]


def mutate_header(content: bytes, rng: random.Random) -> bytes:
    """Return a file with changes in its header: names, shapes, dtypes, places, metadata."""
    header, rest = split(content)
    for _ in range(rng.randrange(1, 4)):
        header = _changed(header, rng)
    return joined(header, rest[: rng.choice([len(rest), len(rest), len(rest) // 2])])


def mutate_structure(content: bytes, rng: random.Random) -> bytes:
    """Return a file with changes in the description of its object."""
    header, rest = split(content)
    structure = json.loads(header["__metadata__"]["telegrad.structure"])
    for _ in range(rng.randrange(1, 4)):
        structure = _changed(structure, rng)
    text = json.dumps(structure)
    if rng.random() < 0.1:
        depth = rng.choice([10, 200, 400, 600, 5000, 50_000])
        text = rng.choice([("[", "]"), ('{"tuple":[', "]}"), ('{"dict":[[{"tuple":[', "]},0]]}")])[0] * depth + text
    header["__metadata__"]["telegrad.structure"] = text
    return joined(header, rest)


def _changed(value: Any, rng: random.Random) -> Any:
    """Return a JSON value with one part, at any depth, changed, removed, doubled or renamed."""
    if isinstance(value, (dict, list)) and value and rng.random() < 0.9:
        place = rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
        match rng.randrange(12):
            case 0:
                del value[place]
            case 1 if isinstance(value, dict):
                value[rng.choice(_TEXTS)] = value.pop(place)
            case 2 if isinstance(value, list) and len(value) < 100:
                value[:] = value * rng.choice([2, 10])
            case _:
                value[place] = _changed(value[place], rng)
        return value
    made: list[Callable[[], Any]] = [
        lambda: rng.choice(_NUMBERS),
        lambda: rng.choice(_TEXTS),
        lambda: rng.choice([None, True, [], {}, [value], {"tuple": [value]}, {"list": value}]),
        lambda: {"dict": [[value, value], [{"tuple": [value, value]}, 1]]},
        lambda: {rng.choice(_TEXTS): value, "object": rng.choice(_NUMBERS)},
        lambda: _nested(value, rng.choice([20, 70])),
    ]
    return rng.choice(made)()


def _nested(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = {"tuple": [value]}
    return {"dict": [[value, 0]]}

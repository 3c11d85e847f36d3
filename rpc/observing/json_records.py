"""Records as JSON: dataclasses of numbers, texts, lists and tables. What is read is checked against the dataclass.

JSON, because an answer must run no code of its sender's, and because commands print it.
"""

from __future__ import annotations

import json
import types
import typing
from dataclasses import asdict, fields, is_dataclass
from functools import lru_cache
from typing import Any, TypeVar

from ...core.errors import SerializationError

R = TypeVar("R")


def encode_record(record: Any) -> bytes:
    """Return a record as JSON."""
    return json.dumps(asdict(record), separators=(",", ":")).encode()


def decode_record(kind: type[R], data: bytes, most_bytes: int) -> R:
    """Return the record that another worker has sent.

    Args:
        kind: its dataclass.
        data: JSON.
        most_bytes: refuse more.

    Raises:
        SerializationError: it is no JSON, larger, or no such record.
    """
    if len(data) > most_bytes:
        raise SerializationError(f"a record of {len(data):,} bytes was refused; {most_bytes:,} are allowed")
    try:
        table = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SerializationError(f"it is no {kind.__name__}: {error}") from None
    return read_record(kind, table)


def read_record(kind: type[R], table: Any) -> R:
    """Return the record that a table of JSON holds.

    Args:
        kind: its dataclass.
        table: of JSON.

    Raises:
        SerializationError: it is no such record.
    """
    try:
        return typing.cast(R, _read(kind, table))
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise SerializationError(f"it is no {kind.__name__}: {error}") from None


@lru_cache(maxsize=64)
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _read(kind: Any, data: Any) -> Any:
    """Return the value that JSON has for a type.

    Raises:
        TypeError: it is no value of that type.
    """
    if is_dataclass(kind):
        return _read_record(typing.cast(type, kind), data)
    origin = typing.get_origin(kind)
    if origin in (types.UnionType, typing.Union):
        inner = next(each for each in typing.get_args(kind) if each is not type(None))
        return None if data is None else _read(inner, data)
    _check(data, origin or kind)
    if origin is list:
        return [_read(typing.get_args(kind)[0], each) for each in data]
    if origin is dict:
        return {key: _read(typing.get_args(kind)[1], each) for key, each in data.items()}
    return float(data) if kind is float else data


def _read_record(kind: type, data: Any) -> Any:
    _check(data, dict)
    hints = _hints(kind)
    names = [each.name for each in fields(kind)]
    return kind(**{name: _read(hints[name], data[name]) for name in names if name in data})


def _check(data: Any, kind: type) -> None:
    kinds = (float, int) if kind is float else (kind,)
    if type(data) not in kinds:
        raise TypeError(f"{type(data).__name__} stands where {kind.__name__} belongs")

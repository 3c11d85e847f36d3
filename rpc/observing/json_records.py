"""Records as JSON: dataclasses of numbers, texts, lists and tables. What is read is checked against the dataclass.

JSON, because an answer must run no code of its sender's, and because commands print it.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import lru_cache
from typing import Any, TypeVar

from ...base.errors import SerializationError

R = TypeVar("R")


def encode_record(record: Any) -> bytes:
    """Return a record as JSON. Values that are their fields' defaults are left out."""
    return ENCODER.encode(record).encode()


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
        return typing.cast(R, _reader(typing.cast(Any, kind))(table))
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise SerializationError(f"it is no {kind.__name__}: {error}") from None


def _table(record: Any) -> dict[str, Any]:
    values = ((name, getattr(record, name), default) for name, default in _defaults(record.__class__))
    return {name: value for name, value, default in values if value != default}


# A record is a tree, so that circles need not be looked for.
ENCODER = json.JSONEncoder(separators=(",", ":"), check_circular=False, default=_table)


@lru_cache(maxsize=64)
def _defaults(kind: type) -> list[tuple[str, Any]]:
    return [(each.name, _default(each)) for each in fields(kind)]


def _default(each: Field[Any]) -> Any:
    return each.default if each.default_factory is MISSING else each.default_factory()


@lru_cache(maxsize=256)
def _reader(kind: Any) -> Callable[[Any], Any]:
    """Return a function that returns the value that JSON has for a type; it raises ``TypeError`` if that is none."""
    if is_dataclass(kind):
        return _record_reader(typing.cast(Any, kind))
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        read = _reader(next(each for each in inner if each is not type(None)))
        return lambda data: None if data is None else read(data)
    if origin is list:
        read = _reader(inner[0])
        return lambda data: [read(each) for each in _checked(data, list)]
    if origin is dict:
        read = _reader(inner[1])
        return lambda data: {key: read(each) for key, each in _checked(data, dict).items()}
    if kind is float:
        return lambda data: float(data) if type(data) is int else _checked(data, float)
    return lambda data: data if type(data) is kind else _checked(data, kind)


def _record_reader(kind: type) -> Callable[[Any], Any]:
    hints = typing.get_type_hints(kind)
    readers = {each.name: _reader(hints[each.name]) for each in fields(kind)}

    def read(data: Any) -> Any:
        known = _checked(data, dict).items()
        return kind(**{name: readers[name](each) for name, each in known if name in readers})

    return read


def _checked(data: Any, kind: type) -> Any:
    if type(data) is not kind:
        raise TypeError(f"{type(data).__name__} stands where {kind.__name__} belongs")
    return data

"""Mutated checkpoints, by number: changes of their bytes, their records, their pickles and their structures."""

from __future__ import annotations

import io
import random
import warnings
import zipfile

from . import pickles, structures
from .originals import originals

_WAYS = [zipfile.ZIP_STORED] * 5 + [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
_LARGE = 64 << 20  # bytes of zeros, which are compressed


class Mutations:
    """Valid checkpoints, and mutated ones of them by number."""

    def __init__(self) -> None:
        self._ours, self._archives, self._older = originals()

    def make(self, number: int) -> bytes:
        """Return the contents of file ``number``, the same in each run."""
        rng = random.Random(number)
        kind, known = rng.choice(
            [
                (mutate_bytes, self._ours + self._archives + self._older),
                (_mutate_archive, self._archives),
                (_mutate_pickle, self._archives),
                (_mutate_older, self._older),
                (structures.mutate_header, self._ours),
                (structures.mutate_structure, self._ours[:-1]),  # the last one has none
            ]
        )
        return kind(rng.choice(known), rng)


def mutate_bytes(content: bytes, rng: random.Random) -> bytes:
    """Return contents with a few bytes changed, removed, doubled or moved, or without their end."""
    changed = bytearray(content)
    for _ in range(rng.randrange(1, 6)):
        at, count = rng.randrange(len(changed) or 1), rng.choice([1, 2, 8, 100, 5000])
        part = bytes(changed[at : at + count])
        match rng.randrange(6):
            case 0:
                changed[at : at + 1] = rng.randbytes(1)
            case 1:
                del changed[at : at + count]
            case 2:
                changed[at:at] = part * rng.choice([1, 1, 50])
            case 3:
                changed[at : at + 8] = rng.choice([b"\xff" * 8, bytes(8), b"\xff" * 7 + b"\x7f", b"\xff\xff\xff\x7f"])
            case 4:
                where = rng.randrange(len(changed) or 1)
                changed[where : where + len(part)] = part
            case _:
                del changed[len(changed) - rng.randrange(1, 200) :]
    return bytes(changed)


# PyTorch's forms.


def _records(archive: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def _pack(records: list[tuple[str, bytes]], rng: random.Random) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names that are there twice
        for name, content in records:
            way = zipfile.ZIP_DEFLATED if len(content) == _LARGE else rng.choice(_WAYS)
            archive.writestr(zipfile.ZipInfo(name), content, way, compresslevel=1)
    return file.getvalue()


def _mutate_archive(content: bytes, rng: random.Random) -> bytes:
    records = list(_records(content).items())
    at = rng.randrange(len(records))
    name, record = records[at]
    match rng.randrange(6):
        case 0:
            records[at] = name, mutate_bytes(record, rng)
        case 1:
            del records[at]
        case 2:
            records[at] = name, bytes(rng.choice([0, 1, 1 << 20, _LARGE]))
        case 3:
            records[at] = (
                rng.choice(["", "checkpoint/", "../x", "checkpoint/data/0", "checkpoint/constants.pkl"]),
                record,
            )
        case 4:
            rng.shuffle(records)
        case _:
            return _mutate_directory(_pack(records, rng), rng)
    return _pack(records, rng)


def _mutate_directory(content: bytes, rng: random.Random) -> bytes:
    """Return an archive with changed fields in its directory: sizes, ways of compression, places, names."""
    changed = bytearray(content)
    start = changed.find(b"PK\1\2")
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(start, len(changed))
        changed[at : at + rng.choice([1, 2, 4])] = rng.choice(
            [b"\0", b"\xff", b"\1\0", b"\xff\xff", b"\xff\xff\xff\xff"]
        )
    return bytes(changed)


def _mutate_pickle(content: bytes, rng: random.Random) -> bytes:
    records = _records(content)
    records["checkpoint/data.pkl"] = pickles.mutate(records["checkpoint/data.pkl"], rng)
    return _pack(list(records.items()), rng)


def _mutate_older(content: bytes, rng: random.Random) -> bytes:
    """Return contents with one of the five pickles at their start mutated."""
    file, ends = io.BytesIO(content), [0]
    for _ in range(5):
        pickles.skip(file)
        ends.append(file.tell())
    which = rng.choice([1, 2, 3, 3, 3, 4, 4])
    start, end = ends[which], ends[which + 1]
    return content[:start] + pickles.mutate(content[start:end], rng) + content[end:]

"""Mutated pickles: opcodes removed, doubled, moved and inserted, and pieces that ask for much depth, work or memory."""

from __future__ import annotations

import io
import pickletools
import random
import struct
from typing import Any


def skip(file: Any) -> None:
    """Read a file to the end of a pickle."""
    for _ in pickletools.genops(file):
        pass


def mutate(pickled: bytes, rng: random.Random) -> bytes:
    """Return a pickle with up to five changes."""
    pieces = _opcodes(pickled)
    for _ in range(rng.randrange(1, 6)):
        at, other = rng.randrange(len(pieces)), rng.randrange(len(pieces))
        match rng.randrange(6):
            case 0:
                del pieces[at : at + rng.choice([1, 1, 3])]
            case 1:
                pieces[at:at] = pieces[other : other + rng.choice([1, 3, 30])] * rng.choice([1, 1, 100])
            case 2:
                pieces[at], pieces[other] = pieces[other], pieces[at]
            case 3:
                pieces[at] = _altered(pieces[at], rng)
            case _:
                pieces.insert(at, rng.choice(_HOSTILE)(rng))
        pieces = pieces or [b"."]
    return b"".join(pieces)


def _opcodes(pickled: bytes) -> list[bytes]:
    places = [place for _, _, place in pickletools.genops(io.BytesIO(pickled)) if place is not None]
    return [pickled[start:end] for start, end in zip(places, [*places[1:], len(pickled)])]


def _altered(opcode: bytes, rng: random.Random) -> bytes:
    """Return an opcode with another argument, or another opcode with its argument."""
    if len(opcode) == 1 or rng.random() < 0.2:
        return rng.choice(pickletools.opcodes).code.encode("latin1") + opcode[1:]
    at = rng.randrange(1, len(opcode))
    return opcode[:at] + rng.choice([b"\0", b"\1", b"\x7f", b"\xff", rng.randbytes(1)]) + opcode[at + 1 :]


def _text(text: str) -> bytes:
    return b"X" + struct.pack("<I", len(text)) + text.encode()


def _deep(rng: random.Random) -> bytes:
    return b")" + b"\x85" * rng.choice([100, 1000, 1_000_000])


def _deep_list(rng: random.Random) -> bytes:
    return b"]" * (depth := rng.choice([100, 20_000])) + b"a" * (depth - 1)


def _laughs(rng: random.Random) -> bytes:
    """Return opcodes of a tuple in a tuple, twice each, 60 times: 120 bytes, 2 ** 60 parts."""
    return b")" + b"2\x86" * rng.choice([10, 20, 60])


def _laughing_list(rng: random.Random) -> bytes:
    return b"]" + b"".join(b"q%c](h%ch%ce" % (n, n, n) for n in range(128, 128 + rng.choice([10, 60])))


def _with_key(rng: random.Random) -> bytes:
    return b"}" + rng.choice([_deep, _laughs])(rng) + b"K\1s"


def _with_member(rng: random.Random) -> bytes:
    items = rng.choice([_deep, _laughs])(rng)
    return rng.choice(
        [b"\x8f(" + items + b"\x90", b"(" + items + b"\x91", b"c__builtin__\nset\n(](" + items + b"etR"],
    )


def _called(rng: random.Random) -> bytes:
    """Return opcodes that call a function of checkpoints with a value of the wrong kind."""
    name = rng.choice(
        [
            *("torch\ndevice", "torch\nSize", "_codecs\nencode", "collections\nOrderedDict", "collections\nCounter"),
            *("torch.serialization\n_get_layout", "torch._utils\n_rebuild_tensor_v2", "torch\nfloat32", "os\nsystem"),
            *("torch._utils\n_rebuild_sparse_tensor", "torch._tensor\n_rebuild_from_type_v2", "builtins\nbytearray"),
        ]
    )
    argument = rng.choice([_deep, _laughs, _laughing_list, _deep_list, _number])
    count = rng.randrange(1, 5)
    return f"c{name}\n(".encode() + b"".join(argument(rng) for _ in range(count)) + b"tR"


def _copies(rng: random.Random) -> bytes:
    """Return opcodes that copy one text of 10,000 characters many times, each into a list."""
    again = b"c_codecs\nencode\nq\xfa0" + _text("x" * 10_000) + b"q\xfb0" + _text("latin1") + b"q\xfc0"
    return again + b"](" + b"h\xfah\xfbh\xfc\x86R" * rng.choice([10, 20_000]) + b"e"


def _alike(rng: random.Random) -> bytes:
    """Return opcodes of a dict whose keys have the same hash."""
    numbers = [(2**61 - 1) * n for n in range(1, rng.choice([50, 20_000]))]
    return b"}(" + b"".join(b"\x8a\x0b" + n.to_bytes(11, "little") + b"N" for n in numbers) + b"u"


def _number(rng: random.Random) -> bytes:
    length = rng.choice([1, 8, 200, 50_000])
    return b"\x8b" + struct.pack("<I", length) + rng.randbytes(length)


def _tensor(rng: random.Random) -> bytes:
    """Return opcodes of a tensor that has one element often, and perhaps is a conjugate of it."""
    storage = b"(" + _text("storage") + b"ctorch\nComplexFloatStorage\n" + _text("0") + _text("cpu") + b"K\1tQ"
    size, flag = struct.pack("<I", rng.choice([1, 1000, 2**31 - 1])), rng.choice(["conj", "neg", "other"])
    arguments = storage + b"K\0J" + size + b"\x85K\0\x85\x89}}" + _text(flag) + b"\x88s"
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + arguments + b"tR"


def _long_text(rng: random.Random) -> bytes:
    """Return opcodes of a text that is said to be longer than it is."""
    return b"\x8d" + struct.pack("<Q", rng.choice([2**20, 2**32, 2**62])) + b"x"


_HOSTILE = (
    *(_deep, _deep_list, _laughs, _laughing_list, _with_key, _with_member, _called, _called),
    *(_copies, _alike, _number, _tensor, _long_text),
)

"""Part of HTTP/2 that reaches a gRPC server without gRPC, whose rules an attack can break."""

from __future__ import annotations

import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 4, 6, 8, 9
END_HEADERS = 4


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Return one frame."""
    return len(payload).to_bytes(3, "big") + struct.pack(">BBI", kind, flags, stream) + payload


def opening() -> bytes:
    """Return the first bytes of a client."""
    return PREFACE + frame(SETTINGS, 0, 0)


def request(stream: int, path: str, *entries: tuple[str, bytes]) -> bytes:
    """Return the frame that opens a gRPC stream, with further metadata."""
    usual = (
        (":method", b"POST"),
        (":scheme", b"http"),
        (":path", path.encode()),
        (":authority", b"stranger"),
        ("te", b"trailers"),
        ("content-type", b"application/grpc"),
    )
    return frame(HEADERS, END_HEADERS, stream, b"".join(_literal(*entry) for entry in (*usual, *entries)))


def message_start(length: int) -> bytes:
    """Return the beginning of a gRPC message that claims ``length`` bytes."""
    return struct.pack(">BI", 0, length)


def _literal(name: str, value: bytes) -> bytes:
    """Return a header in HPACK, neither indexed nor compressed."""
    return b"\0" + _length(len(name)) + name.encode() + _length(len(value)) + value


def _length(number: int) -> bytes:
    if number < 127:
        return bytes([number])
    rest, out = number - 127, [127]
    while rest >= 128:
        out.append(rest % 128 + 128)
        rest //= 128
    return bytes([*out, rest])

"""Attacks on a worker's port, by a stranger who knows the protocol and lacks the secret."""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
import socket
import time
from collections.abc import Iterator
from typing import Any

import grpc

from ...base.errors import AuthenticationError
from ...proto.rpc_pb2 import WorkerRecord
from ...rpc.lanes.grpc_handshake import CHALLENGE, HELLO_KEY, PROOF_KEY, introduce
from ...rpc.lanes.grpc_options import options_for
from ...rpc.lanes.grpc_session import BULK, FRAMES, TOKEN
from ...rpc.rendezvous.tcp import JOIN
from ...rpc.security.handshake import PROTOCOL, DialerHandshake
from ...rpc.security.proofs import GREETING, NONCE_BYTES
from ...rpc.threads.ioloop import LoopThread, acquire_loop, release_loop
from . import http2

METHODS = (CHALLENGE, FRAMES, BULK, JOIN)
SOCKET_SECONDS = 10.0
AT_ONCE = 32
PER_SECOND = 200.0
ENDED = (OSError, AuthenticationError, grpc.aio.AioRpcError, asyncio.TimeoutError, asyncio.CancelledError)


def garbage(port: int, count: int, rng: random.Random) -> int:
    """Send random bytes, and mutated HTTP/2, each on its own connection; return how many were sent."""
    good = http2.opening() + http2.request(1, FRAMES, (PROOF_KEY, rng.randbytes(200))) + http2.frame(0, 0, 1, b"x" * 99)
    began = time.monotonic()
    for number in range(count):
        time.sleep(pace(began, number))
        text = rng.randbytes(rng.randrange(1, 2000)) if number % 2 else mutate(good, rng)
        with contextlib.suppress(OSError), connect(port) as stranger:
            stranger.sendall(text)
    return count


def mutate(text: bytes, rng: random.Random) -> bytes:
    """Return ``text`` with a few bytes changed, removed or doubled."""
    changed = bytearray(text)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(changed) or 1)
        match rng.randrange(4):
            case 0:
                changed[at : at + 1] = rng.randbytes(1)
            case 1:
                del changed[at : at + rng.randrange(1, 40)]
            case 2:
                changed[at:at] = changed[at : at + rng.randrange(1, 40)]
            case _:
                changed[at : at + 8] = rng.choice([b"\xff" * 8, bytes(8), b"\xff" * 7 + b"\x7f"])
    return bytes(changed)


def handshakes(port: int, count: int, rng: random.Random) -> int:
    """Open gRPC streams with wrong handshakes (a wrong secret, mutated messages, none); return how many."""
    with grpc_loop() as loop:
        loop.run(_handshakes(port, count, rng))
    return count


async def _handshakes(port: int, count: int, rng: random.Random) -> None:
    numbers = iter(range(count))
    began = time.monotonic()

    async def stranger() -> None:
        for number in numbers:
            await asyncio.sleep(pace(began, number))
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options_for(10.0)) as channel:
                with contextlib.suppress(*ENDED):
                    await asyncio.wait_for(_wrong_handshake(channel, port, number, rng), SOCKET_SECONDS)

    await asyncio.gather(*(stranger() for _ in range(AT_ONCE)))


async def _wrong_handshake(channel: Any, port: int, number: int, rng: random.Random) -> None:
    method = METHODS[number % len(METHODS)]
    record = WorkerRecord(name="stranger", rank=1, identity=secrets.token_bytes(16))
    handshake: Any = DialerHandshake(rng.randbytes(32), record, b"", f"grpc://127.0.0.1:{port}")
    if number % 3 == 0:
        handshake = _Mutating(handshake, rng)
    if number % 3 < 2:
        await introduce(channel, method, handshake)
        raise RuntimeError("a stranger was let in")
    entries = {CHALLENGE: HELLO_KEY, FRAMES: PROOF_KEY, JOIN: PROOF_KEY, BULK: TOKEN}
    value: Any = rng.randbytes(rng.randrange(8000)) if method != BULK else rng.randbytes(32).hex()
    await _talk(channel.stream_stream(method)(metadata=((entries[method], value),)), rng.randbytes(1000))


async def _talk(stream: Any, message: bytes) -> None:
    await stream.write(message)
    await stream.read()


class _Mutating:
    """Handshake whose messages are changed on their way."""

    def __init__(self, handshake: DialerHandshake, rng: random.Random) -> None:
        self._handshake = handshake
        self._rng = rng

    def hello(self) -> bytes:
        return mutate(self._handshake.hello(), self._rng)

    def prove(self, challenge: bytes) -> bytes:
        proof = self._handshake.prove(challenge)
        return proof[:NONCE_BYTES] + mutate(proof[NONCE_BYTES:], self._rng)

    def check(self, welcome: bytes) -> None:
        self._handshake.check(welcome)


def half_open(port: int, count: int, seconds: float) -> tuple[int, int]:
    """Open connections that stop at some point before they are a stream, and hold them.

    Returns:
        How many were opened, and how many of them the server had closed in the end.
    """
    sentences = _half_sentences()
    held: list[socket.socket] = []
    try:
        for number in range(count):
            with contextlib.suppress(OSError):
                held.append(connect(port))
                held[-1].sendall(sentences[number % len(sentences)])
        time.sleep(seconds)  # time itself is the attack
        return len(held), sum(map(_is_closed, held))
    finally:
        for stranger in held:
            stranger.close()


def _is_closed(stranger: socket.socket) -> bool:
    stranger.setblocking(False)
    try:
        while stranger.recv(65536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def _half_sentences() -> list[bytes]:
    opening = http2.opening()
    hello = (HELLO_KEY, GREETING.pack(PROTOCOL, bytes(NONCE_BYTES)))
    streams = [
        opening + http2.request(1, method, hello) + http2.frame(0, 0, 1, http2.message_start(100)) for method in METHODS
    ]
    beginning = http2.frame(http2.HEADERS, 0, 1, http2.request(1, FRAMES)[9:])  # headers without an end
    return [b"", http2.PREFACE[:9], http2.PREFACE, opening, opening + beginning, *streams]


def large_messages(port: int, megabytes: int) -> int:
    """Send one message of that size on a stream of each method, with gRPC and without it; return how many were sent."""
    with grpc_loop() as loop:
        for method in METHODS:
            _flood(port, method, megabytes)
            loop.run(_large_message(port, method, megabytes))
    return 2 * len(METHODS)


def _flood(port: int, method: str, megabytes: int) -> None:
    """Send a message in spite of flow control, until the server closes the connection."""
    piece = http2.frame(http2.DATA, 0, 1, bytes(16 * 1024))
    with contextlib.suppress(OSError), connect(port) as stranger:
        start = http2.frame(http2.DATA, 0, 1, http2.message_start(megabytes * 2**20))
        stranger.sendall(http2.opening() + http2.request(1, method) + start)
        for _ in range(megabytes * 64):
            stranger.sendall(piece)


async def _large_message(port: int, method: str, megabytes: int) -> None:
    options = [("grpc.max_send_message_length", -1), ("grpc.enable_http_proxy", 0)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        with contextlib.suppress(*ENDED):
            await asyncio.wait_for(_talk(channel.stream_stream(method)(), bytes(megabytes * 2**20)), SOCKET_SECONDS)


@contextlib.contextmanager
def grpc_loop() -> Iterator[LoopThread]:
    """Return the process's event loop for gRPC, which may have one only."""
    loop = acquire_loop()
    try:
        yield loop
    finally:
        release_loop()


def pace(began: float, number: int) -> float:
    """Return the seconds until attack ``number`` is due, so that the attack does not simply take all processors."""
    return max(began + number / PER_SECOND - time.monotonic(), 0.0)


def connect(port: int) -> socket.socket:
    """Return a new connection to the port."""
    return socket.create_connection(("127.0.0.1", port), SOCKET_SECONDS)

"""Mutated handshakes and frames, read in this process as a worker reads them: they may only cause clear errors."""

from __future__ import annotations

import pickle
import random
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...core import tensor
from ...proto.rpc_pb2 import WorkerRecord
from ...rpc.lanes.frame import FRAME_LENGTH, new_memory
from ...rpc.lanes.large.incoming import TransferAssembly
from ...rpc.lanes.large.transfer import UNIT_HEAD, Kind
from ...rpc.lanes.outbox import split_batch
from ...rpc.security.handshake import AcceptorHandshake, DialerHandshake
from ...rpc.wire.control import decode_acknowledgement, decode_control
from ...rpc.wire.frames import decode, encode
from ...rpc.wire.messages import Attachments, Incoming, Outgoing
from .attacks import mutate

# Errors that no reader may raise. After any other, the agent closes the connection and logs it.
WRONG = (MemoryError, RecursionError, SystemError, AssertionError)
ADDRESS = "grpc://127.0.0.1:1"
Reader = Callable[[bytes], object]


class Canary:
    """Object whose pickle is recorded when it is loaded."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self._path,)


class Mutations:
    """Valid messages of every kind with their readers, and the search for a reader that fails."""

    def __init__(self, rng: random.Random, canary: Path) -> None:
        self._rng = rng
        self._canary = canary
        self._cases = [*self._handshakes(), *self._frames()]
        self.unpickled = 0
        sys.addaudithook(self._audit)

    def run(self, count: int) -> None:
        """Read ``count`` mutated messages; an error that a reader must not raise is raised here."""
        for _ in range(count):
            good, reader = self._rng.choice(self._cases)
            try:
                reader(mutate(good, self._rng))
            except WRONG:
                raise
            except Exception:
                pass

    def _audit(self, event: str, _: Any) -> None:
        if event == "pickle.find_class":
            self.unpickled += 1

    def _handshakes(self) -> list[tuple[bytes, Reader]]:
        secret, record = self._rng.randbytes(32), WorkerRecord(name="w", identity=bytes(16), addresses=[ADDRESS])
        dialer, acceptor = DialerHandshake(secret, record, b"", ADDRESS), AcceptorHandshake(secret, record)
        hello = dialer.hello()
        proof = dialer.prove(challenge := acceptor.challenge(hello))

        def welcome() -> bytes:
            acceptor.check(proof)
            return acceptor.welcome()

        def check(text: bytes) -> None:
            fresh = AcceptorHandshake(secret, record)
            fresh.challenge(hello)
            fresh.check(text)
            raise AssertionError("a mutated proof was taken")

        def prove(text: bytes) -> None:
            fresh = DialerHandshake(secret, record, b"", ADDRESS)
            fresh.hello()
            fresh.prove(text)

        def check_welcome(text: bytes) -> None:
            if text != good_welcome:
                dialer.check(text)
                raise AssertionError("a mutated welcome was taken")

        good_welcome = welcome()
        return [
            (hello, lambda text: AcceptorHandshake(secret, record).challenge(text)),
            (challenge, prove),
            (proof, check),
            (good_welcome, check_welcome),
        ]

    def _frames(self) -> list[tuple[bytes, Reader]]:
        message = Outgoing(1, 1, 5.0, 0)
        message.pickled = [pickle.dumps(Canary(self._canary))]
        plain = b"".join(encode(message))
        message.attached = attached = Attachments()
        attached.tensors = [tensor([1.0, 2.0]), tensor([[1, 2], [3, 4]])]
        attached.buffers = [memoryview(bytes(range(72)))]
        attached.extras = {1: b"words"}
        full = b"".join(encode(message))
        control = plain[:16] + struct.pack("<QHI", 1, 1, 5) + b"words"
        batch = b"".join(FRAME_LENGTH.pack(len(frame)) + frame for frame in (plain, full, control))
        units = UNIT_HEAD.pack(Kind.BEGIN, len(full)) + UNIT_HEAD.pack(Kind.CHUNK, len(full)) + full
        return [
            (plain, lambda text: decode(text, False, Incoming())),
            (full, lambda text: decode(text, False, Incoming())),
            (full, lambda text: decode(bytearray(text), True, Incoming())),
            (control, lambda text: list(decode_control(text))),
            (control, decode_acknowledgement),
            (batch, lambda text: list(split_batch(text))),
            (units, lambda text: TransferAssembly(new_memory, bytes).message(text)),
        ]

"""A socket under TLS behaves like a plain one: it never blocks, takes parts, and tells an end from a cut."""

import asyncio
import random
import select
import socket
import ssl
import threading

import pytest
from helpers.certificates import authority, worker_tls
from telegrad.rpc.lanes.tls_socket import TlsSocket
from telegrad.testing import count


def connected():
    """Two ends of a TCP connection with little room."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    for end in (near, far):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 14)
        end.setblocking(False)
    return near, far


async def shake(near, far):
    return await asyncio.gather(near.handshake(), far.handshake())


@pytest.fixture
def jobs():
    return authority()


@pytest.fixture
def ends(jobs, tmp_path):
    near, far = connected()
    tls = [worker_tls(tmp_path / name, jobs, name) for name in ("near", "far")]
    pair = TlsSocket(near, tls[0], f"far.{jobs.job}"), TlsSocket(far, tls[1], None)
    seen = asyncio.run(shake(*pair))
    assert seen == [tls[1].fingerprint, tls[0].fingerprint]
    yield pair
    for end in pair:
        end.close()


def send_all(end, data, rng):
    while data:
        cut = rng.randrange(1, 300_000)
        parts = [data[:cut], data[cut : 2 * cut]]
        try:
            data = data[end.sendmsg(parts) :]
        except BlockingIOError:
            select.select([], [end], [], 30)


def receive_all(end, size, rng):
    found = b""
    while len(found) < size:
        buffer = bytearray(rng.randrange(1, 100_000))
        try:
            found += buffer[: end.recv_into(buffer)]
        except BlockingIOError:
            select.select([end], [], [], 30)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_bytes_arrive_whole_in_both_directions_at_once(seed, ends):
    rng = random.Random(seed)
    texts = [rng.randbytes(3_000_000), rng.randbytes(2_000_000)]
    threads = [threading.Thread(target=send_all, args=(end, text, rng)) for end, text in zip(ends, texts)]
    found = []
    threads += [
        threading.Thread(target=lambda: found.append((1, receive_all(ends[0], len(texts[1]), random.Random(seed))))),
        threading.Thread(target=lambda: found.append((0, receive_all(ends[1], len(texts[0]), random.Random(seed))))),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert dict(found) == dict(enumerate(texts))


def test_an_end_is_told_from_a_cut(ends):
    near, far = ends
    assert near.sendmsg([b"last words"]) == 10
    near.shutdown(socket.SHUT_WR)
    buffer = bytearray(100)
    select.select([far], [], [], 30)
    assert far.recv_into(buffer) == 10 and far.recv_into(buffer) == 0
    assert far.sendmsg([b"answer"]) == 6  # the other side is open
    far._plain.shutdown(socket.SHUT_WR)
    select.select([near], [], [], 30)
    assert near.recv_into(buffer) == 6
    with pytest.raises(ConnectionResetError, match="cut"):
        near.recv_into(buffer)


def test_one_read_returns_all_records_that_fit(ends):
    near, far = ends
    assert near.sendmsg([b"a" * 100]) == near.sendmsg([b"b" * 100]) == 100
    near.shutdown(socket.SHUT_WR)
    buffer, found = bytearray(1000), b""
    while len(found) < 200:  # all of it has left, but the system may give it in two parts
        select.select([far], [], [], 30)
        found += buffer[: far.recv_into(buffer)]
    assert found == b"a" * 100 + b"b" * 100 and not far.holds_back
    assert far.recv_into(buffer) == 0


def test_what_is_held_back_is_read_before_one_waits(ends):
    near, far = ends
    near.sendmsg([b"x" * 5000])
    select.select([far], [], [], 30)
    buffer = bytearray(1000)
    assert far.recv_into(buffer) == 1000 and far.holds_back
    with far.only_held_back():
        assert [far.recv_into(buffer) for _ in range(4)] == [1000] * 4
        near.sendmsg([b"more"])
        with pytest.raises(BlockingIOError):
            far.recv_into(buffer)


def test_a_small_frame_and_a_read_in_vain_are_one_call_of_the_system_each(ends):
    near, far = ends
    buffer = bytearray(1000)

    def read_in_vain():
        try:
            far.recv_into(buffer)
        except BlockingIOError:
            return
        raise AssertionError

    def send_and_receive():
        near.send(b"x" * 100)
        select.select([far], [], [], 30)
        assert far.recv_into(buffer) == 100

    vain, frame = count(read_in_vain), count(send_and_receive)
    assert vain.c_calls == {"recv_into": 1} and sum(vain.python_calls.values()) == 2  # one is the step
    assert frame.c_calls["send"] == frame.c_calls["recv_into"] == 1 and sum(frame.python_calls.values()) <= 6


@pytest.mark.parametrize("wrong", ["name", "authority of the acceptor", "authority of the dialer"])
def test_a_wrong_certificate_is_refused(wrong, jobs, tmp_path):
    near, far = connected()
    dialer = worker_tls(tmp_path / "near", authority() if wrong.endswith("dialer") else jobs, "near")
    acceptor = worker_tls(tmp_path / "far", authority() if wrong.endswith("acceptor") else jobs, "far")
    pair = TlsSocket(near, dialer, f"{'other' if wrong == 'name' else 'far'}.job.test"), TlsSocket(far, acceptor, None)

    async def attempt(end):
        try:
            await end.handshake()
            await end.receive(1)  # in TLS 1.3 the dialer hears of a refusal only now
        finally:
            end.close()

    async def both():
        return await asyncio.gather(*(attempt(end) for end in pair), return_exceptions=True)

    errors = asyncio.run(both())
    assert any(isinstance(error, ssl.SSLError) for error in errors) and all(isinstance(e, OSError) for e in errors)

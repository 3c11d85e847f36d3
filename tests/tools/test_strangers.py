"""Strangers at a worker's port, and proxies in its environment: calls go on, and none of it reaches the job."""

import contextlib
import logging
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import grpc
import pytest
from helpers.programs import PROGRAMS
from telegrad import rpc
from telegrad.agents import make_agent
from telegrad.base.errors import AuthenticationError, RendezvousError, RpcError, SerializationError
from telegrad.launcher.environment import job_environment, reserve_port
from telegrad.proto.rpc_pb2 import WorkerRecord
from telegrad.rpc.extend import GrpcRpcBackendOptions
from telegrad.rpc.lanes.grpc import BULK, FRAMES, GrpcLane
from telegrad.rpc.lanes.grpc_handshake import CHALLENGE
from telegrad.rpc.lanes.outbox import FRAME_LENGTH, split_batch
from telegrad.rpc.rendezvous.meeting import TcpRendezvous
from telegrad.rpc.rendezvous.tcp import JOIN, join
from telegrad.rpc.threads import notices
from telegrad.tools.strangers import http2
from telegrad.tools.strangers.__main__ import main

METHODS = [CHALLENGE, FRAMES, BULK, JOIN]
PROGRAM = str(PROGRAMS / "meet.py")


@pytest.fixture
def port(monkeypatch, tmp_path):
    """The port of a job of one worker, which is this process."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("TELEGRAD_SECRET", raising=False)
    with closing(reserve_port()) as reserved:
        number = reserved.getsockname()[1]
        rpc.init_rpc("w", None, 0, 1, GrpcRpcBackendOptions(init_method=f"tcp://127.0.0.1:{number}"))
        yield number
        rpc.shutdown()


def connect(port):
    return socket.create_connection(("127.0.0.1", port), 60)


def ended(stranger):
    """Read until the server closes the connection."""
    with contextlib.suppress(ConnectionResetError):
        while stranger.recv(65536):
            pass


def refused():
    return rpc.debug_info()["joiners_refused"]


def memory():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# -- before the handshake


@pytest.mark.parametrize("method", METHODS)
def test_no_message_is_read_before_the_handshake(method, port):
    """One message of 64 MiB on a stream without a proof is refused unread."""
    text, before = bytes(64 * 2**20), memory()
    options = [("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        with pytest.raises(grpc.RpcError) as found:
            list(channel.stream_stream(method)(iter([text]), timeout=60))
        assert found.value.code() in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.UNAVAILABLE)
        assert not found.value.details()
    assert sum(refused().values()) == 1
    assert memory() - before < 3 * len(text)  # what the sender itself keeps in this process
    assert rpc.rpc_sync("w", abs, (-1,)) == 1


def test_a_method_whose_name_is_no_text_does_not_end_the_server(port):
    for name in ("/telegrad.Lane/Frames\udcff", "/\udcff", "/telegrad.Lane/Nothing"):
        with connect(port) as stranger:
            path = name.encode("utf-8", "surrogateescape")
            opening = http2.opening() + http2.request(1, "").replace(b":path\0", b":path" + bytes([len(path)]) + path)
            stranger.sendall(opening)
            stranger.shutdown(socket.SHUT_WR)
            ended(stranger)
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel, pytest.raises(grpc.RpcError) as found:
        list(channel.stream_stream(CHALLENGE)(iter(())))  # still there
    assert found.value.code() == grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.slow
def test_connections_that_never_become_a_stream_are_closed(port):
    halves = [b"", http2.PREFACE[:9], http2.opening(), http2.opening() + http2.frame(http2.HEADERS, 0, 1, b"\0")]
    with contextlib.ExitStack() as stack:
        strangers = [stack.enter_context(connect(port)) for _ in halves]
        for stranger, text in zip(strangers, halves):
            stranger.sendall(text)
        for stranger in strangers:
            ended(stranger)


@pytest.fixture
def few_descriptors(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (20, 20))


def test_connections_are_limited_so_that_descriptors_are_left(few_descriptors, port):
    with contextlib.ExitStack() as stack:
        strangers = [stack.enter_context(connect(port)) for _ in range(30)]
        assert 0 < sum(map(greeted, strangers)) <= 10


def greeted(stranger):
    """Return whether the server took the connection: then it speaks, before it closes it."""
    try:
        return bool(stranger.recv(1))
    except ConnectionResetError:
        return False


def test_wrong_proofs_are_counted_and_logged(port, caplog):
    lane = GrpcLane()
    options = GrpcRpcBackendOptions(reconnect_timeout=1.0)
    stranger = make_agent("stranger", 1, options, lanes=[lane], secret=b"another secret of the same kind")
    with caplog.at_level(logging.WARNING, "telegrad.rpc"):
        try:
            stranger.listen()
            with pytest.raises(AuthenticationError, match="turned this worker away"):
                join(stranger.credentials, f"127.0.0.1:{port}", 2, 60.0, 10.0)
        finally:
            stranger.close("its test ended")
    assert refused() == {"it does not know this job's secret": 1}
    assert "refused a joiner at ipv4:127.0.0.1: it does not know this job's secret" in caplog.text


def test_a_worker_that_is_reached_at_an_address_not_its_own_is_refused():
    """As if someone in between passed everything on; ``localhost`` stands for its address."""
    options = GrpcRpcBackendOptions(rpc_timeout=20, reconnect_timeout=1.0)
    a, b = (
        make_agent(name, rank, options, lanes=[GrpcLane()], secret=b"known to the workers")
        for rank, name in enumerate("ab")
    )
    try:
        for agent in (a, b):
            agent.listen()
        false = WorkerRecord()
        false.CopyFrom(b.record)
        false.addresses[0] = false.addresses[0].replace("127.0.0.1", "localhost")
        a.start([a.record, false])
        b.start([a.record, b.record])
        with a.use(), pytest.raises(RpcError):
            rpc.rpc_sync("b", abs, (-1,))
        assert set(b.debug_info()["joiners_refused"]) == {
            "it dialed an address of another worker, and was passed on to this one"
        }
    finally:
        for agent in (a, b):
            agent.close("its test ended")


@pytest.mark.processes
def test_the_attack_in_short():
    """``python -m telegrad.tools.strangers``, small: see there for what it checks."""
    sizes = ["--messages", "4000", "--connections", "20", "--hold", "0.3", "--megabytes", "16"]
    assert main([*sizes, "--no-timing"]) == 0


# -- after it: what a header claims (of large frames: tests/rpc/test_transfers.py)


def test_a_batch_that_ends_too_early():
    good = FRAME_LENGTH.pack(3) + b"abc"
    assert list(split_batch(good + good)) == [b"abc", b"abc"]
    for wrong in (good[:-1], good + b"\0", good + FRAME_LENGTH.pack(2**32 - 1)):
        with pytest.raises(SerializationError, match="in the middle"):
            list(split_batch(wrong))


# -- proxies


class Recorder:
    """A proxy that notes who comes, and answers nobody."""

    def __init__(self):
        self.came = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        with contextlib.suppress(OSError):
            while True:
                self._server.accept()[0].close()
                self.came += 1

    def close(self):
        self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.close()


@pytest.mark.processes
@pytest.mark.parametrize("kind", ["dead", "recording"])
def test_proxies_of_the_environment_are_not_used(kind):
    with closing(Recorder()) as recorder, closing(reserve_port()) as reserved:
        proxy = recorder.address if kind == "recording" else "http://127.0.0.1:9"
        variables = dict.fromkeys(("http_proxy", "https_proxy", "grpc_proxy", "HTTP_PROXY", "HTTPS_PROXY"), proxy)
        environment = {**os.environ, **job_environment(2, reserved.getsockname()[1]), **variables}
        for name in ("no_proxy", "NO_PROXY", "no_grpc_proxy"):
            environment.pop(name, None)
        workers = [
            subprocess.Popen(
                [sys.executable, PROGRAM, f"w{rank}", str(rank), "2", "-", "60"],
                env=environment,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            for rank in range(2)
        ]
        outputs = [worker.communicate(timeout=120)[0] for worker in workers]
        assert [worker.returncode for worker in workers] == [0, 0], outputs
        assert recorder.came == 0


# -- waiting


@pytest.mark.slow
def test_a_wait_says_for_whom(monkeypatch, tmp_path, caplog):
    """Rank 0 knows, and tells a joiner of each other host; a joiner that does not reach it says so."""
    monkeypatch.setattr(notices, "FIRST_SECONDS", 0.05)
    with closing(reserve_port()) as reserved:
        address = f"127.0.0.1:{reserved.getsockname()[1]}"
        with caplog.at_level(logging.WARNING, "telegrad.rpc"):
            joiner = threading.Thread(target=wait_in_vain, args=(1, address, 60.0, "127.0.0.2"))
            joiner.start()
            deadline = time.monotonic() + 30
            while "does not answer" not in caplog.text and time.monotonic() < deadline:
                time.sleep(0.01)
            wait_in_vain(0, address, 6.0)
            joiner.join()
    assert f"'w1' waits for rank 0 at {address}: it does not answer" in caplog.text
    assert "'w0' waits for the others: " in caplog.text
    assert f"'w1' waits for rank 0 at {address}: 2 of 3 workers came; rank 2 did not" in caplog.text


def test_a_joiner_whose_connection_broke_joins_again():
    with closing(reserve_port()) as reserved:
        address = f"127.0.0.1:{reserved.getsockname()[1]}"
        lanes = [GrpcLane()]
        host = make_agent("w0", 0, lanes=lanes, secret=b"known to the workers")
        joiner = make_agent("w1", 1, lanes=[GrpcLane()], secret=b"known to the workers")
        try:
            rendezvous = TcpRendezvous(address)
            host.listen(rendezvous.prepare(lanes, 0, None, secured=False))
            joiner.listen()
            with ThreadPoolExecutor(1) as pool:
                found = pool.submit(rendezvous.join, host.credentials, 2, 60.0, 10.0)
                first, again = (join(joiner.credentials, address, 2, 60.0, 10.0) for _ in range(2))
                assert first == again == found.result(60)
        finally:
            for agent in (host, joiner):
                agent.close("its test ended")


def wait_in_vain(rank, address, seconds, host=None):
    lanes = [GrpcLane()]
    agent = make_agent(f"w{rank}", rank, lanes=lanes, secret=b"known to the workers")
    try:
        rendezvous = TcpRendezvous(address)
        agent.listen(rendezvous.prepare(lanes, rank, host, secured=False))
        with pytest.raises(RendezvousError):
            rendezvous.join(agent.credentials, 3, seconds, 10.0)
    finally:
        agent.close("its test ended")

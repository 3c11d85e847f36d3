"""Intruders at the port of a job with TLS: none of their frames arrives, and each is counted and logged."""

import copy
import logging
import socket
import threading
from contextlib import closing, contextmanager, suppress

import grpc
import pytest
from helpers.certificates import authority, tls_files, worker_tls
from telegrad.agents import make_agent
from telegrad.base.errors import AuthenticationError
from telegrad.proto.rpc_pb2 import WorkerRecord
from telegrad.rpc import certificates
from telegrad.rpc.extend import GrpcRpcBackendOptions
from telegrad.rpc.lanes import grpc_tls
from telegrad.rpc.lanes.grpc import FRAMES, GrpcLane
from telegrad.rpc.lanes.grpc_channel import connect, open_channel
from telegrad.rpc.lanes.grpc_tls import NO_STREAM
from telegrad.rpc.rendezvous.meeting import TcpRendezvous
from telegrad.rpc.security.handshake import AcceptorHandshake, DialerHandshake
from telegrad.rpc.security.tls import PeerCertificate, load
from telegrad.rpc.threads.ioloop import acquire_loop, release_loop
from telegrad.testing.check_lane import RecordingListener

SECRET = b"known in one process"
ANOTHER_SECRET = b"another secret of the same kind"


@pytest.fixture
def jobs():
    return authority()


@pytest.fixture
def pair(jobs, tmp_path, monkeypatch):
    """Two workers of a job with TLS; the first is the one that is attacked."""
    monkeypatch.setattr(grpc_tls, "STREAM_SECONDS", 0.3)
    agents = []
    try:
        for rank, name in enumerate("ab"):
            options = GrpcRpcBackendOptions(tls=tls_files(tmp_path / name, jobs, name), rpc_timeout=30)
            agents.append(make_agent(name, rank, options, lanes=[GrpcLane()], secret=SECRET))
            agents[-1].listen()
        for agent in agents:
            agent.start([other.record for other in agents])
        yield agents
    finally:
        for agent in agents:
            agent.close("its test ended")


@pytest.fixture
def frames(pair, monkeypatch):
    """Every frame that reaches an agent."""
    seen = []

    def show(receive):
        return lambda session, frame, owned: (seen.append(frame), receive(session, frame, owned))

    for agent in pair:
        monkeypatch.setattr(agent.sessions, "received", show(agent.sessions.received))
    return seen


def port(agent):
    return int(agent.record.addresses[0].rpartition(":")[2])


def counts(agent):
    return agent.sessions.refusals.counts()


def call_works(pair):
    """Return whether the workers, which had nothing to say before, can call each other."""
    from telegrad import rpc

    with pair[1].use():
        return rpc.rpc_sync("a", abs, (-1,)) == 1


def expired(jobs):
    """Return the job's own authority as it was when the certificates that it made were valid until just now."""
    before = copy.copy(jobs)
    before._days = -0.001
    return before


@contextmanager
def certified(jobs, tmp_path, kind):
    """Yield the credentials of an intruder for gRPC."""
    own = {
        "none": lambda: None,
        "another job's": lambda: authority(jobs.job),
        "self-made": lambda: authority("mallory"),
        "expired": lambda: expired(jobs),
        "not yet valid": lambda: jobs,
    }[kind]()
    if own is None:
        yield grpc.ssl_channel_credentials(jobs.certificate)
        return
    with pytest.MonkeyPatch.context() as clock:
        if kind == "not yet valid":
            clock.setattr(certificates, "SKEW_DAYS", -1.0)  # made by a clock that is a day ahead
        issued = own.issue("b")
    yield grpc.ssl_channel_credentials(jobs.certificate, issued.key, issued.certificate)


@pytest.mark.parametrize("kind", ["none", "another job's", "self-made", "expired", "not yet valid"])
def test_an_intruder_without_a_good_certificate(kind, pair, jobs, tmp_path, frames, until, caplog):
    attacked = pair[0]
    options = [("grpc.ssl_target_name_override", attacked.record.certificate_name)]
    with (
        caplog.at_level(logging.WARNING, "telegrad.rpc"),
        certified(jobs, tmp_path, kind) as credentials,
        grpc.secure_channel(f"127.0.0.1:{port(attacked)}", credentials, options) as channel,
    ):
        with pytest.raises(grpc.RpcError):
            list(channel.stream_stream(FRAMES)(iter([b"\x01" * 40] * 3), timeout=5))
        until(lambda: counts(attacked).get(NO_STREAM))
    assert set(counts(attacked)) == {NO_STREAM} and not frames
    until(lambda: NO_STREAM in caplog.text)  # it is logged after it is counted
    assert call_works(pair) and frames


@pytest.mark.parametrize(
    "text", [b"", b"\x00" * 100, b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02"]
)
def test_raw_bytes(text, pair, frames, until):
    with socket.create_connection(("127.0.0.1", port(pair[0]))) as intruder:
        intruder.sendall(text)
        until(lambda: counts(pair[0]) == {NO_STREAM: 1})
    assert not frames and call_works(pair)


@pytest.mark.parametrize("text", [b"", b"GET / HTTP/1.1\r\n\r\n", bytes(48)])
def test_raw_bytes_at_the_port_of_a_socket(text, jobs, tmp_path, until):
    options = GrpcRpcBackendOptions(tls=tls_files(tmp_path / "a", jobs, "a"))
    lane = GrpcLane(["tcp"])
    agent = make_agent("a", 0, options, lanes=[lane], secret=SECRET)
    try:
        agent.listen()
        (offer,) = lane.offers
        with socket.create_connection(("127.0.0.1", int(offer.rpartition(":")[2]))) as intruder:
            intruder.sendall(text)
            intruder.shutdown(socket.SHUT_WR)
            until(lambda: counts(agent) == {"it opened a socket that belongs to no connection": 1})
    finally:
        agent.close("its test ended")


def test_a_worker_that_speaks_no_tls(pair, frames, until):
    stranger = RecordingListener("stranger", 1, SECRET)
    lane = GrpcLane()
    try:
        session = lane.dial(stranger, pair[0].record, pair[0].record.addresses[0])
        session.start()
        stranger.until(lambda: bool(stranger.ended))
    finally:
        session.close()
        lane.close()
    assert "has one end TLS, and the other not?" in str(stranger.ended[0][1])
    until(lambda: counts(pair[0]).get(NO_STREAM))
    assert not frames and call_works(pair)


def dial(listener, record, address=""):
    """Return how an attempt of a recording listener to connect to a worker ended; None if it was let in."""
    lane = GrpcLane()
    try:
        session = lane.dial(listener, record, address or record.addresses[0])
        session.start()
        listener.until(lambda: bool(listener.ended or listener.opened))
    finally:
        session.close()
        lane.close()
    return None if listener.opened else listener.ended[0][1]


def test_a_good_certificate_without_the_secret(pair, jobs, tmp_path, frames):
    intruder = RecordingListener("b", 1, ANOTHER_SECRET)
    intruder.tls = worker_tls(tmp_path / "stolen", jobs, "b")
    assert isinstance(dial(intruder, pair[0].record), AuthenticationError)
    assert counts(pair[0]) == {"it does not know this job's secret": 1} and not frames


def test_a_worker_that_says_it_is_another(pair, jobs, tmp_path, frames):
    """The intruder knows the secret, and has the certificate of one worker and the name of another."""
    intruder = RecordingListener("b", 1, SECRET)
    intruder.record.CopyFrom(pair[1].record)
    intruder.tls = worker_tls(tmp_path / "own", jobs, "c")
    assert isinstance(dial(intruder, pair[0].record), AuthenticationError)
    assert counts(pair[0]) == {"it shows the certificate of another worker": 1} and not frames


def test_a_worker_that_keeps_its_name_and_claims_another_identity(pair, jobs, tmp_path, frames):
    intruder = RecordingListener("b", 1, SECRET)
    intruder.record.CopyFrom(pair[1].record)
    intruder.record.certificate_name = f"c.{jobs.job}"
    intruder.tls = worker_tls(tmp_path / "own", jobs, "c")
    error = dial(intruder, pair[0].record)
    assert isinstance(error, ConnectionAbortedError) and "is not in this job" in str(error)
    assert not frames


def test_a_worker_that_answers_in_the_place_of_another(pair, jobs, tmp_path):
    """Someone in between with a certificate of the job, but not the one of the worker that is dialed."""
    dialer = RecordingListener("b", 1, SECRET)
    dialer.tls = worker_tls(tmp_path / "b2", jobs, "b")
    expected = WorkerRecord()
    expected.CopyFrom(pair[0].record)
    expected.certificate_name = f"c.{jobs.job}"
    error = dial(dialer, expected)
    assert isinstance(error, AuthenticationError)
    assert f"should show the certificate of 'c.{jobs.job}': Hostname mismatch" in str(error)


def test_a_handshake_is_bound_to_its_tls_connection(jobs, tmp_path):
    """Someone in between who ends both TLS connections and passes the handshake on is refused, even with the job's key."""
    me = WorkerRecord(name="a", addresses=["grpc://127.0.0.1:1"])
    other = WorkerRecord(name="b", certificate_name=f"b.{jobs.job}")
    own, relay = (worker_tls(tmp_path / name, jobs, "b") for name in ("own", "relay"))
    for seen, good in ((own, True), (relay, False), (None, False)):
        dialer = DialerHandshake(SECRET, other, b"", "grpc://127.0.0.1:1", own.fingerprint)
        acceptor = AcceptorHandshake(SECRET, me)
        proof = dialer.prove(acceptor.challenge(dialer.hello()))
        shown = PeerCertificate(seen.fingerprint, seen.names) if seen else PeerCertificate()
        if good:
            acceptor.check(proof, shown)
        else:
            with pytest.raises(AuthenticationError, match="does not know this job's secret"):
                acceptor.check(proof, shown)


class Recorder:
    """Relay to a port, which keeps what the dialer says."""

    def __init__(self, target):
        self.said = b""
        self._target = target
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._threads = [threading.Thread(target=self._run)]
        self._threads[0].start()

    def _run(self):
        with suppress(OSError):
            near, _ = self._server.accept()
            with near, socket.create_connection(("127.0.0.1", self._target)) as far:
                back = threading.Thread(target=self._copy, args=(far, near, False))
                back.start()
                self._copy(near, far, True)
                back.join()

    def _copy(self, source, sink, keep):
        with suppress(OSError):
            while text := source.recv(65536):
                self.said += text if keep else b""
                sink.sendall(text)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def close(self):
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._threads[0].join(20)
        assert not self._threads[0].is_alive()


def test_what_was_recorded_cannot_be_played_again_and_shows_nothing(pair, frames, until):
    class Relayed(GrpcLane):
        def target(self, peer, address):
            return f"127.0.0.1:{recorder.port}"

    with closing(Recorder(port(pair[0]))) as recorder:
        lane = Relayed()
        session = lane.dial(pair[1].sessions, pair[0].record, pair[0].record.addresses[0])
        session.number = -1
        try:
            assert session.send([b"plain words that nobody between may read"])
            session.start()
            until(lambda: any(b"plain words" in bytes(frame) for frame in frames))
        finally:
            session.close()
            lane.close()
    assert len(recorder.said) > 500
    assert b"plain words" not in recorder.said and b"telegrad" not in recorder.said
    before = len(frames)
    with socket.create_connection(("127.0.0.1", port(pair[0]))) as replay, suppress(OSError):
        replay.sendall(recorder.said)
        until(lambda: counts(pair[0]).get(NO_STREAM))
    assert len(frames) == before


def test_a_joiner_refuses_a_rendezvous_of_another_job(pair, tmp_path):
    options = GrpcRpcBackendOptions(tls=tls_files(tmp_path / "c", authority("other.test"), "c"))
    joiner = make_agent("c", 1, options, lanes=[GrpcLane()], secret=SECRET)
    try:
        joiner.listen()
        with pytest.raises(AuthenticationError, match="there is no TLS connection with"):
            TcpRendezvous(f"127.0.0.1:{port(pair[0])}").join(joiner.credentials, 2, 10.0, 10.0)
    finally:
        joiner.close("its test ended")


def test_a_dialer_whose_certificate_is_refused_is_told(pair, jobs, tmp_path):
    mallory, target = authority("mallory.test"), f"127.0.0.1:{port(pair[0])}"
    tls = load(tls_files(tmp_path / "c", mallory, "c", ca=mallory.certificate + jobs.certificate))

    async def dial():
        channel = open_channel(target, tls, jobs.job, [])
        try:
            await connect(channel, target, tls, jobs.job, 30)
        finally:
            await channel.close()

    loop = acquire_loop()
    try:
        with pytest.raises(
            ConnectionResetError, match="closed the connection when it had seen this worker's certificate"
        ):
            loop.run(dial())
    finally:
        release_loop()

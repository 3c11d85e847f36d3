"""A third host attacks a job on two (network namespaces): as a stranger at their ports, and as someone in between."""

import copy
import json
import pickle
import re
import socket
import ssl
import sys
import threading
import time
from contextlib import closing, contextmanager, suppress

import grpc
import pytest
from helpers.certificates import authority, tls_files
from helpers.hosts import NEEDS_ROOT, made_hosts
from helpers.launched import ended, read_until
from helpers.wiretap import Wiretap
from telegrad.launcher.nodes.exchange import NODE_PROTOCOL
from telegrad.launcher.nodes.member import prove
from telegrad.launcher.nodes.token import new_token
from telegrad.rpc.lanes.grpc import FRAMES
from telegrad.rpc.security.proofs import GREETING

pytestmark = [pytest.mark.processes, pytest.mark.slow, NEEDS_ROOT]

INTRUDER = 2  # the host's number; its address is 10.77.0.3
MARK = "plain words that nobody in between may read"
# Each worker writes the frames that it gets to a file of its own; rank 0 tells its ports, and waits for the file GO, and then
# until as many intruders were counted as that says.
JOB = f"""
import json, os, time
from telegrad import rpc
from telegrad.base.errors import RpcError
from telegrad.rpc.receiver import Receiver
from telegrad.rpc.extend import current_agent
from telegrad.rpc.lanes import grpc_tls

RANK = os.environ["RANK"]
grpc_tls.STREAM_SECONDS = 4.0
print("master", os.environ["MASTER_PORT"], flush=True)
received, frames = Receiver.received, open("frames", "wb", 0)

def write_and_receive(self, connection, frame, *rest):
    frames.write(bytes(frame))
    return received(self, connection, frame, *rest)

Receiver.received = write_and_receive

ran = []

def echo(text):
    ran.append(text)
    return text

def call():
    for _ in range(3):  # the first may fail by name, where a connection was cut
        try:
            assert rpc.rpc_sync(1 - int(RANK), echo, ({MARK!r},)) == {MARK!r}
            return "calls work"
        except RpcError as error:
            print("cut:", error, flush=True)

if __name__ == "__main__":
    rpc.init_rpc(f"worker{{RANK}}", rpc_backend_options=rpc.GrpcRpcBackendOptions(rpc_timeout=30))
    agent = current_agent()
    call()
    if RANK == "0":
        facts = {{"addresses": list(agent.record.addresses), "name": agent.record.certificate_name}}
        print("facts", json.dumps({{**facts, "ca": agent.credentials.tls.ca.decode()}}), flush=True)
        while not os.path.exists(os.environ["GO"]):
            time.sleep(0.05)
        expected = int(open(os.environ["GO"]).read())
        while sum(rpc.debug_info()["joiners_refused"].values()) < expected:
            time.sleep(0.05)
        print("refused", json.dumps(rpc.debug_info()["joiners_refused"]), flush=True)
    print(call(), flush=True)
    rpc.shutdown()
    print("ran", len(ran), flush=True)
"""


class Touch:
    """Object whose unpickling makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.fixture
def hosts(tmp_path):
    with made_hosts(tmp_path, 3) as made:
        yield made


@contextmanager
def passed_on(hosts, port):
    """Yield a port of this process' own network whose connections come out of the intruder's host, at a worker."""
    dial = (INTRUDER, socket.create_connection, ("10.77.0.1", port), 30)
    near = socket.create_server(("127.0.0.1", 0))
    with closing(Wiretap(near, lambda: hosts.inside(*dial))):
        yield near.getsockname()[1]


def said(process, word):
    """Return what follows the word in the next line of a worker that has it."""
    return read_until(process, 1, f"| {word} ")[-1].partition(f"| {word} ")[2].strip()


def say(go, refused):
    """Let rank 0 go on, which then waits until so many intruders have been counted."""
    written = go.with_suffix(".part")
    written.write_text(str(refused))
    written.rename(go)


def send_as(issued, ca, name, port, frame):
    """Try to send frames over gRPC with the certificate of an intruder, or none."""
    shown = (issued.key, issued.certificate) if issued else ()
    options = [("grpc.ssl_target_name_override", name)]
    credentials = grpc.ssl_channel_credentials(ca, *shown)
    channel = grpc.secure_channel(f"127.0.0.1:{port}", credentials, options)
    with channel, pytest.raises(grpc.RpcError):
        list(channel.stream_stream(FRAMES)(iter([frame] * 3), timeout=5))


def test_strangers_of_a_third_host_reach_no_worker(hosts, tmp_path):
    go, made = tmp_path / "go", tmp_path / "made"
    first, last = (hosts.launch(host, JOB, nodes=2, GO=str(go)) for host in (0, 1))
    facts = json.loads(said(first, "facts"))
    port = int(next(each for each in facts["addresses"] if each.startswith("grpc")).rpartition(":")[2])
    ca, job = facts["ca"].encode(), facts["name"].partition(".")[2]
    frame = b"\x01" * 40 + pickle.dumps(Touch(made))
    own = [None, authority(job), authority("mallory")]  # none, one with the names of this job, one of another job
    with passed_on(hosts, port) as near:
        for each in own:
            send_as(each and each.issue("rank1"), ca, facts["name"], near, frame)
    for text in (b"", frame, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame, b"\x16\x03\x01\x02" + frame):
        with hosts.inside(INTRUDER, socket.create_connection, ("10.77.0.1", port), 30) as raw:
            raw.sendall(text)
            with suppress(ConnectionResetError):
                raw.shutdown(socket.SHUT_WR)
                raw.recv(1000)
    say(go, 7)
    out, _ = ended(first, 0)
    ended(last, 0)
    counts = json.loads(re.search(r"\| refused (.*)", out)[1])
    assert sum(counts.values()) >= 7 and all("certificate of this job" in reason for reason in counts), counts
    assert "worker 'worker0' refused a joiner" in out and "calls work" in out, out
    assert not made.exists()
    frames = (tmp_path / "0" / "frames").read_bytes()
    assert frames and b"\x01" * 40 not in frames


def test_certificates_by_hand_keep_out_one_that_has_expired(hosts, tmp_path):
    """Without a launcher: the job's own authority has made the intruder's certificate."""
    go, made, jobs = tmp_path / "go", tmp_path / "made", authority("job.test")
    frame = b"\x01" * 40 + pickle.dumps(Touch(made))
    everyone = {"WORLD_SIZE": "2", "MASTER_ADDR": "10.77.0.1", "MASTER_PORT": "29400", "GO": str(go)}
    secret = {"TELEGRAD_SECRET": hosts.token, "GRPC_VERBOSITY": "NONE"}
    workers = []
    for rank in (0, 1):
        given = tls_files(tmp_path / f"tls{rank}", jobs, f"rank{rank}")
        paths = ", ".join(f"{part}={str(getattr(given, part))!r}" for part in ("certificate", "key", "ca"))
        options = f"rpc_timeout=30, tls=rpc.TlsFiles({paths}, rank0_name='job.test')"
        (tmp_path / f"by_hand{rank}.py").write_text(JOB.replace("rpc_timeout=30", options))
        command = [sys.executable, tmp_path / f"by_hand{rank}.py"]
        workers.append(
            hosts.run(rank, command, RANK=str(rank), TELEGRAD_HOST=f"10.77.0.{rank + 1}", **everyone, **secret)
        )
    facts = json.loads(read_until(workers[0], 1, "facts ")[-1].partition("facts ")[2])
    before = copy.copy(jobs)
    before._days = -0.001
    with passed_on(hosts, 29400) as near:
        send_as(before.issue("rank1"), jobs.certificate, facts["name"], near, frame)
        say(go, 1)
        out, err = ended(workers[0], 0)
    ended(workers[1], 0)
    assert "certificate of this job" in out and "worker 'worker0' refused a joiner" in err, out + err
    assert not made.exists() and b"\x01" * 40 not in (tmp_path / "0" / "frames").read_bytes()


def test_intruders_at_the_launchers_port_are_counted_by_reason(hosts):
    first = hosts.launch(0, "", nodes=2)
    with closing(hosts.inside(INTRUDER, reached, 29400)) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\n\r\n")
        with suppress(ConnectionResetError):
            raw.recv(1000)
    old = f"telegrad-1000000000-{hosts.token[-64:]}"
    for token in (new_token(), new_token(), old):
        with pytest.raises(OSError):
            prove(hosts.inside(INTRUDER, reached, 29400), token.encode(), b"{}")
    last = hosts.launch(1, "", nodes=2)
    _, err = ended(first, 0)
    ended(last, 0)
    assert "refused a connection from 10.77.0.3: it completed no TLS handshake" in err, err
    assert "refused a connection from 10.77.0.3: it does not know the token of this job" in err, err
    assert "the launcher refused 4 connections: " in err and "it does not know the token of this job (3)" in err, err


@contextmanager
def in_between(hosts, port):
    """Relay a port of the intruder's host to the first host."""
    listening = hosts.inside(INTRUDER, socket.create_server, ("10.77.0.3", port))
    with closing(Wiretap(listening, lambda: hosts.inside(INTRUDER, reached, port))) as tap:
        yield tap


def reached(port):
    """Return a connection to a port of the first host, which may begin to listen soon."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return socket.create_connection(("10.77.0.1", port), 30)
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def launch_around(hosts, **environment):
    """Start a job whose second host believes that the first one has the intruder's address."""
    endpoint = {"endpoint": "10.77.0.3:29400", "nodes": 2}
    first = hosts.launch(0, JOB, "--host", "10.77.0.3", "--listen-host", "10.77.0.1", **endpoint, **environment)
    return first, hosts.launch(1, JOB, **endpoint, **environment)


def test_someone_who_forwards_learns_nothing_may_cut_and_cannot_repeat(hosts, tmp_path):
    go = tmp_path / "go"
    with in_between(hosts, 29400) as launchers:
        first, last = launch_around(hosts, GO=str(go))
        port = int(said(first, "master"))
        with in_between(hosts, port) as workers:
            said(first, "facts")
            recorded = [bytes(each) for each in workers.said if len(each) > 500]
            assert recorded  # a handshake, and the calls after it
            workers.cut()
            for each in recorded:
                replay = hosts.inside(INTRUDER, reached, port)
                with replay, suppress(OSError):
                    replay.sendall(each)
                    replay.shutdown(socket.SHUT_WR)
                    while replay.recv(1 << 16):
                        pass
            say(go, len(recorded))  # each is counted
            out, _ = ended(first, 0)
            other_out, _ = ended(last, 0)
    counts = json.loads(re.search(r"\| refused (.*)", out)[1])
    assert counts and "calls work" in out and "calls work" in other_out, out
    assert int(re.search(r"\| ran (\d+)", out)[1]) <= 2 + other_out.count("cut:")  # no call ran again
    everything = b"".join(map(bytes, [*launchers.said, *launchers.heard, *workers.said, *workers.heard]))
    assert len(everything) > 5000
    for secret in (MARK, hosts.token, "echo", "worker1", "PRIVATE KEY"):
        assert secret.encode() not in everything, secret


class Impostor:
    """Listener that answers with a certificate of its own, and keeps what it is told inside TLS."""

    def __init__(self, listening, folder):
        issued = authority("mallory").issue("rank0")
        (folder / "impostor").write_bytes(issued.certificate + issued.key)
        self.heard = b""
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(folder / "impostor")
        self._context.set_alpn_protocols(["h2"])
        self._listening = listening
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self):
        self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join(60)
        assert not self._thread.is_alive()
        self._listening.close()

    def _serve(self):
        with suppress(OSError):
            while True:
                plain, _ = self._listening.accept()
                plain.settimeout(10)
                with plain, suppress(OSError):
                    self._answer(plain)

    def _answer(self, plain):
        with self._context.wrap_socket(plain, server_side=True) as stream:
            challenge = GREETING.pack(NODE_PROTOCOL, bytes(32))  # a launcher's
            stream.sendall(len(challenge).to_bytes(4, "little") + challenge)
            for _ in range(2):  # a greeting, and a proof
                self.heard += stream.recv(1 << 16)


@contextmanager
def impostor(hosts, port, folder):
    listening = hosts.inside(INTRUDER, socket.create_server, ("10.77.0.3", port))
    with closing(Impostor(listening, folder)) as made:
        yield made


def test_an_impostor_in_between_is_refused_by_launchers(hosts, tmp_path):
    with impostor(hosts, 29400, tmp_path) as mallory:
        _, err = ended(hosts.launch(1, JOB, endpoint="10.77.0.3:29400", nodes=2), 2)
    assert "broke the connection off" in err and "have the same token" in err, err
    assert len(mallory.heard) > 100  # with a proof, which is bound to its own certificate
    assert hosts.token.encode() not in mallory.heard


def test_an_impostor_in_between_is_refused_by_workers(hosts, tmp_path):
    with in_between(hosts, 29400):
        first, last = launch_around(hosts, GO="")
        with impostor(hosts, int(said(first, "master")), tmp_path) as mallory:
            out, err = ended(last, 1)
        ended(first, 1)
    assert "there is no TLS connection with" in out + err, out + err
    assert not mallory.heard

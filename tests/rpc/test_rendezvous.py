"""Rendezvous: workers find one another, or fail in time with a clear error where the user looks."""

import asyncio
import os
import re
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import grpc
import pytest
from helpers.joining import refused, start
from helpers.remote import Gate, wait_at_gate
from telegrad import rpc
from telegrad.agents import make_agent
from telegrad.base.errors import AuthenticationError, RendezvousError, RpcError
from telegrad.launcher.environment import job_environment
from telegrad.proto.rpc_pb2 import WorkerRecord
from telegrad.rpc.lanes.grpc import FRAMES, GrpcLane
from telegrad.rpc.receiver import Receiver
from telegrad.rpc.rendezvous.meeting import TcpRendezvous
from telegrad.rpc.rendezvous.members import MemberList
from telegrad.rpc.rendezvous.tcp import JOIN

pytestmark = pytest.mark.usefixtures("outside_a_job")


@pytest.fixture
def meet(tmp_path, monkeypatch):
    """``meet([arguments of programs/meet.py...])``: exit code and output of each process."""
    script = str(Path(__file__).parents[1] / "programs" / "meet.py")
    started = []

    def run(*workers, **environment):
        everybody = {**os.environ, "PYTHONFAULTHANDLER": "1"}
        for worker in workers:
            own = worker.pop() if isinstance(worker[-1], dict) else {}
            command = [sys.executable, script, *map(str, worker), "together"]
            started.append(
                subprocess.Popen(
                    command,
                    env={**everybody, **environment, **own},
                    text=True,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                )
            )
        for process in started:
            assert process.stdout.readline() == "ready\n"
        for process in started:
            process.stdin.write("\n")
            process.stdin.flush()
        found = [process.communicate(timeout=60)[0] for process in started]
        return [(process.returncode, output) for process, output in zip(started, found)]

    yield run
    for process in started:
        with process:
            process.kill()


# -- ways that work


@pytest.mark.parametrize("way", ["tcp", "file", "env"])
def test_one_worker_alone(way, port, tmp_path, monkeypatch):
    if way == "env":
        for name, value in {**job_environment(1, port), "RANK": "0"}.items():
            monkeypatch.setenv(name, value)
    for _ in range(2):  # again, in the same process and at the same port
        methods = {"tcp": f"tcp://localhost:{port}", "file": f"file://{tmp_path}/rendezvous", "env": "env://"}
        start(init_method=methods[way])
        assert rpc.rpc_sync("w", abs, (-1,)) == 1
        rpc.shutdown()
        (tmp_path / "rendezvous").unlink(missing_ok=True)


@pytest.mark.processes
@pytest.mark.parametrize("way", ["tcp", "file"])
def test_three_workers(way, meet, port, tmp_path):
    method = f"tcp://127.0.0.1:{port}" if way == "tcp" else f"file://{tmp_path}/rendezvous"
    for code, output in meet(*([f"w{rank}", rank, 3, method, 30] for rank in (2, 0, 1))):
        assert code == 0, output
        assert "met ['w0', 'w1', 'w2']" in output


@pytest.mark.processes
def test_a_process_that_died_before_all_had_joined_is_replaced(meet, port, monkeypatch, thread):
    joined, left, output = threading.Event(), threading.Event(), []
    join, forget = MemberList.join, MemberList.forget

    def join_and_tell(self, worker, *others):
        join(self, worker, *others)
        if worker.rank == 1:
            joined.set()

    monkeypatch.setattr(MemberList, "join", join_and_tell)
    monkeypatch.setattr(MemberList, "forget", lambda *given: forget(*given) and not left.set())
    method = f"tcp://127.0.0.1:{port}"
    first = thread(lambda: start("w0", 0, 3, 60.0, init_method=method))
    died = subprocess.Popen(
        [sys.executable, Path(__file__).parents[1] / "programs" / "meet.py", "old", "1", "3", method, "60"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    with died:
        assert joined.wait(60)
        died.kill()
    assert left.wait(30)
    others = thread(lambda: output.extend(meet(["w1", 1, 3, method, 60], ["w2", 2, 3, method, 60])))
    first.join(60)
    assert [rpc.get_worker_info(name).id for name in ("w0", "w1", "w2")] == [0, 1, 2]
    rpc.shutdown()
    others.join(60)
    assert [code for code, _ in output] == [0, 0]
    start("other", 0, 1, init_method=method)  # this process can be a worker of another world afterwards
    assert rpc.rpc_sync("other", abs, (-1,)) == 1
    rpc.shutdown()


def test_a_member_that_has_joined_again_does_not_leave_with_its_first_connection():
    members, worker = MemberList(3), WorkerRecord(name="w1", rank=1, identity=b"1")
    members.join(worker, 3, "first")
    members.join(worker, 3, "second")
    assert not members.forget(worker, "first") and members.workers() == [worker]
    assert members.forget(worker, "second") and members.workers() == []
    assert not members.forget(worker, "second")
    another = WorkerRecord(name="w1", rank=1, identity=b"2")
    members.join(another, 3, "third")
    members.join(WorkerRecord(name="w0", rank=0, identity=b"0"), 3)
    members.join(WorkerRecord(name="w2", rank=2, identity=b"3"), 3)
    assert members.complete and not members.forget(another, "third")


def test_a_process_that_joins_anew_has_left_a_complete_job():
    members = MemberList(2)
    first, again = (WorkerRecord(name="w1", rank=1, process_id=7, identity=each) for each in (b"1", b"2"))
    members.join(first, 2)
    assert not members.has_left(again), "it is not complete: two workers have one rank"
    members.join(WorkerRecord(name="w0", rank=0, process_id=6, identity=b"0"), 2)
    assert members.has_left(again) and not members.has_left(first)
    assert not members.has_left(WorkerRecord(name="w1", rank=1, process_id=8, identity=b"3")), "another process"


# -- ways that do not


def test_a_port_in_use():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        refused(
            RendezvousError,
            f"cannot listen at 127.0.0.1:{number}.*choose another",
            init_method=f"tcp://127.0.0.1:{number}",
        )


def test_the_traceback_of_a_failed_start_is_short():
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(RendezvousError) as refusal:
        start(init_method=f"tcp://127.0.0.1:{taken.getsockname()[1]}")
    frames = [frame.name for frame in refusal.traceback]
    assert frames[-1] == "init_rpc" and len(frames) <= 3


def test_nobody_at_the_rendezvous(port):
    words = rf"rank 0 did not answer at 127.0.0.1:{port} within 0.3 s \(Connection refused\); is it running"
    refused(RendezvousError, words, "w", 1, 2, 0.3, init_method=f"tcp://127.0.0.1:{port}")


@pytest.mark.slow
def test_another_program_at_the_rendezvous():
    """A server that is none of ours: it takes the connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        method = f"tcp://127.0.0.1:{stranger.getsockname()[1]}"
        words = r"rank 0 did not answer at .* within 0.5 s \(.+\); is it running"
        refused(RendezvousError, words, "w", 1, 2, 0.5, init_method=method)


@pytest.mark.parametrize("way", ["tcp", "file"])
def test_who_did_not_come_is_named(way, port, tmp_path):
    method = f"tcp://127.0.0.1:{port}" if way == "tcp" else f"file://{tmp_path}/rendezvous"
    words = "did not fill within 0.3 s: 1 of 4 workers came; ranks 1, 2, 3 did not"
    refused(RendezvousError, words, "w", 0, 4, 0.3, init_method=method)


def test_a_file_that_is_no_rendezvous(tmp_path):
    (tmp_path / "rendezvous").write_text("something else\n")
    refused(RendezvousError, "holds something else", "w", 0, 2, 0.5, init_method=f"file://{tmp_path}/rendezvous")
    assert (tmp_path / "rendezvous").read_text() == "something else\n"


def test_a_file_of_a_finished_rendezvous(tmp_path):
    start(init_method=f"file://{tmp_path}/rendezvous")
    rpc.shutdown()
    refused(RendezvousError, "holds a finished rendezvous; delete it", init_method=f"file://{tmp_path}/rendezvous")


CONTRADICTIONS = {
    "name": (["same", 0, 2], ["same", 1, 2], "worker 'same' .*has the name of rank"),
    "rank": (["w0", 0, 3], ["w1", 1, 3], ["w2", 1, 3], "both have rank 1"),
    "world size": (["w0", 0, 2], ["w1", 1, 3], "says world_size=3, others say 2"),
}


@pytest.mark.processes
@pytest.mark.parametrize("what", CONTRADICTIONS)
@pytest.mark.parametrize("way", ["tcp", "file"])
def test_contradictions_are_told_to_everybody(way, what, meet, port, tmp_path):
    method = f"tcp://127.0.0.1:{port}" if way == "tcp" else f"file://{tmp_path}/rendezvous"
    *workers, words = CONTRADICTIONS[what]
    outcomes = meet(*([*worker, method, 10] for worker in workers))
    assert {code for code, _ in outcomes} == {9}, outcomes
    told = [output for _, output in outcomes if re.search(words.replace("2", r"\d").replace("3", r"\d"), output)]
    assert len(told) >= len(outcomes) - (way == "tcp"), outcomes  # one that comes too late finds nobody
    assert all("RendezvousError" in output for _, output in outcomes)


# -- strangers


@pytest.mark.processes
def test_a_worker_with_another_secret(meet, port):
    method = f"tcp://127.0.0.1:{port}"
    host, joiner = meet(
        ["w0", 0, 2, method, 3, {"TELEGRAD_SECRET": "1" * 16}], ["w1", 1, 2, method, 3, {"TELEGRAD_SECRET": "2" * 16}]
    )
    assert joiner[0] == host[0] == 9
    assert (
        "AuthenticationError: it turned this worker away; start every worker with the same TELEGRAD_SECRET" in joiner[1]
    )
    assert "rank 1 did not; rank 0 refused a joiner at ipv4:127.0.0.1: it does not know this job's secret" in host[1]
    assert "Traceback" not in host[1] + joiner[1]


def test_a_secret_that_others_can_read(tmp_path, port):
    folder = tmp_path / "telegrad"
    folder.mkdir()
    (folder / "secret").write_text("x")
    (folder / "secret").chmod(0o644)
    refused(
        AuthenticationError,
        r"cannot be used \(others may use it: mode 644\).*delete it",
        init_method=f"tcp://127.0.0.1:{port}",
    )


def test_nothing_of_a_stranger_is_unpickled(port, monkeypatch, until):
    """Whatever it says before its proof, no frame of it reaches the agent; and the agent goes on."""
    received = []
    original = Receiver.received
    monkeypatch.setattr(Receiver, "received", lambda *args: (received.append(args[2]), original(*args)))
    start(init_method=f"tcp://127.0.0.1:{port}")
    try:
        for words in ([b"rubbish"], [b""], [b"\x08\x01"], [b"\x01" * 40] * 3, []):
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                stream = channel.stream_stream(FRAMES)(iter(words), timeout=5)
                with suppress(grpc.RpcError):
                    list(stream)  # it is told off, or hung up on
        assert received == []
        assert rpc.rpc_sync("w", abs, (-1,)) == 1
        assert received  # so what reaches the agent is seen
    finally:
        rpc.shutdown()


class SlowLane(GrpcLane):
    """Lane whose ``listen`` returns only when a joiner has been served for a moment."""

    def __init__(self, joiner):
        super().__init__()
        self._joiner = joiner
        self._served = threading.Event()

    def serve(self, method, handler):
        async def first_step_then_tell(request, context):
            task = asyncio.ensure_future(handler(request, context))
            await asyncio.sleep(0)  # one step of the task
            if method == JOIN:
                self._served.set()
            await task

        super().serve(method, first_step_then_tell)

    def listen(self, host, address):
        listening = super().listen(host, address)
        self._joiner.start()
        assert self._served.wait(20)
        return listening


def test_a_joiner_that_comes_before_rank_0_knows_its_own_address_is_not_refused(port):
    """Its proof names the address that it dialed, which rank 0 compares with its own."""
    joined = []

    def join():
        agent = make_agent("b", 1, lanes=[GrpcLane()], secret=b"known in one process")
        try:
            agent.listen()
            joined.append(TcpRendezvous(address).join(agent.credentials, 2, 20, 10.0))
        except Exception as error:
            joined.append(error)
        finally:
            agent.close("its test ended")

    address, joiner = f"127.0.0.1:{port}", threading.Thread(target=join)
    rendezvous, lanes = TcpRendezvous(address), [SlowLane(joiner)]
    agent = make_agent("a", 0, lanes=lanes, secret=b"known in one process")
    try:
        agent.listen(rendezvous.prepare(lanes, 0, None, secured=False))
        found = rendezvous.join(agent.credentials, 2, 20, 10.0)
        joiner.join()
    finally:
        agent.close("its test ended")
    assert joined == [found] and [worker.name for worker in found] == ["a", "b"]


def test_a_connection_that_is_cut_comes_back(until):
    """Between two agents stands a relay; when it cuts, calls under way fail clearly, later ones go through."""
    from telegrad.rpc.extend import GrpcRpcBackendOptions

    options = GrpcRpcBackendOptions(rpc_timeout=30)
    agents = [
        make_agent(name, rank, options, lanes=[GrpcLane()], secret=b"known in one process")
        for rank, name in enumerate("ab")
    ]
    relay = None
    try:
        for agent in agents:
            agent.listen()
        relay = Relay(agents[1].record.addresses[0])
        agents[1].record.addresses[0] = relay.address
        for agent in agents:
            agent.start([other.record for other in agents])
        with agents[0].use():
            reference = rpc.remote("b", str, ("kept",))
            assert reference.to_here() == "kept"
            Gate.event = threading.Event()
            for _ in range(3):
                under_way = rpc.rpc_async("b", wait_at_gate)
                until(lambda: agents[1].debug_info()["serving"] == 1)
                relay.cut()
                with pytest.raises(RpcError, match="broke during"):
                    under_way.wait()
                Gate.event.set()
                until(lambda: agents[1].debug_info()["serving"] == 0)
                Gate.event.clear()
                assert rpc.rpc_sync("b", abs, (-2,)) == 2
                assert reference.to_here() == "kept"
            assert not agents[0].peers.find("b").gone
            reference.release()
            until(lambda: not any(agents[1].debug_info()["references"].values()))
    finally:
        for agent in agents:
            agent.close("its test ended")
        if relay is not None:
            relay.close()


class Relay:
    """A port that passes everything on to another, until it is cut."""

    def __init__(self, address):
        host, _, port = address.removeprefix("grpc://").rpartition(":")
        self._to = (host, int(port))
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"grpc://127.0.0.1:{self._server.getsockname()[1]}"
        self._sockets, self._threads, self._lock = [], [], threading.Lock()
        self._run(self._accept)

    def cut(self):
        with self._lock:
            sockets, self._sockets = self._sockets, []
        for each in sockets:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self._server.shutdown(socket.SHUT_RDWR)
        self.cut()
        for thread in self._threads:
            thread.join(10)
        self._server.close()

    def _run(self, function, *args):
        self._threads.append(threading.Thread(target=function, args=args))
        self._threads[-1].start()

    def _accept(self):
        while True:
            try:
                one, _ = self._server.accept()
            except OSError:
                return
            two = socket.create_connection(self._to)
            with self._lock:
                self._sockets += [one, two]
            open_ends = [one, two]
            self._run(self._pass_on, one, two, open_ends)
            self._run(self._pass_on, two, one, open_ends)

    def _pass_on(self, source, target, open_ends):
        try:
            while data := source.recv(65536):
                target.sendall(data)
        except OSError:
            pass
        for each in (source, target):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        with self._lock:
            open_ends.remove(source)
            if not open_ends:
                source.close()
                target.close()

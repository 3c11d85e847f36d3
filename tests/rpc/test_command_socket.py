"""Socket of a worker for commands: its answers, and clients that are slow, many, or send what is no request."""

import json
import os
import socket
import threading
from contextlib import contextmanager
from functools import partial

import pytest
from helpers.gates import GATE, hold
from helpers.threads import until
from telegrad import rpc
from telegrad.agents.commands import _ask_debugger
from telegrad.core.futures import Future
from telegrad.rpc.extend import CommandSocket
from telegrad.rpc.observing import (
    CommandAnswer,
    CommandRequest,
    Observation,
    command_answers,
    command_socket,
    decode_record,
    encode_record,
)
from telegrad.rpc.observing.command_client import MOST_REQUEST_BYTES
from telegrad.rpc.observing.command_messages import DEBUG, OTHERS, SELF
from telegrad.testing import in_process_cluster

pytestmark = pytest.mark.usefixtures("closed_gate")


@pytest.fixture
def opened(tmp_path):
    """Agents ``a`` and ``b``, the first with a socket, and the socket's path."""
    with in_process_cluster("a", "b") as agents, agents[0].use():
        path = str(tmp_path / "a.sock")
        commands = CommandSocket(agents[0], path)
        try:
            yield agents, path
        finally:
            commands.close()
            commands.close()


@contextmanager
def client(path):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        connection.connect(path)
        yield connection


def answer_to(path, data):
    with client(path) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it has refused already
        return read_all(connection)


def answering():
    return any(each.name == "telegrad-command" for each in threading.enumerate())


def read_all(connection):
    data = b""
    try:
        while part := connection.recv(1 << 16):
            data += part
    except ConnectionResetError:
        pass
    return data.splitlines()


def ask(path, *request, **options):
    first, *rest = answer_to(path, encode_record(CommandRequest(*request, **options)) + b"\n")
    answer = decode_record(CommandAnswer, first, 1 << 20)
    return answer, [decode_record(Observation, each, 1 << 20) for each in rest]


def test_a_worker_tells_what_it_does_and_who_the_others_are(opened):
    _, path = opened
    answer, (seen,) = ask(path, SELF)
    assert (answer.error, [each.name for each in answer.members]) == ("", ["a", "b"])
    assert (seen.worker, seen.error, seen.process_id) == ("a", "", os.getpid())
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_a_worker_asks_the_others(opened):
    (_, b), path = opened
    answers = [rpc.rpc_async("b", hold) for _ in range(b.threads.size)]
    until(lambda: b.threads.functions.counts()["running"] == b.threads.size)
    _, (seen,) = ask(path, OTHERS, ["b"])
    assert (seen.worker, seen.pool_busy) == ("b", b.threads.size)
    assert "no worker 'c'" in ask(path, OTHERS, ["c"])[0].error
    GATE.set()
    assert {each.wait(20) for each in answers} == {1}


def test_a_worker_that_waits_for_the_others_says_so(opened, monkeypatch):
    (a, _), path = opened
    monkeypatch.setattr(a.sessions, "known", Future())
    _, (seen,) = ask(path, SELF)
    assert seen.process_state == "joining" and "other workers to join" in seen.error and seen.threads


@pytest.mark.parametrize(
    "data",
    [
        b"\n",
        b"\xff\xfe\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"[" * 100_000 + b"\n",
        b"{}\n",
        b'{"ask": 1}\n',
        b'{"ask": "self", "workers": "b"}\n',
        b'{"ask": "self", "timeout": -1}\n',
        b'{"ask": "self", "timeout": NaN}\n',
        b'{"ask": "self", "timeout": 1e9}\n',
        b'{"ask": "self", "timeout": ' + b"9" * 400 + b"}\n",
        b'{"ask": "self", "timeout": ' + b"9" * 5000 + b"}\n",
        b'{"ask": "exec"}\n',
        b'{"ask": "self", "format": 99}\n',
        b'{"ask": "self", "parts": ["secrets"]}\n',
        b'{"ask": "self", "parts": [], "format": 99}\n',
        b"\x80\x04\x95pickle\n",
    ],
)
def test_what_is_no_request_is_refused(opened, data):
    _, path = opened
    (line,) = answer_to(path, data)
    assert "refused" in json.loads(line)["error"]
    assert ask(path, SELF)[0].error == ""


def test_a_request_to_a_debugger_that_is_nested_too_deep_is_refused(opened):
    (a, _), path = opened
    commands = CommandSocket(a, path + "2")
    commands.debug = partial(_ask_debugger, a)
    try:
        (line,) = answer_to(path + "2", encode_record(CommandRequest(DEBUG, ["b"], request="[" * 100_000)) + b"\n")
    finally:
        commands.close()
    assert "refused" in json.loads(line)["error"]


def test_a_worker_is_asked_once_however_often_a_request_names_it(opened):
    _, path = opened
    answer, found = ask(path, OTHERS, ["b"] * 50_000)
    assert [each.worker for each in found] == ["b"] and answer.observations == 1


def test_a_request_without_end_is_refused(opened):
    _, path = opened
    assert "one line" in json.loads(answer_to(path, b'{"ask": "se')[0])["error"]
    lines = answer_to(path, b" " * (MOST_REQUEST_BYTES + 10))
    assert not lines or "one line" in json.loads(lines[0])["error"]
    assert ask(path, SELF)[0].error == ""


def test_clients_are_few_and_the_one_that_is_silent_for_longest_is_cut_off(opened):
    _, path = opened
    silent = [socket.socket(socket.AF_UNIX) for _ in range(command_socket.MOST_CLIENTS)]
    try:
        for each in silent:
            each.connect(path)
            each.sendall(b'{"ask"')
        assert ask(path, SELF)[0].error == ""
        silent[0].settimeout(20)
        assert read_all(silent[0]) == []
        silent[-1].sendall(b": 1}\n")
        silent[-1].settimeout(20)
        assert b"refused" in read_all(silent[-1])[0]
    finally:
        for each in silent:
            each.close()
    until(lambda: answer_to(path, b'{"ask": "self"}\n'))


def test_a_client_that_does_not_read_is_cut_off(opened, monkeypatch):
    _, path = opened
    monkeypatch.setattr(command_socket, "ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(command_answers, "encode_record", lambda record: b" " * (8 << 20))
    with client(path) as connection:
        connection.sendall(b'{"ask": "self"}\n')
        until(answering)
        until(lambda: not answering())
        assert len(b"".join(read_all(connection))) < 8 << 20


def test_a_client_that_leaves_harms_nothing(opened):
    _, path = opened
    for data in (b"", b"{", b'{"ask": "self"}\n'):
        with client(path) as connection:
            connection.sendall(data)
    until(lambda: answer_to(path, b'{"ask": "self"}\n'))


@pytest.mark.parametrize("parts", [[], ["links"], ["threads"], None])
def test_a_client_asks_again_on_its_connection(opened, parts):
    _, path = opened
    rpc.rpc_sync("b", max, args=(1, 2))
    with client(path) as connection, connection.makefile("rb") as lines:
        for _ in range(3):
            connection.sendall(encode_record(CommandRequest(SELF, parts=parts)) + b"\n")
            assert decode_record(CommandAnswer, lines.readline(), 1 << 20).observations == 1
            seen = decode_record(Observation, lines.readline(), 1 << 20)
            assert bool(seen.threads) == (parts is None or "threads" in parts)
            assert bool(seen.links) == (parts is None or "links" in parts)
            assert seen.memory_bytes > 0 and seen.totals["calls"] == 0


def test_requests_that_come_together_are_answered_in_order(opened):
    _, path = opened
    requests = [CommandRequest(SELF, parts=parts) for parts in ([], ["threads"], [], None, ["links"])]
    lines = answer_to(path, b"".join(encode_record(each) + b"\n" for each in requests))
    seen = [decode_record(Observation, each, 1 << 20) for each in lines[1::2]]
    assert [bool(each.threads) for each in seen] == [False, True, False, True, False]


def test_a_quick_answer_comes_without_a_thread(opened, monkeypatch):
    _, path = opened
    monkeypatch.setattr(command_socket.threading, "Thread", None)
    assert ask(path, SELF, parts=["links", "loops"])[1][0].process_id == os.getpid()


def test_a_quick_answer_that_finds_no_room_is_sent_by_a_thread(opened, monkeypatch):
    _, path = opened
    monkeypatch.setattr(command_answers, "encode_record", lambda record: b" " * (1 << 20))
    lines = answer_to(path, b'{"ask": "self", "parts": []}\n')
    assert [len(each) for each in lines] == [1 << 20, 1 << 20]


def test_another_user_is_not_answered(opened, monkeypatch):
    _, path = opened
    monkeypatch.setattr(command_socket, "peer_process", lambda connection: (1, os.geteuid() + 1))
    assert answer_to(path, b'{"ask": "self"}\n') == []


def test_a_worker_that_closes_cuts_its_clients_off(tmp_path):
    path = str(tmp_path / "a.sock")
    with in_process_cluster("a") as (a,):
        commands = CommandSocket(a, path)
        with client(path) as connection:
            until(lambda: commands._clients)
            commands.close()
            assert read_all(connection) == []


FORKED = """
import os, sys
from telegrad import rpc
from telegrad.base.job_records import read_records

def start(place):
    rpc.init_rpc("a", rank=0, world_size=1, rpc_backend_options=rpc.GrpcRpcBackendOptions(init_method=place))

start(sys.argv[1])
((folder, record),) = read_records()
go, went = os.pipe()
if not (child := os.fork()):
    os.read(go, 1)
    os._exit(0)
try:
    rpc.shutdown()
    names = os.listdir(folder)
finally:
    os.write(went, b" ")
    os.waitpid(child, 0)
print(record.worker, names)

start(sys.argv[2])
if not os.fork():
    ((_, record),) = read_records()
    print("parent's" if record.process_id == os.getppid() else "child's", flush=True)
    files = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    names = [os.readlink(file) for file in files if os.path.lexists(file)]
    print([each for each in names if each.startswith(str(folder))], flush=True)
    os._exit(0)
os.wait()
"""


@pytest.mark.processes
def test_a_forked_child_does_not_stand_for_its_parent(run_python, tmp_path):
    first, second, third = run_python("-c", FORKED, f"file://{tmp_path}/1", f"file://{tmp_path}/2").splitlines()
    assert (first, second, third) == ("a []", "parent's", "[]")


def test_a_thread_that_asks_for_a_command_is_no_wait_of_the_program(opened):
    (a, _), path = opened
    commands, answer = CommandSocket(a, path + "2"), Future()
    commands.debug = lambda request: answer.wait()
    try:
        with client(path + "2") as connection:
            connection.sendall(encode_record(CommandRequest(DEBUG, ["b"])) + b"\n")
            seen = until(
                lambda: [each for each in rpc.observe("a")[0].threads if each.wait and waits_for_command(each)]
            )
            assert [each.wait.kind for each in seen] == ["observation"]
            assert not [each for each in rpc.why("a").causes if each.kind == "future"]
            answer.set_result("{}")
            connection.shutdown(socket.SHUT_WR)
            assert read_all(connection)
    finally:
        commands.close()


def waits_for_command(thread):
    return thread.name == "telegrad-command" and any(frame.function == "<lambda>" for frame in thread.stack)

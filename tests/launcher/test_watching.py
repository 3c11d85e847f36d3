"""``telegrad ps``, ``why`` and ``stack`` on jobs whose workers are stopped, held by C, or hostile; and the choice of a job."""

import json
import os
import socket

import pytest
from helpers.launched import read_until, telegrad
from telegrad.base.job_folder import JobFolder, job_folders
from telegrad.base.job_records import FORMAT, own_facts
from telegrad.base.printable import printable
from telegrad.base.processes import process_status
from telegrad.launcher.cli import app
from telegrad.launcher.watching.dumps import parse_dump
from telegrad.launcher.watching.jobs import NoJobError, choose_job, choose_workers
from telegrad.launcher.watching.texts import columns, duration, size
from typer.testing import CliRunner

CALLER = """
import ctypes, time
from telegrad import rpc

def hold():
    ctypes.PyDLL(None).sleep(600)  # with the interpreter

def stop():
    os.kill(os.getpid(), signal.SIGSTOP)

rpc.init_rpc()
if rpc.get_worker_info().id == 0:
    held = rpc.rpc_async("worker1", hold, timeout=0)
    stopped = rpc.rpc_async("worker2", stop, timeout=0)
    print("waits", flush=True)
    held.wait()
rpc.shutdown()
"""


@pytest.mark.slow
def test_a_job_with_a_held_and_a_stopped_worker_is_explained(here, job, until):
    process = job(CALLER, "-n", "3")
    read_until(process, 1, "waits")
    until(lambda: "stopped" in telegrad("ps"))
    lines = [line.split() for line in telegrad("ps").splitlines()]
    assert lines[0][:5] == ["JOB", "WORKER", "RANK", "PID", "STATE"] and lines[1][-2:] == ["script.py", str(here)]
    assert [line[1] for line in lines[1:]] == [f"worker{rank}" for rank in range(3)]
    (found,) = json.loads(telegrad("ps", "--json"))["jobs"]
    assert os.path.samefile(found["workers"][0]["log"], next(here.glob("telegrad_runs/*/worker0.log")))

    until(lambda: "'worker0' (MainThread) in <module>" in telegrad("why"))
    why = telegrad("why")
    held = next(line for line in why.splitlines() if line.startswith("'worker1' does not answer"))
    assert "in hold at" in held and f"script.py:{CALLER[: CALLER.index('sleep(600)')].count(chr(10)) + 2}" in held
    assert "the call of hold" in why
    assert "'worker2' does not answer" in why and "is stopped" in why
    about = json.loads(telegrad("why", "worker2", "--json"))
    assert [each["kind"] for each in about["causes"]] == ["stopped"]

    stacks = telegrad("stack")
    assert "worker1" in stacks and "hold at" in stacks and "worker2: its process" in stacks
    found = json.loads(telegrad("stack", "worker0", "--json"))
    assert {name for each in found["stacks"] for name, _ in each["threads"]} == {"worker0"}
    assert "has no worker 'worker9'" in telegrad("why", "worker9", code=2)


GROUP = """
import os, time
import telegrad as tg
from telegrad import collective, rpc

collective.init_process_group()
while collective.get_rank() == 1 and not os.path.exists("go"):
    time.sleep(0.02)
collective.all_reduce(tg.ones(3))
rpc.init_rpc()
if collective.get_rank() == 1:
    rpc.rpc_sync("worker0", time.sleep, (600,), timeout=0)
rpc.shutdown()
"""


@pytest.mark.slow
def test_a_process_group_without_init_rpc_is_seen_and_with_it_once(here, job, until):
    job(GROUP, "-n", "2")
    until(lambda: telegrad("ps").count("sleeping") == 2)
    until(lambda: "for 'worker1', which has not called it" in telegrad("why"))
    assert telegrad("ps").count("worker") == 2 and "request of" not in telegrad("why")
    before = telegrad("ps").split()[10]  # the id of the group's job
    (here / "go").touch()
    until(lambda: before not in telegrad("ps") and telegrad("ps").count("sleeping") == 2)
    until(lambda: "the call of sleep on worker 'worker0'" in telegrad("why"))
    assert telegrad("ps").count("worker") == 2
    telegrad("kill")


def test_without_jobs_the_commands_say_so(here):
    assert telegrad("ps") == "no job of yours runs on this machine\n" and json.loads(telegrad("ps", "--json")) == {
        "jobs": []
    }
    assert "no job of yours runs" in telegrad("why", code=2)
    assert "telegrad_runs/" in telegrad("logs", code=2)
    assert "no job 'ab'" in telegrad("stack", "--job", "ab", code=2)


def test_the_job_is_the_latest_of_this_folder_or_the_only_one(record):
    record("a", folder="/elsewhere", job="11")
    assert choose_job().key == "11"
    with pytest.raises(NoJobError, match="choose one with --job"):
        choose_job(only_here=True)
    record("b", folder="/elsewhere", job="12", began=5.0)
    with pytest.raises(NoJobError, match=r"11 .*, 12 "):
        choose_job()
    record("c", job="2", began=3.0)
    record("d", job="3", began=4.0)
    assert choose_job().key == "3" and choose_job("2").key == "2" and choose_job("12").key == "12"
    with pytest.raises(NoJobError, match=r"several jobs: 11 .*, 12 "):
        choose_job("1")
    with pytest.raises(NoJobError, match="no job '9'"):
        choose_job("9")
    assert [each.record.worker for each in choose_workers(choose_job("3"), ["d"])] == ["d"]
    with pytest.raises(NoJobError, match="no worker 'x' on this machine; it has d"):
        choose_workers(choose_job("3"), ["x"])


def test_another_version_is_named_and_not_asked(record):
    record("old", format=FORMAT + 1)
    assert "old" in telegrad("ps") and "telegrad 0.0.7" in telegrad("why", code=2)


def test_names_cannot_command_a_terminal(record):
    record("\x1b[2Jw\n", program="\x1b]0;title\x07", folder=os.getcwd() + "\x9b")
    for output in (telegrad("ps"), telegrad("ps", "--json"), telegrad("why", "--timeout", "0.2")):
        assert not set("\x1b\x07\x9b") & set(output)
    assert len(telegrad("ps").splitlines()) == 2


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "closed the connection"),
        (b"garbage\n", "cannot be read"),
        (b'{"observations": 1}\n{"worker": 3}\n', "cannot be read"),
        (b'{"observations": 100000000}\n', "100000000 observations"),
        (b'{"observations": 1}\n', "closed the connection"),
        (b'{"error": "not \\u001b[2J today"}\n', "not \\x1b[2J today"),
    ],
)
def test_an_answer_that_is_none_is_told(record, answer, why, thread):
    made = record("w")
    listener = socket.socket(socket.AF_UNIX)
    with listener, JobFolder(job_folders()[0]) as folder:
        listener.bind(folder.place(f"{made.stem}.sock"))
        listener.listen()

        def serve():
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)

        thread(serve)
        assert why in telegrad("why", "--timeout", "5")


def test_a_socket_of_another_process_is_not_believed(record):
    parent = own_facts() | {"process_id": os.getppid()}
    record("w", **parent | {"process_start": process_status(os.getppid()).start})
    with socket.socket(socket.AF_UNIX) as listener, JobFolder(job_folders()[0]) as folder:
        listener.bind(folder.place(f"9-{b'w'.hex()}.sock"))
        listener.listen()
        assert f"process {os.getpid()} of user {os.geteuid()} answers in its place" in telegrad("why", "--json")


def test_a_worker_whose_answer_chooses_another_name_keeps_its_own(record, thread):
    made = record("w")
    with socket.socket(socket.AF_UNIX) as listener, JobFolder(job_folders()[0]) as folder:
        listener.bind(folder.place(f"{made.stem}.sock"))
        listener.listen()

        def serve():
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                lie = {"worker": "other", "number": 5, "rank": 5, "memory_bytes": 10**30, "process_id": 1}
                connection.sendall(b'{"observations": 1}\n' + json.dumps(lie).encode() + b"\n")

        thread(serve)
        assert json.loads(telegrad("why", "--json"))["workers"] == ["w"]


DUMP = """Thread 0x00007f07f2ffd6c0 (most recent call first):
  File "/lib/a.py", line 166 in match
  File "/home/me/held.py", line 9 in loop

Current thread 0x00007f0813a0ab80 [main] (most recent call first):
  File "<string>", line ??? in <module>
  nonsense
"""


def test_a_dump_is_read():
    first, second = parse_dump("cut off\n" + DUMP)
    assert (first.ident, [each.function for each in first.stack], first.at.line) == (
        0x7F07F2FFD6C0,
        ["loop", "match"],
        166,
    )
    assert (second.name, second.stack[0].line) == ("main", 0) and list(parse_dump("")) == []


def test_texts():
    assert printable("a\x1b[2J\nb" + "c" * 500, 20) == "a\\x1b[2J\\nb" + "c" * 9 + "…"
    assert columns([("A", "B"), ("x\ty", 12)], right=[1]) == "A      B\nx\\ty  12"
    assert [size(each) for each in (None, 0, 1023, 1024, 3 << 40, 1 << 60)] == [
        *("-", "0 B", "1,023 B", "1.0 KiB", "3.0 TiB", "1,048,576.0 TiB")
    ]
    assert [duration(each) for each in (float("inf"), -1, 59, 61, 3600, 90_000)] == [
        "-",
        "-",
        "59s",
        "1m01s",
        "1h00m",
        "1d01h",
    ]


def test_a_worker_at_whose_socket_many_wait_has_not_answered(record, here):
    made = record("w")
    waiting = []
    with socket.socket(socket.AF_UNIX) as listener, JobFolder(job_folders()[0]) as folder:
        listener.bind(folder.place(f"{made.stem}.sock"))
        listener.listen(0)
        with pytest.raises(BlockingIOError):
            while True:
                waiting.append(socket.socket(socket.AF_UNIX))
                waiting[-1].setblocking(False)
                waiting[-1].connect(folder.place(f"{made.stem}.sock"))
        (cause,) = json.loads(telegrad("why", "--timeout", "0.1", "--json"))["causes"]
    for each in waiting:
        each.close()
    assert cause["kind"] != "busy" and "'w' does not answer" in cause["text"]


def test_a_shell_completes_workers_and_jobs(record, monkeypatch):
    record("trainer0")
    record("trainer1", job="cd34")
    record("ps", job="cd34")
    monkeypatch.setenv("_TELEGRAD_COMPLETE", "complete_bash")
    for words, position, found in (("telegrad why tr", 2, "trainer0\ntrainer1"), ("telegrad why --job c", 3, "cd34")):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(position))
        assert CliRunner().invoke(app, prog_name="telegrad").output.split() == found.split()


def test_the_current_folder_may_have_been_removed(record, here, monkeypatch):
    record("w", folder="/elsewhere")
    (here / "gone").mkdir()
    monkeypatch.chdir(here / "gone")
    (here / "gone").rmdir()
    assert choose_job().key == "ab12"

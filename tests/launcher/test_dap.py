"""``telegrad debug --dap``: an IDE debugs a worker, by the Debug Adapter Protocol, over the job's own connections."""

import json
import signal
import socket
import subprocess
from contextlib import contextmanager

import pytest
from helpers.dap import Ide
from helpers.launched import LAUNCHER, ended, read_until, telegrad
from helpers.threads import until
from telegrad.launcher.watching.jobs import find_jobs

pytest.importorskip("debugpy", reason="debugpy is not installed: pip install debugpy")
pytestmark = pytest.mark.slow
PROGRAM = """
import time
from pathlib import Path
from telegrad import rpc

def loss(batch):
    total = sum(batch)
    if Path("break").exists():
        breakpoint()
    return total / len(batch)

def train(batch):
    return rpc.rpc_sync("worker1", loss, args=(batch,), timeout=1)

rpc.init_rpc()
if rpc.get_worker_info().id == 0:
    print("begun", flush=True)
    while not Path("end").exists():
        value = train([1, 2, 6])
        time.sleep(0.01)
    print("value", value, flush=True)
rpc.shutdown()
"""
LINE = 1 + PROGRAM.splitlines().index("    return total / len(batch)") + 1  # the fixture puts a line before the program


@contextmanager
def adapter(*args):
    """Run the command, and yield its process."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([*LAUNCHER, "debug", *args], bufsize=0, **pipes) as process:
        try:
            yield process
        except AssertionError:
            process.kill()
            print(process.wait(), process.stderr.read().decode())
            raise
        finally:
            process.kill()


def ide_of(process):
    return Ide(process.stdin.write, process.stdout.fileno(), process.stdout.read)


@pytest.fixture
def job_of_two(here, job):
    process = job(PROGRAM, "-n", "2")
    read_until(process, 1, "begun")
    until(lambda: len(find_jobs()) == 1 and len(find_jobs()[0].workers) == 2)
    yield here / "script.py"
    (here / "end").touch()
    output, _ = ended(process, 0)
    assert "value 3.0" in output, "no call has timed out"


def test_an_ide_stops_a_worker_at_a_line_and_looks_at_it(job_of_two):
    with adapter("--dap", "worker1") as process:
        ide = ide_of(process)
        ide.attach(job_of_two, LINE)
        thread, frames = ide.stack()
        assert (frames[0]["name"], frames[0]["line"]) == ("loss", LINE)
        assert frames[0]["source"]["path"] == str(job_of_two)
        assert ide.ask("evaluate", expression="total * 2", frameId=frames[0]["id"])["result"] == "18"
        (cause,) = [each for each in json.loads(telegrad("why", "--json"))["causes"] if each["kind"] == "debugger"]
        assert (cause["worker"], cause["at"]["function"]) == ("worker1", "loss")
        # Longer than the time-out of the call that waits for it.
        ide.ask("evaluate", expression="__import__('time').sleep(1.5)", frameId=frames[0]["id"])
        ide.ask("next", threadId=thread)
        thread, frames = ide.stack()
        assert frames[0]["name"] == "loss", "this package's code is passed over, up to the next call"
        ide.break_at(job_of_two)
        ide.ask("continue", threadId=thread)
        ide.ask("disconnect")
        assert process.wait(20) == 0 and process.stderr.read() == b""


def test_breakpoints_in_the_program_stop_in_the_ide(job_of_two):
    with adapter("--dap", "worker1") as process:
        ide = ide_of(process)
        ide.attach(job_of_two)
        (job_of_two.parent / "break").touch()
        thread, frames = ide.stack()
        assert (frames[0]["name"], frames[0]["line"]) == ("loss", LINE)
        (job_of_two.parent / "break").unlink()
        ide.ask("continue", threadId=thread)
        ide.ask("disconnect")


def test_a_lost_command_lets_the_worker_go_on_and_another_may_attach(job_of_two):
    with adapter("--dap", "worker1") as process:
        ide = ide_of(process)
        ide.attach(job_of_two, LINE)
        ide.stack()
        process.kill()
        process.wait(20)

    def attached():
        with adapter("--dap", "worker1") as process:
            ide = ide_of(process)
            ide.attach(job_of_two, LINE)
            thread, frames = ide.stack()
            ide.break_at(job_of_two)
            ide.ask("continue", threadId=thread)
            ide.ask("disconnect")
            process.stdin.close()
            return process.wait(20) == 0 and frames[0]["name"] == "loss"

    def attached_now():
        try:
            return attached()
        except (AssertionError, BrokenPipeError):
            return False  # the worker has not found the other lost yet

    until(attached_now, 60)


def test_a_port_is_for_one_session_after_the_other(job_of_two):
    with adapter("--dap-port", "0", "worker1") as process:
        host, port = process.stdout.readline().decode().strip().split(":")
        for _ in range(2):
            with socket.create_connection((host, int(port)), 20) as connection:
                ide = Ide(connection.sendall, connection.fileno(), connection.recv)
                ide.attach(job_of_two, LINE)
                assert ide.stack()[1][0]["line"] == LINE
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130


def test_what_is_no_message_ends_the_session_with_words(job_of_two):
    with adapter("--dap", "worker1") as process:
        process.stdin.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert not ide_of(process).event("terminated")  # of this command, or of debugpy, which ends, too
        assert process.wait(20) == 1 and b"no message of the Debug Adapter Protocol" in process.stderr.read()


def test_the_worker_must_be_named(job_of_two):
    with adapter("--dap") as process:
        assert process.wait(20) == 2 and b"name one of worker0, worker1" in process.stderr.read()

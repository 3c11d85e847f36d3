"""``telegrad debug``: threads of a job that are held, typed into from outside of it."""

import json

import pytest
from helpers.launched import ended
from helpers.threads import until
from telegrad.launcher.cli import app
from telegrad.launcher.watching.answers import NoAnswerError
from telegrad.launcher.watching.debug import DebugOptions, _run, debug_job
from telegrad.launcher.watching.jobs import NoJobError, find_jobs
from typer.testing import CliRunner

PROGRAM = """
from telegrad import rpc

def loss(batch):
    total = sum(batch)
    breakpoint()
    if total > 10:
        raise ValueError(f"\\x1b[2J a total of {total}")
    return total

def train(batch):
    return rpc.rpc_sync("worker2", loss, args=(batch,), timeout=1)

rpc.init_rpc()
if rpc.get_worker_info().id == 0:
    print("answer", rpc.rpc_sync("worker1", train, args=([1, 2],), timeout=1), flush=True)
    print("answer", rpc.rpc_sync("worker1", train, args=([8, 3],), timeout=1), flush=True)
rpc.shutdown()
"""


class Typist:
    """Terminal of a user: it shows prompts, and types lines until it has none; then it leaves."""

    def __init__(self, *lines):
        self.lines, self.prompts = list(lines), []

    def __call__(self, prompt):
        self.prompts.append(prompt)
        if not self.lines:
            raise EOFError
        return self.lines.pop(0)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, which is the current one, with no job of others."""
    monkeypatch.setenv("TELEGRAD_JOBS_DIR", str(tmp_path / "jobs"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def telegrad(*args, code=0):
    """Run a command, and return what it wrote to standard output."""
    done = CliRunner().invoke(app, ["debug", *args], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.output


class Ending:
    """Thread that goes on, or whose worker ends, after the first command."""

    worker = "b"

    def __init__(self, *answers):
        self.answers = list(answers)

    def talk(self, seen, line=None):
        if not self.answers:
            raise NoAnswerError("worker 'b' has no stop 1: its thread goes on")
        return self.answers.pop(0)


def test_commands_end_with_words_when_their_thread_goes_on_between_them(capsys):
    shown = {"output": "(b) ", "seen": 4, "state": "prompt"}
    said = {"output": "7\n(b) ", "seen": 10, "state": "prompt"}
    assert list(_run(Ending(shown, said), ["p x", "p y"])) == ["7\n"]
    assert list(_run(Ending(), ["p x"])) == []
    assert capsys.readouterr().err.count("goes on") == 2


@pytest.mark.slow
def test_a_job_is_held_looked_at_and_goes_on(here, job, capsys):
    process = job(PROGRAM, "-n", "3", "--post-mortem")
    until(find_jobs)
    user = Typist("p total", "where")
    assert debug_job([], None, DebugOptions(), user)
    shown = capsys.readouterr()
    assert user.prompts == ["(worker2) "] * 3
    assert "worker2 is held at" in shown.out and "in loss (breakpoint)\n" in shown.out and "\n3\n" in shown.out
    order = [shown.out.index(text) for text in ("'worker0', thread", "<module>", "'worker1'", "train()", "loss()\n->")]
    assert "telegrad/launcher" not in shown.out and "fork_server" not in shown.out and order[1] < order[3]
    assert "still held; come back with: telegrad debug worker2" in shown.err
    with pytest.raises(NoJobError, match="has no worker 'worker9'"):
        debug_job(["worker9"], None, DebugOptions())
    assert telegrad("worker0", "--no-wait", code=1) == ""

    (found,) = json.loads(telegrad("--json", "-c", "p batch", "-c", "p total * 2"))
    assert (found["worker"], found["said"]) == ("worker2", "[1, 2]\n6\n")
    assert "in loss (breakpoint)" in telegrad("--all", "-c", "c")
    assert "in loss (breakpoint)" in telegrad("-c", "c")
    failed = telegrad("-c", "p total", "-c", "c")
    assert "ValueError" in failed and "\x1b" not in failed and "\n11\n" in failed
    output, _ = ended(process, 1)
    assert "answer 3" in output

"""Summary: its words on how workers ended."""

import re
import signal
from pathlib import Path

import pytest
from telegrad import launcher
from telegrad.launcher import JobResult, WorkerResult
from telegrad.launcher.result import describe_exit, summary
from telegrad.launcher.tracebacks import CAUSED, describe_error, headline

FAILED = """epoch 1
Traceback (most recent call last):
  File "/a/data.py", line 3, in load
    open(path)
FileNotFoundError: [Errno 2] No such file or directory: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/a/train.py", line 9, in <module>
    main()
  File "/a/train.py", line 5, in main
    raise ValueError("no data")
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^
ValueError: no data
in two lines

Exception ignored in: <function Agent.__del__ at 0x7f>
Traceback (most recent call last):
  File "/a/agent.py", line 1, in __del__
AttributeError: gone
"""

CRASHED = """epoch 1
Fatal Python error: Segmentation fault

Current thread 0x00007f (most recent call first):
  File "/a/train.py", line 5 in main
"""


@pytest.fixture
def log(tmp_path):
    def write(text):
        path = tmp_path / "worker.log"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.mark.parametrize(
    "code, words",
    [
        (1, "exited with code 1"),
        (-9, "died of SIGKILL (9): killed, perhaps by the out-of-memory killer or kill -9"),
        (-11, "died of SIGSEGV (11): a crash in native code"),
        (-signal.SIGUSR1, f"died of SIGUSR1 ({signal.SIGUSR1:d})"),
        (-(signal.SIGRTMIN + 2), f"died of signal {signal.SIGRTMIN + 2}"),
    ],
)
def test_codes_and_signals_are_put_in_words(code, words):
    assert describe_exit(code) == words


def test_the_last_traceback_is_told_from_its_innermost_frame(log):
    assert describe_error(log(FAILED), 1) == [
        '  File "/a/train.py", line 5, in main',
        '    raise ValueError("no data")',
        "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^",
        "ValueError: no data",
        "in two lines",
    ]
    assert headline(log(FAILED), 1) == "ValueError: no data"


def test_the_frame_is_the_users_and_not_a_librarys(log):
    package = Path(launcher.__file__).parents[1]
    written = f"""Traceback (most recent call last):
  File "/a/train.py", line 9, in <module>
    main()
    ~~~~^^
  File "{package}/rpc/api.py", line 82, in rpc_sync
    return call_function().wait()
  File "/opt/lib/python3.12/concurrent/futures/_base.py", line 401, in __get_result
    raise self._exception
ValueError: no data
"""
    lines = ['  File "/a/train.py", line 9, in <module>', "    main()", "    ~~~~^^", "ValueError: no data"]
    assert describe_error(log(written), 1) == lines
    everywhere = written.replace("/a/train.py", f"{package}/core/a.py")
    assert "_base.py" in describe_error(log(everywhere), 1)[0], "there is no other"
    example = written.replace("/a/", f"{package}/examples/")
    assert "examples/train.py" in describe_error(log(example), 1)[0]


def test_an_exception_of_a_callee_is_told_with_its_frame_there(log):
    def on_worker(name, frame, cause=""):
        """Traceback of an exception that was raised on another worker, as the caller prints it."""
        there = f'{cause}Traceback (most recent call last):\n  File "/a/{frame}.py", line 1, in f\n    {frame}()\nKeyError: 1'
        return f'x.RemoteTraceback: \n"""\non worker {name!r}:\n{there}\n"""\n\n{CAUSED}\n\n'

    here = 'Traceback (most recent call last):\n  File "/a/here.py", line 1, in g\n    g()\nKeyError: 1\n'
    lines = ['  File "/a/here.py", line 1, in g', "    g()", "KeyError: 1"]
    there = ["on worker 'ps':", '  File "/a/there.py", line 1, in f', "    there()"]
    assert describe_error(log(on_worker("ps", "there") + here), 1) == lines + there
    assert describe_error(log(on_worker("between", "far", on_worker("ps", "there")) + here), 1) == lines + there
    inside = on_worker("ps", "there").replace("/a/", f"{Path(launcher.__file__).parents[1]}/rpc/")
    assert describe_error(log(inside + here), 1) == [*lines, "on worker 'ps'"], "it did not come to the user's function"
    assert describe_error(log(on_worker("ps", "there") + "went on\n" + here), 1) == lines, "another exception"


def test_a_crash_is_told_by_the_fault_handler_and_an_old_traceback_is_not_blamed(log):
    assert describe_error(log(FAILED + CRASHED), -11)[0] == "Fatal Python error: Segmentation fault"
    assert describe_error(log(FAILED), -9) == ["last line: AttributeError: gone"]


def test_without_a_traceback_the_last_line_is_told(log):
    assert describe_error(log("loading\nno such option: --x\n\n"), 2) == ["last line: no such option: --x"]
    assert describe_error(log(""), 1) == []
    assert describe_error(Path("/nowhere/at.log"), 1) == []
    assert headline(log("loading\n"), 1) == ""


def test_garbage_in_a_log_does_not_reach_the_terminal(log):
    assert describe_error(log(b"\xff\x1b[2J\x00end\n"), 1) == ["last line: \ufffd [2J end"]


def test_only_the_end_of_a_huge_log_is_read(log):
    assert describe_error(log("x" * 1_000_000 + "\n" + FAILED), 1)[-1] == "in two lines"


def test_the_summary_names_the_cause_first_and_groups_the_rest(log):
    failed, empty = log(FAILED), Path("/nowhere/at.log")
    workers = (
        WorkerResult("ps", 0, -15, True, 2.0, empty),
        WorkerResult("trainer0", 1, 1, False, 1.0, failed),
        WorkerResult("trainer1", 2, -15, True, 2.0, empty),
        WorkerResult("trainer2", 3, 1, False, 2.0, failed),
        WorkerResult("trainer3", 4, 0, False, 0.5, empty),
        WorkerResult("trainer4", 5, None, False, 5.0, empty),
    )
    lines = summary(JobResult(1, workers[1], None, workers, Path("logs"), 2.0, ())).splitlines()
    assert lines[0] == "root cause: trainer0 (rank 1) exited with code 1"
    assert re.fullmatch(r"    after 1\.0 s; its log: .*worker\.log", lines[6])
    assert lines[7:] == [
        "the others:",
        "    ps, trainer1: ended by the launcher with SIGTERM (15)",
        "    trainer2: exited with code 1 (ValueError: no data)",
        "    trainer3: finished",
        "    trainer4: could not be killed; it is stuck in the kernel, see `ps`",
        "logs: logs/",
    ]


def test_the_summary_of_an_interruption_and_of_a_success():
    worker = WorkerResult("worker0", 0, -2, True, 2.0, Path("/nowhere/at.log"))
    assert summary(JobResult(130, None, 2, (worker,), Path("logs"), 2.0, ())).splitlines() == [
        "interrupted by SIGINT (2) after 2.0 s",
        "the workers:",
        "    worker0: ended by the launcher with SIGINT (2)",
        "logs: logs/",
    ]
    worker = WorkerResult("worker0", 0, 0, False, 2.0, Path("/nowhere/at.log"))
    assert summary(JobResult(0, None, None, (worker,), Path("logs"), 2.0, (7, 8))).splitlines() == [
        "1 worker finished in 2.0 s",
        "processes that the workers had left running were ended: 7, 8",
        "logs: logs/",
    ]

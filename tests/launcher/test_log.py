"""Logs of workers: bounded, with the end of what was written."""

import pytest
from telegrad.launcher.engines import log as log_module
from telegrad.launcher.engines.log import WorkerLog, earlier
from telegrad.launcher.errors import LogDirError
from telegrad.launcher.tracebacks import describe_error

LIMIT = 1 << 20


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(log_module, "MOST_LOG_BYTES", LIMIT)
    return tmp_path / "worker0.log"


def write(path, lines):
    log = WorkerLog(path)
    for line in lines:
        log.write(line)
    log.close()
    return earlier(path).read_bytes() + path.read_bytes() if earlier(path).exists() else path.read_bytes()


def test_a_log_keeps_its_end_in_two_files(path, capsys):
    lines = [b"%099d\n" % number for number in range(100_000)]
    kept = write(path, lines)
    assert LIMIT < len(kept) <= 2 * (LIMIT + 100) and b"".join(lines).endswith(kept)
    assert capsys.readouterr().err == (
        "telegrad: the log of worker0 is longer than 2 MiB: only its end is kept, in this file and in worker0.log.1; "
        "write more to a file of your own\n"
    )


def test_a_log_of_two_files_is_whole_and_nothing_is_told(path, capsys):
    lines = [b"%099d\n" % number for number in range(15_000)]
    assert write(path, lines) == b"".join(lines)
    assert not capsys.readouterr().err


def test_a_new_log_keeps_nothing_of_the_one_before(path):
    write(path, [b"x" * LIMIT] * 2)
    assert write(path, [b"new"]) == b"new"


def test_the_end_of_a_traceback_is_found_where_a_file_began_in_it(path):
    frame = b'  File "a.py", line 1, in <module>\n    fail()\n'
    traceback = b"Traceback (most recent call last):\n" + frame * 2 + b"ValueError: no such luck\n"
    write(path, [b"x" * (LIMIT - 101) + b"\n" + traceback[:100], traceback[100:]])
    assert b"Traceback" not in path.read_bytes()
    assert describe_error(path, 1)[-1] == "ValueError: no such luck"


def test_a_log_that_cannot_be_written(tmp_path):
    with pytest.raises(LogDirError, match="cannot be written: No such file"):
        WorkerLog(tmp_path / "nowhere" / "worker0.log")


def test_a_log_that_another_job_writes_is_left_as_it_is(path):
    first = WorkerLog(path)
    first.write(b"first\n")
    with pytest.raises(LogDirError, match="another job that runs writes the log"):
        WorkerLog(path)
    first.close()
    assert path.read_bytes() == b"first\n"
    again = WorkerLog(path, restart=1)
    again.close()
    assert path.read_bytes() == b"first\n--- telegrad: restart 1 of worker0 ---\n"

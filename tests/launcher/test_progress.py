"""Lines of the launcher about the start of a job, and about one that is silent, by a clock of the test."""

import pytest
from telegrad.launcher.progress import SILENT_SECONDS, STEP_SECONDS, Progress, listed, report


@pytest.fixture
def told():
    return []


def test_a_job_that_writes_is_not_spoken_of(told):
    progress = Progress(2, told.append, 0.0)
    for rank in range(2):
        progress.started(rank, 0.1)
        progress.joined(rank, f"w{rank}")
    for second in range(1000):
        progress.tick(second, second - SILENT_SECONDS / 2)
    assert told == []


def test_each_minute_of_silence_has_a_line(told):
    progress = Progress(3, told.append, 0.0)
    for rank in range(3):
        progress.started(rank, 0.1)
    for second in range(200):
        progress.tick(second, 10.0)
    progress.ended(0)
    for second in range(200, 260):
        progress.tick(second, 10.0)
    assert told == [
        "3 workers run, without output for 1 min",
        "3 workers run, without output for 2 min",
        "3 workers run, without output for 3 min",
        "2 workers run, 1 ended, without output for 4 min",
    ]


def test_a_start_that_takes_long_is_counted(told):
    progress = Progress(100, told.append, 0.0)
    for number in range(1, 101):
        progress.started(number, number * 0.11)
    for rank in range(100):
        progress.joined(rank, f"w{rank}")
        progress.tick(11 + rank * 0.11, 0.0)
    progress.tick(11 + 99 * 0.11 + STEP_SECONDS, 0.0)
    assert told == [
        "46 of 100 workers have started",
        "92 of 100 workers have started",
        "39 of 100 workers have joined the job",
        "85 of 100 workers have joined the job",
        "all 100 workers have joined the job",
    ]


def test_a_worker_that_does_not_join_is_told_once_and_then_each_minute(told):
    progress = Progress(2, told.append, 0.0)
    for rank in range(2):
        progress.started(rank, 0.0)
    progress.joined(0, "w0")
    for second in range(70):
        progress.tick(second, 0.0)
    assert told == [
        "1 of 2 workers have joined the job",
        "2 workers run, without output for 1 min; 1 of 2 workers have joined the job",
    ]
    progress.ended(0)
    progress.tick(131, 0.0)
    assert told[2:] == ["1 worker runs, 1 ended, without output for 2 min; 1 of 2 workers have joined the job"]


def test_a_loss_is_told_once_and_not_if_the_workers_exit_is_seen(told):
    progress = Progress(3, told.append, 0.0)
    for rank in range(3):
        progress.started(rank, 0.0)
        progress.joined(rank, f"w{rank}")
    for worker in ("w1", "w2", "elsewhere", "w1", "w2", "elsewhere"):  # as two survivors report them
        progress.lost(worker, f"because, says {len(worker)}", 1.0)
        progress.tick(1.0, 1.0)
    progress.ended(1)
    assert told == []
    for second in (2, 3, 4):
        progress.tick(second, second)
    progress.lost("elsewhere", "again", 5.0)
    progress.tick(9.0, 9.0)
    assert told == [
        "worker 'w2' is lost, and its process runs: because, says 2",
        "worker 'elsewhere' is lost: because, says 9",
    ]


def test_names_of_workers_in_words():
    assert listed(["ps", "trainer0", "trainer1", "trainer2", "a0", "a1"]) == "ps, trainer0 to trainer2, a0, a1"


@pytest.mark.parametrize("stream", [None, "closed pipe"])
def test_the_launchers_lines_need_no_reader(stream, monkeypatch, capsys):
    class Closed:
        def write(self, _text):
            raise BrokenPipeError

    monkeypatch.setattr("sys.stderr", Closed() if stream else None)
    report("x")
    assert capsys.readouterr().out == ""

"""Live view of ``telegrad run``: its rows, what is on the terminal after each write, and a job on a pseudo-terminal."""

import os
import pty
import re
import subprocess
from dataclasses import replace

import pytest
from helpers.launched import LAUNCHER, LIMIT
from helpers.programs import ending_within
from telegrad.launcher.live.console import RENDER_SECONDS, LiveConsole, render
from telegrad.launcher.live.rows import LiveRow, live_row, sparkline
from telegrad.rpc.observing.records import Observation, ObservedCall, ObservedLoop, ObservedRequest, ObservedSeries

SEEN = Observation("a", 0, 0, host="vm", memory_bytes=3 << 20, cpu_seconds=2.0, calls_made=100, requests_accepted=10)
ROW = LiveRow(
    "a",
    "runs",
    "vm",
    "50%",
    "3.0 MiB",
    "9",
    "loss 0.5 █▁",
    "train 1/2",
)


def series(name, values, seconds=0.0):
    return ObservedSeries(name, len(values), len(values) - 1, values[-1], seconds, list(range(len(values))), values)


def test_a_row_compares_two_observations():
    later = replace(SEEN, cpu_seconds=3.0, calls_made=150, requests_accepted=20, logged=[series("loss", [1.0, 0.25])])
    row = live_row(later, SEEN, 2.0)
    assert (row.processor, row.calls, row.memory, row.state) == ("50%", "30", "3.0 MiB", "runs")
    assert row.curves == "loss 0.25 █▁"
    assert live_row(SEEN, None, 0.0).calls == "-"
    assert live_row(SEEN, later, 2.0).calls == "0", "another incarnation has counted less"


def test_states_are_told():
    call, request = ObservedCall(1, "b", "f", 0.1, 0, "written"), ObservedRequest("b", 1, 1, "f", "running", False)
    silent = Observation("a", 0, 0, error="no answer came", process_state="stopped")
    cases = [
        (silent, "stopped"),
        (replace(SEEN, calls=[call], totals={"calls": 1}), "waits"),
        (replace(SEEN, requests=[request], totals={"requests": 1}), "serves 1"),
    ]
    for seen, state in cases:
        assert live_row(seen, SEEN, 1.0).state == state


def test_the_series_that_were_logged_last_are_shown_and_what_is_no_number():
    logged = [series("old", [1.0], 9.0), series("b", [2.0], 0.1), series("a", [1.0, None], 0.2)]
    assert live_row(replace(SEEN, logged=logged), None, 0).curves == "a not finite ▅x  b 2 ▅"


@pytest.mark.parametrize(
    ("values", "picture"),
    [
        ([], ""),
        ([3.0], "▅"),
        ([0.0, 7.0], "▁█"),
        ([1.0] * 5, "▅" * 5),
        ([None, None], "xx"),
        ([-1.7e308, 1.7e308], "▁█"),
        ([float(each) for each in range(256)], "▁▁▂▃▃▄▅▆▆▇██"),
    ],
)
def test_a_curve_is_a_line(values, picture):
    assert sparkline(values) == picture


def test_progress_tells_rate_and_time_left():
    loops = [ObservedLoop("epoch", 2, 10, 4.0, 0.5, False), ObservedLoop("", 7, None, 1.0, 7.0, True)]
    assert live_row(replace(SEEN, loops=loops), None, 0).progress == "epoch 2/10 20% 0.5/s 16s left"
    assert live_row(replace(SEEN, loops=loops[1:]), None, 0).progress == "7 7/s"


def test_what_programs_chose_is_harmless():
    row = live_row(replace(SEEN, worker="a\x1b[2J", loops=[ObservedLoop("x\ny", 1, 2, 1, 1, True)]), None, 0)
    assert row.worker == "a\\x1b[2J" and "\n" not in row.progress
    view = render([row], {row.worker: "\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b[5A"}, 200, 10)
    assert "[bold]" in render([replace(ROW, worker="[bold]x")], {}, 200, 10)
    codes = re.findall(r"\x1b[^m]*m|\x1b.", view)
    assert set(codes) <= {"\x1b[1m", "\x1b[0m"}


def test_many_workers_take_a_part_of_the_terminal():
    lines = render([replace(ROW, worker=f"w{each}") for each in range(50)], {}, 100, 10).splitlines()
    assert len(lines) == 10 and lines[-1] == "and 42 more workers" and max(map(len, lines[1:])) < 100


@pytest.mark.parametrize("columns", [60, 100, 200])
def test_a_long_last_line_takes_what_the_other_cells_leave(columns):
    _, line = render([replace(ROW, worker="trainer0")], {"trainer0": "x" * 500}, columns, 10).splitlines()
    assert line.startswith("trainer0") and "loss 0.5 █▁" in line and "train 1/2" in line and len(line) < columns


class Terminal:
    """A terminal: its lines, and the two codes that the view uses."""

    encoding = "utf-8"

    def __init__(self):
        self.lines = [""]

    def isatty(self):
        return True

    def flush(self):
        pass

    def write(self, text):
        for part in re.split(r"(\r\x1b\[\d+A\x1b\[J|\n)", text):
            if part == "\n":
                self.lines.append("")
            elif up := re.match(r"\r\x1b\[(\d+)A", part):
                self.lines = [*self.lines[: len(self.lines) - 1 - int(up[1])], ""]
            else:
                self.lines[-1] += re.sub(r"\x1b\[[\d;]*m", "", part)


def test_lines_stand_above_the_view_and_nothing_of_it_is_left(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("LINES", "24")
    terminal, rows = Terminal(), []
    console = LiveConsole(["a", "b"], terminal, lambda: rows)
    console.write(0, b"first\n", 0.0)
    console.tick(now := console.due)
    assert terminal.lines == ["a | first", ""]
    rows.append(ROW)
    console.tick(now := now + RENDER_SECONDS)
    assert terminal.lines[0] == "a | first" and terminal.lines[1].startswith("worker") and len(terminal.lines) == 4
    console.write(1, b"second\nthird\n", now)
    console.tell(lambda: terminal.write("telegrad: words\n"))
    assert terminal.lines[:4] == ["a | first", "b | second", "b | third", "telegrad: words"]
    assert terminal.lines[5].startswith("a") and "train 1/2" in terminal.lines[5] and len(terminal.lines) == 7
    console.close()
    console.write(0, b"last\n", now)
    console.tick(now + 9)
    assert terminal.lines == ["a | first", "b | second", "b | third", "telegrad: words", "a | last", ""]


PROGRAM = """
import telegrad as tg
from telegrad import rpc
rpc.init_rpc("worker0")
print("begins", flush=True)
for step in tg.progress(range(100), description="train"):
    tg.log(loss=1 / (step + 1), step=step)
while not os.path.exists("seen"):
    time.sleep(0.05)
rpc.shutdown()
"""


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--plain"]])
def test_a_job_on_a_terminal(tmp_path, monkeypatch, options):
    (tmp_path / "script.py").write_text("import os, time\n" + PROGRAM)
    if options:
        (tmp_path / "seen").touch()
    terminal, other = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "160", "LINES": "30"}
    command = [*LAUNCHER, "run", *options, "script.py"]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdin=other, stdout=other, stderr=other)
    os.close(other)
    text = ""
    with ending_within(LIMIT):
        while data := read(terminal):
            text += data
            if "train 100/100" in text:
                (tmp_path / "seen").touch()
    os.close(terminal)
    assert process.wait(LIMIT) == 0 and "worker0 |" in text and "1 worker finished" in text
    assert ("\x1b[2A" in text) is (not options) and ("train 100/100" in text) is (not options)


def read(terminal):
    try:
        return os.read(terminal, 1 << 16).decode(errors="replace")
    except OSError:  # its other end is closed
        return ""

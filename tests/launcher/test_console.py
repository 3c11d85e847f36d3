"""Output of workers on a terminal: which of their bytes it shows, and when."""

import io
import random

import pytest
from telegrad.launcher.console import MOST_LINE_BYTES, PARTIAL_SECONDS, WORKER_COLOURS, LineSplitter, WorkerConsole


def split(*chunks, colours=False):
    splitter = LineSplitter(colours)
    return [line for chunk in chunks for line in splitter.feed(chunk, 0.0)] + splitter.flush()


@pytest.mark.parametrize(
    "data, lines",
    [
        (b"", []),
        (b"a\nb\n", ["a", "b"]),
        (b"a\n\nb", ["a", "", "b"]),
        (b"dos\r\nline\r\n", ["dos", "line"]),
        (b"10%\r50%\r100%\ndone\n", ["100%", "done"]),
        (b"\ttab\n", ["\ttab"]),
        ("größe ✓\n".encode(), ["größe ✓"]),
        (b"\xff\xfe\x00\x07\n", [r"\xff\xfe\x00\x07"]),
        (b"\x1b[2J\x1b[10;5Hclear\x1b[?25l\n", ["clear"]),
        (b"\x1b]0;title\x07text\n", ["text"]),
        (b"shift \x0e out \x1b\n", [r"shift \x0e out \x1b"]),
        (b"\x1b[31mred\x1b[0m\n", ["red"]),
    ],
)
def test_lines_are_made_fit_to_be_shown(data, lines):
    assert split(data) == lines
    assert split(*(bytes([byte]) for byte in data)) == lines, "also when each byte comes alone"


def test_colours_are_kept_where_they_are_welcome_and_end_with_the_line():
    assert split(b"\x1b[1;31mred\n", colours=True) == ["\x1b[1;31mred\x1b[0m"]
    assert split(b"\x1b[2J\x1b[31mred\n", colours=True) == ["\x1b[31mred\x1b[0m"]


def test_an_incomplete_line_is_shown_when_it_has_waited():
    splitter = LineSplitter(colours=False)
    assert splitter.feed(b"name? ", now=1.0) == [] and splitter.due == 1.0 + PARTIAL_SECONDS
    assert splitter.flush_due(1.0) == []
    assert splitter.flush_due(1.0 + PARTIAL_SECONDS) == ["name? "] and splitter.due is None
    assert splitter.feed(b"\n", now=2.0) == [], "the line was shown, its end is no line of its own"
    assert splitter.feed(b"\n", now=2.0) == [""], "the next one is"


def test_a_progress_bar_that_never_pauses_is_seen():
    splitter = LineSplitter(colours=False)
    shown = []
    for step in range(100):
        now = step * PARTIAL_SECONDS / 10
        shown += splitter.feed(f"\r{step}%".encode(), now) + splitter.flush_due(now)
    assert shown == [f"{step}%" for step in range(10, 100, 11)]


def test_a_very_long_line_comes_in_pieces_and_whole():
    text = "".join(random.Random(0).choices("aé€𝄞", k=MOST_LINE_BYTES))
    data = text.encode()
    chunks = [data[i : i + 1000] for i in range(0, len(data), 1000)]
    pieces = split(*chunks, b"\n")
    assert "".join(pieces) == text and len(pieces) > 2
    assert all(len(piece.encode()) <= MOST_LINE_BYTES for piece in pieces)


def console(monkeypatch, stream=None, **environment):
    for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return WorkerConsole(["ps", "trainer0"], stream or io.StringIO())


def test_each_line_stands_behind_its_workers_name(monkeypatch):
    stream = io.StringIO()
    shown = console(monkeypatch, stream)
    shown.write(0, b"one\ntw", 0.0)
    shown.write(1, b"three\n", 0.0)
    shown.write(0, b"o\nfour", 0.0)
    shown.finish(0)
    assert stream.getvalue() == "ps       | one\ntrainer0 | three\nps       | two\nps       | four\n"


def test_colours_appear_only_where_they_are_welcome(monkeypatch):
    for environment, coloured in (
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ):
        stream = io.StringIO()
        shown = console(monkeypatch, stream, **environment)
        shown.write(1, b"\x1b[31mhi\x1b[0m\n", 0.0)
        text = stream.getvalue()
        assert ("\x1b[3" in text) == coloured and "trainer0 |" in text and "hi" in text
    assert len(set(WORKER_COLOURS)) == len(WORKER_COLOURS)


def test_a_terminal_gets_colours(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    shown = console(monkeypatch, stream)
    shown.write(0, b"hi\n", 0.0)
    assert stream.getvalue() == "\x1b[36mps       |\x1b[0m hi\n"


def test_text_that_the_stream_cannot_encode_is_shown_escaped(monkeypatch):
    raw = io.BytesIO()
    shown = console(monkeypatch, io.TextIOWrapper(raw, encoding="ascii"))
    shown.write(0, "✓\n".encode(), 0.0)
    assert raw.getvalue() == b"ps       | \\u2713\n"


def test_workers_learn_how_wide_their_lines_may_be(monkeypatch):
    assert console(monkeypatch, COLUMNS="100").columns == 100 - len("trainer0 | ")
    assert console(monkeypatch, COLUMNS="10").columns == 40


def test_an_incomplete_line_is_due_and_ticked(monkeypatch):
    stream = io.StringIO()
    shown = console(monkeypatch, stream)
    assert shown.due is None
    shown.write(1, b"wait", 1.0)
    shown.write(0, b"later", 1.2)
    assert shown.due == 1.0 + PARTIAL_SECONDS
    shown.tick(shown.due)
    assert stream.getvalue() == "trainer0 | wait\n" and shown.due == 1.2 + PARTIAL_SECONDS

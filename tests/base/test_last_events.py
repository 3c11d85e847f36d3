"""Last events of a worker: what is read back, bounds, and damaged memory."""

import random

import pytest
from telegrad.base.last_events import (
    EVENTS_VARIABLE,
    LAST_EVENTS_BYTES,
    MOST_TEXT_BYTES,
    SLOTS,
    STATE_SLOTS,
    LastEvents,
    launched_last_events,
    read_last_events,
)


@pytest.fixture
def memory():
    return bytearray(LAST_EVENTS_BYTES)


def texts(memory):
    return [each.text for each in read_last_events(bytes(memory))]


def test_states_and_events_come_back_in_their_order(memory):
    events = LastEvents(memory)
    events.add("joined")
    events.set("loss", "loss=1")
    events.add("lost 'b'")
    events.set("loss", "loss=2")
    assert texts(memory) == ["joined", "lost 'b'", "loss=2"]


def test_the_latest_events_are_kept_and_the_first_states(memory):
    events = LastEvents(memory)
    for number in range(1000):
        events.set(f"name{number}", f"state {number}")
        events.add(f"event {number}")
    kept = SLOTS - STATE_SLOTS
    assert sorted(each for each in texts(memory) if "event" in each) == [
        f"event {each}" for each in range(1000 - kept, 1000)
    ]
    assert {each for each in texts(memory) if "state" in each} == {f"state {each}" for each in range(STATE_SLOTS)}


def test_a_text_is_cut_and_what_a_terminal_obeys_is_not_read(memory):
    events = LastEvents(memory)
    events.add("é" * 1000)
    events.add("\x1b[2Jred\ud800")
    first, second = texts(memory)
    assert len(first.encode()) <= MOST_TEXT_BYTES + 2 and second == "\N{REPLACEMENT CHARACTER}[2Jred\\ud800"


def test_damaged_memory_is_read_without_an_error():
    generator = random.Random(0)
    for _ in range(200):
        data = generator.randbytes(generator.randrange(0, LAST_EVENTS_BYTES + 100, 2) // 256 * 256)
        for each in read_last_events(data):
            assert each.text.isprintable()


@pytest.mark.parametrize("value", ["", ":", "/proc/1/fd/999:0", "/nowhere:0", "/nowhere:-1", "/dev/null:0", "x"])
def test_memory_that_is_not_there_is_none(monkeypatch, value):
    monkeypatch.setenv(EVENTS_VARIABLE, value)
    assert launched_last_events() is None

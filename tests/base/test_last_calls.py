"""Last calls of a worker: what is read back, bounds, and damaged memory."""

import json
import random

from telegrad.base import last_calls
from telegrad.base.last_calls import (
    CALL_NAMES,
    CALL_RECORDS,
    LAST_CALLS_BYTES,
    OTHER_FUNCTIONS,
    LastCalls,
    read_last_calls,
)
from telegrad.base.last_events import LAST_EVENTS_BYTES, LastEvents, PastEvent, read_calls, read_last_events
from telegrad.core.last_trace import write_last_trace
from telegrad.core.profiler import merge_traces


def told(memory):
    return [(each.name, each.caller, each.call_id, each.ended is not None) for each in read_last_calls(bytes(memory))]


def test_calls_come_back_in_their_order_with_their_ends():
    memory = bytearray(LAST_CALLS_BYTES)
    calls = LastCalls(memory)
    calls.begin("train", 0, 1 << 60)
    calls.begin("average", 2, 1)
    calls.end(0, 1 << 60)
    calls.begin("train", 0, 5)
    assert told(memory) == [("train", 0, 1 << 60, True), ("average", 2, 1, False), ("train", 0, 5, False)]
    first, *_ = read_last_calls(bytes(memory))
    assert 0 < first.began <= first.ended


def test_the_latest_calls_and_the_first_names_are_kept():
    memory = bytearray(LAST_CALLS_BYTES)
    calls = LastCalls(memory)
    for number in range(3000):
        calls.begin(f"f{number % 100}", 1, number)
    found = told(memory)
    assert [call_id for _, _, call_id, _ in found] == list(range(3000 - CALL_RECORDS, 3000))
    names = {name for name, *_ in found}
    assert names == {f"f{each}" for each in range(CALL_NAMES - 1)} | {OTHER_FUNCTIONS}
    for number in range(5000):
        calls.begin(f"g{number}", 1, number)
    assert len(calls._names) <= 10 * CALL_NAMES


def test_functions_that_two_threads_name_at_the_same_time_keep_their_names():
    class Overtaken(dict):
        def __setitem__(self, name, number):
            if name == "first":
                calls.begin("second", 0, 2)
            super().__setitem__(name, number)

    memory = bytearray(LAST_CALLS_BYTES)
    calls = LastCalls(memory)
    calls._names = Overtaken()
    calls.begin("first", 0, 1)
    assert sorted(told(memory)) == [("first", 0, 1, False), ("second", 0, 2, False)]


def test_names_are_cut_and_what_a_terminal_obeys_is_not_read():
    memory = bytearray(LAST_CALLS_BYTES)
    LastCalls(memory).begin("\x1b[2J" + "é" * 100, 0, 1)
    ((name, *_),) = told(memory)
    assert name.startswith("\N{REPLACEMENT CHARACTER}[2Jé") and len(name) < 60


def test_damaged_memory_is_read_without_an_error():
    generator = random.Random(0)
    for length in (0, 1, 1000, LAST_EVENTS_BYTES - 1, LAST_EVENTS_BYTES):
        for _ in range(50):
            assert all(each.name for each in read_calls(generator.randbytes(length)))


def test_calls_and_texts_do_not_overwrite_each_other():
    memory = bytearray(LAST_EVENTS_BYTES)
    events = LastEvents(memory)
    for number in range(2 * CALL_RECORDS):
        events.add(f"event {number}")
        events.set(f"state {number}", "x" * 1000)
        events.calls.begin(f"f{number}", 0, number)
    assert len(read_calls(bytes(memory))) == CALL_RECORDS
    assert f"event {2 * CALL_RECORDS - 1}" in [each.text for each in read_last_events(bytes(memory))]


def test_a_trace_of_the_last_calls_is_merged_with_others(tmp_path, monkeypatch):
    memory = bytearray(LAST_CALLS_BYTES)
    times = iter([1_000_000, 2_000_000, 3_000_000])
    monkeypatch.setattr(last_calls, "perf_counter_ns", lambda: next(times))
    calls = LastCalls(memory)
    calls.begin("train", 0, 7)
    calls.end(0, 7)
    calls.begin("train", 0, 8)
    write_last_trace(tmp_path / "a", "w1", 1, read_last_calls(bytes(memory)), [PastEvent(0.0005, "joined")], 9_000_000)
    write_last_trace(tmp_path / "b", "w2", 2, [], [], 4_000_000)
    merge_traces([tmp_path / "a", tmp_path / "b"], tmp_path / "merged")
    rows = json.loads((tmp_path / "merged").read_text())
    slices = [(row["ph"], row["ts"], row["id"]) for row in rows if row["ph"] in "be"]
    assert slices == [("b", 500.0, 0), ("e", 1500.0, 0), ("b", 2500.0, 1), ("e", 8500.0, 1)]
    assert [row["args"]["ended"] for row in rows if row["ph"] == "b"] == [True, False]
    assert [row["args"]["name"] for row in rows if row["name"] == "process_name"] == ["w1 (rank 1)", "w2 (rank 2)"]
    assert [(row["name"], row["ts"]) for row in rows if row["ph"] == "i"] == [("joined", 0.0)]

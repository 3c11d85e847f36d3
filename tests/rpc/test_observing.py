"""``rpc.observe``: what workers do, as they answer it while they are busy; and answers that must be refused."""

import gc
import os
import sys
import threading
import weakref
from collections import Counter

import numpy as np
import pytest
import telegrad as tg
from helpers.gates import GATE, hold
from helpers.threads import until
from telegrad import autograd_dist, rpc
from telegrad.base.errors import SerializationError
from telegrad.base.processes import ProcessStatus
from telegrad.rpc.extend import GrpcRpcBackendOptions, Observer
from telegrad.rpc.lanes.grpc import GrpcLane
from telegrad.rpc.observing.ends import _doing
from telegrad.rpc.observing.json_records import decode_record, encode_record
from telegrad.rpc.observing.observer import MOST_QUESTIONS
from telegrad.rpc.observing.processes import ProcessLook, look_at_process, state_between
from telegrad.rpc.observing.records import MOST_ROWS, OBSERVED_PARTS, Observation, ObservedFrame, ObservedThread
from telegrad.rpc.wire.messages import Method
from telegrad.rref.observing import observe_owned
from telegrad.rref.owner_table import Owned
from telegrad.testing import in_process_cluster

pytestmark = pytest.mark.usefixtures("closed_gate")


def relay():
    return rpc.rpc_sync("c", hold)


def running(agent, count=1):
    until(lambda: agent.threads.functions.counts()["running"] >= count)


class Held:
    """Object in a local variable of a thread that is observed."""


def test_an_observation_keeps_no_frames():
    """Frames keep what local variables refer to, such as references: these would never be deleted."""
    begun, go_on, held = threading.Event(), threading.Event(), []

    def work():
        local = Held()
        held.append(weakref.ref(local))
        begun.set()
        go_on.wait(20)

    with in_process_cluster("a", "b") as (a, _), a.use():
        worker = threading.Thread(target=work)
        worker.start()
        assert begun.wait(20)
        gc.collect()
        gc.disable()
        try:
            assert any("work" in str(each.stack) for each in rpc.observe("a")[0].threads)
            go_on.set()
            worker.join(20)
            assert held[0]() is None
        finally:
            go_on.set()
            gc.enable()


def test_a_chain_of_calls_is_seen_from_thread_to_thread():
    with in_process_cluster("a", "b", "c") as (a, _, c), a.use():
        answer = rpc.rpc_async("b", relay)
        waiter = threading.Thread(target=answer.wait, name="waiter")
        waiter.start()
        running(c)
        until(lambda: next(each.waits for each in rpc.observe("a")[0].threads if each.name == "waiter"))
        seen = {each.worker: each for each in rpc.observe()}
        (first,), (second,) = seen["a"].calls, seen["b"].calls
        assert (first.to, second.to, first.state, second.state) == ("b", "c", "written", "written")
        assert "relay" in first.what and "hold" in second.what
        (at_b,), (at_c,) = seen["b"].requests, seen["c"].requests
        assert (at_b.sender, at_b.call_id, at_c.sender, at_c.call_id) == ("a", first.call_id, "b", second.call_id)
        assert next(each for each in seen["a"].threads if each.name == "waiter").waits_for == first.call_id
        (inner,) = [each for each in seen["b"].threads if each.waits_for == second.call_id]
        assert inner.serves == [0, first.call_id] and "relay" in [frame.function for frame in inner.stack]
        (last,) = [each for each in seen["c"].threads if each.serves == [1, second.call_id]]
        assert not last.waits and "hold" in [frame.function for frame in last.stack]
        GATE.set()
        waiter.join(20)
        assert answer.wait(20) == 1 and rpc.observe("a")[0].calls == []


def test_a_worker_answers_while_all_its_threads_are_busy():
    with in_process_cluster("a", "b") as (a, b), a.use():
        answers = [rpc.rpc_async("b", hold) for _ in range(b.threads.size + 3)]
        running(b, b.threads.size)
        until(lambda: rpc.observe("b")[0].pool_waiting == 3)
        (seen,) = rpc.observe("b")
        assert (seen.error, seen.pool_busy, seen.pool_threads) == ("", b.threads.size, b.threads.size)
        until(lambda: states_at("b") == {"running": b.threads.size, "waiting": 3})
        GATE.set()
        assert {each.wait(20) for each in answers} == {1}


def states_at(name):
    return Counter(each.state for each in rpc.observe(name)[0].requests)


def test_references_have_type_size_and_holders():
    with in_process_cluster("a", "b") as (a, _), a.use():
        array = rpc.remote("b", np.ones, args=((4, 8),))
        tensor = rpc.remote("b", tg.ones, args=(2,))
        late = rpc.remote("b", hold)
        assert array.to_here().shape == (4, 8) and tensor.to_here().shape == (2,)
        here, there = rpc.observe(["a", "b"])
        assert [(each.type, each.bytes, each.made, each.holders) for each in there.owned] == [
            ("numpy.ndarray", 256, True, ["a"]),
            (f"{tg.Tensor.__module__}.Tensor", 8, True, ["a"]),
            ("", None, False, ["a"]),
        ]
        assert there.totals["owned"] == 3
        assert {each.rref_id for each in here.held} == {each.rref_id for each in there.owned}
        assert {each.owner for each in here.held} == {"b"} and here.owned == []
        GATE.set()
        assert late.to_here() == 1


def test_contexts_name_their_creator_and_the_workers_they_reached():
    with in_process_cluster("a", "b") as (a, _), a.use(), autograd_dist.context() as context_id:
        rpc.rpc_sync("b", tg.add, args=(tg.ones(2, requires_grad=True), 1))
        here, there = rpc.observe(["a", "b"])
        assert [(each.context_id, each.creator, each.workers) for each in here.contexts] == [(context_id, "a", ["b"])]
        assert [(each.context_id, each.creator, each.workers) for each in there.contexts] == [(context_id, "a", ["a"])]


def test_links_have_their_state_and_lane():
    with in_process_cluster("a", "b", "c") as (a, _, _), a.use():
        rpc.rpc_sync("b", max, args=(1, 2))
        here, there = rpc.observe(["a", "b"])
        assert {each.to: (each.state, each.lane) for each in here.links} == {"b": ("connected", "inproc")}
        assert [each.state for each in there.links if each.to == "a"] == ["dialed by the other worker"]


def test_the_process_is_described():
    with in_process_cluster("a") as (a,), a.use():
        (seen,) = rpc.observe()
        assert seen.process_id and seen.memory_bytes > 1 << 20 and seen.cpu_seconds > 0 and 0 < seen.answer_seconds < 60


def test_calls_and_requests_are_counted_and_links_have_a_round_trip_time():
    with in_process_cluster("a", "b") as (a, _), a.use():
        first = {each.worker: each for each in rpc.observe()}
        for _ in range(5):
            rpc.rpc_sync("b", max, args=(1, 2))
        kept = rpc.remote("b", max, args=(1, 2))
        kept.to_here()
        del kept  # its deletion is a control message
        until(lambda: [link.round_trip_seconds is not None for link in rpc.observe("a")[0].links] == [True])
        here, there = rpc.observe()
        assert (
            here.calls_made >= first["a"].calls_made + 7 and there.requests_accepted >= first["b"].requests_accepted + 7
        )
        assert 0 < here.links[0].round_trip_seconds < 60


def compute():
    while not GATE.is_set():
        pass


def test_a_busy_interpreter_is_seen(thread):
    with in_process_cluster("a") as (a,), a.use():
        assert 0 < rpc.observe()[0].interpreter_wait_seconds < 60
        computes = thread(compute)
        until(lambda: rpc.observe()[0].interpreter_wait_seconds > sys.getswitchinterval() / 2)
        GATE.set()
        computes.join()


def test_of_very_many_references_the_largest_are_shown():
    records = {number: Owned(True) for number in range(100_000)}
    for number, record in records.items():
        record.future().set_result(np.empty(number if number % 1000 == 0 else 1, np.int8))
    owned = observe_owned(records, "a", str, {}, lambda rref_id: None)
    assert owned.total == 100_000 and len(owned.rows) == MOST_ROWS
    assert [each.bytes for each in owned.rows[:100]] == [1000 * (99 - place) or 1 for place in range(100)]
    answer = encode_record(Observation("a", 0, 0, owned=owned.rows, totals={"owned": owned.total}))
    assert len(answer) < 1 << 20


def test_a_worker_that_has_left_is_shown_with_what_the_others_know():
    with in_process_cluster("a", "b", "c") as (a, b, c), a.use():
        for name in ("b", "c"):
            rpc.rpc_sync(name, max, args=(1, 2))
        with c.use():
            rpc.rpc_sync("b", max, args=(1, 2))
        b.close("killed by the test")
        until(lambda: a.peers.find("b").gone and c.peers.find("b").gone)
        gone, other = rpc.observe(["b", "c"])
        assert "is gone" in gone.error and list(gone.seen_by) == ["c"] and gone.seen_by["c"]
        assert other.error == "" and [each.worker for each in rpc.observe()] == ["a", "c"]


def test_a_worker_is_named_as_in_a_call():
    with in_process_cluster("a", "b") as (a, _), a.use():
        infos = rpc.get_worker_infos()
        assert [each.worker for each in rpc.observe(infos[1])] == [each.worker for each in rpc.observe(1)] == ["b"]
        with pytest.raises(TypeError, match="you named a worker by <object"):
            rpc.observe(object())
        with pytest.raises(LookupError, match="no worker 'x'"):
            rpc.observe("x")
        with pytest.raises(ValueError, match="timeout=0"):
            rpc.observe(timeout=0)


RECORD = Observation("a", 0, 0, threads=[ObservedThread(1, "t", [ObservedFrame("f.py", 3, "f")], True, 7, [0, 5])])


def test_a_record_comes_back_from_json():
    assert decode_record(Observation, encode_record(RECORD), 10_000) == RECORD


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"worker": 1, "number": 0, "rank": 0}',
        b'{"worker": "a", "number": true, "rank": 0}',
        b'{"worker": "a", "number": 0, "rank": 0, "threads": [{"ident": 1}]}',
        b'{"worker": "a", "number": 0, "rank": 0, "seen_by": {"b": 1}}',
        b'{"worker": "a", "number": 0, "rank": 0, "calls": [' + b"[" * 100_000,
        b"\xff",
        b" " * 200_000,
    ],
)
def test_what_is_no_record_is_refused(data):
    with pytest.raises(SerializationError):
        decode_record(Observation, data, 150_000)


def test_lists_are_bounded_and_their_totals_are_not():
    with in_process_cluster("a", "b") as (a, _), a.use():
        kept = [rpc.remote("b", max, args=(i, 1)) for i in range(MOST_ROWS + 10)]
        assert [each.to_here() for each in kept[-2:]] == [MOST_ROWS + 8, MOST_ROWS + 9]
        (seen,) = rpc.observe("b")
        assert len(seen.owned) == MOST_ROWS and seen.totals["owned"] == len(kept)


FULL = GrpcRpcBackendOptions(num_worker_threads=2, window_messages=2, rpc_timeout=60)


def take(_):
    return hold()


@pytest.mark.parametrize("lane", ["inproc", "unix"])
def test_a_worker_whose_windows_are_full_is_observed_many_times(lane, thread):
    made = {} if lane == "inproc" else {"make_lane": lambda: GrpcLane(("unix",))}
    with in_process_cluster("a", "b", options=FULL, **made) as (a, b), a.use():
        answers = []
        thread(
            a.new_context().run, lambda: answers.extend(rpc.rpc_async("b", take, (b"x" * 70_000,)) for _ in range(6))
        )
        until(lambda: Counter(each.state for each in rpc.observe("a")[0].calls) == {"written": 4, "queued": 1})
        running(b, 2)
        until(lambda: rpc.observe("b")[0].pool_waiting == 2)
        (wait,) = until(lambda: [each for each in waits("a") if each.kind == "window"])
        (queued,) = [each.call_id for each in rpc.observe("a")[0].calls if each.state == "queued"]
        assert (wait.name, wait.calls) == ("b", [queued])
        assert all(not seen.error for _ in range(MOST_QUESTIONS * 5) for seen in rpc.observe())
        with b.use():
            assert not any(seen.error for seen in rpc.observe())
        cause = next(each for each in rpc.why().causes if any("room" in step.text for step in each.chain))
        assert (cause.kind, cause.worker, cause.at.function) == ("event", "b", "hold")
        (link,) = rpc.observe("a")[0].links
        assert (link.queued_messages, link.in_flight_messages) == (1, 2)
        GATE.set()
        until(lambda: len(answers) == 6)
        assert {each.wait(20) for each in answers} == {1}
        assert tuple(a.peers.at(1).link.dialed.flow.counts()["in_flight"])[1] <= 2


def waits(name):
    return [each.wait for each in rpc.observe(name)[0].threads if each.wait is not None]


def test_an_answer_that_waits_for_room_names_the_worker_that_does_not_read():
    assert _doing("window", "b")[2] == "waits for room on the way to 'b', which does not read what was sent"


def test_no_more_questions_than_the_limit_wait_for_one_worker(monkeypatch):
    with in_process_cluster("a", "b") as (a, b), a.use():
        b.part(Observer)  # it is a late part
        monkeypatch.setitem(b.server.handlers, Method.OBSERVE, lambda question: question.park())
        observer = a.part(Observer)
        asked = [observer._ask(a.peers.at(1), "", 60, {}) for _ in range(MOST_QUESTIONS)]
        (seen,) = rpc.observe("b", timeout=60)
        assert f"{MOST_QUESTIONS} others" in seen.error and not rpc.observe("a")[0].error
        for each in asked:
            each.cancel()


@pytest.mark.parametrize(
    ("states", "used", "state"),
    [
        (["sleeping", "stopped"], 0.0, "stopped"),
        (["running", "stopped"], 1.0, "stopped"),
        (["running", "running"], 0.9, "running"),
        (["sleeping", "sleeping"], 0.9, "running"),
        (["sleeping", "sleeping"], 0.0, "sleeping"),
        (["in the kernel", "in the kernel"], 0.0, "in the kernel"),
        (["sleeping", "dead"], 0.0, "dead"),
        (["sleeping", None], 0.0, ""),
        ([None, None], 0.0, ""),
    ],
)
def test_the_state_of_a_process_between_two_looks(states, used, state):
    found = [each and ProcessStatus(each, 1, used * at, 0) for each, at in zip(states, (0.0, 1.0))]
    looks = [ProcessLook(7, each, at) for each, at in zip(found, (0.0, 1.0))]
    assert state_between(*looks) == state


def test_a_process_is_looked_at_and_one_that_is_none_has_no_state():
    assert look_at_process(os.getpid()).status.state in ("running", "sleeping") and look_at_process(0).status is None


SILENT = """
import os, signal, sys
from telegrad import rpc
from telegrad.launcher import local_cluster
from telegrad.rpc.observing.causes import explain

cluster = local_cluster(2)
rpc.rpc_sync("worker1", rpc.rpc_sync, ("worker0", abs, (-1,)))
rpc.rpc_sync("worker0", abs, (-1,))
hold = rpc.rpc_async("worker1", sum, (range(10**18),))  # one call in C: other threads of the worker do not run meanwhile
os.kill(cluster.pids["worker0"], signal.SIGSTOP)
try:
    for _ in range(60):  # a machine under load may give the worker no time in one of them
        stopped, held = rpc.observe(["worker0", "worker1"], timeout=0.6)
        if (stopped.process_state, held.process_state) == ("stopped", "running"):
            break
    print(explain([stopped, held]))
finally:
    os.kill(cluster.pids["worker0"], signal.SIGCONT)
print(stopped.error, stopped.process_state, stopped.process_id == cluster.pids["worker0"], stopped.seen_by)
print(held.error, held.process_state)
print(repr(rpc.observe("worker0")[0].error))
cluster.kill("worker1")
"""


@pytest.mark.processes
def test_a_stopped_worker_and_one_whose_interpreter_is_held_are_told_apart(run_python):
    said = run_python("-c", SILENT)
    assert "'worker0' does not answer: its process" in said and "is stopped (SIGSTOP)" in said
    assert "'worker1' does not answer: its process" in said and "code outside Python holds its interpreter" in said
    stopped, held, again = said.splitlines()[-3:]
    assert "the observation of 'worker0'" in stopped and "stopped True" in stopped
    assert "the observation of 'worker1'" in held and held.endswith(" running") and again == "''"


def test_only_the_lists_that_are_asked_for_are_told():
    with in_process_cluster("a", "b") as (a, _), a.use():
        kept = [rpc.remote("b", list) for _ in range(3)]
        assert [each.to_here() for each in kept] == [[]] * 3
        for seen in rpc.observe(parts=()):
            lists = [getattr(seen, name) for name in OBSERVED_PARTS]
            assert lists == [[]] * len(OBSERVED_PARTS) and seen.memory_bytes > 0 and seen.totals["threads"] > 1
        _, there = rpc.observe(parts="owned")
        assert len(there.owned) == there.totals["owned"] == 3 and not there.threads and not there.links
        assert [len(each.links) for each in rpc.observe(parts=["links", "links"])] == [1, 1]
        with pytest.raises(ValueError, match=r"no list 'stacks'; it has calls, requests"):
            rpc.observe(parts=["stacks"])
        with pytest.raises(ValueError, match=r"no list \['calls'\]; it has calls, requests"):
            rpc.observe(parts=[["calls"]])
        for given in (3, b"calls"):
            with pytest.raises(TypeError, match=r"parts= takes a name of a list .* or several; you gave"):
                rpc.observe(parts=given)


def test_a_call_that_waits_is_told_in_numbers():
    with in_process_cluster("a", "b") as (a, _), a.use():
        waits = rpc.rpc_async("b", hold)
        until(lambda: rpc.observe("b", parts=())[0].totals["requests"] == 1)
        here, there = rpc.observe(parts=())
        assert here.oldest_call_seconds > 0 and here.totals["calls"] == 1 and there.oldest_call_seconds == 0
        GATE.set()
        waits.wait(20)

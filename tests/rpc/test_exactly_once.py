"""Exactly-once calls between agents: they run one at a time and in order, wait for the journal, and are kept until saved."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest
import telegrad as tg
from helpers.threads import until
from telegrad import rpc
from telegrad.base.errors import (
    AgentClosedError,
    ArgumentTypeError,
    CheckpointError,
    RpcError,
    RpcTimeoutError,
    SerializationError,
)
from telegrad.checkpoint import Checkpointer
from telegrad.rpc.exactly_once.applied import AppliedCalls, StreamKey
from telegrad.rpc.exactly_once.applying import Applying
from telegrad.rpc.exactly_once.saving import Saving
from telegrad.testing import in_process_cluster

APPLIED = []
GATES = {}


@rpc.exactly_once
def add(value):
    APPLIED.append(value)
    return len(APPLIED)


@rpc.exactly_once
def add_slowly(value, gate):
    entered, leave = GATES[gate]
    entered.set()
    assert leave.wait(30)
    APPLIED.append(value)


@rpc.exactly_once
def fail(value):
    APPLIED.append(value)
    raise KeyError(value)


@rpc.exactly_once
def keep(value):
    APPLIED.append(value)
    return value


@rpc.exactly_once
def who():
    return rpc.current_call().caller.name


@rpc.exactly_once
def save(checkpoints):
    GATES[checkpoints].save(1)


@rpc.exactly_once
def relay(to, value):
    return rpc.rpc_sync(to, add, (value,))


@pytest.fixture(autouse=True)
def clear():
    APPLIED.clear()
    GATES.clear()


@pytest.fixture
def pair():
    with in_process_cluster("server", "a", "b") as agents:
        yield agents


def journal(agent):
    with agent.use():
        return rpc.call_journal()


@pytest.fixture
def gate():
    GATES["gate"] = entered, leave = threading.Event(), threading.Event()
    yield entered, leave
    leave.set()


def test_calls_of_one_caller_are_applied_in_their_order(pair):
    server, a, _ = pair
    journal(server).open()
    with a.use():
        futures = [rpc.rpc_async("server", add, (number,)) for number in range(200)]
        assert tg.futures.wait_all(futures) == list(range(1, 201))
    assert list(range(200)) == APPLIED and journal(server).applied == 200


def test_calls_wait_until_the_journal_is_open(pair):
    server, a, _ = pair
    with a.use():
        futures = [rpc.rpc_async("server", add, (number,)) for number in range(5)]
        with pytest.raises(RpcTimeoutError, match="add on worker 'server'"):
            rpc.rpc_sync("server", add, (5,), timeout=0.05)
    assert not APPLIED
    journal(server).open()
    assert tg.futures.wait_all(futures) == [1, 2, 3, 4, 5]
    until(lambda: list(range(6)) == APPLIED)  # the one whose caller has given up, too


def test_calls_run_one_at_a_time_and_each_as_the_call_of_its_caller(pair, gate):
    server, a, b = pair
    journal(server).open()
    with a.use():
        first = rpc.rpc_async("server", add_slowly, (0, "gate"))
    gate[0].wait(30)
    with b.use():
        names = [rpc.rpc_async("server", who) for _ in range(3)]
    with a.use():
        names += [rpc.rpc_async("server", who) for _ in range(3)]
        assert rpc.rpc_sync("server", abs, (-1,)) == 1  # other calls go on
    assert not any(name.done() for name in names)
    gate[1].set()
    assert tg.futures.wait_all([*names, first])[:6] == ["b"] * 3 + ["a"] * 3


def test_arguments_are_those_of_the_moment_of_the_call(pair):
    server, a, _ = pair
    array, tensor = np.ones(3), tg.ones(3, requires_grad=True)
    with a.use():
        future = rpc.rpc_async("server", add, ([{"x": (array, tensor * 2)}],))
        array[:] = 7
        journal(server).open()
        future.wait()
    (((found, twice),),) = ([each["x"] for each in APPLIED[0]],)
    assert found.tolist() == [1, 1, 1] and twice.tolist() == [2, 2, 2] and not twice.requires_grad


def test_an_exception_counts_as_applied(pair):
    server, a, _ = pair
    journal(server).open()
    with a.use():
        with pytest.raises(KeyError, match="7"):
            rpc.rpc_sync("server", fail, (7,))
        assert rpc.rpc_sync("server", add, (8,)) == 2
    assert APPLIED == [7, 8] and journal(server).applied == 2


@pytest.mark.parametrize("value", [object(), {"a": [lambda: 1]}, np.array([None]), {(1, object()): 2}])
def test_arguments_that_no_checkpoint_can_keep_are_refused(pair, value):
    server, a, _ = pair
    journal(server).open()
    with a.use():
        with pytest.raises(ArgumentTypeError, match="exactly-once call"):
            rpc.rpc_async("server", add, (value,))
        assert rpc.rpc_sync("server", add, (1,)) == 1


def test_a_call_that_cannot_be_sent_uses_its_number_and_fails_alone():
    with in_process_cluster("server", "a", options=rpc.GrpcRpcBackendOptions(max_message_bytes=1 << 20)) as (server, a):
        journal(server).open()
        with a.use():
            futures = [rpc.rpc_async("server", keep, (np.zeros(size),)) for size in (1, 1 << 20, 2)]
            with pytest.raises(SerializationError):
                futures[1].wait()
            assert [len(futures[place].wait()) for place in (0, 2)] == [1, 2]


def test_functions_that_end_later_and_other_objects_are_refused():
    async def later():
        pass

    def many():
        yield 1

    for function in (later, many, print, 7, rpc.functions.async_execution(lambda: None)):
        with pytest.raises(ArgumentTypeError, match="exactly_once marks a function"):
            rpc.exactly_once(function)


def test_marked_functions_are_called_in_no_other_way(pair):
    server, a, _ = pair
    journal(server).open()
    with a.use():
        with pytest.raises(ArgumentTypeError, match="rpc_async or rpc_sync"):
            rpc.remote("server", add, (1,))
        with pytest.raises(ValueError, match="idempotent"):
            rpc.rpc_sync("server", add, (1,), retry=rpc.RetryPolicy())
        with pytest.raises(ValueError, match="found by its name"):
            rpc.rpc_sync("server", rpc.exactly_once(lambda: 1))
    assert not APPLIED


def test_an_open_journal_cannot_be_opened_or_restored(pair):
    server, _, _ = pair
    here = journal(server)
    for wrong in ({"checkpoints": 1}, {"every": 0}, {"every": 1.5}):
        with pytest.raises((TypeError, ValueError)):
            here.open(**wrong)
    state = here.state_dict()
    here.open()
    until(lambda: here._applying.opened.done())
    with pytest.raises(RpcError, match="open"):
        here.open()
    with pytest.raises(RpcError, match="restore"):
        here.load_state_dict(state)


# -- checkpoints


@pytest.fixture
def checkpointer(pair, tmp_path):
    """Function that makes the Checkpointer of an agent; it is closed at the end."""
    made = []

    def make(agent, **parts):
        made.append(Checkpointer(tmp_path, rng=False, calls=journal(agent), **parts))
        return made[-1]

    yield make
    for checkpoints in made:
        checkpoints.close()


def test_a_checkpoint_has_an_update_and_its_number_or_neither(pair, tmp_path, checkpointer):
    server, a, b = pair
    total = {"sum": 0}
    checkpoints = checkpointer(server, total=total)
    journal(server).open(checkpoints, every=10)
    TOTALS["server"] = total
    for agent in (a, b):
        with agent.use():
            for _ in range(100):
                rpc.rpc_async("server", count)
    for agent in (a, b):
        journal(agent).wait_durable(30)
    saved = tg.load(next(iter(sorted(tmp_path.glob("*/*.safetensors"))[-1:])))
    assert saved["total"]["sum"] == 200 == saved["calls"]["applied"]["total"]
    for path in tmp_path.glob("*/*.safetensors"):
        saved = tg.load(path)
        assert saved["total"]["sum"] == saved["calls"]["applied"]["total"]
    until(lambda: all(stream.window.is_empty() for stream in journal(a)._sending.streams()))


def test_a_checkpoint_that_has_later_calls_too_is_not_saved_again():
    calls, saves = AppliedCalls(), []

    def begin(total):
        saves.append((total, tg.futures.Future()))
        return saves[-1][1]

    def apply_and_ask():
        calls.add(StreamKey("a", "a", ""), calls.total, None)
        saving.ask()

    saving = Saving(SimpleNamespace(calls=calls), begin, None)
    apply_and_ask()
    apply_and_ask()
    calls.saved(calls.state())
    saves[0][1].set_result(None)
    apply_and_ask()
    assert [total for total, _ in saves] == [1, 3]
    apply_and_ask()
    calls.saved({"total": 3, "streams": []})
    saves[1][1].set_result(None)  # it has not the call that came after it
    assert [total for total, _ in saves] == [1, 3, 4]


TOTALS = {}


@rpc.exactly_once
def count():
    total = TOTALS["server"]
    total["sum"] += 1


def test_a_checkpoint_in_the_middle_of_a_call_is_an_error(pair, tmp_path, checkpointer):
    server, a, _ = pair
    GATES["here"] = checkpoints = checkpointer(server)
    journal(server).open()
    with a.use(), pytest.raises(CheckpointError, match="open"):
        rpc.rpc_sync("server", save, ("here",))
    with a.use():
        assert rpc.rpc_sync("server", add, (1,)) == 1
    checkpoints.save(1)
    assert checkpoints.steps() == [1]


def test_a_checkpoint_waits_for_the_call_that_runs(pair, tmp_path, checkpointer, gate):
    server, a, _ = pair
    total = {"sum": APPLIED}
    checkpoints = checkpointer(server, total=total)
    journal(server).open()
    with a.use():
        future = rpc.rpc_async("server", add_slowly, (5, "gate"))
        gate[0].wait(30)
        saving = threading.Thread(target=checkpoints.save, args=(1,))
        saving.start()
        later = rpc.rpc_async("server", add, (6,))
        gate[1].set()
        future.wait()
        assert later.wait() == 2
        saving.join(30)
    saved = tg.load(next(tmp_path.glob("*/*.safetensors")))
    assert len(saved["total"]["sum"]) == saved["calls"]["applied"]["total"] in (1, 2)


def test_at_the_bound_the_callee_saves_or_the_caller_waits(pair, tmp_path, checkpointer):
    server, a, _ = pair
    journal(a).keep_at_most(10, 1 << 20)
    journal(server).open(checkpointer(server), every=None)
    with a.use():
        for number in range(100):
            rpc.rpc_async("server", add, (number,))
        journal(a).wait_durable(30)
    assert list(range(100)) == APPLIED
    assert len(list(tmp_path.iterdir())) >= 3


def test_without_checkpoints_the_caller_waits_and_says_so(pair):
    server, a, _ = pair
    journal(a).keep_at_most(3, 1 << 20)
    journal(server).open()
    with a.use():
        for number in range(3):
            rpc.rpc_sync("server", add, (number,))
        with pytest.raises(RpcTimeoutError, match="no checkpoint of worker 'server' has them"):
            rpc.rpc_async("server", add, (3,), timeout=0.1)
        with pytest.raises(RpcTimeoutError, match="3 earlier calls"):
            journal(a).wait_durable(0.1)
    assert APPLIED == [0, 1, 2]


@pytest.mark.parametrize("bounds", [(0, 1), (1, 0), (1.5, 1), ("1", 1)])
def test_bounds_are_numbers_above_0(pair, bounds):
    with pytest.raises(ValueError, match="above 0"):
        journal(pair[1]).keep_at_most(*bounds)


def test_a_call_of_a_call_is_a_stream_of_the_first_caller(pair):
    server, a, b = pair
    journal(server).open()
    journal(b).open()
    with a.use():
        assert [rpc.rpc_sync("b", relay, ("server", number)) for number in range(3)] == [1, 2, 3]
        with pytest.raises(RpcError, match="call the function itself"):
            rpc.rpc_sync("b", relay, ("b", 3))
    with b.use():
        assert rpc.rpc_sync("server", add, (4,)) == 4
    streams = journal(server)._applying.calls.state()["streams"]
    assert [(caller, origin, applied) for caller, origin, _, applied, *_ in streams] == [("b", "a", 3), ("b", "", 1)]


def test_a_caller_goes_back_to_before_its_first_call(pair):
    server, a, _b = pair
    journal(server).open()
    state = journal(a).state_dict()
    with a.use():
        assert [rpc.rpc_sync("server", add, (number,)) for number in range(3)] == [1, 2, 3]
    made = journal(a)._sending
    with made._lock:
        made._streams.clear()  # as in a new process of that name
    journal(a).load_state_dict(state)
    with a.use():
        assert [rpc.rpc_sync("server", add, (number,)) for number in range(4)] == [1, 2, 3, 4]
    assert APPLIED == [0, 1, 2, 3]


def test_a_caller_that_closes_as_its_callee_answers_gives_its_calls_up(pair):
    server, a, _ = pair
    GATES["closing"] = entered, leave = threading.Event(), threading.Event()
    journal(server).open()
    with a.use():
        call = rpc.rpc_async("server", add_slowly, (1, "closing"))
    assert entered.wait(30)
    sending, answered = journal(a)._sending, tg.futures.Future()
    answered.set_result((0, 0))  # the server says that it has none
    a.close("this test")
    sending._answered_how_far(sending.streams()[0], a.peers.find("server"), answered)
    assert isinstance(call.exception(), AgentClosedError)
    leave.set()


def test_a_fresh_callee_gets_the_calls_that_a_checkpoint_of_the_caller_keeps_though_it_fails_at_first(monkeypatch):
    with in_process_cluster("server", "a") as (server, a):
        journal(server).open()
        with a.use():
            tg.futures.wait_all([rpc.rpc_async("server", add, (number,)) for number in range(3)])
        state = journal(a).state_dict()
    APPLIED.clear()
    failures, method = [KeyError("not yet"), KeyError("not yet")], Applying.progress

    def fail_first(self, key, save):
        if failures:
            raise failures.pop()
        return method(self, key, save)

    monkeypatch.setattr(Applying, "progress", fail_first)
    with in_process_cluster("server", "a") as (server, a):
        journal(a).load_state_dict(state)
        journal(server).open()
        with a.use():
            assert rpc.rpc_sync("server", add, (3,)) == 4
    assert APPLIED == [0, 1, 2, 3] and not failures

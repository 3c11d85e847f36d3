"""Callbacks for workers that are lost or join, and waiting for workers by name, in jobs of a fixed size and dynamic groups."""

import queue
import sys
import threading
from contextlib import contextmanager

import pytest
from telegrad import rpc
from telegrad.base.errors import AgentClosedError, RpcTimeoutError, UnknownWorkerError, WorkerLostError
from telegrad.proto.rpc_pb2 import WorkerRecord
from telegrad.rpc.extend import MembershipEvents
from telegrad.rpc.links.reports import Loss
from telegrad.testing.cluster import in_process_cluster


@contextmanager
def job(count):
    with in_process_cluster(*(f"w{rank}" for rank in range(count))) as agents, agents[0].use():
        yield agents


def lose(agent, rank):
    agent.losses._lose(agent.peers.at(rank), Loss("it died"))


def test_losses_are_told_in_their_order_and_also_those_from_before():
    with job(6) as agents:
        heard = queue.Queue()
        lose(agents[0], 3)
        remove = rpc.on_worker_lost(lambda worker, reason: heard.put((worker.name, worker.id, reason)))
        assert heard.get(timeout=60) == ("w3", 3, "it died")
        for rank in (5, 1, 4):
            lose(agents[0], rank)
        assert [heard.get(timeout=60)[0] for _ in range(3)] == ["w5", "w1", "w4"]
        remove()
        lose(agents[0], 2)
        remove()
        later = queue.Queue()
        rpc.on_worker_lost(lambda worker, reason: later.put(worker.id))
        assert [later.get(timeout=60) for _ in range(5)] == [3, 5, 1, 4, 2]
        assert heard.empty()


def test_calls_to_the_lost_worker_fail_already_in_the_callback():
    with job(3) as agents:
        errors = queue.Queue()

        def ask(worker, reason):
            try:
                rpc.rpc_sync(worker, abs, (1,))
            except WorkerLostError as error:
                errors.put(str(error))
            errors.put(rpc.rpc_sync("w2", abs, (-2,)))

        rpc.on_worker_lost(ask)
        lose(agents[0], 1)
        assert "'w1'" in errors.get(timeout=60) and errors.get(timeout=60) == 2


@pytest.mark.parametrize("raises", [lambda worker, reason: 1 / 0, lambda worker, reason: sys.exit(3)])
def test_a_callback_that_raises_is_logged_and_the_next_is_called(raises, caplog):
    with job(2) as agents:
        heard = threading.Event()
        rpc.on_worker_lost(raises)
        rpc.on_worker_lost(lambda worker, reason: heard.set())
        lose(agents[0], 1)
        assert heard.wait(60)
        assert any("callback of worker 'w0'" in record.getMessage() for record in caplog.records)


def test_workers_of_a_fixed_job_are_there_or_never():
    with job(3) as agents:
        assert rpc.wait_for_workers(["w2", "w0"]) == [rpc.WorkerInfo("w2", 2), rpc.WorkerInfo("w0", 0)]
        with pytest.raises(UnknownWorkerError, match="no worker 'w7'"):
            rpc.wait_for_workers("w7")
        lose(agents[0], 1)
        with pytest.raises(WorkerLostError, match=r"'w1'.*it died"):
            rpc.wait_for_workers(["w0", "w1"])


def test_waiting_for_a_worker_of_a_dynamic_group_ends_when_it_joins_or_in_time():
    with job(2) as agents:
        agent = agents[0]
        agent.state.dynamic = True
        joined = queue.Queue()
        rpc.on_worker_joined(joined.put)
        with pytest.raises(RpcTimeoutError, match=r"worker 'w2' did not join within 0\.05 s"):
            rpc.wait_for_workers(["w0", "w2"], timeout=0.05)
        waiting = rpc.wait_for_workers_async(["w1", "w2"], timeout=0)
        lose(agent, 1)
        record = WorkerRecord(name="w2", rank=2, number=2, identity=b"2" * 16)
        agent.losses.joined(record)
        assert not waiting.done() and joined.get(timeout=60).name == "w2"
        agent.losses.joined(record)  # it is known
        agent.losses.joined(WorkerRecord(name="w1", rank=1, number=3, identity=b"3" * 16))
        assert waiting.wait() == [rpc.WorkerInfo("w1", 1), rpc.WorkerInfo("w2", 2)]
        assert joined.get(timeout=60).name == "w1" and joined.empty()
        assert not agent.part(MembershipEvents)._awaited


def test_a_time_out_that_comes_before_the_wait_is_noted_ends_it(monkeypatch):
    with job(2) as agents:
        agent, fires = agents[0], threading.Event()
        agent.state.dynamic = True
        events, after = agent.part(MembershipEvents), agent.timers.after
        give_up = events._give_up

        def heard(*arguments):
            fires.set()
            give_up(*arguments)

        def slowly(*arguments):
            timer = after(*arguments)
            assert fires.wait(60)
            return timer

        monkeypatch.setattr(events, "_give_up", heard)
        monkeypatch.setattr(agent.timers, "after", slowly)
        waiting = rpc.wait_for_workers_async("w9", timeout=1e-9)
        with pytest.raises(RpcTimeoutError, match=r"worker 'w9' did not join within 1e-09 s"):
            waiting.wait(60)


def test_waiting_ends_with_the_agent():
    with job(2) as agents:
        agents[0].state.dynamic = True
        waiting = rpc.wait_for_workers_async("w9", timeout=0)
        agents[0].close()
        with pytest.raises(AgentClosedError, match="'w0' has ended"):
            waiting.wait()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rpc.wait_for_workers([]), "at least one worker"),
        (lambda: rpc.wait_for_workers([3]), "you gave 3"),
        (lambda: rpc.wait_for_workers(5), "a worker's name, or several in a list; you gave 5"),
        (lambda: rpc.wait_for_workers("a worker"), "you gave 'a worker'"),
        (lambda: rpc.wait_for_workers("w0", timeout=-2), "timeout"),
        (lambda: rpc.on_worker_lost(3), "on_worker_lost calls a function; you gave 3"),
        (lambda: rpc.on_worker_joined("f"), "on_worker_joined calls a function; you gave 'f'"),
    ],
)
def test_bad_input_is_named(call, message):
    with job(2), pytest.raises((ValueError, TypeError), match=message):
        call()

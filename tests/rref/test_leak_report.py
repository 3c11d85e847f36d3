"""Report at shutdown about references to a worker's values that others hold."""

import logging
import threading

import pytest
import telegrad as tg
from helpers.remote import Counter, Shelf, keep
from telegrad import rpc
from telegrad.rpc.extend import GrpcRpcBackendOptions, Shutdown
from telegrad.testing import in_process_cluster


def shut_down(agents):
    """Shut all agents down, each in a thread of its own."""

    def leave(agent):
        with agent.use():
            rpc.shutdown()

    threads = [threading.Thread(target=leave, args=(agent,)) for agent in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)


def reported(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "telegrad.rref"]


def fail():
    raise KeyError("no value")


@pytest.fixture
def kept(caplog):
    """References that live until the test has looked."""
    caplog.set_level(logging.WARNING, "telegrad.rref")
    yield []
    Shelf.kept.clear()


def test_it_says_who_holds_what_by_name(caplog, kept):
    with in_process_cluster("ps", "trainer", "evaluator") as agents, agents[1].use():
        kept += [rpc.remote("ps", Counter), rpc.remote("ps", Counter), rpc.remote("ps", int), rpc.remote("ps", fail)]
        kept.append(tg.RRef("of the trainer"))
        rpc.rpc_sync("evaluator", keep, ("kept", kept[0]))
        kept[2].to_here()
        shut_down(agents)
    (report,) = reported(caplog)  # nobody else holds anything of the two others
    assert "worker 'ps' shuts down while others hold references to its values" in report
    assert "worker 'evaluator' 1 (1 x Counter); worker 'trainer' 4 (2 x Counter, 1 x an error, 1 x int)" in report


def test_it_says_nothing_when_references_were_dropped_or_released(caplog, kept):
    with in_process_cluster("a", "b") as agents, agents[0].use():
        rpc.remote("b", Counter).to_here()
        kept.append(rpc.remote("b", Counter))
        kept[0].release()
        with rpc.remote("b", Counter) as counter:
            counter.rpc_sync().add()
        kept.append(tg.RRef("a's own"))
        shut_down(agents)
    assert not reported(caplog)


def test_results_of_meshes_that_are_kept_for_a_second_are_no_leak(caplog):
    caplog.set_level(logging.WARNING, "telegrad.rref")
    with in_process_cluster(*"abcdef") as agents, agents[0].use():
        rpc.mesh().remote(Counter).call("add")  # one of its workers passes the others' references on
        shut_down(agents)
    assert not reported(caplog)


def test_it_can_be_ignored(caplog, kept):
    options = GrpcRpcBackendOptions(ignore_rref_leaks=True)
    with in_process_cluster("a", "b", options=options) as agents, agents[0].use():
        kept.append(rpc.remote("b", Counter))
        shut_down(agents)
    assert not reported(caplog)


@pytest.mark.parametrize("waits", [False, True], ids=["before shutdown", "while the owner waits in it"])
def test_it_counts_what_a_worker_held_that_left_first(caplog, kept, until, waits):
    """References of a worker that leaves first count; those of a worker that was lost do not."""
    with in_process_cluster("a", "b", "c") as agents:
        with agents[0].use():
            kept.append(rpc.remote("b", Counter))
        with agents[2].use():
            kept.append(rpc.remote("b", Counter))
            kept[1].to_here()
        if waits:
            agents[1].part(Shutdown).begin()
        agents[2].close("it crashed")
        until(lambda: agents[1].peers.at(2).gone)
        shut_down(agents[:2])
    (report,) = reported(caplog)
    assert "worker 'a' 1 (1 x Counter)" in report and "'c'" not in report

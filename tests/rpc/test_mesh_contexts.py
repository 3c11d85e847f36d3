"""Warnings and profiles of calls on a mesh over several hops, and the cancel of one that waits for values."""

import contextlib
import re
import warnings

import pytest
import telegrad as tg
from helpers.gates import GATE, hold
from helpers.threads import until
from telegrad import rpc
from telegrad.base.errors import RpcCancelledError, RpcTimeoutError
from telegrad.profiler import profile
from telegrad.rpc.meshes import mesh_calls, tree
from telegrad.rpc.meshes.warned_result import WarnedResult, open_warnings, pack_warnings
from telegrad.rpc.wire.bundle import NONE
from telegrad.rpc.wire.messages import Method
from telegrad.testing import in_process_cluster

NAMES = [f"w{rank}" for rank in range(7)]


class MeshWarning(UserWarning):
    pass


@pytest.fixture(autouse=True)
def deep(monkeypatch):
    """Trees of three hops: w0 sends to w1, w1 to w2 and w4, w4 to w5 and w6."""
    monkeypatch.setattr(tree, "MEMBERS_OF_HEAD", 6)
    monkeypatch.setattr(tree, "HOST_FAN_OUT", 2)


def warn_at(names, value=None, fails=False):
    if (name := rpc.get_worker_info().name) in names:
        warnings.warn(f"careful at {name}", MeshWarning, stacklevel=1)
    if fails:
        raise ValueError(name)
    return value


def heard(action):
    """Return the warnings that the caller issues, each with its class and file, and what ``action`` returned."""
    with pytest.warns() as caught, in_process_cluster(*NAMES) as agents, agents[0].use():
        value = action()
    issued = [each for each in caught if "(on worker" in str(each.message)]
    assert all(each.category is MeshWarning and each.filename == __file__ for each in issued)
    return sorted(str(each.message) for each in issued), value


def told(*names):
    return [f"careful at {name} (on worker {name!r})" for name in names]


@pytest.mark.parametrize("value", [None, 3])
def test_warnings_of_every_hop_are_issued_once_at_the_caller(value):
    issued, values = heard(lambda: rpc.mesh(NAMES[1:]).call(warn_at, (["w1", "w4", "w6"], value)).values())
    assert issued == told("w1", "w4", "w6") and values == [value] * 6


def test_those_of_results_that_are_added_up_and_of_functions_that_fail():
    issued, value = heard(lambda: rpc.mesh(NAMES).call(warn_at, (["w0", "w4", "w6"], 2), reduce="sum"))
    assert issued == told("w0", "w4", "w6") and value == 14
    issued, values = heard(lambda: rpc.mesh(NAMES).call(warn_at, (["w6"], 2, True)))
    assert issued == told("w6") and {type(error) for error in values} == {ValueError}


@pytest.mark.parametrize("reduce", [None, "sum"])
def test_a_filter_makes_an_error_of_a_warning_at_its_worker_only(reduce):
    with warnings.catch_warnings(record=True), in_process_cluster(*NAMES) as agents, agents[0].use():
        warnings.filterwarnings("ignore", category=MeshWarning)
        warnings.filterwarnings("always", "careful at w6$", MeshWarning)
        warnings.filterwarnings("error", r".*\(on worker 'w6'\)", MeshWarning)
        called = rpc.mesh(NAMES).call_async(warn_at, (["w6"], 2), reduce=reduce)
        if reduce:
            with pytest.raises(MeshWarning, match="on worker 'w6'"):
                called.wait()
        else:
            assert list(called)[:6] == [2] * 6 and isinstance(called["w6"], MeshWarning)


def test_warnings_keep_the_place_of_their_result():
    rows = [(7, [["builtins", "UserWarning", "text", "file", 3]])]
    bodies = pack_warnings([NONE, WarnedResult(NONE, rows), NONE])
    assert len(bodies) == 4 and pack_warnings([NONE]) == [NONE]
    plain, warned, last = open_warnings(bodies, 3)
    assert (plain, last) == (NONE, NONE) and warned.is_none
    assert warned.warned == [[7, [["builtins", "UserWarning", "text", "file", 3]]]]


BEGUN = []


def multiply(tensor):
    BEGUN.append(tensor)
    if rpc.get_worker_info().name == "w6":
        hold()
    return tensor * 3


@pytest.mark.parametrize("reduce", [None, "sum"])
def test_a_profile_has_the_operations_of_every_worker_and_the_hops_to_them(closed_gate, monkeypatch, reduce):
    monkeypatch.setattr(mesh_calls, "HURRY_SECONDS", 0.0)
    BEGUN.clear()
    with in_process_cluster(*NAMES) as agents, agents[0].use(), profile() as profiled:
        called = rpc.mesh(NAMES[1:]).call_async(multiply, (tg.ones(2),), reduce=reduce)
        until(lambda: len(BEGUN) == 6)
        GATE.set()
        called.wait()
    events = profiled.function_events
    products = [event.node_id for event in events if event.name.endswith("aten::mul")]
    assert sorted(products) == list(range(1, 7))
    hops = {re.findall(r"\((w\d -> w\d)\)(?!.*mesh#)", event.name)[0] for event in events if event.name.endswith(")")}
    assert hops == {"w0 -> w1", "w1 -> w2", "w2 -> w3", "w1 -> w4", "w4 -> w5", "w4 -> w6"}


@pytest.mark.parametrize("recording", [profile, contextlib.nullcontext])
def test_a_timeout_costs_the_results_that_are_missing_only(closed_gate, recording):
    with in_process_cluster(*NAMES) as agents, agents[0].use(), recording():
        values = rpc.mesh(NAMES[1:]).call(multiply, (tg.ones(2),), timeout=1.5)
        GATE.set()
    assert {name: type(error) for name, error in values.errors().items()} == {"w6": RpcTimeoutError}


def make_later():
    hold()
    return 1


def waiting(agents):
    return [call for agent in agents for call in list(agent.server.waiting.values()) if call.method == Method.MESH]


def test_a_cancel_ends_the_requests_that_wait_for_values(closed_gate):
    with in_process_cluster(*NAMES) as agents, agents[0].use():
        called = rpc.mesh(NAMES[1:]).call_async(warn_at, ((), rpc.rpc_async("w6", make_later)))
        until(lambda: len(waiting(agents)) == 1)  # at w1, which passes it on when its own values are there
        assert called.cancel()
        until(lambda: not waiting(agents) and not any(agent.server.serving for agent in agents[1:6]))
        assert {type(error) for error in called} == {RpcCancelledError}
        GATE.set()


def test_the_loss_of_its_caller_ends_them_too(closed_gate):
    with in_process_cluster(*NAMES) as agents, agents[2].use():
        rpc.mesh().call(abs, (-1,))
        rpc.mesh(NAMES[:1] + NAMES[3:]).call_async(warn_at, ((), rpc.rpc_async("w6", make_later)))
        until(lambda: len(waiting(agents)) == 1)
        agents[2].close("it is lost")
        with agents[0].use():
            rpc.mesh(NAMES).call(abs, (-1,))  # finds its loss
        until(lambda: not waiting(agents), 10.0)
        GATE.set()

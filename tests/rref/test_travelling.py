"""References in messages: from worker to worker, home again, inside objects, and dropped on the way."""

import copy
import pickle

import pytest
import telegrad as tg
from helpers.remote import Counter, Holder, forget, here, keep, kept_value, local, make, pass_back, pass_on, same
from telegrad import rpc
from telegrad.base.errors import AgentClosedError

pytestmark = pytest.mark.usefixtures("tables_end_empty")


@pytest.mark.parametrize("owner", ["a", "b", "c"])
@pytest.mark.parametrize("route", ["b", "bc", "bcb", "ba", "bcab", "a"])
def test_a_reference_goes_from_worker_to_worker(workers, owner, route):
    reference = rpc.remote(owner, str, ("value",))
    assert rpc.rpc_sync("b", pass_on, (reference, list(route))) == "value"
    back = rpc.rpc_sync("b", pass_back, (reference, list(route)))
    assert back.owner_name() == owner
    del reference
    assert back.to_here() == "value"


def test_a_reference_that_comes_home(workers):
    value = Counter()
    mine = tg.RRef(value)
    back = rpc.rpc_sync("b", pass_back, (mine, ["c"]))
    assert back.is_owner()
    assert back.local_value() is value
    assert rpc.rpc_sync("a", local, (mine,)).get() == 0


def test_references_in_results(workers):
    references = rpc.rpc_sync("b", lambda: [tg.RRef(number) for number in range(5)])
    assert [reference.to_here() for reference in references] == list(range(5))
    assert [rpc.rpc_sync("b", local, (reference,)) for reference in references] == list(range(5))


def test_references_deep_in_user_objects(workers):
    first, second = rpc.remote("b", str, ("first",)), tg.RRef("second")
    received = rpc.rpc_sync("c", same, (Holder({"key": [first]}, [second, Holder(first)]),))
    assert received.reference["key"][0].to_here() == "first"
    assert received.more[0].local_value() == "second"
    assert received.more[1].reference is received.reference["key"][0]


def test_a_reference_to_an_object_with_references(workers):
    inner = rpc.remote("b", str, ("inner",))
    outer = rpc.remote("c", Holder, (inner,))
    del inner
    assert outer.to_here().reference.to_here() == "inner"


def test_a_reference_to_a_reference(workers):
    outer = rpc.remote("b", make, ("value",))
    assert outer.to_here().to_here() == "value"


def test_the_owner_keeps_the_value_while_anybody_refers_to_it(workers, until):
    reference = rpc.remote("b", str, ("kept",))
    rpc.rpc_sync("c", keep, ("name", reference))
    del reference
    assert rpc.rpc_sync("c", kept_value, ("name",)) == "kept"
    assert workers[1].debug_info()["references"]["owned_rrefs"] == 1
    rpc.rpc_sync("c", forget, ("name",))
    until(lambda: workers[1].debug_info()["references"]["owned_rrefs"] == 0)


def test_a_reference_dropped_while_it_travels(workers):
    futures = []
    for number in range(50):
        reference = rpc.remote("b", str, (number,))
        futures.append(rpc.rpc_async("c", here, (reference,)))
        del reference
    assert tg.futures.wait_all(futures) == [str(number) for number in range(50)]


def test_one_reference_sent_to_many(workers):
    reference = rpc.remote("b", Counter)
    futures = [rpc.rpc_async("abc"[number % 3], here, (reference,)) for number in range(60)]
    del reference
    assert {counter.get() for counter in tg.futures.wait_all(futures)} == {0}


def test_the_same_reference_twice_in_a_message_is_one(workers):
    reference = tg.RRef(1)
    first, second = rpc.rpc_sync("b", same, ([reference, reference],))
    assert first is second


def test_only_in_messages(workers):
    reference = rpc.remote("b", str)
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(RuntimeError, match="in rpc arguments and results only"):
            attempt(reference)


def test_only_by_its_own_agent(workers):
    reference = tg.RRef(1)
    with (
        workers[1].use(),
        pytest.raises(AgentClosedError, match="belongs to worker 'a' and cannot be sent by worker 'b'"),
    ):
        rpc.rpc_sync("c", same, (reference,))

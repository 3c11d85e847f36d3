"""Promises: a value that is not there yet is an argument, and nothing waits for it but the call itself."""

import pytest
import telegrad as tg
from helpers.remote import Counter, same, wait_and_make
from telegrad import rpc
from telegrad.base.errors import RpcCancelledError, RpcError, RpcTimeoutError, SerializationError, WorkerLostError
from telegrad.rpc.threads.pool import ThreadPool

pytestmark = pytest.mark.usefixtures("tables_end_empty")


def add(left, right=0):
    return left + right


def same_object(value, reference):
    return value is reference.local_value()


def fail():
    raise KeyError("nothing there")


def total(values):
    return sum(values["numbers"]) + values["more"][0]


@pytest.mark.parametrize("callee", ["a", "b", "c"])
@pytest.mark.parametrize("owner", ["a", "b"])
def test_the_function_gets_the_value(workers, owner, callee):
    number = rpc.remote(owner, same, (3,))
    assert rpc.rpc_sync(callee, add, (rpc.value(number), 4)) == 7
    assert rpc.rpc_sync(callee, add, (1,), {"right": rpc.value(number)}) == 4
    assert rpc.remote(callee, add, (rpc.value(number), 4)).to_here() == 7


@pytest.mark.parametrize("callee", ["a", "b", "c"])
def test_values_at_any_depth(workers, callee):
    one, two = rpc.remote("b", same, (1,)), tg.RRef(2)
    given = {"numbers": [rpc.value(one), rpc.value(two)], "more": (rpc.value(one),)}
    assert rpc.rpc_sync(callee, total, (given,)) == 4


def test_the_owner_s_functions_get_the_object_itself(workers):
    counter = rpc.remote("b", Counter)
    assert rpc.rpc_sync("b", same_object, (rpc.value(counter), counter))
    assert rpc.rpc_sync("c", Counter.add, (rpc.value(counter), 2)) == 2  # a copy
    assert counter.rpc_sync().get() == 0


@pytest.mark.parametrize("callee", ["b", "c"])
def test_a_call_waits_for_its_argument_without_a_thread(workers, gate, callee, until):
    slow = rpc.remote("b", wait_and_make, ("gate",))
    agent = workers["abc".index(callee)]
    waiting = [rpc.rpc_async(callee, Counter.add, (rpc.value(slow), number)) for number in range(30)]
    made = rpc.remote(callee, Counter.add, (rpc.value(slow), 1))
    until(lambda: len(agent.server.waiting) == 31)
    pool = agent.threads.functions
    assert isinstance(pool, ThreadPool)
    until(lambda: pool.counts()["running"] <= 1)  # the one that makes the value; a thread that reads on is soon idle
    assert not any(future.done() for future in waiting)
    gate.set()
    results = [future.wait() for future in waiting]
    if callee == "c":
        assert results == list(range(30))  # each has a copy of its own
    assert made.to_here() >= 1


def test_nothing_of_a_value_goes_through_the_caller(workers):
    array = rpc.remote("b", bytes, (100_000,))
    before = sum(each["received"] for each in traffic(workers[0]))
    assert rpc.rpc_sync("c", len, (rpc.value(array),)) == 100_000
    assert sum(each["received"] for each in traffic(workers[0])) - before < 10_000


def traffic(agent):
    sessions = [session for peer in agent.peers for session in peer.sessions()]
    return [{"received": session.flow.traffic()[1].bytes} for session in sessions]


def test_a_value_that_is_known_is_sent_as_it_is(workers):
    sent = workers[1].caller.table.sent
    assert rpc.rpc_sync("b", add, (rpc.value(tg.RRef(3)), 4)) == 7
    assert workers[1].caller.table.sent == sent  # it was not asked for


# -- errors, cancels, deadlines


@pytest.mark.parametrize("callee", ["b", "c"])
def test_the_error_of_an_argument_is_that_of_the_call(workers, callee):
    broken = rpc.remote("b", fail)
    error = rpc.rpc_async(callee, add, (rpc.value(broken), 4)).then(lambda done: done.exception()).wait()
    assert isinstance(error, KeyError)
    assert "on worker 'b'" in str(error.__cause__)
    assert any("an argument of this call is the value of" in note for note in error.__notes__)
    after = rpc.remote("c", add, (rpc.value(rpc.remote(callee, add, (rpc.value(broken), 4))), 4))
    with pytest.raises(KeyError, match="nothing there"):
        after.to_here()


def test_one_error_does_not_wait_for_the_other_values(workers, gate):
    slow, broken = rpc.remote("b", wait_and_make, ("gate",)), rpc.remote("b", fail)
    for callee in "bc":
        with pytest.raises(KeyError, match="nothing there"):
            rpc.rpc_sync(callee, add, (rpc.value(slow), rpc.value(broken)))


@pytest.mark.parametrize("callee", ["b", "c"])
def test_a_deadline_ends_the_wait_for_an_argument(workers, gate, callee, until):
    slow = rpc.remote("b", wait_and_make, ("gate",))
    with pytest.raises(RpcTimeoutError, match="the call of add"):
        rpc.rpc_sync(callee, add, (rpc.value(slow), 1), timeout=0.1)
    until(lambda: not workers["abc".index(callee)].server.waiting)


@pytest.mark.parametrize("callee", ["b", "c"])
def test_a_call_is_cancelled_while_it_waits(workers, gate, callee, until):
    slow = rpc.remote("b", wait_and_make, ("gate",))
    future = rpc.rpc_async(callee, add, (rpc.value(slow), 1))
    agent = workers["abc".index(callee)]
    until(lambda: agent.server.waiting)
    assert future.cancel()
    with pytest.raises(RpcCancelledError):
        future.wait()
    del future  # its error's traceback has this frame
    until(lambda: not agent.server.waiting)
    until(lambda: not len(agent.caller.table))  # its question to the owner is withdrawn


def test_a_value_of_a_lost_owner(workers):
    number = rpc.remote("b", same, (3,))
    number.to_here()
    workers[1].close()
    with pytest.raises(WorkerLostError, match="'b'"):
        rpc.rpc_async("c", add, (rpc.value(number), 1)).wait()


def test_an_owner_is_lost_while_a_call_waits_for_its_value(workers, gate, until):
    slow = rpc.remote("b", wait_and_make, ("gate",))
    future = rpc.rpc_async("c", add, (rpc.value(slow), 1))
    until(lambda: len(workers[1].server.serving) == 2)  # it makes the value, and is asked for it
    workers[1].close()
    with pytest.raises(WorkerLostError, match="'b'"):
        future.wait()


# -- bad input


def test_only_the_value_of_a_reference_can_be_meant(workers):
    with pytest.raises(TypeError, match=r"rpc\.value takes an RRef"):
        rpc.value(3)


def returned(reference):
    return rpc.value(reference)


def test_a_promise_is_an_argument_only(workers):
    number = rpc.remote("c", same, (3,))
    with pytest.raises(SerializationError, match="in arguments only"):
        rpc.rpc_sync("b", returned, (number,))


def test_a_released_reference_has_no_value_to_send(workers):
    number = rpc.remote("b", same, (3,))
    number.release()
    with pytest.raises(RpcError, match="released"):
        rpc.rpc_sync("b", add, (rpc.value(number), 1))


# -- gradients


def double(x):
    return x * 2.0


def product(x, y):
    return (x * y).sum()


@pytest.mark.parametrize("callee", ["a", "b", "c"])
def test_gradients_flow_through_a_value(workers, callee):
    x = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = tg.tensor([0.3, 0.1, 0.7], requires_grad=True)
    found = []
    for promised in (True, False):
        with tg.autograd_dist.context() as context:
            doubled = rpc.remote("b", double, (x,))
            argument = rpc.value(doubled) if promised else doubled.to_here()
            loss = rpc.rpc_sync(callee, product, (argument, y))
            tg.autograd_dist.backward(context, [loss])
            gradients = tg.autograd_dist.get_gradients(context)
            found.append((gradients[x].tolist(), gradients[y].tolist()))
    assert found[0] == found[1]

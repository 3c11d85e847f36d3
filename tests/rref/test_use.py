"""References as users know them: made, sent anywhere, fetched, called through, given up; and nothing left in the end."""

import gc
import threading
import weakref

import pytest
import telegrad as tg
from helpers.remote import Counter, Shelf, here, local, same, wait_and_make
from telegrad import rpc
from telegrad.base.errors import RpcError, RpcTimeoutError
from telegrad.core.futures import Future
from telegrad.rpc.calls import caller
from telegrad.rpc.extend import GrpcRpcBackendOptions

pytestmark = pytest.mark.usefixtures("tables_end_empty")


# -- making and fetching


@pytest.mark.parametrize("owner", ["a", "b"])
def test_remote(workers, owner):
    reference = rpc.remote(owner, Counter, (3,))
    assert reference.owner() == rpc.get_worker_info(owner)
    assert reference.owner_name() == owner
    assert reference.is_owner() is (owner == "a")
    assert reference.to_here().get() == 3
    assert reference._get_type() is Counter
    assert reference._get_type(blocking=False).wait() is Counter
    assert reference.rpc_sync().add(2) == 5
    assert reference.to_here().get() == 5
    assert repr(reference).startswith("OwnerRRef" if owner == "a" else "UserRRef")


def test_a_reference_to_a_value_of_one_s_own(workers):
    value = Counter()
    reference = tg.RRef(value)
    assert reference.is_owner()
    assert reference.confirmed_by_owner()
    assert reference.local_value() is reference.to_here() is value
    assert reference._get_future().wait() is value


def test_to_here_is_a_copy_and_local_value_is_not(workers):
    reference = rpc.remote("b", Counter)
    copied = reference.to_here()
    copied.add(5)
    assert reference.to_here().get() == 0
    assert rpc.rpc_sync("b", lambda ref: ref.local_value() is ref.to_here(), (reference,))


def test_local_value_elsewhere(workers):
    reference = rpc.remote("b", Counter)
    with pytest.raises(RpcError, match=r"local_value\(\) works at the owner, 'b'; this is 'a'.*to_here\(\)"):
        reference.local_value()


def test_confirmed_by_owner(workers, until):
    reference = rpc.remote("b", Counter)
    until(reference.confirmed_by_owner)
    assert reference._get_future().wait() is None


def test_a_hundred_at_once(workers):
    references = [rpc.remote("bc"[number % 2], Counter, (number,)) for number in range(100)]
    assert [reference.to_here().get() for reference in references] == list(range(100))


def test_none_is_a_value(workers):
    reference = rpc.remote("b", print)
    assert reference.to_here() is None
    assert tg.RRef(None).local_value() is None


# -- giving up


def test_release(workers):
    reference = rpc.remote("b", Counter)
    assert reference.to_here().get() == 0
    reference.release()
    reference.release()
    words = r"RRef.* was released; keep it longer, or create it again"
    for use in (
        reference.to_here,
        reference.local_value,
        reference.rpc_sync().get,
        reference._get_future,
        reference._get_type,
        lambda: rpc.rpc_sync("c", same, (reference,)),
        lambda: rpc.remote("b", same, (reference,)),
        reference.backward,
    ):
        with pytest.raises(RpcError, match=words):
            use()
    assert "UserRRef" in repr(reference)


def test_with(workers, until):
    with rpc.remote("b", Counter) as reference:
        assert reference.rpc_sync().add() == 1
    until(lambda: workers[1].debug_info()["references"]["owned_rrefs"] == 0)


def test_releasing_one_of_two(workers):
    first = rpc.remote("b", Counter)
    second = rpc.rpc_sync("c", same, (first,))
    first.release()
    assert second.rpc_sync().add() == 1


def test_the_value_is_freed_outside_of_any_lock(workers, until):
    """Its destructor is user code: it may do whatever it likes, calls included."""
    Shelf.kept["freed"] = freed = []
    with rpc.remote("b", Calling) as reference:
        reference.rpc_sync().touch()
    assert until(lambda: freed) == ["b says 3"]


class Calling:
    def touch(self):
        pass

    def __del__(self):
        if "freed" in Shelf.kept:
            Shelf.kept["freed"].append(f"{rpc.get_worker_info().name} says {rpc.rpc_sync('c', len, ('abc',))}")


# -- what goes wrong


def fail(*_):
    raise KeyError("made nothing")


@pytest.mark.parametrize("owner", ["a", "b"])
def test_a_creating_function_that_raises(workers, owner):
    reference = rpc.remote(owner, fail)
    uses = [reference.to_here, reference.rpc_sync().get, lambda: rpc.rpc_sync("c", here, (reference,))]
    if owner == "a":
        uses.append(lambda: reference._get_future().wait())  # at the owner it is the future of the value
    for use in uses:
        with pytest.raises(KeyError, match="made nothing"):
            use()
    with pytest.raises(KeyError, match="made nothing"):
        rpc.rpc_sync(owner, local, (reference,))


def test_a_creating_function_that_raises_keeps_no_reference_of_its_arguments(workers, until):
    argument = rpc.remote("c", str, ("argument",))
    failed = rpc.remote("b", fail, (argument,))
    with pytest.raises(KeyError):
        failed.to_here()
    argument.release()
    until(lambda: workers[2].debug_info()["references"]["owned_rrefs"] == 0)  # while `failed` lives


def test_a_creating_call_that_cannot_be_sent_keeps_no_reference(workers, until, monkeypatch):
    """The error was raised under the frame that holds the reference; who keeps it must not keep that frame."""
    here = workers[0]

    def fail_to_encode(_):
        raise RpcError("the link to worker 'b' is cut")

    def use():
        reference = rpc.remote("b", list)
        with pytest.raises(RpcError, match=r"is cut|never reached"):
            reference.to_here()

    with monkeypatch.context() as patch:
        patch.setattr(caller, "encode", fail_to_encode)
        use()
    gc.collect()
    until(lambda: not any(here.debug_info()["references"].values()))


def test_arguments_that_the_owner_cannot_open(workers):
    reference = rpc.remote("b", same, (Unopenable(),))
    with pytest.raises(ValueError, match="will not open"):
        reference.to_here()


class Unopenable:
    def __reduce__(self):
        return refuse, ()


def refuse():
    raise ValueError("will not open")


def test_to_here_with_a_time_out(workers):
    Shelf.kept["gate"] = gate = threading.Event()
    slow = rpc.remote("b", wait_and_make, ("gate",))
    with pytest.raises(RpcTimeoutError, match=r"to_here\(\) of UserRRef.*got no answer within 0.05 s"):
        slow.to_here(timeout=0.05)
    own = rpc.remote("a", wait_and_make, ("gate",))
    with pytest.raises(RpcTimeoutError, match=r"OwnerRRef.*got no answer within 0.05 s; give"):
        own.to_here(timeout=0.05)
    gate.set()
    assert slow.to_here().get() == own.to_here().get() == 0


def test_a_time_out_of_remote(cluster, until):
    with cluster("a", "b", options=GrpcRpcBackendOptions(num_worker_threads=1)) as (a, b), a.use():
        Shelf.kept["gate"] = gate = threading.Event()
        busy = rpc.rpc_async("b", wait_at, ("gate",))
        late = rpc.remote("b", Counter, timeout=0.05)
        with pytest.raises(RpcTimeoutError, match=r"remote\(Counter\) on worker 'b' got no answer within 0.05 s"):
            until(lambda: late._fork.settled.done())
            late.to_here()
        with pytest.raises(RpcTimeoutError):
            rpc.rpc_sync("a", here, (late,))
        gate.set()
        busy.wait()
        late.release()
        for agent in (a, b):
            until(lambda agent=agent: not any(agent.debug_info()["references"].values()))


@pytest.mark.parametrize("owner", ["a", "b"])
@pytest.mark.parametrize("make", [lambda *args: rpc.remote(*args, timeout=0.05), None])
def test_the_time_out_of_remote_covers_the_function(workers, until, owner, make):
    Shelf.kept["gate"] = gate = threading.Event()
    if make is None:
        holder = rpc.remote(owner, Waiter)
        late = holder.remote(timeout=0.05).wait_at("gate")
    else:
        late = make(owner, wait_at, ("gate",))
    with pytest.raises(RpcTimeoutError, match=r"remote\(.*wait_at\) on worker .* got no answer within 0.05 s"):
        late._get_future().wait()
    with pytest.raises(RpcTimeoutError, match=r"remote\(.*wait_at\)"):
        late.to_here()
    gate.set()


@pytest.mark.parametrize("owner", ["a", "b"])
def test_a_value_that_is_made_after_the_time_out_is_freed_although_its_reference_is_kept(workers, until, owner):
    Shelf.kept.update(gate=threading.Event(), started=threading.Event())
    late = rpc.remote(owner, make_late, timeout=0.3)
    assert Shelf.kept["started"].wait(20)
    with pytest.raises(RpcTimeoutError):
        late._get_future().wait()
    Shelf.kept["gate"].set()
    until(lambda: Shelf.kept.get("value") and Shelf.kept["value"]() is None)
    for agent in workers:
        until(lambda agent=agent: not any(agent.debug_info()["references"].values()))
    for use in (late.to_here, late.rpc_sync().get, lambda: rpc.rpc_sync("c", here, (late,))):
        with pytest.raises(RpcTimeoutError, match=r"remote\(make_late\)"):
            use()


def make_late():
    Shelf.kept["started"].set()
    wait_at("gate")
    value = Counter()
    Shelf.kept["value"] = weakref.ref(value)
    return value


class Waiter:
    def wait_at(self, name):
        wait_at(name)


def wait_at(name):
    assert Shelf.kept[name].wait(20)


def test_a_result_that_is_never_fetched_is_freed(workers):
    for _ in range(20):
        rpc.remote("b", Counter)


def test_a_call_that_fails_gives_its_references_back(workers):
    reference = rpc.remote("b", str, ("r",))
    with pytest.raises(KeyError):
        rpc.rpc_sync("c", fail, (reference,))
    with pytest.raises(ValueError, match="will not open"):
        rpc.rpc_sync("c", same, ([reference, Unopenable()],))
    assert reference.to_here() == "r"


def test_a_late_answer_s_references_are_dropped(workers, until):
    Shelf.kept["gate"] = gate = threading.Event()
    with pytest.raises(RpcTimeoutError):
        rpc.rpc_sync("b", wait_and_refer, timeout=0.05)
    gate.set()


def wait_and_refer():
    assert Shelf.kept["gate"].wait(20)
    return [tg.RRef(number) for number in range(3)]


def test_futures_as_values(workers):
    Shelf.kept["future"] = Future()
    reference = rpc.remote("b", promise)
    Shelf.kept["future"].set_result(5)
    assert reference.to_here() == 5


@rpc.functions.async_execution
def promise():
    return Shelf.kept["future"]


# -- small methods


def test_annotations(workers):
    def total(numbers: rpc.RRef[list[int]]) -> int:
        return sum(numbers.to_here())

    assert total.__annotations__["numbers"].__args__ == (list[int],)
    assert total(rpc.remote("b", list, ((1, 2),))) == 3
    assert tg.RRef[int](3).local_value() == 3


def test_the_future_of_profiling(workers):
    reference = rpc.remote("b", Counter)
    assert reference._get_profiling_future().wait() is None
    mine = Future()
    reference._set_profiling_future(mine)
    assert reference._get_profiling_future() is mine


def counted(agent):
    counts = agent.debug_info()
    return counts["num_owner_rrefs"], counts["num_forks"]


def test_a_value_counts_while_another_worker_may_know_of_it(workers, until):
    """As PyTorch counts: a reference that was never sent is not the job's."""
    a, b, _ = workers
    mine = rpc.RRef(3)
    assert counted(a) == (0, 0)
    theirs = rpc.remote("b", abs, (-1,))
    assert theirs.to_here() == 1 and counted(b) == (1, 1)
    assert rpc.rpc_sync("b", keep_for_a_while, (mine,)) == (1, 1)
    until(lambda: counted(a) == (0, 0))
    own = rpc.remote("a", abs, (-1,))
    assert own.to_here() == 1
    until(lambda: counted(a) == (0, 0))


def keep_for_a_while(reference):
    return rpc.rpc_sync(reference.owner(), owner_counts)


def owner_counts():
    info = rpc.debug_info()
    return info["num_owner_rrefs"], info["num_forks"]

"""The driver of references beside its machine: it acts on what the machine decided, and its tables are the machine's."""

import gc
import threading

import pytest
import telegrad as tg
from telegrad import rpc
from telegrad.agents import make_agent
from telegrad.base.errors import RpcError, WorkerLostError
from telegrad.rpc.extend import InProcessLane, InProcessNetwork
from telegrad.rref import protocol as p
from telegrad.rref.context import RRefContext
from telegrad.rref.forks import State
from telegrad.rref.ids import GlobalId, WorkerKey
from telegrad.rref.numbers import ReferenceMethod
from telegrad.rref.transfers import Entry, EntryKind, ReferenceTransfer
from telegrad.testing import in_process_cluster

A, B, C = WorkerKey(0), WorkerKey(1), WorkerKey(2)


class NoLoop:
    """In the place of the I/O loop: only what the test asks for runs."""

    def call_soon_threadsafe(self, callback, *, context):
        pass

    def call_later(self, delay, callback, *, context):
        raise AssertionError("no timer runs")


@pytest.fixture
def agents():
    """Three agents without threads for time; ``a`` is current."""
    network = InProcessNetwork()
    made = [
        make_agent(name, rank, lanes=[InProcessLane(network)], io_loop=NoLoop(), secret=b"in one process, for tests")
        for rank, name in enumerate("abc")
    ]
    for agent in made:
        agent.listen()
    for agent in made:
        agent.start([other.record for other in made])
    with made[0].use():
        yield made
    for agent in made:
        agent.close()


def references(agent):
    return agent.part(RRefContext)


def left(agent):
    return {key: count for key, count in agent.debug_info()["references"].items() if count}


def passed_on(number):
    """A reference of ``c`` that ``a`` passes on."""
    return [Entry(GlobalId(0, 0, number), GlobalId(0, 0, 100 + number), C, EntryKind.UNREGISTERED)]


def created(number):
    """A creating call by ``a`` that asks for a reference."""
    return [Entry(GlobalId(0, 0, number), GlobalId(0, 0, 100 + number), B, EntryKind.CREATED)]


def arrive(agent, sender, number, entries):
    """The forks that the agent adopts; ``None`` if it refuses the transfer."""
    transfer = ReferenceTransfer.arriving(sender, number, entries)
    references(agent).handle(p.ReferencesArrived(transfer))
    return transfer.forks if transfer.adopted else None


def receive(agent, sender, message):
    references(agent).handle(p.Received(sender, message))


def test_a_repeated_transfer_leaves_the_fork_alone(agents):
    context = references(agents[1])
    (fork,) = arrive(agents[1], A, 0, passed_on(5))
    settled = fork.settled
    assert arrive(agents[1], A, 0, passed_on(5)) is None
    assert context.ownership.forks[fork.fork_id] is fork and fork.settled is settled
    receive(agents[1], C, p.Accept(fork.fork_id))
    assert settled.wait(10) is None and fork.state is State.CONFIRMED
    context.dropped.add(fork)
    assert not left(agents[1])


def test_a_transfer_that_was_refused_leaves_nothing_when_it_comes(agents):
    receive(agents[1], A, p.Cancel(0))
    receive(agents[1], A, p.Cancel(1, GlobalId(0, 0, 6)))
    assert arrive(agents[1], A, 0, passed_on(5)) is None
    assert arrive(agents[1], A, 1, created(6)) is None
    assert not left(agents[1])


def test_a_transfer_of_a_lost_worker_leaves_nothing(agents):
    context = references(agents[1])
    context.handle(p.WorkerLost(A))
    assert arrive(agents[1], A, 0, passed_on(5) + created(6)) is None
    assert not left(agents[1])


def test_a_transfer_after_the_end_leaves_nothing(agents):
    agents[1].close()
    assert arrive(agents[1], A, 0, passed_on(5) + created(6)) is None
    assert not any(references(agents[1]).ownership.counts().values())


def test_a_repeated_creation_keeps_its_value(agents):
    context = references(agents[1])
    assert arrive(agents[1], A, 0, created(6)) == []
    value = context.value(GlobalId(0, 0, 6))
    assert arrive(agents[1], A, 0, created(6)) is None
    assert context.value(GlobalId(0, 0, 6)) is value
    receive(agents[1], A, p.Delete(GlobalId(0, 0, 6), GlobalId(0, 0, 106)))
    assert not left(agents[1])


def test_a_fetch_that_overtakes_the_creating_call_waits_for_its_value(agents):
    context = references(agents[1])
    early = context.value(GlobalId(0, 0, 6))
    arrive(agents[1], A, 0, created(6))
    assert context.value(GlobalId(0, 0, 6)) is early
    receive(agents[1], A, p.Delete(GlobalId(0, 0, 6), GlobalId(0, 0, 106)))
    assert not left(agents[1])


def test_a_fetch_waits_also_when_a_request_comes_and_goes(agents):
    context = references(agents[1])
    early = context.value(GlobalId(0, 0, 6))
    receive(agents[1], C, p.Register(GlobalId(0, 0, 6), GlobalId(0, 0, 7)))
    receive(agents[1], C, p.Delete(GlobalId(0, 0, 6), GlobalId(0, 0, 7)))
    arrive(agents[1], A, 0, created(6))
    assert context.value(GlobalId(0, 0, 6)) is early


def test_a_fetch_gets_its_value_though_the_reference_is_dropped_before_it_is_made(agents):
    """Else it would wait for ever: the creating call keeps the value that it makes, for those that fetch it."""
    context = references(agents[1])
    early = context.value(GlobalId(0, 0, 6))
    creating = ReferenceTransfer.arriving(A, 0, created(6))
    context.handle(p.ReferencesArrived(creating), p.Received(A, p.Delete(GlobalId(0, 0, 6), GlobalId(0, 0, 106))))
    assert not left(agents[1]) and creating.value is early


@pytest.mark.parametrize(("how", "later"), [("refused", "was never created"), ("lost", "has no value")])
def test_a_fetch_whose_creating_call_never_comes_fails(agents, how, later):
    context = references(agents[1])
    early = context.value(GlobalId(0, 0, 6))
    if how == "lost":
        context.handle(p.WorkerLost(A))
    else:
        receive(agents[1], A, p.Cancel(0, GlobalId(0, 0, 6)))
    with pytest.raises(RpcError, match=r"of worker '.+' was never created"):
        early.wait(10)
    assert not left(agents[1])
    with pytest.raises(RpcError, match=later):
        context.value(GlobalId(0, 0, 6))


def test_a_fetch_by_a_fork_whose_giver_was_lost_before_the_owner_knew_of_it_names_the_giver(agents):
    context, value = references(agents[1]), GlobalId(0, 0, 6)
    arrive(agents[1], A, 0, created(6))
    with pytest.raises(RpcError, match=r"has no value .* keep a reference"):
        context.handle(p.WorkerLost(A))
        context.value(value)
    with pytest.raises(RpcError, match="worker 'a', which passed it to you, was lost before the owner heard of you"):
        context.value(value, unconfirmed=GlobalId(0, 0, 7))


def test_a_fetch_after_the_refusal_of_its_creating_call_is_told_so(agents):
    context = references(agents[1])
    receive(agents[1], A, p.Cancel(0, GlobalId(0, 0, 6)))
    with pytest.raises(RpcError, match=r"of worker '.+' was never created"):
        context.value(GlobalId(0, 0, 6))
    assert not left(agents[1])


def test_a_reference_at_its_owner_before_the_creating_call_waits_for_the_value(agents):
    context = references(agents[1])
    (fork,) = arrive(agents[1], C, 0, [Entry(GlobalId(0, 0, 6), GlobalId(2, 0, 1), B, EntryKind.UNREGISTERED)])
    with agents[1].use():
        reference = tg.RRef._of(context, fork)
        fetched = reference.to_here_async(60)
        arrive(agents[1], A, 0, created(6))
        context.value(GlobalId(0, 0, 6)).set_result("here")
        assert fetched.wait(10) == "here"


def test_a_fork_whose_creator_was_lost_before_this_worker_joined_is_rejected(agents):
    """Found by the simulator: the owner waited for ever for the creating call of a worker that it had never met."""
    agents[1].peers.at(0).mark_gone("it was lost before this worker joined")  # nothing tells the machine
    asked = p.encode_messages([p.Register(GlobalId(0, 0, 6), GlobalId(2, 0, 1))])
    references(agents[1])._on_message(agents[1].peers.at(2), asked)
    assert not left(agents[1])


def test_a_reference_of_a_worker_that_joins_is_registered_when_that_is_heard_of(monkeypatch):
    """Found by the simulator: the frame with the reference could not be read, and its connection was closed."""
    looks = []
    with in_process_cluster("a", "b", "c") as agents, agents[0].use():
        heard_of = agents[1].peers.heard_of
        monkeypatch.setattr(
            agents[1].peers,
            "heard_of",
            lambda number: (number != 2 or len(looks) > 3 or looks.append(2)) and heard_of(2),
        )
        with rpc.remote("c", list) as reference:
            assert rpc.rpc_sync("b", tg.RRef.owner_name, (reference,)) == "c" and len(looks) == 4


GO = threading.Event()


def make_when_told():
    GO.wait(30)
    return "made"


def test_a_fetch_keeps_its_reference(agents, until):
    """Found by the simulator: a fetch that waited for room was overtaken by the news that its reference was dropped."""
    GO.clear()
    fetched = rpc.remote("b", make_when_told).to_here_async(60)
    gc.collect()
    left(agents[0])  # carries out what was dropped
    assert [fork.dropped for fork in references(agents[0]).ownership.forks.values()] == [False]
    GO.set()
    assert fetched.wait(10) == "made"
    until(lambda: not any([left(agents[0]), left(agents[1])]))


@pytest.mark.parametrize("first", ["Confirmed", "Failed"])
def test_a_failure_counts_in_whatever_order_instructions_are_carried_out(agents, first):
    context = references(agents[1])
    (fork,) = arrive(agents[1], A, 0, passed_on(5))
    with context._lock:
        instructions = context.ownership.handle(p.Received(C, p.Accept(fork.fork_id)))
        instructions += context.ownership.handle(p.WorkerLost(C))
    relevant = [each for each in instructions if isinstance(each, (p.Confirmed, p.ForkFailed))]
    assert [type(each).__name__ for each in relevant] == ["Confirmed", "ForkFailed"]
    for each in relevant if first == "Confirmed" else reversed(relevant):
        context._carry_out([each])
    fork.settled.wait(10)
    with pytest.raises(WorkerLostError, match="the owner of this RRef, worker 'c', was lost"):
        fork.check()


def test_drops_need_no_thread(agents, until):
    with rpc.remote("b", list):
        pass
    until(lambda: not any([left(agents[0]), left(agents[1])]))  # looking does what the loop would do
    reference = tg.RRef("value")
    assert references(agents[0]).ownership.counts()["owner_forks"] == 1
    del reference
    gc.collect()
    assert not left(agents[0])
    assert not [thread for thread in threading.enumerate() if "references" in thread.name]


def test_a_finalizer_takes_no_lock(agents):
    reference = tg.RRef("value")
    with references(agents[0])._lock:
        del reference
    assert not left(agents[0])


def test_a_released_reference_is_dropped_on_the_io_loop(until):
    with in_process_cluster("a") as (agent,), agent.use():
        tg.RRef("value").release()
        until(lambda: not any(references(agent).ownership.counts().values()))


def test_a_value_that_nobody_makes_fails_at_its_owner(agents, monkeypatch):
    """The creating call of a worker to itself finds no thread."""

    def refuse(task):
        raise RpcError("no thread")

    monkeypatch.setattr(agents[0].threads.functions, "submit", refuse)
    reference = rpc.remote("a", list)
    with pytest.raises(RpcError, match="no thread"):
        reference.local_value()
    del reference


def test_a_fetch_faster_than_the_news_that_its_creation_failed_says_why(agents, monkeypatch, until):
    a, b, _ = agents
    accept = b.server.accept

    def lose_creations(message):
        if message.method == ReferenceMethod.CREATE:
            return
        a.caller.fail_where(
            lambda call: "remote" in str(call.what), lambda call: RpcError(f"{call.what} never arrived")
        )
        until(lambda: reference._fork.error)
        accept(message)

    monkeypatch.setattr(b.server, "accept", lose_creations)
    b.codec.intercept()
    reference = rpc.remote("b", list)
    with pytest.raises(RpcError, match=r"was not created: .*'b'"):
        reference.to_here()

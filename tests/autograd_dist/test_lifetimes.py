"""The machine of contexts: each ends on every live worker that it reached, in every order, and costs no memory afterwards."""

import random
from typing import NamedTuple

import pytest
from telegrad.autograd_dist.lifetimes import (
    ContextArrived,
    ContextEnded,
    ContextLeft,
    Lifetime,
    Lifetimes,
    Orphan,
    Received,
    Release,
    Send,
    WorkerLost,
    add_message,
    make_creator,
    make_id,
    split_id,
)
from telegrad.base.errors import IllegalEventError
from telegrad.testing.schedules import How, Mesh, replayable, seeds

SCHEDULES = 600
WORKERS = 4
A, B, C = range(3)


def machine(rank):
    return Lifetimes(make_creator(rank, 7), Lifetime)


def joined(machine, context, sender):
    """The context of a message that arrived."""
    machine.handle(ContextArrived(context, sender))
    return machine.live.get(context)


def told(machine, event):
    """Return the messages that the machine sends because of an event."""
    return [each for each in machine.handle(event) if isinstance(each, Send)]


def intervals(machine):
    return sum(len(ended.intervals()) for ended in machine.ended().values())


def test_an_id_holds_its_creator():
    assert split_id(make_id(make_creator(3, 9), 12)) == (make_creator(3, 9), 12)


def test_a_release_goes_down_the_tree_and_not_back():
    a, b, c = machine(A), machine(B), machine(C)
    context = a.create().id
    assert a.reach(a.live[context], B)
    assert b.reach(joined(b, context, A), A)  # the reply
    assert b.reach(b.live[context], C)
    assert c.reach(joined(c, context, B), B)  # a reply ...
    assert c.reach(c.live[context], A)  # ... and a call of the creator
    assert joined(b, context, C) is b.live[context]
    assert told(a, ContextLeft(context)) == [Send(B, Release(context, 0))]
    assert told(b, Received(A, Release(context, 0))) == [Send(C, Release(context, 0))]
    assert not told(c, Received(B, Release(context, 0)))
    assert not len(a) + len(b) + len(c)


def test_a_message_after_the_end_makes_no_context():
    a, b = machine(A), machine(B)
    context = a.create()
    assert a.reach(context, B)
    assert ContextEnded(context) in a.handle(ContextLeft(context.id))
    b.handle(Received(A, Release(context.id, 0)))
    assert joined(b, context.id, A) is None
    assert not a.reach(context, B)
    assert joined(a, context.id, B) is None


def test_an_orphan_is_told_by_the_creator():
    a, b, c = machine(A), machine(B), machine(C)
    context = a.create().id
    a.reach(a.live[context], B)
    joined(b, context, A)
    joined(c, context, B)
    assert told(c, WorkerLost(B)) == [Send(A, Orphan(context))]
    a.handle(Received(C, Orphan(context)))
    a.handle(WorkerLost(B))
    assert Send(C, Release(context, 0)) in told(a, ContextLeft(context))


def test_an_orphan_of_an_ended_context_is_told_at_once():
    a = machine(A)
    context = a.create().id
    a.handle(ContextLeft(context))
    assert told(a, Received(C, Orphan(context))) == [Send(C, Release(context, 0))]


def test_a_release_ends_all_contexts_since_its_first_one():
    a, b, c = machine(A), machine(B), machine(C)
    contexts = [a.create().id for _ in range(4)]
    for context in contexts:
        b.reach(joined(b, context, A), C)
    other = make_id(make_creator(C, 7), 2)
    b.reach(joined(b, other, C), A)
    sent = told(b, Received(A, Release(contexts[2], 2)))
    assert sent == [Send(C, Release(contexts[1], 2)), Send(C, Release(contexts[2], 2))]
    assert [each.id for each in b] == [contexts[0], contexts[3], other]
    assert joined(b, contexts[1], A) is None and joined(c, contexts[1], B) is not None


def test_a_release_covers_those_within_it():
    def release(rank, number, since):
        return Release(make_id(make_creator(rank, 7), number), since)

    assert release(A, 5, 2).covers(release(A, 5, 2))
    assert release(A, 5, 2).covers(release(A, 2, 2))
    assert release(A, 5, 2).covers(release(A, 4, 3))
    assert not release(A, 5, 2).covers(release(A, 6, 2))
    assert not release(A, 5, 2).covers(release(A, 1, 0))
    assert not release(A, 5, 2).covers(release(A, 3, 1))
    assert not release(A, 5, 2).covers(release(B, 4, 2))
    assert not release(A, 5, 0).covers(Orphan(make_id(make_creator(A, 7), 4)))


def test_only_the_creator_leaves_a_context():
    a, b = machine(A), machine(B)
    context = a.create().id
    b.handle(ContextArrived(context, A))
    with pytest.raises(IllegalEventError, match="worker 1 cannot end it"):
        b.handle(ContextLeft(context))


def test_what_a_lost_worker_sent_before_makes_an_orphan_or_nothing():
    c = machine(C)
    c.handle(WorkerLost(B))
    of_a, of_b = make_id(make_creator(A, 7), 5), make_id(make_creator(B, 7), 5)
    assert joined(c, of_b, B) is None
    assert joined(c, of_b, A) is None
    assert told(c, ContextArrived(of_a, B)) == [Send(A, Orphan(of_a))]
    assert c.live.get(of_a) is not None


@pytest.mark.parametrize("kept", [0, 3])
def test_ended_contexts_are_a_few_intervals(kept):
    """Also where most contexts never reach a worker, and some stay open for ever."""
    a, b = machine(A), machine(B)
    opened = [a.create() for _ in range(kept)]
    for number in range(20_000):
        context = a.create()
        if number % 3 == 0:
            a.reach(context, B)
            joined(b, context.id, A)
        for send in told(a, ContextLeft(context.id)):
            assert not told(b, Received(A, send.message))
    assert intervals(a) <= 2 and intervals(b) <= 2
    assert len(a) == len(opened) and len(b) == 0


def test_many_open_contexts_that_end_in_any_order():
    rng = random.Random(1)
    a, b = machine(A), machine(B)
    most, opened = 0, []
    for number in range(5_000):
        opened.append(a.create())
        if number % 2:
            a.reach(opened[-1], B)
            joined(b, opened[-1].id, A)
        if len(opened) > 20:
            for send in told(a, ContextLeft(opened.pop(rng.randrange(len(opened))).id)):
                b.handle(Received(A, send.message))
        most = max(most, intervals(a), intervals(b))
    assert most <= 2 * 21 + 2, "more intervals than open contexts can make"


# -- random schedules


class InContext(NamedTuple):
    """A call or a reply of a context, on the bare network."""

    context: int


class World:
    """Workers that create contexts, send messages in them, and die."""

    def __init__(self, rng):
        self.rng = rng
        self.mesh = Mesh(rng)
        self.machines = {}
        self.batches = {}  # messages that wait, by sender and receiver
        self.ended = set()
        for rank in range(WORKERS):
            self.mesh.join(rank)
            self.machines[rank] = machine(rank)

    def act(self):
        rank = self.rng.choice(list(self.machines))
        action = self.rng.random()
        if action < 0.25:
            self.machines[rank].create()
        elif action < 0.75:
            self.send(rank)
        elif action < 0.97 or len(self.machines) < 3:
            self.end(rank)
        else:
            del self.machines[rank]
            self.mesh.kill(rank)

    def some_context(self, rank, own=False):
        live = [each for each in self.machines[rank] if not own or split_id(each.id)[0] >> 16 == rank]
        return self.rng.choice(live) if live else None

    def send(self, rank):
        context = self.some_context(rank)
        if context is not None:
            to = self.rng.randrange(WORKERS)
            assert self.machines[rank].reach(context, to)
            self.mesh.throw(rank, to, InContext(context.id))

    def end(self, rank):
        context = self.some_context(rank, own=True)
        if context is not None:
            self.handle(rank, ContextLeft(context.id))
            self.ended.add(context.id)

    def handle(self, rank, event):
        for send in told(self.machines[rank], event):
            batch = self.batches.setdefault((rank, send.to), [])
            add_message(batch, send.message)
            if self.rng.random() < 0.5:
                self.post(rank, send.to)

    def post(self, rank, to):
        for message in self.batches.pop((rank, to)):
            if rank in self.machines:
                self.mesh.post(rank, to, message)

    def step(self):
        arrival = self.mesh.step()
        if arrival is None:
            return False
        if arrival.how is How.LOST:
            event = WorkerLost(arrival.source)
        elif isinstance(arrival.what, InContext):
            event = ContextArrived(arrival.what.context, arrival.source)
        else:
            event = Received(arrival.source, arrival.what)
        self.handle(arrival.to, event)
        return True

    def finish(self):
        for rank in self.machines:
            while (context := self.some_context(rank, own=True)) is not None:
                self.handle(rank, ContextLeft(context.id))
        while self.step() or self.batches:
            for rank, to in list(self.batches):
                self.post(rank, to)

    def check(self):
        for rank, each in self.machines.items():
            assert not len(each), f"worker {rank} keeps {[split_id(context.id) for context in each]}"
            assert set(each.ended()) <= {make_creator(other, 7) for other in self.machines}


@pytest.mark.parametrize("part", range(3))
def test_contexts_end_on_every_worker_whatever_is_lost(part):
    for seed in seeds(SCHEDULES)[part::3]:
        with replayable(seed):
            world = World(random.Random(seed))
            for _ in range(30):
                world.act()
                for _ in range(world.rng.randrange(4)):
                    world.step()
            world.finish()
            world.check()

"""The machine of contexts: each ends on every live worker that it reached, in every order, and costs no memory afterwards."""

import random
from typing import NamedTuple

import pytest
from telegrad.autograd_dist.lifetimes import ORPHAN, RELEASE, Creator, Lifetimes, Live, Send, make_id, split_id
from telegrad.testing.schedules import How, Mesh, replayable, seeds

SCHEDULES = 600
WORKERS = 4
A, B, C = range(3)


def machine(rank):
    return Lifetimes(Creator(rank, 7), Live)


def test_an_id_holds_its_creator():
    assert split_id(make_id(Creator(3, 9), 12)) == (Creator(3, 9), 12)


def test_a_release_goes_down_the_tree_and_not_back():
    a, b, c = machine(A), machine(B), machine(C)
    context = a.create().id
    assert a.reach(a.get(context), B)
    assert b.reach(b.heard(context, A), A)  # the reply
    assert b.reach(b.get(context), C)
    assert c.reach(c.heard(context, B), B)  # a reply ...
    assert c.reach(c.get(context), A)  # ... and a call of the creator
    assert b.heard(context, C) is b.get(context)
    a.release(context)
    assert a.take() == [Send(B, RELEASE, context, 0)]
    b.receive(A, RELEASE, context, 0)
    assert b.take() == [Send(C, RELEASE, context, 0)]
    c.receive(B, RELEASE, context, 0)
    assert not c.take()
    assert not len(a) + len(b) + len(c)


def test_a_message_after_the_end_makes_no_context():
    a, b = machine(A), machine(B)
    context = a.create()
    assert a.reach(context, B)
    a.release(context.id)
    b.receive(A, RELEASE, context.id, 0)
    assert b.heard(context.id, A) is None
    assert not a.reach(context, B)
    assert a.heard(context.id, B) is None


def test_an_orphan_is_told_by_the_creator():
    a, b, c = machine(A), machine(B), machine(C)
    context = a.create().id
    a.reach(a.get(context), B)
    b.heard(context, A)
    c.heard(context, B)
    c.worker_lost(B)
    assert c.take() == [Send(A, ORPHAN, context, 0)]
    a.receive(C, ORPHAN, context, 0)
    a.worker_lost(B)
    a.release(context)
    assert Send(C, RELEASE, context, 0) in a.take()


def test_an_orphan_of_an_ended_context_is_told_at_once():
    a = machine(A)
    context = a.create().id
    a.release(context)
    a.receive(C, ORPHAN, context, 0)
    assert a.take() == [Send(C, RELEASE, context, 0)]


def test_what_a_lost_worker_sent_before_makes_an_orphan_or_nothing():
    c = machine(C)
    c.worker_lost(B)
    of_a, of_b = make_id(Creator(A, 7), 5), make_id(Creator(B, 7), 5)
    assert c.heard(of_b, B) is None
    assert c.heard(of_b, A) is None
    assert c.heard(of_a, B) is not None
    assert c.take() == [Send(A, ORPHAN, of_a, 0)]


@pytest.mark.parametrize("kept", [0, 3])
def test_ended_contexts_are_a_few_intervals(kept):
    """Also where most contexts never reach a worker, and some stay open for ever."""
    a, b = machine(A), machine(B)
    opened = [a.create() for _ in range(kept)]
    for number in range(20_000):
        context = a.create()
        if number % 3 == 0:
            a.reach(context, B)
            b.heard(context.id, A)
        a.release(context.id)
        for send in a.take():
            b.receive(A, send.kind, send.context, send.since)
        assert not b.take()
    assert a.intervals() <= 2 and b.intervals() <= 2
    assert len(a) == len(opened) and len(b) == 0


def test_many_open_contexts_that_end_in_any_order():
    rng = random.Random(1)
    a, b = machine(A), machine(B)
    most, opened = 0, []
    for number in range(5_000):
        opened.append(a.create())
        if number % 2:
            a.reach(opened[-1], B)
            b.heard(opened[-1].id, A)
        if len(opened) > 20:
            a.release(opened.pop(rng.randrange(len(opened))).id)
        for send in a.take():
            b.receive(A, send.kind, send.context, send.since)
        most = max(most, a.intervals(), b.intervals())
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
        self.obey()

    def some_context(self, rank, own=False):
        live = [each for each in self.machines[rank]._live.values() if not own or split_id(each.id)[0].rank == rank]
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
            self.machines[rank].release(context.id)
            self.ended.add(context.id)

    def obey(self):
        for rank, each in self.machines.items():
            for send in each.take():
                self.mesh.post(rank, send.to, send)

    def step(self):
        arrival = self.mesh.step()
        if arrival is None:
            return False
        each = self.machines[arrival.to]
        if arrival.how is How.LOST:
            each.worker_lost(arrival.source)
        elif isinstance(arrival.what, InContext):
            each.heard(arrival.what.context, arrival.source)
        else:
            each.receive(arrival.source, *arrival.what[1:])
        self.obey()
        return True

    def finish(self):
        for rank in self.machines:
            while (context := self.some_context(rank, own=True)) is not None:
                self.machines[rank].release(context.id)
        self.obey()
        while self.step():
            pass

    def check(self):
        for rank, each in self.machines.items():
            assert not len(each), f"worker {rank} keeps {[split_id(context) for context in each._live]}"
            assert set(each._ended) <= {Creator(other, 7) for other in self.machines}


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

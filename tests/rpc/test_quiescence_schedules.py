"""Graceful shutdown of workers that call one another at random, over a bad network, and are lost: all survivors leave."""

import itertools
import random

import pytest
from telegrad.rpc.group import quiescence as q
from telegrad.rpc.group.quiescence import Quiescence
from telegrad.rpc.group.quiescence_messages import Counts
from telegrad.testing.schedules import How, Mesh, replayable, seeds


class Company:
    """Workers that call one another at random, also while they shut down, over a bad network."""

    def __init__(self, rng, count, replaces=False):
        self.rng, self.mesh = rng, Mesh(rng)
        self.replaces = replaces
        self.unaware = {}  # by number of one that joins: the workers that do not know it yet, and its place
        self.given_up = set()  # places to which no worker comes
        self.late = set()
        self.too_late = set()  # those of them that joined when a worker had been told to leave
        self.taken = {rank: set() for rank in range(count)}  # by worker: the places of which it knows a new worker
        self.next_number = count
        self.machines = {rank: Quiescence(rank, range(count)) for rank in range(count)}
        self.traffic = {rank: {} for rank in range(count)}  # peer: [sent, received]
        self.waiting = {rank: set() for rank in range(count)}  # calls under way: (peer, number)
        self.running = dict.fromkeys(range(count), 0)
        self.known_lost = {rank: set() for rank in range(count)}
        self.numbers = itertools.count()
        self.finished = set()
        for rank in range(count):
            self.mesh.join(rank)

    def counts(self, rank):
        return Counts(
            {peer: tuple(pair) for peer, pair in self.traffic[rank].items()},
            len(self.waiting[rank]) + self.running[rank],
        )

    def call(self, rank, depth):
        others = self.machines.keys() - {rank} - self.known_lost[rank] - self.too_late
        if not others or rank in self.too_late:
            return
        to = self.rng.choice(sorted(others))
        number = next(self.numbers)
        self.waiting[rank].add((to, number))
        self.send(rank, to, ("call", number, depth))

    def send(self, rank, to, what):
        if to not in self.known_lost[rank]:
            self.traffic[rank].setdefault(to, [0, 0])[0] += 1
            self.mesh.post(rank, to, what)

    def step(self):
        arrival = self.mesh.step()
        if arrival is None:
            return False
        how, source, rank, what = arrival
        if how is How.LOST:
            self.known_lost[rank].add(source)
            self.waiting[rank] = {call for call in self.waiting[rank] if call[0] != source}
            if source in self.finished and self.rng.random() < 0.5:  # it said goodbye, to those that are connected
                self.handle(rank, q.AllAgreed(source))
            elif self.replaces and source not in self.finished | self.taken[rank]:
                self.handle(rank, q.PlaceVacant(source))
                if source in self.given_up:
                    self.mesh.later(rank, ("given up", source))
            self.handle(rank, q.WorkerLost(source))
        elif how is How.LATER:
            self.happens_later(rank, what)
        elif isinstance(what, tuple):
            self.work_arrives(source, rank, what)
        else:
            self.handle(rank, q.Received(source, what))
        return True

    def happens_later(self, rank, what):
        if what == "resume":
            self.handle(rank, q.PauseEnded())
        elif what == "shutdown":
            self.handle(rank, q.ShutdownCalled(lambda: self.counts(rank)))
        elif what == "leave":
            self.kill(rank)
        elif what[0] == "joined":
            self.taken[rank].add(what[2])
            self.handle(rank, q.WorkerJoined(*what[1:]))
            self.aware(what[1], rank)
        elif what[0] == "given up":
            self.handle(rank, q.PlaceGivenUp(what[1]))
        else:
            self.finish_handler(rank, *what)

    def work_arrives(self, source, rank, what):
        assert rank not in self.finished, f"work for {rank} after it was let go"
        self.traffic[rank].setdefault(source, [0, 0])[1] += 1
        kind, number, depth = what
        if kind == "reply":
            self.waiting[rank].discard((source, number))
        else:
            self.running[rank] += 1
            self.mesh.later(rank, (source, number, depth))

    def finish_handler(self, rank, source, number, depth):
        assert rank not in self.finished
        if depth and self.rng.random() < 0.7 and len(self.machines) > len(self.known_lost[rank]) + 1:
            self.call(rank, depth - 1)
        self.running[rank] -= 1
        self.send(rank, source, ("reply", number, 0))

    def handle(self, rank, event):
        for said in self.machines[rank].handle(event):
            if isinstance(said, q.Send):
                self.mesh.post(rank, said.to, said.message)
            elif isinstance(said, q.Pause):
                self.mesh.later(rank, "resume")
            else:
                self.finish(rank)

    def finish(self, rank):
        assert rank not in self.finished
        self.finished.add(rank)
        assert not self.waiting[rank] and not self.running[rank]
        self.mesh.later(rank, "leave")

    def kill(self, rank):
        if len(self.machines) > 1:
            del self.machines[rank]
            self.mesh.kill(rank)
            for number in list(self.unaware):
                self.aware(number, rank)

    # -- workers that take the places of lost ones

    def replace(self, place):
        """Let another worker join in the place of one that was killed, or give the place up."""
        if self.rng.random() < 0.3:
            self.given_up.add(place)
            return
        number, self.next_number = self.next_number, self.next_number + 1
        self.unaware[number] = ({*self.machines}, place)
        for rank in self.machines:
            self.mesh.later(rank, ("joined", number, place))

    def aware(self, number, rank):
        members, place = self.unaware[number]
        members.discard(rank)
        if members:
            return
        del self.unaware[number]
        dead = {*self.mesh.dead} - self.finished
        held = set().union(*self.taken.values(), {place})
        self.machines[number] = Quiescence(number, [*self.machines, number], vacant=dead - held)
        self.traffic[number], self.waiting[number], self.running[number] = {}, set(), 0
        self.known_lost[number], self.taken[number] = set(self.mesh.dead), set(held)
        self.late.add(number)
        if self.finished:
            self.too_late.add(number)
        self.mesh.join(number)
        for later, (others, their_place) in self.unaware.items():
            others.add(number)
            self.mesh.later(number, ("joined", later, their_place))
        for lost in dead - held:
            self.mesh.later(number, ("given up", lost))
        if self.rng.random() < 0.5 and len(self.machines) > 1:
            self.call(number, depth=2)
        self.mesh.later(number, "shutdown")


def run_schedule(seed, replaces=False):
    rng = random.Random(seed)
    company = Company(rng, rng.randint(2, 5), replaces)
    for rank in range(len(company.machines)):
        company.mesh.later(rank, "shutdown")
    for _ in range(rng.randrange(4)):
        company.call(rng.choice(list(company.machines)), depth=3)
    kills = rng.randrange(3)
    while company.step():
        if kills and rng.random() < 0.03:
            kills -= 1
            rank = rng.choice(list(company.machines))
            company.kill(rank)
            if replaces and rank not in company.machines and rank not in company.finished:
                company.replace(rank)
    assert set(company.machines) <= company.finished, "a survivor did not finish"
    return company


@pytest.mark.slow
@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.soak)])
def test_all_survivors_finish_in_every_schedule(count):
    chosen = seeds(count)
    lost = 0
    for seed in chosen:
        with replayable(seed):
            lost += len(run_schedule(seed).mesh.dead)
    print(f"\n{len(chosen)} shutdowns, {lost} workers lost or left early")


@pytest.mark.slow
@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.soak)])
def test_so_do_they_and_those_that_take_the_places_of_lost_ones(count):
    joined = 0
    for seed in seeds(count):
        with replayable(seed):
            joined += len(run_schedule(seed, replaces=True).late)
    assert joined > count / 20

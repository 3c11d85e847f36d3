"""Thousands of random schedules of verdicts about lost workers: all who stay agree."""

import heapq
import itertools
import random

import pytest
from telegrad.rpc.links.reports import Evidence, LinkFinding
from telegrad.rpc.losses.events import Lose, Opened, Reached, ReportReceived, SendReport, TimePassed, Unreachable
from telegrad.rpc.losses.verdict import Verdicts
from telegrad.testing.schedules import replayable, seeds

TIMEOUT = 10.0
SILENT = Evidence(LinkFinding.SILENT, "no connection within 10 s")
DEAD = Evidence(LinkFinding.DEAD, "connection refused")


class World:
    """Workers, links that are cut and mended, deaths, and workers that stand still; time is simulated.

    Both ends of a link notice at different times that it is cut, silently or with a refusal. A report takes a while,
    passes wherever a path of links leads, and waits where none does. Reports overtake one another.
    """

    def __init__(self, rng, count):
        self.rng, self.now = rng, 0.0
        self.machines = {rank: Verdicts(rank, range(count), "w{}".format, TIMEOUT) for rank in range(count)}
        self.cut_since = {}  # pair: when its link was cut
        self.mended_at = {}
        self.killed, self.frozen, self.killed_at = set(), set(), {}
        self._events = []
        self._numbers = itertools.count()
        self.at(1.0, self.tick)

    def at(self, delay, action, *arguments):
        heapq.heappush(self._events, (self.now + delay, next(self._numbers), action, arguments))

    def run(self, seconds):
        end = self.now + seconds
        while self._events and self._events[0][0] <= end:
            self.now, _, action, arguments = heapq.heappop(self._events)
            action(*arguments)
        self.now = end

    def tick(self):
        for rank in self.machines:
            if self.runs(rank):
                self.handle(rank, TimePassed())
        self.at(1.0, self.tick)

    def runs(self, rank):
        return rank not in self.killed | self.frozen and not self.machines[rank].closed

    def alive(self):
        return [rank for rank in self.machines if rank not in self.killed and not self.machines[rank].closed]

    def linked(self, one, other):
        """Return whether the kernels and transports of the two answer each other."""
        gone = self.killed | self.frozen
        return one not in gone and other not in gone and frozenset((one, other)) not in self.cut_since

    def connected(self, one, other):
        seen, fresh = {one}, [one]
        while fresh:
            at = fresh.pop()
            found = {rank for rank in self.alive() if rank not in seen and self.linked(at, rank)}
            seen |= found
            fresh += found
        return other in seen

    # -- faults

    def cut(self, one, other):
        pair = frozenset((one, other))
        if pair not in self.cut_since:
            self.cut_since[pair] = self.now
            for rank, peer in ((one, other), (other, one)):
                self.at(TIMEOUT + self.rng.random() * 5, self.notice_silence, rank, peer, self.now)

    def mend(self, one, other):
        pair = frozenset((one, other))
        if self.cut_since.pop(pair, None) is not None:
            self.mended_at[pair] = self.now
            for rank, peer in ((one, other), (other, one)):
                self.at(self.rng.random() * 2, self.notice_life, rank, peer)

    def kill(self, rank):
        self.killed.add(rank)
        self.killed_at[rank] = self.now
        for other in self.machines:
            self.at(self.rng.random() * 0.05, self.notice_death, other, rank)

    def freeze(self, rank, seconds):
        self.frozen.add(rank)
        for other in self.machines:
            self.at(TIMEOUT + self.rng.random() * 5, self.notice_silence, other, rank, self.now)
        self.at(seconds, self.thaw, rank)

    def thaw(self, rank):
        self.frozen.discard(rank)
        for other in self.machines:
            self.mended_at[frozenset((rank, other))] = self.now
            self.at(self.rng.random() * 2, self.notice_life, other, rank)
            self.at(self.rng.random() * 2, self.notice_life, rank, other)

    # -- what the workers notice

    def notice_silence(self, rank, peer, since):
        if rank in self.frozen:
            self.at(TIMEOUT, self.notice_silence, rank, peer, since)
            return
        still = self.cut_since.get(frozenset((rank, peer))) == since or peer in self.frozen
        if still and self.runs(rank) and rank != peer:
            self.handle(rank, Unreachable(peer, SILENT))

    def notice_death(self, rank, peer):
        if not self.runs(rank):
            return
        if frozenset((rank, peer)) in self.cut_since:
            self.at(TIMEOUT * self.rng.random(), self.notice_gone_behind_a_cut, rank, peer)
        else:
            self.handle(rank, Unreachable(peer, DEAD))

    def notice_gone_behind_a_cut(self, rank, peer):
        if self.runs(rank):
            cut = frozenset((rank, peer)) in self.cut_since
            self.handle(rank, Unreachable(peer, SILENT if cut else DEAD))

    def notice_life(self, rank, peer):
        if rank == peer or not self.runs(rank):
            return
        if peer in self.killed or self.machines[peer].closed:
            self.notice_death(rank, peer)
        elif self.linked(rank, peer):
            if rank in self.machines[peer].report.lost:  # it refuses our session, and says why
                self.handle(rank, ReportReceived(peer, self.machines[peer].report))
            else:
                self.handle(rank, Opened(peer))

    # -- what the machines say

    def handle(self, rank, event):
        for said in self.machines[rank].handle(event, self.now):
            if isinstance(said, SendReport):
                for to in said.to:
                    self.at(self.rng.random() * 0.3, self.deliver, rank, to, said.report)
            elif isinstance(said, Lose):
                self.check_loss(rank, said.number)
            else:
                for other in self.machines:  # it closes its port
                    self.at(self.rng.random() * 0.05, self.notice_life, other, rank)

    def deliver(self, rank, to, report):
        gone = rank in self.killed or to in self.killed or self.machines[to].closed
        if gone or to not in self.machines[rank].members:
            return
        if not (self.connected(rank, to) and self.runs(to)):
            self.at(3.0, self.deliver, rank, to, report)
            return
        self.handle(to, ReportReceived(rank, report))
        if self.linked(rank, to):
            refused = rank in self.machines[to].report.lost
            hear = (self.notice_life, rank, to) if refused else (self.hear_answer, rank, to, report.version)
            self.at(self.rng.random() * 0.1, *hear)

    def hear_answer(self, rank, peer, version):
        """Read an acknowledgement, also if its sender has died meanwhile, or its receiver was suspended."""
        if rank in self.frozen:
            self.at(self.rng.random(), self.hear_answer, rank, peer, version)
        elif self.runs(rank):
            self.handle(rank, Reached(peer, version))

    def check_loss(self, judge, rank):
        """Nobody is lost who has had a link to one that stays, for as long as evidence takes to come in."""
        if rank in self.killed or self.machines[rank].closed or rank in self.frozen:
            return
        for other in self.alive():
            if other in self.machines[judge].members and self.linked(other, rank):
                mended = self.mended_at.get(frozenset((other, rank)), 0.0)
                assert self.now - mended < 2 * TIMEOUT, f"{judge} lost {rank}, which {other} reaches"


def run_schedule(seed):
    rng = random.Random(seed)
    count = rng.randint(2, 7)
    world = World(rng, count)
    ranks = list(range(count))
    for _ in range(rng.randint(1, 4)):
        fault = rng.choice(("kill", "link", "link", "split", "freeze", "kills"))
        world.run(rng.random() * 60)
        strike(world, rng, ranks, fault)
    world.run(200)
    return world


def strike(world, rng, ranks, fault):
    if fault == "kill":
        kill_one(world, rng)
    elif fault == "kills":
        kill_one(world, rng)
        kill_one(world, rng)
    elif fault == "freeze":
        rank = rng.choice(ranks)
        if rank not in world.killed | world.frozen:
            world.freeze(rank, rng.random() * 60)
    elif fault == "link":
        one, other = rng.sample(ranks, 2)
        world.cut(one, other)
        if rng.random() < 0.5:
            world.at(rng.random() * 60, world.mend, one, other)
    else:
        side = {rank for rank in ranks if rng.random() < 0.5}
        mending = rng.random() * 60 if rng.random() < 0.5 else None
        for one, other in itertools.product(side, set(ranks) - side):
            world.cut(one, other)
            if mending is not None:
                world.at(mending, world.mend, one, other)


def kill_one(world, rng):
    if len(world.alive()) > 1:
        world.kill(rng.choice(world.alive()))


def check(world):
    stayed = world.alive()
    for rank in stayed:
        machine = world.machines[rank]
        assert sorted(machine.members) == stayed, f"{rank} counts {machine.members} as members, {stayed} stayed"
    for one, other in itertools.combinations(stayed, 2):
        assert world.connected(one, other), f"{stayed} stayed, and {one} and {other} cannot reach each other"


SCHEDULES = 200


@pytest.mark.slow
def test_all_who_stay_agree_in_every_schedule():
    chosen = seeds(SCHEDULES)
    stayed = lost = 0
    for seed in chosen:
        with replayable(seed):
            world = run_schedule(seed)
            check(world)
        stayed += len(world.alive())
        lost += len(world.machines) - len(world.alive())
    print(f"\n{len(chosen)} jobs, {stayed} workers stayed, {lost} were lost")


@pytest.mark.parametrize("seed", range(20))
def test_of_two_halves_one_at_most_goes_on_whatever_they_heard_before(seed):
    """Half of the workers cannot reach worker 1, and say so to all. They reach it again as the job is cut into halves."""
    world = World(random.Random(seed), 8)
    near, far = [0, 1, 2, 3], [4, 5, 6, 7]
    for rank in (0, 2, 3):
        world.cut(rank, 1)
    world.run(1.5 * TIMEOUT + 0.5)
    for rank in (0, 2, 3):
        world.mend(rank, 1)
    for one, other in itertools.product(near, far):
        world.cut(one, other)
    world.run(10 * TIMEOUT)
    assert world.alive() == near
    check(world)

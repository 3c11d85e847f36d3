"""Verdicts about lost workers: who is cut off is lost, who is reached by anyone is not, and all who stay agree."""

import heapq
import itertools
import random
import time
from collections import deque

import pytest
from telegrad.core.errors import IllegalEventError
from telegrad.rpc.reports import Evidence, Finding
from telegrad.rpc.verdict import Close, Failed, Left, Lose, Reached, Received, SendReport, TimePassed, Verdicts
from telegrad.testing.schedules import every_order, replayable, seeds

TIMEOUT = 10.0
SILENT = Evidence(Finding.SILENT, "no connection within 10 s")
DEAD = Evidence(Finding.DEAD, "connection refused")


class Job:
    """Machines whose reports arrive at once, wherever a path of links leads."""

    def __init__(self, count):
        self.machines = {rank: Verdicts(rank, {n: f"w{n}" for n in range(count)}, TIMEOUT) for rank in range(count)}
        self.held = set()  # they answer nothing for a while
        self.now = 0.0
        self.due = deque()

    def failed(self, rank, other, evidence):
        self.handle(rank, Failed(other, evidence))
        self.settle()

    def handle(self, rank, event):
        self.due.extend((rank, said) for said in self.machines[rank].handle(event, self.now))

    def cut(self, one, other):
        self.failed(one, other, SILENT)
        self.failed(other, one, SILENT)

    def kill(self, rank):
        del self.machines[rank]

    def pass_time(self, seconds):
        self.now += seconds
        for rank in self.machines:
            self.handle(rank, TimePassed())
        self.settle()

    def settle(self):
        while self.due:
            rank, said = self.due.popleft()
            if isinstance(said, SendReport) and rank in self.machines:
                self.deliver(rank, said)

    def deliver(self, rank, said):
        for to in said.to:
            way = self.machines[rank].next_hop(to) is not None
            if way and to in self.machines and to not in self.held:
                self.handle(to, Received(rank, said.report))
                if not self.machines[rank].report.suspects(to) and not self.machines[to].report.suspects(rank):
                    self.handle(rank, Reached(to))

    def lost(self):
        return {rank: sorted(machine.report.lost) for rank, machine in self.machines.items() if not machine.closed}

    def closed(self):
        return [rank for rank, machine in self.machines.items() if machine.closed]


def test_of_two_the_other_is_lost_when_nobody_listens_there():
    for survivor in (0, 1):
        job = Job(2)
        job.kill(1 - survivor)
        job.failed(survivor, 1 - survivor, DEAD)
        assert job.lost() == {survivor: [1 - survivor]}


def test_of_two_that_are_cut_off_the_lower_goes_on():
    job = Job(2)
    job.cut(1, 0)
    assert job.lost() == {0: [1]} and job.closed() == [1]
    assert "'w0'" in job.machines[1].closed


def test_a_killed_worker_is_lost_as_soon_as_all_have_noticed():
    job = Job(4)
    job.kill(2)
    job.failed(0, 2, DEAD)
    job.failed(3, 2, SILENT)
    assert job.lost() == {0: [], 1: [], 3: []}
    job.failed(1, 2, DEAD)
    assert job.lost() == {0: [2], 1: [2], 3: [2]}
    loss = job.machines[3].report.lost[2]
    assert loss.reason == "connection refused, says worker 'w0'; confirmed by 'w1', 'w3'", loss


def test_a_cut_link_costs_nobody_the_job():
    for note in (SILENT, DEAD):
        job = Job(3)
        job.failed(0, 1, note)
        job.failed(1, 0, note)
        job.pass_time(100)
        assert job.lost() == {0: [], 1: [], 2: []} and job.closed() == []
        assert job.machines[0].witness(1) == job.machines[1].witness(0) == 2
        assert job.machines[0].next_hop(1) == job.machines[1].next_hop(0) == 2
        assert job.machines[2].next_hop(0) == 0
        job.handle(0, Reached(1))
        job.handle(1, Reached(0))
        job.settle()
        assert all(machine.quiet for machine in job.machines.values())


def test_a_chain_of_links_holds_the_job_together():
    job = Job(4)
    for one, other in ((0, 2), (0, 3), (1, 3)):
        job.cut(one, other)
    job.pass_time(100)
    assert job.closed() == [] and job.lost() == {rank: [] for rank in range(4)}
    assert job.machines[0].next_hop(3) == 1 and job.machines[3].next_hop(0) == 2


def test_the_minority_closes_and_the_majority_goes_on():
    job = Job(5)
    for one, other in itertools.product((0, 1), (2, 3, 4)):
        job.cut(one, other)
    assert job.closed() == [0, 1]
    assert job.lost() == {2: [0, 1], 3: [0, 1], 4: [0, 1]}


def test_the_side_of_the_lowest_goes_on_at_a_tie():
    job = Job(4)
    for one, other in itertools.product((0, 3), (1, 2)):
        job.cut(one, other)
    assert job.closed() == [1, 2] and job.lost() == {0: [1, 2], 3: [1, 2]}


def test_a_suspended_worker_does_not_expel_others():
    """It may be lost without knowing it, and the others may have split since."""
    job = Job(3)
    job.now = 1.0
    job.handle(0, TimePassed())
    job.now = 100.0
    job.handle(0, Failed(1, DEAD))
    job.handle(0, Failed(2, SILENT))
    assert job.closed() == [0] and "was suspended" in job.machines[0].closed


def test_a_suspended_worker_goes_on_once_it_heard_from_a_member():
    job = Job(3)
    job.now = 1.0
    job.handle(0, TimePassed())
    job.now = 100.0
    job.handle(0, Reached(1))
    job.kill(2)
    job.failed(0, 2, SILENT)
    job.failed(1, 2, SILENT)
    assert job.lost() == {0: [2], 1: [2]}


def test_of_three_pieces_without_a_majority_none_goes_on():
    job = Job(5)
    pieces = ((0, 1), (2, 3), (4,))
    for one, other in itertools.combinations(pieces, 2):
        for near, far in itertools.product(one, other):
            job.handle(near, Failed(far, SILENT))
            job.handle(far, Failed(near, SILENT))
    job.settle()
    assert job.closed() == [0, 1, 2, 3, 4]


def test_the_dead_do_not_vote():
    """One of four is left after three were killed at once: it goes on."""
    job = Job(4)
    for rank in (0, 1, 2):
        job.kill(rank)
    for rank in (0, 1, 2):
        job.failed(3, rank, DEAD)
    assert job.lost() == {3: [0, 1, 2]}


def test_a_worker_that_says_nothing_does_not_delay_a_death_for_ever():
    job = Job(4)
    job.held.add(3)
    job.kill(2)
    job.failed(0, 2, DEAD)
    job.failed(1, 2, DEAD)
    assert job.lost()[0] == []  # 3 may have a link to it
    for _ in range(4):
        assert job.lost()[0] == []
        job.pass_time(TIMEOUT / 4)
    assert job.lost()[0] == job.lost()[1] == [2]


def test_a_worker_that_says_nothing_vetoes_silence():
    """It may hold the interpreter's lock for a minute, and be the one that still has a link."""
    job = Job(4)
    job.held.add(3)
    for rank in (0, 1):
        job.cut(rank, 2)
    job.pass_time(1000)
    assert job.closed() == [] and job.lost() == {rank: [] for rank in range(4)}


def machine_of_three(rank):
    return Verdicts(rank, {0: "a", 1: "b", 2: "c"}, TIMEOUT)


def test_a_suspicion_is_answered_by_asking_the_suspected_worker():
    machine, other = machine_of_three(0), machine_of_three(1)
    (suspicion,) = other.handle(Failed(2, SILENT), 0.0)
    assert suspicion.to == [0, 2]
    (question,) = machine.handle(Received(1, suspicion.report), 0.0)
    assert question.to == [2] and not question.report.links
    assert machine.handle(Received(1, suspicion.report), 0.0) == []
    (answer,) = machine.handle(Reached(2), 0.0)
    assert answer.to == [1] and answer.report.links == {2: Evidence(Finding.REACHED)}
    assert machine.handle(Reached(2), 0.0) == []


def test_an_answer_is_withdrawn_with_the_suspicion():
    """Else it would be a witness for a worker that died since."""
    job = Job(3)
    job.cut(0, 2)
    assert job.machines[0].witness(2) == 1
    job.handle(2, Reached(0))
    job.handle(0, Reached(2))
    job.settle()
    job.kill(2)
    job.failed(0, 2, DEAD)
    assert job.machines[0].witness(2) is None
    job.failed(1, 2, DEAD)
    assert job.lost() == {0: [2], 1: [2]}


def test_late_reports_and_those_of_the_lost_change_nothing():
    machine, other = machine_of_three(0), machine_of_three(1)
    first, second = (other.handle(event, 0.0)[0].report for event in (Failed(2, SILENT), Reached(2)))
    assert machine.handle(Received(1, second), 0.0) == machine.handle(Received(1, first), 0.0) == []
    assert machine.quiet
    machine.handle(Left(1, "it has shut down"), 0.0)
    (late,) = other.handle(Failed(0, SILENT), 0.0)
    assert machine.handle(Received(1, late.report), 0.0) == []
    assert machine.members == {0, 2} and not machine.closed


def test_an_event_of_a_stranger_raises():
    for event in (Reached(3), Failed(3, DEAD), Left(3, ""), Received(3, None)):
        with pytest.raises(IllegalEventError, match="rank 3"):
            machine_of_three(0).handle(event, 0.0)


def test_a_goodbye_is_passed_on():
    job = Job(3)
    job.handle(0, Left(2, "it has shut down"))
    job.kill(2)
    job.settle()
    assert job.lost() == {0: [2], 1: [2]}
    assert job.machines[1].report.lost[2].left


def test_a_worker_that_others_count_as_lost_closes():
    job = Job(3)
    job.handle(0, Left(2, "it has shut down"))
    job.settle()
    assert job.closed() == []  # it was not told: it said goodbye
    job.handle(2, Received(1, job.machines[1].report))
    assert job.closed() == [2] and "'w1'" in job.machines[2].closed


def test_everyone_agrees_in_every_order_of_evidence():
    def scenario(choices):
        machines = {rank: Verdicts(rank, {n: f"w{n}" for n in range(3)}, TIMEOUT) for rank in (0, 1)}
        flying = [(rank, 2, DEAD) for rank in machines]
        while flying:
            flight = choices.pick(flying)
            flying.remove(flight)
            to, source, what = flight
            event = Failed(source, what) if isinstance(what, Evidence) else Received(source, what)
            for said in machines[to].handle(event, 0.0):
                assert not isinstance(said, Close)
                if isinstance(said, SendReport):
                    flying += [(other, to, said.report) for other in said.to if other in machines]
        assert [sorted(machine.report.lost) for machine in machines.values()] == [[2], [2]]

    assert every_order(scenario) > 10


# -- thousands of schedules


class World:
    """Workers, links that are cut and mended, deaths, and workers that stand still; time is simulated.

    Both ends of a link notice at different times that it is cut, silently or with a refusal. A report takes a while,
    passes wherever a path of links leads, and waits where none does. Reports overtake one another.
    """

    def __init__(self, rng, count):
        self.rng, self.now = rng, 0.0
        self.machines = {rank: Verdicts(rank, {n: f"w{n}" for n in range(count)}, TIMEOUT) for rank in range(count)}
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
        """Whether the kernels and transports of the two answer each other."""
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
            self.handle(rank, Failed(peer, SILENT))

    def notice_death(self, rank, peer):
        if not self.runs(rank):
            return
        if frozenset((rank, peer)) in self.cut_since:
            self.at(TIMEOUT * self.rng.random(), self.notice_gone_behind_a_cut, rank, peer)
        else:
            self.handle(rank, Failed(peer, DEAD))

    def notice_gone_behind_a_cut(self, rank, peer):
        if self.runs(rank):
            cut = frozenset((rank, peer)) in self.cut_since
            self.handle(rank, Failed(peer, SILENT if cut else DEAD))

    def notice_life(self, rank, peer):
        if rank == peer or not self.runs(rank):
            return
        if peer in self.killed or self.machines[peer].closed:
            self.notice_death(rank, peer)
        elif self.linked(rank, peer):
            if rank in self.machines[peer].report.lost:  # it refuses our connection, and says why
                self.handle(rank, Received(peer, self.machines[peer].report))
            else:
                self.handle(rank, Reached(peer))

    # -- what the machines say

    def handle(self, rank, event):
        for said in self.machines[rank].handle(event, self.now):
            if isinstance(said, SendReport):
                for to in said.to:
                    self.at(self.rng.random() * 0.3, self.deliver, rank, to, said.report)
            elif isinstance(said, Lose):
                self.check_loss(rank, said.rank)
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
        self.handle(to, Received(rank, report))
        if self.linked(rank, to):
            self.at(self.rng.random() * 0.1, self.notice_life, rank, to)

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


SCHEDULES = 500


def test_all_who_stay_agree_in_every_schedule(capsys):
    started = time.perf_counter()
    chosen = seeds(SCHEDULES)
    stayed = lost = 0
    for seed in chosen:
        with replayable(seed):
            world = run_schedule(seed)
            check(world)
        stayed += len(world.alive())
        lost += len(world.machines) - len(world.alive())
    with capsys.disabled():
        print(f"\n{len(chosen)} jobs, {stayed} workers stayed, {lost} were lost, {time.perf_counter() - started:.1f} s")


@pytest.mark.parametrize("count", [64])
def test_many_workers_lose_one_with_few_words(count):
    job = Job(count)
    job.kill(5)
    said = []
    deliver = job.deliver
    job.deliver = lambda rank, tell: said.extend(tell.to) or deliver(rank, tell)
    for rank in job.machines:
        job.handle(rank, Failed(5, DEAD))
    job.settle()
    assert job.lost() == {rank: [5] for rank in range(count) if rank != 5}
    assert len(said) < 3 * count * count

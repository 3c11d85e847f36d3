"""Losses among many workers: few messages, one verdict, also if the workers that spread it die meanwhile."""

import itertools
import random

import pytest
from helpers.verdicts import DEAD, SILENT, TIMEOUT, Job
from telegrad.rpc.losses.events import Lose, ReportReceived, SendReport, TimePassed, Unreachable
from telegrad.rpc.losses.verdict import Verdicts
from telegrad.testing.schedules import replayable, seeds

COUNT = 300


class Counted(Job):
    """Job that counts its messages."""

    def __init__(self, count):
        super().__init__(count)
        self.messages = 0

    def deliver(self, rank, said):
        self.messages += len(said.to)
        super().deliver(rank, said)

    def lose(self, *gone):
        for rank in gone:
            self.kill(rank)
        for rank, other in itertools.product(list(self.machines), gone):
            self.handle(rank, Unreachable(other, DEAD))
        self.settle()


@pytest.mark.parametrize(
    ("count", "gone"), [(1000, (500,)), (COUNT, (0,)), (COUNT, (0, 1)), (COUNT, (0, 1, 2, 200, 299))]
)
def test_a_loss_takes_a_few_messages_for_each_worker(count, gone):
    job = Counted(count)
    job.lose(*gone)
    assert job.lost() == {rank: sorted(gone) for rank in range(count) if rank not in gone}
    assert job.messages < 4 * len(gone) * count
    assert all(machine.quiet for machine in job.machines.values())


def test_a_silent_worker_takes_a_few_more():
    job = Counted(200)
    job.kill(7)
    for rank in job.machines:
        job.handle(rank, Unreachable(7, SILENT))
    job.settle()
    assert job.lost() == {rank: [7] for rank in range(200) if rank != 7}
    assert job.messages < 6 * 200


def test_a_cut_link_takes_a_few_messages_in_a_job_of_any_size():
    """The leader reaches both ends, so it asks no other worker."""
    job = Counted(COUNT)
    job.cut(3, 5)
    for _ in range(10):
        job.pass_time(TIMEOUT / 2)
    assert job.machines[3].witness(5) == job.machines[5].witness(3) == 0
    assert job.lost() == {rank: [] for rank in range(COUNT)} and job.messages <= 8


def test_a_half_of_a_job_closes_together():
    job = Counted(16)
    for one, other in itertools.product(range(8), range(8, 16)):
        job.handle(one, Unreachable(other, SILENT))
        job.handle(other, Unreachable(one, SILENT))
    job.settle()
    assert job.closed() == [*range(8, 16)]
    assert job.lost() == {rank: [*range(8, 16)] for rank in range(8)}


def test_a_worker_asks_all_if_its_leader_says_nothing():
    """The leader holds the interpreter's lock for minutes. The next one asks in its place."""
    job = Job(5)
    job.held.add(0)
    job.kill(3)
    for rank in (1, 2, 4):
        job.failed(rank, 3, DEAD)
    assert not any(job.lost().values())
    for _ in range(6):
        job.pass_time(TIMEOUT / 2)
    assert job.lost() == {0: [], 1: [3], 2: [3], 4: [3]}


def test_the_leader_asks_all_if_a_suspected_worker_does_not_answer_it():
    leader = Verdicts(0, range(5), "w{}".format, TIMEOUT)
    other = Verdicts(3, range(5), "w{}".format, TIMEOUT)
    (told,) = other.handle(Unreachable(4, SILENT), 0.0)
    assert told.to == [0]
    (question,) = leader.handle(ReportReceived(3, told.report), 0.0)
    assert question.to == [4] and not question.report.checks
    assert leader.due(0.0) == TIMEOUT / 10
    (question,) = leader.handle(TimePassed(), TIMEOUT / 10)
    assert question.to == [1, 2, 3, 4] and set(question.report.checks) == {4}


def deaths_in_a_random_order(rng, count, gone):
    """Let workers die, one after the other, at any moment of the spreading of what the first death brings about."""
    machines = {rank: Verdicts(rank, range(count), "w{}".format, TIMEOUT) for rank in range(count)}
    flying = []
    left = list(gone)

    def die():
        dead = left.pop(0)
        del machines[dead]
        flying.extend((rank, Unreachable(dead, DEAD)) for rank in machines)

    die()
    while flying or left:
        options = [*flying, None] if left else flying
        chosen = rng.choice(options)
        if chosen is None:
            die()
            continue
        flying.remove(chosen)
        to, event = chosen
        if to in machines:
            for said in machines[to].handle(event, 0.0):
                if isinstance(said, SendReport):
                    flying += [(other, ReportReceived(to, said.report)) for other in said.to if other in machines]
                else:
                    assert isinstance(said, Lose) and said.number not in machines
    for rank, machine in machines.items():
        assert sorted(machine.report.lost) == sorted(gone), (rank, machine.report)


def test_leaders_die_one_after_the_other_while_they_spread_losses():
    for seed in seeds(300):
        with replayable(seed):
            rng = random.Random(seed)
            count = rng.randint(4, 24)
            gone = rng.sample(range(count), rng.randint(1, min(5, count - 1)))
            gone = sorted(gone) if rng.random() < 0.5 else gone  # the leader first, then the next one
            deaths_in_a_random_order(rng, count, gone)

"""Workers of an open group that leave alone: none counts as lost, whoever hears their goodbyes."""

import heapq
import itertools
import random

import pytest
from helpers.verdicts import DEAD, SILENT, TIMEOUT, machine_of_three
from telegrad.rpc.links.reports import Loss, Report, decode_report, encode_report
from telegrad.rpc.losses.events import (
    LeaveAsked,
    LeaveGranted,
    Lose,
    MemberLeft,
    Reached,
    ReportReceived,
    SendReport,
    Unreachable,
)
from telegrad.rpc.losses.verdict import Verdicts
from telegrad.testing.schedules import replayable, seeds


def test_a_worker_leaves_when_one_that_stays_knows_it():
    machine = machine_of_three(2)
    (told,) = machine.handle(LeaveAsked(), 0.0)
    assert told.to == [0] and told.report.leaving == {2}
    (told,) = machine.handle(ReportReceived(0, Report(1, leaving={0})), 0.0)
    assert told.to == [1] and told.report.leaving == {0, 2}
    assert machine.handle(Reached(0, 1), 0.0) == []
    assert machine.handle(Reached(1, told.report.version), 0.0) == [LeaveGranted()]
    assert machine.handle(Reached(1, told.report.version), 0.0) == []


def test_the_next_one_is_told_when_the_first_one_is_gone_or_not_reached():
    machine = machine_of_three(0)
    machine.handle(LeaveAsked(), 0.0)
    said = machine.handle(Unreachable(1, SILENT), 0.0)
    assert said[-1].to == [2] and said[-1].report.leaving == {0}
    assert LeaveGranted() in machine.handle(MemberLeft(2, "it has shut down"), 0.0)


def test_a_worker_that_is_alone_leaves_at_once():
    assert Verdicts(0, range(1), "w{}".format, TIMEOUT).handle(LeaveAsked(), 0.0) == [LeaveGranted()]


def test_what_was_about_to_leave_and_is_dead_has_left():
    machine = machine_of_three(0)
    machine.handle(MemberLeft(1, "it has shut down", Report(1, leaving={1, 2})), 0.0)
    (lost,) = machine.handle(Unreachable(2, DEAD), 0.0)
    assert lost.number == 2 and lost.loss.left and "shut down" in lost.loss.reason
    assert machine.report.leaving == set() and machine.quiet


def test_others_that_do_not_know_that_it_left_do_not_make_it_lost():
    machine = machine_of_three(0)
    machine.handle(ReportReceived(2, Report(1, leaving={2})), 0.0)
    told = machine.handle(ReportReceived(1, Report(1, lost={2: Loss("refused")})), 0.0)
    assert [each.loss.left for each in told if isinstance(each, Lose)] == [True]


def test_a_report_keeps_those_that_leave_on_the_way():
    report = Report(3, leaving={1, 70_000})
    assert decode_report(encode_report(report)) == report == report.copy()


class Group:
    """Workers of which some leave, one soon after the other; few are connected, and one that is dialed too late refuses."""

    def __init__(self, rng, count):
        self.rng, self.now, self.order = rng, 0.0, itertools.count()
        self.machines = {rank: Verdicts(rank, range(count), "w{}".format, TIMEOUT) for rank in range(count)}
        self.sessions = {frozenset((0, rank)) for rank in range(1, count)}
        self.events, self.lost = [], []

    def at(self, delay, action, *arguments):
        heapq.heappush(self.events, (self.now + delay, next(self.order), action, arguments))

    def run(self):
        while self.events:
            self.now, _, action, arguments = heapq.heappop(self.events)
            action(*arguments)

    def handle(self, rank, event):
        for said in self.machines[rank].handle(event, self.now) if rank in self.machines else ():
            if isinstance(said, SendReport):
                for to in said.to:
                    self.at(self.rng.random(), self.deliver, rank, to, said.report)
            elif isinstance(said, Lose):
                self.lost += [(rank, said.number)] * (not said.loss.left)
            elif isinstance(said, LeaveGranted):
                self.at(0.0, self.leave, rank)

    def deliver(self, rank, to, report):
        if rank in self.machines and to in self.machines:
            self.sessions.add(frozenset((rank, to)))
            self.handle(to, ReportReceived(rank, report))
            self.at(self.rng.random(), self.handle, rank, Reached(to, report.version))
        elif rank in self.machines and frozenset((rank, to)) not in self.sessions:
            self.handle(rank, Unreachable(to, DEAD))

    def leave(self, rank):
        report = self.machines.pop(rank).report.copy()
        for pair in [pair for pair in self.sessions if rank in pair]:
            (other,) = pair - {rank}
            self.at(self.rng.random(), self.handle, other, MemberLeft(rank, "it has shut down", report))

    def dial(self, rank):
        for other in self.machines[rank].members - {rank}:
            if other not in self.machines:
                self.handle(rank, Unreachable(other, DEAD))


@pytest.mark.parametrize("all_leave", [False, True])
def test_none_that_leaves_counts_as_lost_in_any_schedule(all_leave):
    for seed in seeds(200):
        with replayable(seed):
            rng = random.Random(seed)
            count = rng.randint(2, 8)
            group = Group(rng, count)
            for rank in range(count) if all_leave else rng.sample(range(count), rng.randint(1, count - 1)):
                group.at(rng.random() * 3, group.handle, rank, LeaveAsked())
            group.run()
            for rank in list(group.machines):
                group.dial(rank)
            group.run()
            assert not group.lost and (not all_leave or not group.machines)

"""Verdicts while workers come and go: goodbyes, and workers that join."""

import itertools

import pytest
from helpers.verdicts import DEAD, SILENT, TIMEOUT, Job, machine_of_three
from telegrad.base.errors import IllegalEventError
from telegrad.rpc.links.intervals import IntervalSet
from telegrad.rpc.links.reports import Loss, Report, decode_report, encode_report
from telegrad.rpc.losses.events import (
    CloseAgent,
    Lose,
    MemberJoined,
    MemberLeft,
    Reached,
    ReportReceived,
    SendReport,
    Unreachable,
)
from telegrad.rpc.losses.verdict import Verdicts


def test_a_goodbye_is_passed_on():
    job = Job(3)
    job.handle(0, MemberLeft(2, "it has shut down"))
    job.kill(2)
    job.settle()
    assert job.lost() == {0: [2], 1: [2]}
    assert job.machines[1].report.lost[2].left


def test_a_goodbye_brings_the_losses_that_are_why_its_sender_leaves():
    """The report of them may still be on its way, on another session."""
    machine, leaver = machine_of_three(0), machine_of_three(1)
    leaver.handle(ReportReceived(0, Report(1, {2: DEAD})), 0.0)
    leaver.handle(Unreachable(2, DEAD), 0.0)
    assert 2 in leaver.report.gone
    told = machine.handle(MemberLeft(1, "it has shut down", leaver.report.copy()), 0.0)
    assert [each.number for each in told if isinstance(each, Lose)] == [2, 1]
    assert not machine.report.lost[2].left and machine.report.lost[1].left and not machine.closed


def test_the_report_of_a_goodbye_is_no_news_if_a_later_one_has_come():
    machine = machine_of_three(0)
    machine.handle(ReportReceived(1, Report(2)), 0.0)
    told = machine.handle(MemberLeft(1, "it has shut down", Report(1, {2: DEAD})), 0.0)
    assert [each.number for each in told if isinstance(each, Lose)] == [1] and machine.members == {0, 2}


def test_a_goodbye_of_a_worker_that_counts_this_one_as_lost_closes_it():
    machine = machine_of_three(0)
    (told,) = machine.handle(MemberLeft(1, "it has shut down", Report(1, lost={0: Loss("no answer")})), 0.0)
    assert isinstance(told, CloseAgent) and "no answer" in machine.closed


def test_a_worker_that_others_count_as_lost_closes():
    job = Job(3)
    job.handle(0, MemberLeft(2, "it has shut down"))
    job.settle()
    assert job.closed() == []  # it was not told: it said goodbye
    job.handle(2, ReportReceived(0, job.machines[0].report))
    assert job.closed() == [2] and "'w0'" in job.machines[2].closed


def joined(job, rank, order):
    """Let a worker join: its own machine knows all who live, and the others hear of it in that order."""
    job.machines[rank] = Verdicts(rank, [*job.machines, rank], "w{}".format, TIMEOUT)
    for other in order:
        job.handle(other, MemberJoined(rank))


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_worker_that_joins_is_a_member_whoever_hears_of_it_first(order):
    job = Job(3)
    joined(job, 3, order)
    job.kill(3)
    for rank in order:
        job.failed(rank, 3, DEAD)
    assert job.lost() == {0: [3], 1: [3], 2: [3]}


def test_a_worker_that_joins_counts_for_the_majority():
    job = Job(2)
    joined(job, 2, [0, 1])
    job.cut(0, 1)
    job.cut(0, 2)
    assert job.closed() == [0] and job.lost() == {1: [0], 2: [0]}


def test_the_loss_of_a_worker_may_be_heard_of_before_that_it_joined():
    machine = Verdicts(0, range(2), "w{}".format, TIMEOUT)
    loss = Loss("it died")
    assert not any(isinstance(done, Lose) for done in machine.handle(ReportReceived(1, Report(1, {}, {2: loss})), 0.0))
    assert Lose(2, loss) in machine.handle(MemberJoined(2), 0.0)
    assert machine.members == {0, 1} and machine.report.lost == {2: loss}


def test_a_suspicion_that_was_heard_of_before_the_worker_joined_is_answered():
    machine = Verdicts(0, range(2), "w{}".format, TIMEOUT)
    machine.handle(ReportReceived(1, Report(1, {2: SILENT})), 0.0)
    asked = [done.to for done in machine.handle(MemberJoined(2), 0.0) if isinstance(done, SendReport)]
    assert asked == [[2]] and machine.members == {0, 1, 2}
    assert machine.handle(MemberJoined(2), 0.0) == []


def test_a_report_does_not_grow_with_the_workers_that_have_left():
    """Workers join and leave a group one after the other; those that stay, and one that joins later, know of all."""
    machine, other = Verdicts(0, range(2), "w{}".format, TIMEOUT), Verdicts(1, range(2), "w{}".format, TIMEOUT)
    sizes = []
    for rank in range(2, 1000):
        machine.handle(MemberJoined(rank), 0.0)
        other.handle(MemberJoined(rank), 0.0)
        *_, sent = machine.handle(MemberLeft(rank, f"worker {rank} has shut down"), 0.0)
        sizes.append(len(encode_report(sent.report)))
    assert max(sizes) < 64 * 40 and sizes[-1] <= sizes[200] + 1
    lost = {
        done.number: done.loss
        for done in other.handle(ReportReceived(0, decode_report(encode_report(sent.report))), 0.0)
        if isinstance(done, Lose)
    }
    assert sorted(lost) == [*range(2, 1000)] and other.members == {0, 1}
    assert lost[999].reason == "worker 999 has shut down" and "before" in lost[2].reason
    with pytest.raises(IllegalEventError):
        other.handle(Reached(1000, 0), 0.0)
    assert other.handle(Reached(2, 0), 0.0) == []


def test_a_worker_that_is_gone_for_long_closes_when_it_hears_so():
    machine = Verdicts(1, range(3), "w{}".format, TIMEOUT)
    (closed,) = machine.handle(ReportReceived(0, Report(1, gone=IntervalSet([1]))), 0.0)
    assert "'w0' counts it as lost" in closed.reason

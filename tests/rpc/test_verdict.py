"""Verdicts about lost workers: a worker that is cut off is lost, one that any other reaches is not, and all who stay agree."""

import itertools

import pytest
from helpers.verdicts import DEAD, SILENT, TIMEOUT, Job, machine_of_three
from telegrad.base.errors import IllegalEventError
from telegrad.rpc.links.reports import Evidence, LinkFinding, Report, decode_report, encode_report
from telegrad.rpc.losses.events import (
    CloseAgent,
    Lose,
    MemberLeft,
    Opened,
    Reached,
    ReportReceived,
    SendReport,
    TimePassed,
    Unreachable,
)
from telegrad.rpc.losses.verdict import Verdicts
from telegrad.testing.schedules import every_order


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
        job.reconnect(0, 1)
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


def suspended(job, rank):
    """Let time pass in which one worker stands still."""
    job.now = 1.0
    job.handle(rank, TimePassed())
    job.now = 100.0


def test_a_suspended_worker_does_not_expel_others():
    """The worker may be lost without knowing it, and the others may have split since."""
    job = Job(3)
    job.held = {1, 2}
    suspended(job, 0)
    job.handle(0, Unreachable(1, DEAD))
    job.handle(0, Unreachable(2, SILENT))
    job.pass_time(TIMEOUT)
    assert job.closed() == [] and 2 not in job.lost()[0]
    job.pass_time(TIMEOUT)
    assert job.closed() == [0] and "was suspended" in job.machines[0].closed


def test_a_suspended_worker_goes_on_once_it_heard_from_a_member():
    job = Job(3)
    suspended(job, 0)
    job.pass_time(TIMEOUT / 2)  # it asks
    job.kill(2)
    job.failed(0, 2, SILENT)
    job.failed(1, 2, SILENT)
    job.pass_time(TIMEOUT / 2)
    assert job.lost() == {0: [2], 1: [2]}


def test_what_was_sent_to_a_suspended_worker_meanwhile_proves_nothing():
    """All others had lost sight of a worker for a moment, and say so in what a suspended worker reads first."""
    job = Job(4)
    suspended(job, 0)
    for rank in (2, 3):
        job.handle(rank, Unreachable(1, SILENT))
        job.handle(rank, Reached(1, job.machines[rank].report.version))
    said = [(rank, each.report) for rank, each in job.due]
    job.due.clear()
    job.handle(0, Reached(3, 0))  # that answer is old, too
    job.handle(0, Unreachable(1, SILENT))
    for rank, report in said[::2]:
        assert report.suspects(1)
        job.handle(0, ReportReceived(rank, report))
    assert job.closed() == [] and job.lost()[0] == []
    for rank, report in said[1::2]:
        job.handle(0, ReportReceived(rank, report))
    job.settle()
    job.pass_time(TIMEOUT / 2)
    assert job.closed() == [] and job.lost() == {rank: [] for rank in range(4)}


def test_of_three_pieces_without_a_majority_none_goes_on():
    job = Job(5)
    pieces = ((0, 1), (2, 3), (4,))
    for one, other in itertools.combinations(pieces, 2):
        for near, far in itertools.product(one, other):
            job.handle(near, Unreachable(far, SILENT))
            job.handle(far, Unreachable(near, SILENT))
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
    """The worker may hold the interpreter's lock for a minute, and be the one that still has a link."""
    job = Job(4)
    job.held.add(3)
    for rank in (0, 1):
        job.cut(rank, 2)
    job.pass_time(1000)
    assert job.closed() == [] and job.lost() == {rank: [] for rank in range(4)}


def test_a_suspicion_is_answered_by_asking_the_suspected_worker():
    machine, other = machine_of_three(0), machine_of_three(1)
    (suspicion,) = other.handle(Unreachable(2, SILENT), 0.0)
    assert suspicion.to == [0]
    (question,) = machine.handle(ReportReceived(1, suspicion.report), 0.0)
    assert question.to == [2] and not question.report.links
    assert machine.handle(ReportReceived(1, suspicion.report), 0.0) == []
    version = question.report.version
    assert machine.handle(Reached(2, version - 1), 0.0) == []  # it may have died since
    (answer,) = machine.handle(Reached(2, version), 0.0)
    assert answer.to == [1] and answer.report.links == {2: Evidence(LinkFinding.REACHED)}
    assert machine.handle(Reached(2, version), 0.0) == machine.handle(Opened(2), 0.0) == []


def test_a_worker_that_died_after_its_answer_is_suspected_all_the_same():
    machine = Verdicts(0, range(4), "abcd".__getitem__, TIMEOUT)
    (question,) = machine.handle(ReportReceived(1, Report(1, {2: SILENT})), 0.0)
    machine.handle(Unreachable(2, DEAD), 0.0)
    assert machine.handle(Reached(2, question.report.version), 0.0) == []
    assert machine.report.suspects(2)


def test_a_session_that_opened_is_a_reason_to_ask_and_no_answer():
    machine = machine_of_three(0)
    assert machine.handle(Opened(2), 0.0) == []
    machine.handle(Unreachable(2, SILENT), 0.0)
    (question,) = machine.handle(Opened(2), 0.0)
    assert question.to == [2] and machine.report.suspects(2)
    (told,) = machine.handle(Reached(2, question.report.version), 0.0)
    assert told.to == [1, 2] and not told.report.links


def test_an_answer_is_withdrawn_with_the_suspicion():
    """Else it would be a witness for a worker that died since."""
    job = Job(3)
    job.cut(0, 2)
    assert job.machines[0].witness(2) == 1
    job.reconnect(0, 2)
    job.kill(2)
    job.failed(0, 2, DEAD)
    assert job.machines[0].witness(2) is None
    job.failed(1, 2, DEAD)
    assert job.lost() == {0: [2], 1: [2]}


def test_late_reports_and_those_of_the_lost_change_nothing():
    machine, other = machine_of_three(0), machine_of_three(1)
    first, second = (other.handle(event, 0.0)[0].report for event in (Unreachable(2, SILENT), Reached(2, 1)))
    assert machine.handle(ReportReceived(1, second), 0.0) == machine.handle(ReportReceived(1, first), 0.0) == []
    assert machine.quiet
    machine.handle(MemberLeft(1, "it has shut down"), 0.0)
    (late,) = other.handle(Unreachable(0, SILENT), 0.0)
    assert machine.handle(ReportReceived(1, late.report), 0.0) == []
    assert machine.members == {0, 2} and not machine.closed


def test_an_event_of_a_stranger_raises():
    for event in (Opened(3), Reached(3, 0), Unreachable(3, DEAD), MemberLeft(3, ""), ReportReceived(3, None)):
        with pytest.raises(IllegalEventError, match="number 3"):
            machine_of_three(0).handle(event, 0.0)


def test_reports_that_were_withdrawn_since_expel_no_worker():
    """Worker 2 stood still: 1 and 3 had suspected it and reach it again; 0 still suspects it, and hears the news late."""

    def scenario(choices):
        judge, others = Verdicts(0, range(4), "w{}".format, TIMEOUT), {}
        flying = [Unreachable(2, SILENT)]
        for rank in (1, 3):
            others[rank] = Verdicts(rank, range(4), "w{}".format, TIMEOUT)
            (suspicion,) = others[rank].handle(Unreachable(2, SILENT), 0.0)
            flying.append(ReportReceived(rank, suspicion.report))
        late = [(rank, others[rank].handle(Reached(2, 1), 0.0)[-1].report) for rank in others]
        while flying:
            event = choices.pick(flying)
            flying.remove(event)
            for said in judge.handle(event, 0.0):
                assert isinstance(said, SendReport)
                for rank in others.keys() & said.to:
                    answers = others[rank].handle(ReportReceived(0, said.report), 0.0)
                    flying += [ReportReceived(rank, answer.report) for answer in answers if 0 in answer.to]
        assert judge.witness(2) in others or not judge.report.asks
        assert not judge.report.gone and late

    assert every_order(scenario) >= 6


def test_a_silent_worker_is_lost_when_all_confirm_it_after_they_were_asked():
    speaker, other = machine_of_three(0), machine_of_three(1)
    (early,) = other.handle(Unreachable(2, SILENT), 0.0)
    speaker.handle(Unreachable(2, SILENT), 0.0)
    asked = speaker.handle(ReportReceived(1, early.report), 0.0)[-1]
    assert asked.to == [1, 2] and asked.report.asks == {2: asked.report.version} and not speaker.report.gone
    (answer,) = other.handle(ReportReceived(0, decode_report(encode_report(asked.report))), 0.0)
    assert answer.to == [0] and answer.report.heard == {0: asked.report.version}
    lost, told = speaker.handle(ReportReceived(1, decode_report(encode_report(answer.report))), 0.0)
    assert isinstance(lost, Lose) and lost.number == 2 and told.report.asks == {} and 2 in told.report.gone


def test_a_confirmed_suspicion_is_not_withdrawn_before_the_question():
    """The worker that asked may count the suspected one as lost since."""
    machine = machine_of_three(1)
    machine.handle(Unreachable(2, SILENT), 0.0)
    (answer,) = machine.handle(ReportReceived(0, Report(5, {2: SILENT}, asks={2: 5})), 0.0)
    assert machine.handle(Reached(2, answer.report.version), 0.0) == []
    assert machine.report.suspects(2)
    (question,) = machine.handle(ReportReceived(0, Report(6)), 0.0)  # it reaches the worker again
    assert question.to == [2] and question.report.suspects(2) and not question.report.heard
    (told,) = machine.handle(Reached(2, question.report.version), 0.0)
    assert not told.report.links


def test_no_worker_answers_a_question_of_one_whose_loss_it_has_confirmed():
    """Of two workers that ask about each other, each other worker helps one."""
    machine = Verdicts(2, range(4), "w{}".format, TIMEOUT)
    for rank in (0, 1):
        machine.handle(Unreachable(rank, SILENT), 0.0)
    machine.handle(ReportReceived(1, Report(5, {0: SILENT}, asks={0: 5})), 0.0)
    machine.handle(ReportReceived(0, Report(5, {1: SILENT}, asks={1: 5})), 0.0)
    assert machine.report.heard == {1: 5}
    machine.handle(ReportReceived(1, Report(6)), 0.0)
    assert machine.report.heard == {0: 5}


def test_a_worker_that_asks_answers_no_question_of_the_suspected_one():
    machine = Verdicts(1, range(4), "w{}".format, TIMEOUT)
    machine.handle(Unreachable(0, SILENT), 0.0)
    for rank in (2, 3):
        machine.handle(ReportReceived(rank, Report(1, {0: SILENT})), 0.0)
    assert 0 in machine.report.asks
    machine.handle(ReportReceived(0, Report(5, {3: SILENT}, asks={3: 5})), 0.0)
    assert not machine.report.heard


def test_a_worker_does_not_close_because_others_suspect_it():
    """Ask them first: they may reach it again."""
    machine = machine_of_three(2)
    for rank in (0, 1):
        (question,) = machine.handle(ReportReceived(rank, Report(1, {2: SILENT})), 0.0)
        assert question.to == [rank]
    assert not machine.closed
    for rank in (0, 1):
        machine.handle(Unreachable(rank, SILENT), 0.0)
    assert "cannot reach 'a', 'b'" in machine.closed


def test_everyone_agrees_in_every_order_of_evidence():
    def scenario(choices):
        machines = {rank: Verdicts(rank, range(3), "w{}".format, TIMEOUT) for rank in (0, 1)}
        flying = [(rank, 2, DEAD) for rank in machines]
        while flying:
            flight = choices.pick(flying)
            flying.remove(flight)
            to, source, what = flight
            event = Unreachable(source, what) if isinstance(what, Evidence) else ReportReceived(source, what)
            for said in machines[to].handle(event, 0.0):
                assert not isinstance(said, CloseAgent)
                if isinstance(said, SendReport):
                    flying += [(other, to, said.report) for other in said.to if other in machines]
        assert [sorted(machine.report.lost) for machine in machines.values()] == [[2], [2]]

    assert every_order(scenario) > 10


@pytest.mark.parametrize("count", [64])
def test_many_workers_lose_one_with_few_words(count):
    job = Job(count)
    job.kill(5)
    said = []
    deliver = job.deliver
    job.deliver = lambda rank, tell: said.extend(tell.to) or deliver(rank, tell)
    for rank in job.machines:
        job.handle(rank, Unreachable(5, DEAD))
    job.settle()
    assert job.lost() == {rank: [5] for rank in range(count) if rank != 5}
    assert len(said) < 3 * count * count

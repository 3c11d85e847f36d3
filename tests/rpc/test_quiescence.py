"""Graceful shutdown: no worker leaves while there is work, all leave afterwards, also when workers are lost on the way."""

from collections import deque

import pytest
from telegrad.base.errors import IllegalEventError
from telegrad.rpc.group import quiescence as q
from telegrad.rpc.group.quiescence import Quiescence
from telegrad.rpc.group.quiescence_messages import AskCounts, Counts, CountsReport, Go, Ready
from telegrad.testing.schedules import every_order

IDLE = Counts({}, 0)


def sends(instructions):
    return [(said.to, said.message) for said in instructions if isinstance(said, q.Send)]


class Group:
    """Machines whose messages arrive at once, unless their receiver or sender is gone."""

    def __init__(self, count):
        self.machines = {rank: Quiescence(rank, range(count)) for rank in range(count)}
        self.finished = []
        self.pausing = []

    def handle(self, rank, event):
        due = deque((rank, said) for said in self.machines[rank].handle(event))
        while due:
            due.extend(self.carry_out(*due.popleft()))

    def carry_out(self, rank, said):
        if isinstance(said, q.Finish):
            self.finished.append(rank)
        elif isinstance(said, q.Pause):
            self.pausing.append(rank)
        elif said.to in self.machines:
            return [(said.to, each) for each in self.machines[said.to].handle(q.Received(rank, said.message))]
        return []

    def shutdown(self, rank, counts=lambda: IDLE):
        self.handle(rank, q.ShutdownCalled(counts))

    def lose(self, rank):
        del self.machines[rank]
        for other in self.machines:
            self.handle(other, q.WorkerLost(rank))


def test_one_alone_leaves_at_once():
    group = Group(1)
    group.shutdown(0)
    assert group.finished == [0]
    assert group.machines[0].missing() == []


def test_all_leave_when_the_last_one_is_ready():
    group = Group(4)
    for rank in (2, 0, 3):
        group.shutdown(rank)
        group.shutdown(rank)  # saying so twice changes nothing
    assert group.finished == []
    assert group.machines[0].missing() == [1]
    group.shutdown(1)
    assert sorted(group.finished) == [0, 1, 2, 3]


def test_a_message_on_its_way_is_waited_for():
    group = Group(2)
    received = [0]
    group.shutdown(0, lambda: Counts({1: (1, 0)}, 0))
    group.shutdown(1, lambda: Counts({0: (0, received[0])}, 0))
    assert group.finished == []
    assert group.pausing == [0]
    received[0] = 1
    group.handle(0, q.PauseEnded())
    assert sorted(group.finished) == [0, 1]


def test_open_work_is_waited_for_and_named():
    group = Group(3)
    running = [1]
    for rank in (0, 1):
        group.shutdown(rank)
    group.shutdown(2, lambda: Counts({}, running[0]))
    assert group.finished == []
    assert group.machines[0].missing() == [2]
    running[0] = 0
    group.handle(0, q.PauseEnded())
    assert sorted(group.finished) == [0, 1, 2]


def test_two_idle_rounds_must_be_equal():
    """Each round's sums agree, but something moved between them: only rest between two rounds is rest."""
    group = Group(2)
    moved = {0: 0, 1: 0}

    def counts(rank):
        moved[rank] = min(moved[rank] + 1, 4)
        return Counts({1 - rank: (moved[rank], moved[rank])}, 0)

    group.shutdown(0, lambda: counts(0))
    group.shutdown(1, lambda: counts(1))
    assert group.machines[0]._round == 5
    assert sorted(group.finished) == [0, 1]


def test_messages_of_the_lost_are_left_out():
    group = Group(3)
    group.shutdown(0, lambda: Counts({1: (1, 0), 2: (5, 0)}, 0))
    group.shutdown(1, lambda: Counts({0: (0, 1), 2: (0, 7)}, 0))
    group.lose(2)
    assert sorted(group.finished) == [0, 1]


def test_the_next_lowest_leads_when_the_leader_is_lost():
    group = Group(3)
    for rank in (1, 2):
        group.shutdown(rank)
    assert group.machines[2].missing() == [0]
    group.lose(0)
    assert sorted(group.finished) == [1, 2]


def test_a_led_worker_can_ask_who_is_missing():
    group = Group(4)
    group.shutdown(3)
    group.handle(3, q.InquiryDue())
    assert group.machines[3].missing() == [0, 1, 2]
    group.shutdown(0)
    group.handle(0, q.InquiryDue())  # the leader knows
    group.handle(3, q.InquiryDue())
    assert group.machines[3].missing() == group.machines[0].missing() == [1, 2]
    group.lose(0)
    assert group.machines[3].missing() == [1]


def ready(me, count):
    """A machine whose user code has called shutdown."""
    machine = Quiescence(me, range(count))
    machine.handle(q.ShutdownCalled(lambda: IDLE))
    return machine


def receive(machine, sender, message):
    return sends(machine.handle(q.Received(sender, message)))


def test_the_silent_are_named():
    leader = ready(0, 3)
    receive(leader, 1, Ready())
    receive(leader, 2, Ready())
    receive(leader, 2, CountsReport(1, IDLE))
    assert leader.missing() == [1]


def test_an_answer_to_a_round_before_a_loss_does_not_count():
    leader = ready(0, 3)
    receive(leader, 1, Ready())
    receive(leader, 2, Ready())
    leader.handle(q.WorkerLost(2))
    receive(leader, 1, CountsReport(1, IDLE))  # it may have been given before the last message of 2 arrived there
    assert leader.missing() == [1]
    assert receive(leader, 1, CountsReport(2, IDLE)) == [(1, AskCounts(3, [2]))]


def test_an_answer_waits_until_the_losses_that_the_leader_knows_are_known_here():
    machine = ready(1, 3)
    assert receive(machine, 0, AskCounts(2, [2])) == []
    assert receive(machine, 0, AskCounts(1, [])) == []  # late, and out of date
    assert sends(machine.handle(q.WorkerLost(2))) == [(0, CountsReport(2, IDLE))]


def test_a_late_question_of_a_lost_leader_does_not_hide_that_of_the_new_one():
    machine = ready(2, 4)
    assert receive(machine, 1, AskCounts(1, [0])) == receive(machine, 0, AskCounts(9, [3])) == []
    assert sends(machine.handle(q.WorkerLost(0))) == [(1, Ready()), (1, CountsReport(1, IDLE))]


def test_a_finished_worker_lets_others_go():
    machine = ready(1, 3)
    assert [type(said).__name__ for said in machine.handle(q.Received(0, Go()))] == ["Finish"]
    assert machine.handle(q.Received(0, Go())) == []
    assert receive(machine, 2, Ready()) == receive(machine, 2, AskCounts(1)) == [(2, Go())]
    assert machine.handle(q.InquiryDue()) == []


def test_a_finished_worker_says_nothing_to_the_next_leader():
    """All leave at once: with a word to the next leader for each that left, they would dial one another all the while."""
    group = Group(4)
    for rank in range(4):
        group.shutdown(rank)
    for lost in (0, 1):
        assert group.machines[3].handle(q.WorkerLost(lost)) == []


def test_whom_a_leaving_worker_tells_that_all_agreed_leaves_too():
    machine = Quiescence(3, range(5))
    machine.handle(q.ShutdownCalled(lambda: IDLE))
    assert machine.handle(q.AllAgreed(1)) == [q.Finish()]
    assert machine.handle(q.Received(0, Go())) == []


def test_a_worker_that_did_not_call_shutdown_is_not_among_those_who_agreed():
    machine = Quiescence(3, range(5))
    assert machine.handle(q.AllAgreed(1)) == [] and not machine.finished


def test_only_the_leader_watches_all_that_are_missing():
    group = Group(4)
    group.shutdown(0)
    group.shutdown(2)
    assert group.machines[0].awaited() == [1, 3]
    group.handle(2, q.InquiryDue())
    assert group.machines[2].missing() == [1, 3] and group.machines[2].awaited() == [0]


def test_go_is_passed_to_whom_already_follows_us():
    machine = ready(1, 4)
    # It has heard that 0 is lost; we have not, and 0's last message was lost on its way to 2.
    receive(machine, 2, Ready())
    receive(machine, 3, AskCounts(1, [0]))
    assert receive(machine, 0, Go()) == [(2, Go()), (3, Go())]


def test_news_about_oneself_or_the_dead_is_ignored():
    machine = Quiescence(1, range(3))
    for event in (q.WorkerLost(1), q.WorkerLost(0), q.WorkerLost(0), q.Received(0, Go())):
        assert machine.handle(event) == []
    assert not machine.finished
    assert machine.leader == 1


def test_a_place_stays_vacant_until_another_worker_has_it():
    group = Group(3)
    for rank in (0, 2):
        group.shutdown(rank)
    for rank in (0, 2):
        group.handle(rank, q.PlaceVacant(1))
    group.lose(1)
    assert group.finished == [] and group.machines[0].vacant == group.machines[2].vacant == {1}
    for rank in (0, 2):
        group.handle(rank, q.WorkerJoined(3, 1))
    group.machines[3] = Quiescence(3, [0, 2, 3])
    assert group.finished == [] and group.machines[0].missing() == [3]
    group.shutdown(3)
    assert sorted(group.finished) == [0, 2, 3]


def test_a_place_that_is_given_up_is_not_waited_for():
    group = Group(2)
    group.handle(0, q.PlaceVacant(1))
    group.lose(1)
    group.shutdown(0)
    assert group.finished == []
    group.handle(0, q.PlaceGivenUp(1))
    assert group.finished == [0]


def test_a_worker_that_joins_waits_for_the_places_that_are_vacant():
    machine = Quiescence(4, [4], vacant=[1])
    machine.handle(q.ShutdownCalled(lambda: IDLE))
    assert not machine.finished
    assert machine.handle(q.PlaceGivenUp(1)) == [q.Finish()]


def test_a_worker_that_joined_answers_a_leader_that_knows_of_losses_before():
    machine = Quiescence(4, [0, 4])
    machine.handle(q.ShutdownCalled(lambda: IDLE))
    assert receive(machine, 0, AskCounts(1, [1, 2])) == [(0, CountsReport(1, IDLE))]


def test_an_answer_to_a_round_before_a_worker_joined_does_not_count():
    leader = ready(0, 2)
    receive(leader, 1, Ready())
    leader.handle(q.WorkerJoined(2, None))
    receive(leader, 1, CountsReport(1, IDLE))
    receive(leader, 2, Ready())
    assert leader.missing() == [1, 2]


@pytest.mark.parametrize("event", [q.PauseEnded(), q.WorkerLost(3), q.Received(3, Go())])
def test_an_event_that_cannot_be_raises(event):
    with pytest.raises(IllegalEventError, match="worker 1"):
        Quiescence(1, range(3)).handle(event)


# -- every order of arrival


def test_three_workers_finish_in_every_order_of_messages():
    def scenario(choices):
        machines = {rank: Quiescence(rank, range(3)) for rank in range(3)}
        flying = []
        finished = []

        def handle(rank, event):
            for said in machines[rank].handle(event):
                if isinstance(said, q.Finish):
                    finished.append(rank)
                else:
                    flying.append((rank, said.to, said.message))

        for rank in machines:
            handle(rank, q.ShutdownCalled(lambda: IDLE))
        del machines[0]
        flying = [flight for flight in flying if flight[0] != 0] + [(0, rank, None) for rank in machines]
        while flying:
            flight = choices.pick(flying)
            flying.remove(flight)
            sender, to, message = flight
            if to in machines:
                handle(to, q.WorkerLost(sender) if message is None else q.Received(sender, message))
        assert sorted(finished) == [1, 2]

    assert every_order(scenario) > 20


@pytest.mark.parametrize("count", [2, 64])
def test_many_workers_need_two_rounds(count):
    group = Group(count)
    for rank in range(count):
        group.shutdown(rank)
    assert len(group.finished) == count
    assert group.machines[0]._round == 2

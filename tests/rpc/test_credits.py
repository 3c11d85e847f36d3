"""Credits as pure machines: in every order of events nothing is lost, nothing waits for ever, no window is exceeded."""

import random
from collections import deque

import pytest
from telegrad.rpc.flow.credits import Receipts, Window
from telegrad.rpc.wire.control import Amount


def gone(window):
    """Take the messages that go now."""
    return [window.going.popleft() for _ in range(len(window.going))]


class Way:
    """One direction of a session between the two machines: frames arrive late; asks and credits repeat and overtake."""

    def __init__(self, limit, chance):
        self.chance = chance
        self.window, self.limit = Window(limit), limit
        self.sizes = {}
        self.outbox = deque()  # sent, may be withdrawn
        self.arrived = []  # not used yet
        self.questions, self.credits = [], []
        self.receipts = Receipts(self.credits.append)
        self.sent_order, self.given_up = [], set()

    def offer(self, key, size):
        self.sizes[key] = size
        if self.window.offer(key, size):
            self.go([key])
        self.ask()

    def go(self, keys):
        for key in keys:
            alone = not self.outbox and not self.arrived
            self.outbox.append(key)
            self.sent_order.append(key)
            bytes_under_way = sum(self.sizes[each] for each in [*self.outbox, *self.arrived])
            assert alone or bytes_under_way <= self.limit.bytes
            assert len(self.outbox) + len(self.arrived) <= max(self.limit.messages, 1)

    def ask(self):
        if (goal := self.window.ask()) is not None:
            self.questions.append(goal)

    def step(self):
        """One event, chosen at random of those that can happen; False if none can."""
        events = []
        events += [self.arrive] if self.outbox else []
        events += [self.use] if self.arrived else []
        events += [self.question] if self.questions else []
        events += [self.credit] if self.credits else []
        if not events:
            return False
        self.chance.choice(events)()
        return True

    def arrive(self):
        self.arrived.append(self.outbox.popleft())

    def use(self):
        key = self.arrived.pop(self.chance.randrange(len(self.arrived)))
        self.receipts.used(self.sizes[key])

    def question(self):
        goal = self.questions.pop(self.chance.randrange(len(self.questions)))
        for _ in range(self.chance.choice([1, 1, 2])):
            self.receipts.asked(goal)

    def credit(self):
        credit = self.credits.pop(self.chance.randrange(len(self.credits)))
        for _ in range(self.chance.choice([1, 1, 2])):
            self.window.returned(credit)
            self.go(gone(self.window))
        self.ask()

    def give_up(self, key):
        left = self.window.remove(key)
        self.go(gone(self.window))
        if not left and key in self.outbox:
            self.outbox.remove(key)
            self.window.withdraw(self.sizes[key])
            self.go(gone(self.window))
        self.given_up.add(key)
        self.ask()


@pytest.mark.slow
def test_every_message_is_sent_in_its_turn_and_no_window_is_exceeded():
    for seed in range(300):
        run(seed)


def run(seed):
    chance = random.Random(seed)
    limit = Amount(chance.choice([1, 10, 100, 1000]), chance.choice([1, 2, 3, 10]))
    way = Way(limit, chance)
    for key in range(150):
        way.offer(key, chance.choice([1, 3, 30, 300]))
        for _ in range(chance.randrange(6)):
            way.step()
        if chance.random() < 0.2:
            way.give_up(chance.randrange(key + 1))
    while way.step():
        pass
    assert way.window.queued == (0, 0) and not way.outbox and not way.arrived, f"seed {seed}"
    assert way.sent_order == sorted(way.sent_order)
    assert set(way.sent_order) | way.given_up == set(range(150))


def test_a_question_that_was_not_sent_is_asked_again():
    window = Window(Amount(100, 10))
    for key in range(3):
        window.offer(key, 50)
    goal = window.ask()
    assert goal is not None and window.ask() is None
    window.forget_question()
    assert window.ask() == goal


def test_nothing_is_asked_while_there_is_room():
    told = []
    window, receipts = Window(Amount(1000, 100)), Receipts(told.append)
    for number in range(50):
        assert window.offer(number, 10)
        receipts.used(10)
        assert window.ask() is None and not told
    assert window.offer("one more", 10)
    assert window.ask() == Amount(10, 1)  # half of the window is full
    assert window.ask() is None  # asked once
    receipts.asked(Amount(10, 1))
    assert told == [Amount(500, 50)]
    window.returned(Amount(500, 50))
    assert gone(window) == [] and window.in_flight == Amount(10, 1)


def test_a_message_larger_than_the_window_goes_alone():
    window = Window(Amount(10, 5))
    assert window.offer("large", 1000)
    assert not window.offer("small", 1)
    assert window.ask() == Amount(995, 0) or window.ask() is None
    window.returned(Amount(1000, 1))
    assert gone(window) == ["small"]
    assert not window.offer("another", 1000) and not window.offer("behind it", 1)
    assert window.ask() == Amount(1001, 2)
    window.returned(Amount(1001, 2))
    assert gone(window) == ["another"]


def test_what_was_withdrawn_is_not_waited_for():
    told = []
    window, receipts = Window(Amount(10, 10)), Receipts(told.append)
    assert window.offer("first", 5) and window.offer("second", 5)
    assert not window.offer("third", 9)
    assert window.ask() is not None
    window.withdraw(5)
    assert gone(window) == []
    goal = window.ask()
    assert goal == Amount(4, 0) or goal.bytes <= 5
    receipts.asked(goal)
    receipts.used(5)
    window.returned(*told)
    assert gone(window) == ["third"]


def test_old_credits_change_nothing():
    window = Window(Amount(10, 10))
    assert window.offer("first", 10)
    window.returned(Amount(10, 1))
    assert window.offer("second", 10)
    window.returned(Amount(0, 0))
    window.returned(Amount(10, 1))
    assert window.in_flight == Amount(10, 1) and not window.has_room(1)

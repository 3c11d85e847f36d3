"""Exactly-once calls, by their state machines: each update of the history that survives is applied once, in every order.

A server applies updates, saves checkpoints and is killed; callers make updates, save checkpoints of their own, and are killed.
Messages are lost and overtake one another, also those of a caller that is dead.
"""

import copy
import random

import pytest
from telegrad.rpc.exactly_once.applied import (
    LARGEST_RESULT,
    MOST_RESULTS,
    STREAMS_KEPT,
    AppliedCalls,
    MissingCalls,
    Repeated,
    StreamKey,
    Turn,
)
from telegrad.rpc.exactly_once.kept import KeptCalls
from telegrad.testing import every_order, replayable, seeds


class Server:
    """A callee: its log of updates is the state that the calls change. A checkpoint has both."""

    def __init__(self):
        self.incarnation = 0
        self.calls, self.log, self.parked = AppliedCalls(), [], {}
        self.disk = None
        self.begun = None

    def receive(self, key, number, oldest, results_from, update):
        """Handle a call; return the answers to send, each (key, number, result)."""
        verdict = self.calls.arrived(key, number, oldest, results_from)
        assert not isinstance(verdict, MissingCalls), "a caller has forgotten calls that no checkpoint has"
        if isinstance(verdict, Repeated):
            return [(key, number, verdict)]
        self.parked[key, number] = update
        answers = []
        while (update := self.parked.pop((key, self.calls.progress(key)[0]), None)) is not None:
            number = self.calls.progress(key)[0]
            self.log.append((key.caller, update))
            self.calls.add(key, number, update * 10)
            answers.append((key, number, Repeated(update * 10)))
        return answers

    def begin_checkpoint(self):
        if self.begun is None:
            self.begun = copy.deepcopy((self.calls.state(), self.log))

    def end_checkpoint(self):
        """Return the news for callers."""
        if self.begun is None:
            return []
        self.disk, self.begun = self.begun, None
        return self.calls.saved(self.disk[0])

    def crash(self):
        self.incarnation += 1
        self.calls, self.log, self.parked, self.begun = AppliedCalls(), [], {}, None
        if self.disk is not None:
            self.calls.load(copy.deepcopy(self.disk[0]))
            self.log = list(self.disk[1])


class Caller:
    """A caller, whose update of number n is n: what it does next is known by its window."""

    def __init__(self, name, limit):
        self.name, self.limit = name, limit
        self.incarnation = 0
        self.saves = False
        self.begin_anew()
        self.disk = self.begun = None

    def begin_anew(self):
        self.key = StreamKey(self.name, "", f"{self.name}{self.incarnation}")
        self.window = KeptCalls(self.limit, 1 << 30)
        self.waiting = set()  # numbers whose results this incarnation waits for

    def call(self):
        number = self.window.next
        self.waiting.add(number)
        return self.window.add(number, 8)

    def message(self, call):
        return self.key, call.number, self.window.oldest, self.window.results_from, call.request

    def crash(self):
        self.incarnation += 1
        self.begun = None
        token = self.key
        self.begin_anew()
        if self.disk is not None:
            self.key = token
            self.window.load(copy.deepcopy(self.disk))


class World:
    """Server, callers and the messages between them, which arrive in any order."""

    def __init__(self, choose, names, updates, limit=3):
        self.choose, self.updates = choose, updates
        self.server = Server()
        self.callers = {name: Caller(name, limit) for name in names}
        self.flying = []

    def send(self, caller, call):
        if caller.window.goes_to(call, self.server.incarnation):
            self.fly(caller, call)
        else:
            self.resume(caller)

    def fly(self, caller, call):
        caller.window.sent(call.number, self.server.incarnation)
        self.flying.append(("call", self.server.incarnation, caller.incarnation, caller.message(call)))

    def resume(self, caller):
        """A caller asks a server that has begun, and sends again what it lacks."""
        applied, durable = self.server.calls.progress(caller.key)
        assert applied >= caller.window.oldest
        caller.window.made_durable(durable)
        for call in caller.window.to_send(self.server.incarnation, applied):
            self.fly(caller, call)

    def ask(self, caller):
        """A caller that waits asks for a checkpoint, and gives a server that has begun anew what it lacks first."""
        if not caller.window.is_empty():
            if caller.window.was_sent_to(self.server.incarnation):
                caller.window.made_durable(self.server.calls.progress(caller.key)[1])
            else:
                self.resume(caller)

    def may_call(self, caller):
        return caller.window.next < self.updates and caller.window.has_room(8)

    # -- events

    def events(self):
        yield from (("call", caller) for caller in self.callers.values() if self.may_call(caller))
        yield from (("arrive", number) for number in range(len(self.flying)))
        yield ("end checkpoint",) if self.server.begun else ("begin checkpoint",)

    def lose(self, at):
        """A message is lost with its connection: the caller asks how far the server is."""
        kind, to, incarnation, what = self.flying.pop(at)
        caller = self.callers[what[0].caller]
        if kind != "durable" and incarnation == caller.incarnation:
            if kind != "loss":
                caller.window.failed(what[1], to)
            self.resume(caller)

    def run(self, event):
        kind, *about = event
        getattr(self, kind.replace(" ", "_"))(*about)

    def call(self, caller):
        self.send(caller, caller.call())

    def begin_checkpoint(self):
        self.server.begin_checkpoint()

    def end_checkpoint(self):
        for key, end in self.server.end_checkpoint():
            caller = self.callers[key.caller]
            self.flying.append(("durable", self.server.incarnation, caller.incarnation, (key, end)))

    def crash_server(self):
        """The server begins anew. A caller is told if calls wait for an answer; it may have made other calls by then."""
        self.server.crash()
        for caller in self.callers.values():
            self.flying.append(("loss", self.server.incarnation, caller.incarnation, (caller.key,)))

    def crash_caller(self, caller):
        caller.crash()
        self.resume(caller)

    def save_caller(self, caller):
        caller.disk = caller.begun = copy.deepcopy(caller.window.state())
        caller.window.saved(caller.disk)

    def arrive(self, at):
        kind, server, incarnation, what = self.flying.pop(at)
        if kind == "call":
            if server == self.server.incarnation:
                for key, number, result in self.server.receive(*what):
                    caller = self.callers[key.caller]
                    self.flying.append(("answer", server, caller.incarnation, (key, number, result)))
            return
        caller = self.callers[what[0].caller]
        if incarnation != caller.incarnation or what[0] != caller.key:
            return
        if kind == "loss":
            if caller.waiting:
                self.resume(caller)
        elif kind == "answer":
            _, number, result = what
            if number in caller.waiting:
                caller.waiting.remove(number)
                assert result == Repeated(number * 10)
            caller.window.answered(number)
        elif server == self.server.incarnation:
            caller.window.made_durable(what[1])

    # -- the end

    def finish(self):
        """Let everything arrive and every caller end; then check the history."""
        for _ in range(40 * self.updates):
            while self.flying:
                self.arrive(self.choose(range(len(self.flying))))
            assert not any(caller.waiting for caller in self.callers.values()), "a call has got no answer"
            calls = [caller for caller in self.callers.values() if self.may_call(caller)]
            for caller in calls:
                self.call(caller)
            if not calls:
                self.end_checkpoint()  # one that was begun before
                self.begin_checkpoint()
                self.end_checkpoint()
                for caller in self.callers.values():
                    self.ask(caller)
                if not self.flying and all(c.window.next == self.updates for c in self.callers.values()):
                    break
        self.check()

    def check(self):
        for name, caller in self.callers.items():
            assert [update for who, update in self.server.log if who == name] == list(range(self.updates))
            assert not caller.waiting and caller.window.is_empty() and caller.window.size == 0


def test_every_order_of_a_few_calls_a_checkpoint_and_a_death():
    def scenario(choices):
        world = World(choices.pick, ["a"], updates=2)
        deaths = 1
        for _ in range(7):
            events = list(world.events())
            if deaths:
                events.append(("crash server",))
            event = choices.pick(events)
            deaths -= event == ("crash server",)
            world.run(event)
        world.choose = lambda options: options[0]
        world.finish()

    assert every_order(scenario) > 4000


def test_every_order_with_a_caller_that_saves_and_dies():
    def scenario(choices):
        world = World(choices.pick, ["a"], updates=2)
        caller = world.callers["a"]
        world.save_caller(caller)
        left = {"crash server": 1, "crash caller": 1, "save caller": 1}
        for _ in range(5):
            options = [(kind,) if kind == "crash server" else (kind, caller) for kind, count in left.items() if count]
            event = choices.pick([*world.events(), *options])
            if event[0] in left:
                left[event[0]] -= 1
            world.run(event)
        world.choose = lambda options: options[0]
        world.finish()

    assert every_order(scenario) > 2000


def random_world(rng):
    world = World(rng.choice, [f"t{n}" for n in range(rng.randint(1, 3))], rng.randint(3, 12), rng.randint(1, 5))
    for caller in world.callers.values():
        world.save_caller(caller)
    for _ in range(rng.randint(20, 200)):
        draw = rng.random()
        if draw < 0.04:
            world.crash_server()
        elif draw < 0.08:
            world.crash_caller(rng.choice(list(world.callers.values())))
        elif draw < 0.16:
            world.save_caller(rng.choice(list(world.callers.values())))
        elif draw < 0.22 and world.flying:
            world.lose(rng.randrange(len(world.flying)))
        else:
            world.run(rng.choice(list(world.events())))
    return world


def test_any_order_of_many_calls_with_deaths_of_all():
    for seed in seeds(2000):
        with replayable(seed):
            random_world(random.Random(seed)).finish()


def test_a_caller_without_checkpoints_begins_a_new_stream_and_its_calls_before_it_died_count_at_most_once():
    for seed in seeds(500):
        with replayable(seed):
            rng = random.Random(seed)
            world = World(rng.choice, ["a"], updates=6)
            for _ in range(rng.randint(5, 40)):
                draw = rng.random()
                if draw < 0.05:
                    world.crash_server()
                elif draw < 0.1:
                    world.crash_caller(world.callers["a"])
                else:
                    world.run(rng.choice(list(world.events())))
            streams = world.callers["a"].incarnation + 1
            while world.flying:
                world.arrive(0)
            for update in range(6):
                assert world.server.log.count(("a", update)) <= streams


def test_calls_that_were_in_a_damaged_checkpoint_are_missed_and_not_passed_over():
    key, window, calls = StreamKey("a", "", "1"), KeptCalls(9, 99), AppliedCalls()
    for _ in range(4):
        call = window.add(None, 1)
        assert calls.arrived(key, call.number, window.oldest, window.results_from) is Turn.NOW
        calls.add(key, call.number, None)
        window.answered(call.number)
    older = calls.state()
    older["streams"] = [(*key, 2, 0, [])]
    window.made_durable(4)
    calls.load(older)
    call = window.add(None, 1)
    assert calls.arrived(key, call.number, window.oldest, 0) == MissingCalls(2, 4)


def test_a_window_has_room_for_a_number_of_calls_and_of_bytes_and_always_for_one():
    window = KeptCalls(2, 100)
    assert window.has_room(1000) and not window.half_full()
    window.add(None, 1000)
    assert not window.has_room(0) and window.half_full()
    window.answered(0)
    assert not window.has_room(1)
    window.made_durable(1)
    assert window.has_room(1000) and window.size == 0
    window.add(None, 1)
    assert window.has_room(99) and not window.has_room(100)
    window.add(None, 1)
    assert not window.has_room(0)


def test_calls_that_a_caller_makes_again_after_it_went_back_are_kept_until_they_are_answered():
    window = KeptCalls(2, 100)
    window.made_durable(2)
    for number in range(3):
        assert window.has_room(1) and window.add(None, 1).number == number
        window.answered(number)
    assert [call.number for call in window.to_send(1, 0)] == [2]


def test_a_call_on_its_way_to_this_callee_is_not_sent_again():
    window = KeptCalls(9, 99)
    for number in range(3):
        window.add(number, 1)
        window.sent(number, 1)
    window.failed(1, 1)
    assert [call.number for call in window.to_send(1, 0)] == [1]
    assert [call.number for call in window.to_send(2, 0)] == [0, 1, 2]
    window.sent(0, 2)
    window.failed(0, 1)  # its first message ends with the callee that was lost
    assert [call.number for call in window.to_send(2, 0)] == [1, 2]


def test_a_durable_call_is_kept_until_its_answer_has_come():
    window = KeptCalls(9, 99)
    window.add("f", 1)
    window.add("g", 1)
    window.made_durable(2)
    window.answered(1)
    assert [call.request for call in window.to_send(1, 2)] == ["f"]
    window.answered(0)
    assert window.is_empty() and window.to_send(1, 0) == []


@pytest.mark.parametrize(
    "result, problem, repeated",
    [
        (None, "", Repeated(None)),
        (7, "", Repeated(7)),
        ("x" * LARGEST_RESULT, "", Repeated("x" * LARGEST_RESULT)),
        ("x" * (LARGEST_RESULT + 1), "", Repeated(None, "its result, a str, was not kept")),
        ([1], "", Repeated(None, "its result, a list, was not kept")),
        (None, "ValueError: no", Repeated(None, "it raised ValueError: no")),
    ],
)
def test_small_results_are_kept_for_repeated_calls(result, problem, repeated):
    key, calls = StreamKey("a", "", "1"), AppliedCalls()
    calls.add(key, 0, result, problem)
    again = AppliedCalls()
    again.load(calls.state())
    assert again.arrived(key, 0, 0, 0) == calls.arrived(key, 0, 0, 0) == repeated
    assert calls.arrived(key, 1, 0, 1) is Turn.NOW
    assert calls.arrived(key, 0, 0, 1).problem


def test_results_are_bounded():
    key, calls = StreamKey("a", "", "1"), AppliedCalls()
    for number in range(MOST_RESULTS + 10):
        calls.add(key, number, number)
    assert len(calls.state()["streams"][0][-1]) == MOST_RESULTS
    assert calls.arrived(key, 10, 0, 0) == Repeated(10)
    assert calls.arrived(key, 9, 0, 0).problem


def test_only_the_latest_streams_of_a_caller_are_kept():
    calls = AppliedCalls()
    for number in range(100):
        calls.add(StreamKey("a", "", str(number)), 0, None)
        calls.add(StreamKey("a", "b", str(number)), 0, None)
        calls.add(StreamKey("c", "", "one"), number, None)
    streams = calls.state()["streams"]
    assert len(streams) == 2 * STREAMS_KEPT + 1 and calls.total == 300
    assert calls.progress(StreamKey("a", "", "99")) == (1, 0) and calls.progress(StreamKey("c", "", "one")) == (100, 0)

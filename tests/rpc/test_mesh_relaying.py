"""A mesh call as a state machine: its table is the one on the page, and every order of messages and losses ends well."""

import random
from pathlib import Path

import pytest
from telegrad.rpc.meshes.relaying import (
    RELAY_TRANSITIONS,
    AnswerParent,
    AskChild,
    ForgetCall,
    LeaveParent,
    RefuseParent,
    RelayEvent,
    Relaying,
    RelayState,
)
from telegrad.rpc.meshes.tree import Member, children, plant

PAGE = Path(__file__).resolve().parents[2] / "docs" / "design" / "rpc_meshes.md"
CALLER = -1


def test_the_page_has_the_table_of_the_code():
    lines = [f"| state | {' | '.join(event.value for event in RelayEvent)} |"]
    lines.append("|" + "|".join(["---"] * (1 + len(RelayEvent))) + "|")
    for state in RelayState:
        cells = []
        for event in RelayEvent:
            then, actions = RELAY_TRANSITIONS[state, event]
            cells.append(then.value + (f": {', '.join(action.value for action in actions)}" if actions else ""))
        lines.append(f"| {state.value} | {' | '.join(cells)} |")
    assert "\n".join(lines) in PAGE.read_text(), "rpc_meshes.md must have:\n" + "\n".join(lines)


class Result:
    """Result of one worker, or a sum."""

    def __init__(self, text, failed=False):
        self.text, self.failed = text, failed


class Job:
    """Workers with machines, and messages between them that are delivered in a random order.

    A message is the request of a hop, which may be repeated, or its answer; both are lost with their sender or receiver, and
    with the connection, which both ends notice.
    """

    def __init__(self, count, seed, folds=False):
        self.random = random.Random(seed)
        self.folds = folds
        self.numbers = range(count)
        self.lost = set()
        self.relays = {}
        self.ran = dict.fromkeys(self.numbers, 0)
        self.requests = {}  # under way: id -> (sender, receiver)
        self.due = []  # what can happen next
        self.stopped, self.held = set(), []  # workers that do nothing, and what happens when they go on
        self.doubted = set()
        self.ids = iter(range(10**9))
        hosts = 1 if folds else self.random.choice([1, 5, count])
        names = [f"host{index * hosts // count}" for index in range(count)]
        subtrees = plant(list(self.numbers), names, caller=CALLER, at="host0")
        self.answer = None
        self.relays[CALLER] = root = Relaying(None, subtrees, folds)
        self.do(CALLER, root.ask("user", 0))
        self.do(CALLER, root.begin())

    def do(self, worker, instructions):
        for instruction in instructions:
            match instruction:
                case AskChild(subtree, held):
                    request = next(self.ids)
                    self.requests[request] = (worker, subtree[0].number)
                    self.due.append((self.arrive, request, subtree, held))
                case AnswerParent("user", results, _):
                    self.answer = self.fold(results)
                case AnswerParent(request, results, more):
                    self.due.append((self.answered, request, self.fold(results), more))
                case LeaveParent(_) | ForgetCall(_):
                    pass
                case RefuseParent(request):
                    raise AssertionError(f"request {request} was refused, and the caller has not ended the call")

    def fold(self, results):
        """Add up the results of a worker and its subtrees in the order of the mesh; leave others as they are."""
        if not self.folds or any(result.failed for _, result in results):
            return results
        ordered = sorted(results, key=lambda each: each[0])
        return [(ordered[0][0], Result("(" + "+".join(result.text for _, result in ordered) + ")"))]

    def arrive(self, request, subtree, held):
        worker = subtree[0].number
        if worker in self.stopped:
            self.held.append((self.arrive, request, subtree, held))
            return
        if request not in self.requests:
            return
        if worker in self.lost:
            self.child_lost(request)  # the dial is refused
            return
        if (relay := self.relays.get(worker)) is None:
            relay = self.relays[worker] = Relaying(subtree[0].place, children(subtree), self.folds)
            self.do(worker, relay.begin())
            self.due.append((self.run, worker, subtree[0].place))
        self.do(worker, relay.ask(request, held))

    def run(self, worker, index):
        if worker in self.stopped:
            self.held.append((self.run, worker, index))
            return
        if worker in self.lost:
            return
        self.ran[worker] += 1
        self.do(worker, self.relays[worker].own(Result(str(index))))

    def answered(self, request, results, more):
        if request in self.requests and self.requests[request][0] in self.stopped:
            self.held.append((self.answered, request, results, more))
            return
        if (hop := self.requests.pop(request, None)) is None:
            return
        sender, receiver = hop
        if sender not in self.lost:
            self.do(sender, self.relays[sender].answered(receiver, results, more))

    def lose(self, worker):
        """Kill a worker: each of its peers notices, at some time."""
        self.lost.add(worker)
        for request, (sender, receiver) in list(self.requests.items()):
            if receiver == worker:
                self.due.append((self.child_lost, request))
            elif sender == worker:
                del self.requests[request]
                if receiver in self.relays:
                    self.due.append((self.parent_lost, receiver, request))

    def child_lost(self, request):
        if (hop := self.requests.pop(request, None)) is not None and hop[0] not in self.lost:
            sender, receiver = hop
            error = lambda member: Result(f"worker {member.number} is lost", failed=True)  # noqa: E731
            self.do(sender, self.relays[sender].failed(receiver, error, adopts=True))

    def parent_lost(self, worker, request):
        if worker not in self.lost:
            self.do(worker, self.relays[worker].parent_lost(request))

    def break_connection(self):
        if self.requests:
            request = self.random.choice(list(self.requests))
            sender, receiver = self.requests.pop(request)
            if sender not in self.lost and receiver not in self.lost:
                self.do(sender, self.relays[sender].broken(receiver))
            elif sender not in self.lost:
                self.requests[request] = (sender, receiver)  # the loss is noticed

    def doubt(self):
        if self.requests:
            sender, receiver = self.random.choice(list(self.requests.values()))
            if sender not in self.lost:
                self.do(sender, self.relays[sender].bypass(receiver))

    def doubt_stopped(self):
        """Let each worker ask the children of those that say nothing; return whether there were any."""
        doubted = {hop for hop in self.requests.values() if hop[1] in self.stopped and hop[0] not in self.stopped}
        for sender, receiver in sorted(doubted - self.doubted):
            self.do(sender, self.relays[sender].bypass(receiver))
        fresh, self.doubted = doubted - self.doubted, self.doubted | doubted
        return bool(fresh)

    def settle(self):
        self.play()
        while self.doubt_stopped() or self.hurry_all():
            self.play()

    def hurry_all(self):
        live = self.relays.keys() - self.stopped - self.lost - {CALLER}
        hurried = [worker for worker in sorted(live) if self.relays[worker].hurries]
        for worker in hurried:
            self.do(worker, self.relays[worker].hurry())
        return bool(hurried)

    def hurry(self):
        worker = self.random.choice(list(self.relays))
        if worker not in self.lost and worker != CALLER:
            self.do(worker, self.relays[worker].hurry())

    def play(self, losses=0, breaks=0, hurries=0, doubts=0):
        victims = self.random.sample(list(self.numbers), losses)
        others = [(self.lose, victim) for victim in victims]
        others += [(self.break_connection,)] * breaks + [(self.hurry,)] * hurries + [(self.doubt,)] * doubts
        self.random.shuffle(others)
        while self.due:
            if others and self.random.random() < 0.2:
                action, *arguments = others.pop()
            else:
                action, *arguments = self.due.pop(self.random.randrange(len(self.due)))
            action(*arguments)


def check(job):
    assert job.relays[CALLER].state is RelayState.COMPLETE, "the caller's call has not ended"
    assert max(job.ran.values()) <= 1, "a function ran twice"
    found = dict(job.answer)
    assert found.keys() == set(job.numbers)
    for number in job.numbers:
        expected = {str(number)} if number not in job.lost else {str(number), f"worker {number} is lost"}
        assert found[number].text in expected


@pytest.mark.parametrize("count", [1, 5, 6, 21, 50])
def test_every_order_gives_every_result(count):
    for seed in range(20):
        job = Job(count, seed)
        job.play(hurries=count)
        check(job)
        assert not any(relay.owes for relay in job.relays.values())


@pytest.mark.parametrize("count", [2, 6, 21, 50])
def test_a_lost_worker_loses_its_own_result_only(count):
    for seed in range(60):
        job = Job(count, seed)
        job.play(losses=1 + seed % min(4, count), breaks=seed % 5, hurries=seed % 7)
        check(job)


@pytest.mark.parametrize("count", [6, 21])
def test_a_broken_connection_costs_nothing(count):
    for seed in range(40):
        job = Job(count, seed)
        job.play(breaks=10, hurries=5)
        check(job)
        assert set(job.ran.values()) == {1}


@pytest.mark.parametrize("count", [6, 21, 50])
def test_doubts_about_workers_that_live_or_are_lost_cost_nothing(count):
    for seed in range(60):
        job = Job(count, seed)
        job.play(losses=seed % 4, breaks=seed % 5, hurries=seed % 7, doubts=10)
        job.settle()
        check(job)


@pytest.mark.parametrize("count", [6, 21, 50])
def test_what_is_below_a_stopped_worker_is_asked_directly(count):
    for seed in range(20):
        job = Job(count, seed)
        job.stopped.update(job.random.sample(list(job.numbers), 1 + seed % 3))
        job.settle()
        found = {place for place, _ in job.relays[CALLER].results}
        assert found == set(job.numbers) - job.stopped
        job.stopped.clear()
        job.due, job.held = job.held, []
        job.settle()
        check(job)
        assert set(job.ran.values()) == {1}


def test_results_are_added_up_in_one_order_whatever_the_order_of_messages():
    sums = set()
    for seed in range(40):
        job = Job(21, seed, folds=True)
        job.play(breaks=seed % 4)
        ((_, result),) = job.answer
        sums.add(result.text)
    assert len(sums) == 1
    assert [int(part) for part in sums.pop().replace("(", "").replace(")", "").split("+")] == list(range(21))


def test_with_a_fold_one_lost_worker_fails_the_call_by_name():
    for seed in range(40):
        job = Job(21, seed, folds=True)
        job.play(losses=1)
        ((_, result), *others) = job.answer
        assert not others
        assert max(job.ran.values()) <= 1
        assert result.text == f"worker {next(iter(job.lost))} is lost" if result.failed else result.text.startswith("(")


def test_it_owes_results_until_the_parent_asks_for_them():
    relay = Relaying(0, [(Member(1, 1, 0),)])
    relay.ask("parent", 0)
    relay.answered(1, [(1, Result("1"))], False)
    assert relay.hurry()[0].more and relay.owes
    assert not relay.own(Result("0")) and relay.owes
    assert not relay.ask("parent", 1)[0].more and not relay.owes
    relay.ask("parent", 0)
    relay.end()
    assert not relay.owes


def test_after_the_end_a_parent_is_refused_and_nothing_is_kept():
    relay = Relaying(0, [])
    relay.ask("parent", 0)
    assert relay.own(Result("0"))[0].parent == "parent"
    assert relay.ask("adopter", 0)[0].results == relay.results != []
    relay.end()
    assert relay.results == []
    assert relay.ask("late", 0) == [RefuseParent("late")]

"""The agreement of a training's members: every order of messages, with deaths, joins and leaves at every point."""

import random
from collections import Counter

import pytest
from telegrad.collective.elastic.agreement import Agreement
from telegrad.collective.elastic.events import (
    Adopt,
    Answered,
    AnswerMember,
    Appeared,
    Asked,
    AskMember,
    Decision,
    Decline,
    Disappeared,
    Generation,
    StepReport,
    Submitted,
    WaitedEnough,
)

TOTAL = 6


class Collectives:
    """Contributions of the members of one generation to a step's two collectives."""

    def __init__(self):
        self.given = {}  # (step, kind): members

    def give(self, step, kind, worker):
        self.given.setdefault((step, kind), set()).add(worker)

    def full(self, step, kind, members):
        return self.given.get((step, kind), set()) >= set(members)


class Worker:
    """A worker that trains: its machine, and its state, a list of the generations in which its steps were done."""

    def __init__(self, job, number, at_least):
        self.job, self.number = job, number
        self.machine = Agreement(number, job.live, at_least)
        self.state, self.position = [], "outside"  # outside, waiting, fetching, reducing, committing, ended
        self.prepared = None
        self.holds = False
        self.leaving = False
        self.failed = set()  # generations whose collectives it gave up
        self.repeats = Counter()

    def do(self, event):
        for instruction in self.machine.handle(event):
            match instruction:
                case AskMember(to, number, report):
                    self.job.send(self.number, to, ("ask", self.number, number, report))
                case AnswerMember((asker, number), decision):
                    self.job.send(self.number, asker, ("answer", number, decision))
                case Adopt(decision):
                    self.adopt(decision)
                case Decline(decision):
                    self.failed.add(decision.generation)
                    self.position, self.holds = "waiting", False

    def submit(self, **more):
        self.position = "waiting"
        decision = self.machine.decision if self.holds or self.machine_member() else None
        self.do(
            Submitted(
                StepReport(
                    self.number,
                    decision,
                    completed=len(self.state),
                    prepared=self.prepared is not None,
                    holds=self.holds,
                    leaves=self.leaving,
                    **more,
                )
            )
        )

    def machine_member(self):
        return self.machine.decision is not None and self.number in self.machine.decision.members

    def adopt(self, decision):
        assert not decision.error, decision.error
        if self.holds and self.number in decision.holders and decision.completed > len(self.state):
            assert self.prepared is not None and decision.completed == len(self.state) + 1
            self.state.append(self.prepared)
        elif self.prepared is not None:
            self.repeats[len(self.state)] += 1
        self.prepared = None
        self.job.check(self)
        if self.number not in decision.members:
            if decision.finished and self.holds and not self.leaving and decision.completed > len(self.state):
                raise AssertionError("a holder ends without its last step")
            late = decision.finished and not self.holds and not self.leaving
            self.position = "coming late" if late else "ended"
        elif self.number in decision.holders:
            assert len(self.state) == decision.completed
            self.holds, self.position = True, "reducing"
            if len(self.state) == TOTAL:
                self.submit(finished=True)
                return
            self.job.collectives.setdefault(decision.generation, Collectives()).give(
                len(self.state), "reduce", self.number
            )
        else:
            self.holds, self.position = False, "fetching"

    # -- steps

    def may_move(self):
        return self.position in ("fetching", "reducing", "committing", "coming late")

    def move(self):
        """Go on in the training, or stop because a member is lost or has stopped."""
        decision = self.machine.decision
        others = [self.job.workers[each] for each in decision.members]
        dead = any(each.number not in self.job.live for each in others)
        broken = dead or any(decision.generation in each.failed for each in others) or self.replaced(decision)
        if self.position == "coming late":
            self.fetch_final(decision)
            return
        if self.position == "fetching":
            self.fetch(decision, broken)
            return
        kind = "reduce" if self.position == "reducing" else "commit"
        full = self.shared().full(len(self.state), kind, decision.members)
        if full and not (dead and self.job.random.random() < 0.5):
            self.advance(kind, decision)
        elif broken and self.job.knows_loss(self.number, decision):
            self.fail()

    def fail(self):
        self.failed.add(self.machine.decision.generation)
        self.submit()

    def replaced(self, decision):
        """Return whether the leader was lost, and another has decided otherwise."""
        return any(
            each.machine.decision is not None
            and each.machine.decision.generation != decision.generation
            and each.machine.decision.former == decision.former
            for each in self.job.workers.values()
        )

    def shared(self):
        return self.job.collectives[self.machine.decision.generation]

    def advance(self, kind, decision):
        if kind == "reduce":
            self.prepared = decision.generation
            self.position = "committing"
            self.shared().give(len(self.state), "commit", self.number)
            return
        self.state.append(self.prepared)
        self.prepared = None
        self.job.check(self)
        if len(self.state) == TOTAL:
            self.submit(finished=True)
        elif self.job.flagged(decision, len(self.state)):
            self.submit()
        else:
            self.position = "reducing"
            self.shared().give(len(self.state), "reduce", self.number)

    def fetch(self, decision, broken):
        holders = [self.job.workers[each] for each in decision.holders if each in self.job.live]
        ready = [each for each in holders if each.machine.decision.generation == decision.generation]
        if ready:
            source = self.job.random.choice(ready)
            assert len(source.state) == decision.completed, "the source has gone on before the newcomer had the state"
            self.state, self.holds, self.position = list(source.state), True, "reducing"
            if len(self.state) == TOTAL:
                self.submit(finished=True)
                return
            self.job.collectives.setdefault(decision.generation, Collectives()).give(
                len(self.state), "reduce", self.number
            )
        elif broken and self.job.knows_loss(self.number, decision):
            self.fail()

    def fetch_final(self, decision):
        holders = [self.job.workers[each] for each in decision.holders if each in self.job.live]
        ended = [each for each in holders if each.position == "ended"]
        if ended:
            self.state, self.holds = list(self.job.random.choice(ended).state), True
        if ended or not holders:
            self.position = "ended"


class Job:
    """Workers, messages under way in any order, and news of losses that arrive at different times."""

    def __init__(self, seed, at_least=1):
        self.random = random.Random(seed)
        self.at_least = at_least
        self.live, self.workers, self.messages, self.collectives = set(), {}, [], {}
        self.flags = {}
        self.deaths = 0
        self.told = {}  # by worker: losses that it knows of

    def start(self, number):
        self.live.add(number)
        for other in self.workers.values():
            if other.number in self.live and other.number != number:
                other.do(Appeared(number))
        self.workers[number] = Worker(self, number, self.at_least)
        self.told[number] = self.workers.keys() - self.live

    def begin(self, number):
        self.workers[number].submit()

    def kill(self, number):
        self.deaths += 1
        self.live.discard(number)
        kept = [m for m in self.messages if m[1] != number and not (m[0] == number and self.random.random() < 0.5)]
        self.messages = kept + [(number, other, ("lost", number)) for other in self.live]

    def send(self, source, to, content):
        if source in self.live and to in self.live:
            self.messages.append((source, to, content))

    def knows_loss(self, worker, decision):
        """A loss is noticed where it is known, or where another member has given up."""
        gone = {each for each in decision.members if each not in self.live}
        return (
            not gone
            or bool(gone & self.told[worker])
            or any(decision.generation in self.workers[each].failed for each in decision.members if each in self.live)
        )

    def flagged(self, decision, step):
        """Return what the commit of a step told all members: whether one wants to stop. The first decides for all."""
        key = decision.generation, step
        if key not in self.flags:
            members = [self.workers[each] for each in decision.members if each in self.live]
            self.flags[key] = any(each.machine.wanted() or each.leaving for each in members)
        return self.flags[key]

    def check(self, worker):
        """All live workers agree on each step that counts."""
        for other in self.workers.values():
            if other.number in self.live and other.holds and other is not worker:
                common = min(len(other.state), len(worker.state))
                assert other.state[:common] == worker.state[:common], (other.number, other.state, worker.state)

    def step(self):
        """Deliver one message or let one worker move; return False if nothing is left to do."""
        movable = [each for each in self.workers.values() if each.number in self.live and each.may_move()]
        choices = len(self.messages) + len(movable)
        if not choices:
            return False
        place = self.random.randrange(choices)
        if place >= len(self.messages):
            movable[place - len(self.messages)].move()
            return True
        _, to, content = self.messages.pop(place)
        if to in self.live:
            self.deliver(self.workers[to], content)
        return True

    def deliver(self, worker, content):
        match content:
            case ("ask", asker, number, report):
                if asker in self.live:
                    worker.do(Asked((asker, number), report))
            case ("answer", number, decision):
                worker.do(Answered(number, decision))
            case ("lost", number):
                self.told[worker.number].add(number)
                worker.do(Disappeared(number))

    def run(self, most=20_000):
        for _ in range(most):
            if not self.step() or all(self.workers[each].position == "ended" for each in self.live):
                break
        waiting = [each for each in self.live if self.workers[each].position == "waiting"]
        for each in waiting:
            self.workers[each].do(WaitedEnough())
        return bool(waiting)

    def finish(self):
        for _ in range(5):
            if not self.run():
                break
        return {each: self.workers[each].position for each in self.live}


def complete(job):
    positions = job.finish()
    assert set(positions.values()) <= {"ended"}, positions
    for each in job.live:
        worker = job.workers[each]
        if not worker.leaving and (worker.holds or not job.deaths):
            assert len(worker.state) == TOTAL


@pytest.mark.parametrize("seed", range(30))
def test_workers_found_one_training_in_any_order(seed):
    job = Job(seed)
    for number in range(4):
        job.start(number)
    order = [0, 1, 2, 3]
    job.random.shuffle(order)
    for number in order:
        job.begin(number)
        for _ in range(job.random.randrange(8)):
            job.step()
    complete(job)
    assert len({tuple(job.workers[each].state) for each in range(4)}) == 1


@pytest.mark.parametrize("seed", [*range(400), 700006679])
def test_any_deaths_joins_and_leaves(seed):
    job = Job(seed, at_least=1)
    for number in range(3):
        job.start(number)
        job.begin(number)
    coming = 3
    for _ in range(job.random.randrange(1, 6)):
        for _ in range(job.random.randrange(40)):
            job.step()
        able = [each for each in job.live if job.workers[each].position != "ended"]
        match job.random.randrange(3):
            case 0 if len([each for each in able if job.workers[each].holds]) > 1 and settled(job):
                job.kill(job.random.choice(able))
            case 1:
                job.start(coming)
                job.begin(coming)
                coming += 1
            case 2 if settled(job):
                job.workers[job.random.choice(able)].leaving = True
    complete(job)
    assert all(sum(job.workers[each].repeats.values()) <= job.deaths for each in job.live)


def settled(job):
    """A death leaves at least one live worker with the state."""
    holders = [w for w in job.workers.values() if w.number in job.live and w.holds and w.position != "ended"]
    return len([each for each in holders if not each.leaving]) > 1


@pytest.mark.parametrize("dies", [0, 1, 2])
@pytest.mark.parametrize("after", range(40))
def test_a_death_at_every_point_repeats_at_most_one_step(dies, after):
    job = Job(after)
    for number in range(3):
        job.start(number)
        job.begin(number)
    for _ in range(after):
        job.step()
    if settled(job):
        job.kill(dies)
    complete(job)


@pytest.mark.parametrize("seed", range(30))
def test_a_worker_that_comes_late_gets_the_final_state(seed):
    job = Job(seed)
    for number in range(3):
        job.start(number)
        job.begin(number)
    complete(job)
    job.workers[0].leaving = True
    job.start(3)
    job.begin(3)
    complete(job)
    assert job.workers[3].holds and len(job.workers[3].state) == TOTAL


def training(members, at_least=1, completed=0):
    """The machine of worker 1 in a generation that worker 0 has founded, and that decision."""
    machine = Agreement(1, members, at_least)
    (ask, *_) = machine.handle(Submitted(StepReport(1)))
    decision = Decision(Generation(1, 0), None, tuple(members), (0,), completed)
    assert machine.handle(Answered(ask.number, decision)) == [Adopt(decision)]
    return machine, decision


def member(number, decision, **more):
    return StepReport(number, decision, holds=True, **more)


def test_a_step_that_one_member_has_completed_counts_for_all():
    machine, decision = training([0, 1, 2])
    machine.handle(Submitted(member(1, decision, completed=4, prepared=True)))
    machine.handle(Disappeared(0))
    adopted = machine.handle(Asked("t", member(2, decision, completed=5)))
    assert [each.decision.completed for each in adopted if isinstance(each, Adopt)] == [5]


def test_a_step_that_one_member_has_not_prepared_is_done_again():
    machine, decision = training([0, 1, 2])
    machine.handle(Submitted(member(1, decision, completed=4, prepared=True)))
    machine.handle(Disappeared(0))
    adopted = machine.handle(Asked("t", member(2, decision, completed=4)))
    assert [each.decision.completed for each in adopted if isinstance(each, Adopt)] == [4]


def test_too_few_workers_wait_for_another():
    machine, decision = training([0, 1, 2], at_least=3)
    machine.handle(Submitted(member(1, decision)))
    machine.handle(Disappeared(0))
    assert machine.handle(Asked("t", member(2, decision))) == []
    machine.handle(Appeared(3))
    *_, first, second, adopted = machine.handle(Asked("u", StepReport(3)))
    assert adopted.decision.members == (1, 2, 3) and adopted.decision.holders == (1, 2)
    assert {first.ticket, second.ticket} == {"t", "u"}


def test_the_loss_of_the_whole_state_is_an_error_for_all():
    machine, decision = training([0, 1], completed=9)
    machine.handle(Submitted(StepReport(1, decision)))
    (adopted,) = machine.handle(Disappeared(0))
    assert "after 9 steps are lost" in adopted.decision.error

"""Thousands of random schedules of the ownership machine over a bad network: G1 to G5 hold in each, after each step."""

import random
import time
from typing import NamedTuple

from telegrad.rref import protocol as p
from telegrad.rref.ids import WorkerKey
from telegrad.rref.ownership import Ownership
from telegrad.testing.schedules import How, Mesh, replayable, seeds

SCHEDULES = 10_000
WORKERS = 5
ACTIONS = 24
# How often each happens, given that anything does.
WEIGHTS = {"create": 4, "own": 2, "fork": 7, "drop": 6, "kill": 0.7, "restart": 0.3}


class Call(NamedTuple):
    """A carrier on the bare network, with the creating fork if it creates."""

    number: int
    entries: list
    creates: tuple


class Reply(NamedTuple):
    """The owner's reply to a creating call."""

    fork_id: tuple


class Unsure(NamedTuple):
    """The sender of a carrier does not know whether it arrived."""

    to: WorkerKey
    number: int


class Fact:
    """What really holds of one fork, which no worker knows in full."""

    __slots__ = ("adopted", "carrier", "confirmed", "failed", "gone", "holder", "owner", "parent", "rref_id")

    def __init__(self, rref_id, owner, holder, parent, carrier=None):
        self.rref_id, self.owner, self.holder, self.parent, self.carrier = rref_id, owner, holder, parent, carrier
        self.adopted = carrier is None
        self.confirmed = self.failed = self.gone = False


class World:
    def __init__(self, rng):
        self.rng = rng
        self.mesh = Mesh(rng)
        self.machines = {}
        self.facts = {}  # every fork there ever was
        self.handles = {}  # those that the user of a live worker has in hand, by worker
        self.of_rref = {}  # forks of a reference that are in hand or in flight
        self.freed = set()
        self.owned = set()
        self.never = set()
        for rank in range(WORKERS):
            self.join(WorkerKey(rank))

    def join(self, key):
        self.mesh.join(key)
        self.machines[key] = Ownership(key)
        self.handles[key] = set()
        for dead in self.mesh.dead:
            self.machines[key].worker_lost(dead)

    # -- what users do

    def act(self):
        action = self.rng.choices(list(WEIGHTS), WEIGHTS.values())[0]
        getattr(self, action)(self.someone())
        self.obey()

    def someone(self):
        return self.rng.choice(list(self.machines))

    def own(self, key):
        rref_id, fork_id = self.machines[key].own()
        self.owned.add(rref_id)
        self.take_in_hand(fork_id, Fact(rref_id, key, key, None))
        self.facts[fork_id].confirmed = True

    def create(self, key):
        owner = self.rng.choice([*self.machines, *self.mesh.dead]) if self.rng.random() < 0.1 else self.someone()
        parents = self.some_handles(key)
        rref_id, fork_id, carrier = self.machines[key].create(owner, self.references(parents))
        if owner == key:
            self.owned.add(rref_id)
        self.take_in_hand(fork_id, Fact(rref_id, owner, key, None))
        self.facts[fork_id].confirmed = owner == key
        self.dispatch(key, carrier, parents, fork_id)

    def fork(self, key):
        parents = self.some_handles(key)
        if parents:
            to = self.someone()
            self.dispatch(key, self.machines[key].outgoing(to, self.references(parents)), parents, None)

    def drop(self, key):
        for fork_id in self.some_handles(key, most=1):
            self.machines[key].dropped(fork_id)
            self.leave_hand(fork_id)

    def kill(self, key):
        if len(self.machines) < 3:
            return
        del self.machines[key]
        for fork_id in self.handles.pop(key):
            self.facts[fork_id].gone = True
            self.of_rref[self.facts[fork_id].rref_id].discard(fork_id)
        self.mesh.kill(key)

    def restart(self, _key):
        if self.mesh.dead:
            old = self.rng.choice(self.mesh.dead)
            new = WorkerKey(old.rank, old.incarnation + 1)
            if new not in self.machines and new not in self.mesh.dead:
                self.join(new)

    def some_handles(self, key, most=2):
        mine = sorted(self.handles[key])
        return self.rng.sample(mine, min(len(mine), self.rng.randint(1, most)))

    def references(self, fork_ids):
        return [(self.facts[fork_id].rref_id, fork_id) for fork_id in fork_ids]

    # -- what drivers do

    def dispatch(self, sender, carrier, parents, creating):
        children = carrier.entries[len(carrier.entries) - len(parents) :]
        for parent, entry in zip(parents, children):
            fact = Fact(entry.rref_id, entry.owner, carrier.to, parent, (sender, carrier.to, carrier.number))
            self.facts[entry.fork_id] = fact
            self.of_rref[entry.rref_id].add(entry.fork_id)
        copies = self.mesh.throw(sender, carrier.to, Call(carrier.number, carrier.entries, creating))
        if not copies or self.rng.random() < 0.15:
            self.mesh.later(sender, Unsure(carrier.to, carrier.number))

    def obey(self):
        for key in list(self.machines):
            machine = self.machines[key]
            while machine.outbox:
                for instruction in machine.take():
                    self.carry_out(key, instruction)

    def carry_out(self, key, instruction):
        if isinstance(instruction, p.Send):
            self.mesh.post(key, instruction.to, instruction.message)
        elif isinstance(instruction, p.Free):
            self.check_free(instruction.rref_id)
        elif isinstance(instruction, p.NeverCreated):
            assert instruction.rref_id not in self.owned | self.never
            self.never.add(instruction.rref_id)
        elif isinstance(instruction, p.Confirmed):
            fact = self.facts[instruction.fork_id]
            assert fact.holder == key and not fact.failed and not fact.confirmed
            fact.confirmed = True
        else:
            self.check_fail(instruction)

    def step(self):
        arrival = self.mesh.step()
        if arrival is None:
            return False
        _, source, key, what = arrival
        machine = self.machines[key]
        if arrival.how is How.CONTROL:
            machine.receive(source, what)
        elif arrival.how is How.LOST:
            machine.worker_lost(source)
        elif isinstance(what, Unsure):
            machine.not_delivered(what.to, what.number)
        elif isinstance(what, Reply):
            machine.confirmed(what.fork_id)
        else:
            self.call_arrives(source, key, what)
        self.obey()
        return True

    def call_arrives(self, source, key, call):
        if self.machines[key].incoming(source, call.number, call.entries) is None:
            return
        for entry in call.entries:
            if entry.how is not p.How.CREATED:
                self.take_in_hand(entry.fork_id, self.facts[entry.fork_id])
            elif source != key:
                assert entry.rref_id not in self.owned | self.never
                self.owned.add(entry.rref_id)
        if (
            call.creates is not None
            and not self.mesh.throw(key, source, Reply(call.creates))
            and source in self.machines
        ):
            self.mesh.later(source, Unsure(key, call.number))
        if self.rng.random() < 0.2:  # the call's result is a reference
            parents = self.some_handles(key, most=1)
            if parents:
                self.dispatch(key, self.machines[key].outgoing(source, self.references(parents)), parents, None)

    def take_in_hand(self, fork_id, fact):
        assert not fact.gone
        self.facts[fork_id] = fact
        fact.adopted = True
        self.handles[fact.holder].add(fork_id)
        self.of_rref.setdefault(fact.rref_id, set()).add(fork_id)

    def leave_hand(self, fork_id):
        fact = self.facts[fork_id]
        fact.gone = True
        self.handles[fact.holder].discard(fork_id)
        self.of_rref[fact.rref_id].discard(fork_id)

    # -- what must hold

    def excused(self, fork_id):
        """Whether a worker on the fork's way from the owner was lost, or the reference was never created."""
        fact = self.facts[fork_id]
        if fact.rref_id in self.never or (fact.rref_id.maker not in self.machines and fact.rref_id not in self.owned):
            return True
        while fact.parent is not None:
            fact = self.facts[fact.parent]
            if fact.holder not in self.machines:
                return True
        return False

    def arriving(self, fact):
        """Whether the fork is in flight from a live worker to a live one that has not refused it."""
        sender, to, number = fact.carrier
        if sender not in self.machines or to not in self.machines:
            return False
        receiver = self.machines[to]
        return sender not in receiver._lost and number not in receiver._seen.get(sender, ())

    def check_free(self, rref_id):
        """G2, when it matters: at the moment of freeing."""
        assert rref_id in self.owned and rref_id not in self.freed
        self.freed.add(rref_id)
        for fork_id in self.of_rref[rref_id]:
            fact = self.facts[fork_id]
            if fact.failed or not (fact.adopted or self.arriving(fact)):
                continue
            assert not fact.confirmed and self.excused(fork_id), f"{rref_id} was freed under {fork_id} at {fact.holder}"

    def check_fail(self, failure):
        fact = self.facts[failure.fork_id]
        assert not fact.failed and not fact.gone
        fact.failed = True
        if fact.owner in self.machines:
            assert not fact.confirmed and self.excused(failure.fork_id), f"{failure} without a loss"
            assert "worker" in failure.message
        else:
            assert failure.lost == fact.owner or self.excused(failure.fork_id)

    def check_confirmed(self):
        """G1 and G2 after every step: each confirmed handle in hand is in its owner's table."""
        for key, fork_ids in self.handles.items():
            for fork_id in fork_ids:
                fact = self.facts[fork_id]
                if fact.confirmed and not fact.failed and fact.owner in self.machines:
                    owned = self.machines[fact.owner]._owned._owned.get(fact.rref_id)
                    assert owned is not None and owned.forks[fork_id][0] == key

    def check_at_rest(self):
        """G1 exactly: when nothing is in flight the owners know the handles in hand, and no others."""
        known, real = set(), set()
        for machine in self.machines.values():
            for rref_id in machine._owned._owned:
                known.update(machine.forks_of(rref_id).items())
            counts = machine.counts()
            assert counts["pending_children"] == counts["voiding_carriers"] == 0
        for key, fork_ids in self.handles.items():
            for fork_id in fork_ids:
                fact = self.facts[fork_id]
                assert fact.confirmed or fact.failed, f"{fork_id} at {key} is neither confirmed nor failed"
                if not fact.failed:
                    assert fact.owner in self.machines
                    real.add((fork_id, key))
        assert known == real

    def check_empty(self):
        """G5."""
        for key, machine in self.machines.items():
            assert not any(machine.counts().values()), (key, machine.counts())
        assert {rref_id for rref_id in self.owned if self.owner_lives(rref_id)} <= self.freed

    def owner_lives(self, rref_id):
        return any(fact.rref_id == rref_id and fact.owner in self.machines for fact in self.facts.values())


def settle(world):
    while world.step():
        world.check_confirmed()


def run_schedule(seed):
    rng = random.Random(seed)
    world = World(rng)
    for _ in range(ACTIONS):
        world.act()
        world.check_confirmed()
        for _ in range(rng.randrange(4)):
            world.step()
            world.check_confirmed()
    settle(world)
    world.check_at_rest()
    for key, fork_ids in world.handles.items():
        for fork_id in sorted(fork_ids):
            world.machines[key].dropped(fork_id)
            world.leave_hand(fork_id)
            world.obey()
    settle(world)
    world.check_empty()
    return world


def test_the_guarantees_hold_in_every_schedule(capsys):
    started = time.perf_counter()
    forks = failed = killed = never = 0
    chosen = seeds(SCHEDULES)
    for seed in chosen:
        with replayable(seed):
            world = run_schedule(seed)
        forks += len(world.facts)
        failed += sum(fact.failed for fact in world.facts.values())
        killed += len(world.mesh.dead)
        never += len(world.never)
    with capsys.disabled():
        print(
            f"\n{len(chosen)} schedules, {forks} forks, {killed} workers lost, {never} creations refused, "
            f"{failed} handles failed by name, {time.perf_counter() - started:.1f} s"
        )
    if len(chosen) > 1:  # the schedules reach what they are meant to test
        assert forks and failed and killed and never

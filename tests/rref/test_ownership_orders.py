"""Small scenes of the ownership protocol, in every order in which what is in flight can arrive."""

import pytest
from telegrad.rref import protocol as p
from telegrad.rref.ids import WorkerKey
from telegrad.rref.ownership import Ownership
from telegrad.testing.schedules import every_order

OWNER, USER, OTHER, THIRD = (WorkerKey(rank) for rank in range(4))


class Scene:
    """Events in flight are functions of no arguments; the search picks which one comes next."""

    def __init__(self, choices):
        self.choices = choices
        self.machines = {key: Ownership(key) for key in (OWNER, USER, OTHER, THIRD)}
        self.flying = []
        self.in_hand = {}  # fork: (rref id, holder)
        self.confirmed, self.failed, self.freed, self.dead = set(), {}, [], set()

    def play(self):
        self.collect()
        while self.flying:
            event = self.choices.pick(self.flying)
            self.flying.remove(event)
            event()
            self.collect()
            self.check()

    def collect(self):
        for key, machine in self.machines.items():
            for said in machine.take():
                if isinstance(said, p.Send):
                    self.control(key, said)
                elif isinstance(said, p.Free):
                    self.freed.append(said.rref_id)
                elif isinstance(said, p.Confirmed):
                    self.confirmed.add(said.fork_id)
                elif isinstance(said, p.Fail):
                    assert said.fork_id not in self.confirmed or OWNER in self.dead
                    self.failed[said.fork_id] = said.message

    def control(self, sender, said):
        def event():
            if said.to in self.machines:
                self.machines[said.to].receive(sender, said.message)

        self.flying.append(event)

    def check(self):
        """A confirmed handle in hand is in the owner's table, and no value is freed twice."""
        assert len(set(self.freed)) == len(self.freed)
        if OWNER in self.dead:
            return
        for fork_id, (rref_id, holder) in self.in_hand.items():
            if fork_id in self.confirmed:
                assert self.machines[OWNER].forks_of(rref_id)[fork_id] == holder

    # -- what a scene is made of

    def own(self):
        rref_id, fork_id = self.machines[OWNER].own()
        self.in_hand[fork_id] = (rref_id, OWNER)
        self.confirmed.add(fork_id)
        return rref_id, fork_id

    def create(self, arrives=True, replied=True):
        """USER creates on OWNER."""
        rref_id, fork_id, carrier = self.machines[USER].create(OWNER)
        self.in_hand[fork_id] = (rref_id, USER)

        def reply():
            if USER in self.machines:
                self.machines[USER].confirmed(fork_id)

        def event():
            owner = self.machines.get(OWNER)
            arrived = owner is not None and owner.incoming(USER, carrier.number, carrier.entries) is not None
            if arrived and replied:
                self.flying.append(reply)

        if arrives:
            self.flying.append(event)
        return rref_id, fork_id

    def give(self, sender, to, reference, copies=1, then=lambda handle: None):
        """Send the reference; ``then`` is what the receiver does with its handle."""
        carrier = self.machines[sender].outgoing(to, [reference])
        child = (reference[0], carrier.entries[0].fork_id)

        def event():
            machine = self.machines.get(to)
            if machine is not None and machine.incoming(sender, carrier.number, carrier.entries) is not None:
                self.in_hand[child[1]] = (child[0], to)
                then(child)

        self.flying += [lambda: event() for _ in range(copies)]
        return carrier

    def drop(self, reference):
        _, holder = self.in_hand.pop(reference[1])
        self.machines[holder].dropped(reference[1])

    def drops_later(self, reference):
        self.flying.append(lambda: self.drop(reference) if reference[1] in self.in_hand else None)

    def unsure(self, sender, to, number=0):
        self.flying.append(lambda: self.machines[sender].not_delivered(to, number) if sender in self.machines else None)

    def dies(self, key):
        def hears(other):
            return lambda: self.machines[other].worker_lost(key)

        def event():
            del self.machines[key]
            self.dead.add(key)
            self.in_hand = {fork: entry for fork, entry in self.in_hand.items() if entry[1] != key}
            self.flying.extend(hears(other) for other in self.machines)

        self.flying.append(event)

    def end(self):
        """Drop what is left in hand: nothing remains."""
        for fork_id in self.in_hand:
            assert fork_id in self.confirmed or fork_id in self.failed
        for fork_id, (rref_id, _) in list(self.in_hand.items()):
            self.drop((rref_id, fork_id))
        self.play()
        for key, machine in self.machines.items():
            assert not any(machine.counts().values()), (key, machine.counts())


def every(body, least):
    """Play the scene in every order; there must be at least so many of them, or the scene is not what it seems."""
    orders = every_order(lambda choices: body(Scene(choices)))
    assert orders >= least, orders


def test_create_give_and_drop_both():
    def scene(s):
        mine = s.create()
        s.give(USER, OTHER, mine, then=s.drops_later)
        s.drops_later(mine)
        s.play()
        assert s.failed == {}
        assert s.freed == [mine[0]]
        s.end()

    every(scene, 300)


def test_give_on_before_anything_is_known():
    def scene(s):
        mine = s.create()
        s.give(USER, OTHER, mine, then=lambda his: (s.give(OTHER, THIRD, his), s.drop(his)))
        s.drop(mine)
        s.play()
        assert s.failed == {}
        assert s.freed == []
        s.end()
        assert s.freed == [mine[0]]

    every(scene, 300)


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("replied", [True, False])
def test_create_and_doubt(arrives, replied):
    def scene(s):
        mine = s.create(arrives, replied)
        s.give(USER, OTHER, mine)
        s.unsure(USER, OWNER)
        s.play()
        s.end()

    every(scene, 20)


def test_the_owner_gives_twice_the_same_frame_and_doubts():
    def scene(s):
        mine = s.own()
        s.give(OWNER, OTHER, mine, copies=2, then=s.drops_later)
        s.unsure(OWNER, OTHER)
        s.drops_later(mine)
        s.play()
        assert s.freed == [mine[0]]
        s.end()

    every(scene, 50)


def test_a_user_gives_a_frame_twice_and_doubts():
    def scene(s):
        mine = s.own()
        users = []
        s.give(OWNER, USER, mine, then=users.append)
        s.play()
        s.drop(mine)
        s.give(USER, OTHER, users[0], copies=2)
        s.unsure(USER, OTHER)
        s.drops_later(users[0])
        s.play()
        assert s.failed == {}
        s.end()
        assert s.freed == [mine[0]]

    every(scene, 50)


def test_home_before_created():
    def scene(s):
        mine = s.create()
        s.give(USER, OWNER, mine, then=lambda home: (s.give(OWNER, OTHER, home), s.drop(home)))
        s.drop(mine)
        s.play()
        assert s.failed == {}
        s.end()
        assert s.freed == [mine[0]]

    every(scene, 50)


@pytest.mark.parametrize("victim", [OWNER, USER, OTHER])
def test_a_loss_in_the_middle_of_giving(victim):
    def scene(s):
        mine = s.own()
        users = []
        s.give(OWNER, USER, mine, then=users.append)
        s.play()
        s.drop(mine)
        s.give(USER, OTHER, users[0])
        s.dies(victim)
        s.play()
        if victim == OTHER:
            assert s.failed == {}
        elif victim == USER:
            assert all("worker 1" in message for message in s.failed.values())
        s.end()
        if victim != OWNER:
            assert s.freed == [mine[0]]

    every(scene, 20)


@pytest.mark.parametrize("victim", [OWNER, USER])
def test_a_loss_in_the_middle_of_creating(victim):
    def scene(s):
        mine = s.create()
        s.give(USER, OTHER, mine)
        s.dies(victim)
        s.play()
        assert all(f"worker {victim}" in message for message in s.failed.values())
        s.end()

    every(scene, 50)

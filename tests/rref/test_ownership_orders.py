"""Small scenes of the ownership protocol, in every order in which what is in flight can arrive."""

import pytest
from telegrad.core.futures import Future
from telegrad.rref import protocol as p
from telegrad.rref.ids import WorkerKey
from telegrad.rref.ownership import Ownership
from telegrad.rref.transfers import ReferenceTransfer
from telegrad.testing.schedules import every_order

OWNER, USER, OTHER, THIRD = (WorkerKey(rank) for rank in range(4))


class Scene:
    """Events in flight are functions of no arguments; the search picks which one comes next."""

    def __init__(self, choices):
        self.choices = choices
        self.machines = {key: Ownership(key) for key in (OWNER, USER, OTHER, THIRD)}
        self.flying = []
        self.in_hand = {}  # by fork id: the fork and its holder
        self.confirmed, self.failed, self.freed, self.dead = set(), {}, [], set()

    def play(self):
        while self.flying:
            event = self.choices.pick(self.flying)
            self.flying.remove(event)
            event()
            self.check()

    def handle(self, key, event):
        for told in self.machines[key].handle(event):
            if isinstance(told, p.Send):
                self.flying.append(lambda told=told: self.receive(key, told))
            elif isinstance(told, p.Free):
                self.freed.append(told.rref_id)
            elif isinstance(told, p.Confirmed):
                self.confirmed.add(told.fork.fork_id)
            elif isinstance(told, p.ForkFailed):
                assert told.fork.fork_id not in self.confirmed or OWNER in self.dead
                self.failed[told.fork.fork_id] = told.reason

    def receive(self, sender, told):
        if told.to in self.machines:
            self.handle(told.to, p.Received(sender, told.message))

    def check(self):
        """A confirmed fork in hand is in the owner's table, and no value is freed twice."""
        assert len(set(self.freed)) == len(self.freed)
        if OWNER in self.dead:
            return
        for fork_id, (fork, holder) in self.in_hand.items():
            if fork_id in self.confirmed:
                assert self.machines[OWNER].owned.forks_of(fork.rref_id)[fork_id] == holder

    # -- what a scene is made of

    def take_in_hand(self, fork, holder):
        self.in_hand[fork.fork_id] = (fork, holder)
        return fork

    def own(self):
        fork = self.take_in_hand(self.machines[OWNER].own(Future()), OWNER)
        self.confirmed.add(fork.fork_id)
        return fork

    def create(self, arrives=True, replied=True):
        """USER creates on OWNER."""
        transfer = self.sending(USER, ReferenceTransfer(OWNER, creates=True))

        def reply():
            if USER in self.machines:
                self.handle(USER, p.Delivered(transfer))

        def event():
            if self.arrive(USER, transfer) is not None and replied:
                self.flying.append(reply)

        if arrives:
            self.flying.append(event)
        return self.take_in_hand(transfer.created, USER)

    def give(self, sender, to, reference, copies=1, then=lambda fork: None, answered=False):
        """Send the reference; ``then`` is what the receiver does with its fork. A request is ``answered``."""
        transfer = self.sending(sender, ReferenceTransfer(to, [reference], answered=answered))

        def reply():
            if sender in self.machines:
                self.handle(sender, p.Delivered(transfer))

        def event():
            forks = self.arrive(sender, transfer)
            if forks is not None and answered:
                self.flying.append(reply)
            for fork in forks or ():
                then(self.take_in_hand(fork, to))

        self.flying += [lambda: event() for _ in range(copies)]
        return transfer

    def borrow(self, sender, reference, copies=1):
        """Call a method of the value of OWNER, which is there whenever the call arrives."""
        transfer = self.sending(sender, ReferenceTransfer(OWNER, borrowed=reference))

        def event():
            arriving = ReferenceTransfer.arriving(sender, transfer.number, transfer.entries)
            self.handle(OWNER, p.ReferencesArrived(arriving))
            if arriving.adopted:
                assert arriving.value is not None and reference.rref_id not in self.freed
                self.flying.append(lambda: self.handle(sender, p.Delivered(transfer)))

        self.flying += [lambda: event() for _ in range(copies)]

    def fetch(self, sender, reference, then=lambda found: None):
        """Ask OWNER for the value; ``then`` gets whether there is one, or may be one."""

        def event():
            if sender in self.machines and OWNER in self.machines and sender not in self.machines[OWNER].lost:
                then(self.machines[OWNER].owned.value(reference.rref_id) is not None)

        self.flying.append(event)

    def sending(self, sender, transfer):
        self.handle(sender, p.Sending(transfer))
        return transfer

    def arrive(self, sender, transfer):
        """The forks that the receiver adopted; ``None`` if it refused the transfer, or is lost."""
        arriving = ReferenceTransfer.arriving(sender, transfer.number, transfer.entries)
        if transfer.peer in self.machines:
            self.handle(transfer.peer, p.ReferencesArrived(arriving))
        return arriving.forks if arriving.adopted else None

    def drop(self, reference):
        _, holder = self.in_hand.pop(reference.fork_id)
        self.handle(holder, p.Dropped(reference))

    def drops_later(self, reference):
        self.flying.append(lambda: self.drop(reference) if reference.fork_id in self.in_hand else None)

    def unsure(self, sender, to):
        def event():
            if sender in self.machines:
                for transfer in self.machines[sender].transfers.open_to(to):
                    self.handle(sender, p.NotDelivered(transfer))

        self.flying.append(event)

    def dies(self, key):
        def hears(other):
            return lambda: self.handle(other, p.WorkerLost(key))

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
        for fork, _ in list(self.in_hand.values()):
            self.drop(fork)
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
        assert s.freed == [mine.rref_id]
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
        assert s.freed == [mine.rref_id]

    every(scene, 300)


def test_a_fetch_before_the_owner_knows_of_the_fork_finds_the_value():
    """Nothing keeps the value for OTHER, which drops its fork after the fetch, but the fork that was given on."""

    def scene(s):
        mine, founds = s.create(), []

        def fetched(found, his):
            founds.append(found)
            s.drop(his)

        s.give(USER, OTHER, mine, then=lambda his: s.fetch(OTHER, his, lambda found: fetched(found, his)))
        s.drop(mine)
        s.play()
        assert founds == [True] and s.failed == {} and s.freed == [mine.rref_id]
        s.end()

    every(scene, 200)


def test_a_fetch_finds_the_value_at_the_end_of_a_chain_of_forks_that_the_owner_does_not_know():
    def scene(s):
        mine, users, founds = s.own(), [], []
        s.give(OWNER, USER, mine, then=users.append)
        s.play()
        s.drop(mine)

        def passes_on(his):
            s.give(OTHER, THIRD, his, then=lambda theirs: s.fetch(THIRD, theirs, founds.append))
            s.drop(his)

        s.give(USER, OTHER, users[0], then=passes_on)
        s.drop(users[0])
        s.play()
        assert founds == [True] and s.failed == {} and s.freed == []
        s.end()
        assert s.freed == [mine.rref_id]

    every(scene, 300)


def test_a_fetch_whose_giver_is_lost_finds_the_value_or_its_fork_fails_by_name():
    def scene(s):
        mine, founds = s.own(), []
        users = []
        s.give(OWNER, USER, mine, then=users.append)
        s.play()
        s.drop(mine)
        s.give(USER, OTHER, users[0], then=lambda his: s.fetch(OTHER, his, founds.append))
        s.dies(USER)
        s.play()
        assert False not in founds or ["worker 1" in reason for reason in s.failed.values()] == [True]
        s.end()
        assert s.freed == [mine.rref_id]

    every(scene, 20)


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
        assert s.freed == [mine.rref_id]
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
        assert s.freed == [mine.rref_id]

    every(scene, 50)


@pytest.mark.parametrize("answered", [False, True])
def test_given_to_the_owner_before_created(answered):
    def scene(s):
        mine = s.create()
        s.give(USER, OWNER, mine, then=lambda his: (s.give(OWNER, OTHER, his), s.drop(his)), answered=answered)
        s.drop(mine)
        s.play()
        assert s.failed == {}
        s.end()
        assert s.freed == [mine.rref_id]

    every(scene, 50)


@pytest.mark.parametrize("borrowed", [False, True])
@pytest.mark.parametrize("copies", [1, 2])
def test_a_call_to_the_owner_is_answered_or_doubted(copies, borrowed):
    """A user that was given a reference calls its owner with it, or with its value; drops it; and doubts that it arrived."""

    def scene(s):
        mine = s.own()
        users = []
        s.give(OWNER, USER, mine, then=users.append)
        s.play()
        s.drop(mine)
        if borrowed:
            s.borrow(USER, users[0], copies)
        else:
            s.give(USER, OWNER, users[0], copies, then=s.drops_later, answered=True)
        s.drops_later(users[0])
        s.unsure(USER, OWNER)
        s.play()
        assert s.failed == {} and s.freed == [mine.rref_id]
        s.end()

    every(scene, 50)


def test_a_value_is_borrowed_before_it_is_created():
    def scene(s):
        mine = s.create()
        s.borrow(USER, mine)
        s.borrow(USER, mine)
        s.drop(mine)
        s.play()
        assert s.failed == {} and s.freed == [mine.rref_id]
        s.end()

    every(scene, 20)


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
            assert s.freed == [mine.rref_id]

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

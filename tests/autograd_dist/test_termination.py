"""Detection of the end of a diffusing computation: at the root, once, when nothing runs or flies; in any order."""

import random
from collections import deque

from telegrad.autograd_dist.termination import Answer, Ask, Over, Termination
from telegrad.testing.schedules import every_order


class Request:
    def __init__(self, sender, to, work):
        self.sender, self.to, self.work = sender, to, work


class Network:
    """Workers whose work makes more work, and the messages between them. A piece of work is the number of pieces below it."""

    def __init__(self, workers, pick):
        self.machines = [Termination(is_root=rank == 0) for rank in range(workers)]
        self.flying = []  # requests, and (asker, work) of answers
        self.pick = pick
        self.over = 0
        self.done = 0

    def begin(self, work):
        self.machines[0].started()
        self._rest(0, None, work)

    def deliver(self):
        message = self.pick(self.flying)
        self.flying.remove(message)
        assert not self.over
        if isinstance(message, Request):
            self.machines[message.to].received(message)
            self._rest(message.to, message, message.work)
        else:
            to, work = message
            self.machines[to].answered()
            self._rest(to, None, work)

    def _rest(self, rank, request, work):
        outgoing = {}
        for size in work:
            self.done += 1
            for child in range(size):
                to = self.pick([other for other in range(len(self.machines)) if other != rank])
                outgoing.setdefault(to, []).append(max(size - 1 - child, 0))
        early = self.machines[rank].sent(outgoing) if len(outgoing) > 1 and self.pick([True, False]) else []
        for instruction in [*early, *self.machines[rank].rested(request, {} if early else outgoing)]:
            if isinstance(instruction, Ask):
                self.flying.append(Request(rank, instruction.to, instruction.work))
            elif isinstance(instruction, Answer):
                self.flying.append((instruction.request.sender, instruction.work))
            else:
                assert isinstance(instruction, Over)
                assert rank == 0 and not self.flying
                self.over += 1


def pieces(size):
    return 1 + sum(pieces(max(size - 1 - child, 0)) for child in range(size))


def test_the_end_is_found_once_and_not_too_early():
    for seed in range(200):
        rng = random.Random(seed)
        network = Network(rng.randint(2, 5), rng.choice)
        work = [rng.randint(0, 4) for _ in range(3)]
        network.begin(work)
        while network.flying:
            network.deliver()
        assert network.over == 1 and network.done == sum(map(pieces, work)), seed
        assert not any(machine.engaged or machine.busy or machine.awaited for machine in network.machines), seed


def test_every_order_of_a_small_computation():
    def scenario(choices):
        network = Network(3, lambda options: choices.pick(list(options)))
        network.begin([2, 1])
        while network.flying:
            network.deliver()
        assert network.over == 1 and network.done == pieces(2) + pieces(1)

    assert every_order(scenario) > 100


def test_work_for_the_asker_goes_into_the_answer():
    machine, request = Termination(is_root=False), Request(0, 1, [])
    machine.received(request)
    assert machine.rested(request, {0: ["back"]}) == [Answer(request, ["back"], True)]


def test_work_for_the_asker_does_not_wait_for_others():
    machine, request = Termination(is_root=False), Request(0, 1, [])
    machine.received(request)
    assert machine.rested(request, {0: ["back"], 2: ["on"]}) == [Ask(2, ["on"]), Ask(0, ["back"])]
    waiting = deque([machine.answered, machine.answered])
    waiting.popleft()()
    assert machine.rested(None, {}) == []
    waiting.popleft()()
    assert machine.rested(None, {}) == [Answer(request, [], True)]


def test_a_second_request_is_answered_when_its_own_work_is_done():
    machine = Termination(is_root=False)
    first, second = Request(0, 1, []), Request(2, 1, [])
    machine.received(first)
    machine.received(second)
    assert machine.rested(second, {2: ["back"]}) == [Answer(second, ["back"], False)]
    assert machine.rested(first, {}) == [Answer(first, [], True)]

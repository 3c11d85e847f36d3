"""Admissions to a dynamic group: the machine of rank 0, with answers and losses in every order."""

import itertools
import random

import pytest
from telegrad.base.errors import RendezvousError
from telegrad.proto.rpc_pb2 import WorkerRecord
from telegrad.rpc.group.admissions import Admissions, Admit, Gone, JoinAsked, Known, Tell
from telegrad.rpc.rendezvous import group_members


def record(rank, name=None, identity=None):
    return WorkerRecord(name=name or f"w{rank}", rank=rank, identity=identity or f"{name}{rank}".encode())


@pytest.fixture
def machine():
    return Admissions(record(0))


def join(machine, worker):
    """Admit a worker of which all members hear at once; return its number."""
    done = machine.handle(JoinAsked(worker))
    for told in [each for each in done if isinstance(each, Tell)]:
        done += machine.handle(Known(told.to, told.worker.number))
    assert done[-1] == Admit(worker.number)
    return worker.number


def test_a_newcomer_is_admitted_when_every_member_knows_it(machine):
    assert machine.handle(JoinAsked(first := record(1))) == [Admit(1)]
    assert machine.handle(JoinAsked(second := record(2))) == [Tell(1, second)]
    assert machine.handle(Known(1, 2)) == [Admit(2)]
    assert machine.handle(JoinAsked(third := record(3))) == [Tell(1, third), Tell(2, third)]
    assert machine.handle(Known(2, 3)) == [] and machine.handle(Known(2, 3)) == []
    assert machine.handle(Known(1, 3)) == [Admit(3)]
    assert [each.number for each in machine.members.records()] == [0, 1, 2, 3] and first.number == 1


def test_a_lost_member_need_not_know_a_newcomer(machine):
    join(machine, record(1))
    machine.handle(JoinAsked(record(2)))
    assert machine.handle(Gone(1)) == [Admit(2)]
    assert [each.rank for each in machine.members.records()] == [0, 2]


def test_a_name_and_a_rank_can_be_used_again_and_a_number_cannot(machine):
    assert join(machine, record(1)) == 1
    again = record(1, identity=b"another process")
    assert machine.members.holder(again).number == 1
    with pytest.raises(RendezvousError, match=r"'w1' .* has that name or rank 1"):
        machine.handle(JoinAsked(again))
    machine.handle(Gone(1))
    assert machine.members.holder(again) is None and join(machine, again) == 2


@pytest.mark.parametrize("name, rank", [("w0", 5), ("x", 0), ("w1", 5), ("x", 1)])
def test_the_name_or_rank_of_a_member_is_refused(machine, name, rank):
    join(machine, record(1))
    with pytest.raises(RendezvousError, match="has not left"):
        machine.handle(JoinAsked(record(rank, name)))
    assert len(machine.members.records()) == 2


def test_who_asks_again_keeps_its_number(machine):
    join(machine, worker := record(1))
    assert machine.handle(JoinAsked(record(1, identity=worker.identity))) == [Admit(1)]
    machine.handle(JoinAsked(waiting := record(2)))
    assert machine.handle(JoinAsked(record(2, identity=waiting.identity))) == []
    assert machine.handle(Known(1, 2)) == [Admit(2)]


def test_numbers_run_out_with_an_error(machine, monkeypatch):
    monkeypatch.setattr(group_members, "MOST_NUMBERS", 2)
    join(machine, record(1))
    with pytest.raises(RendezvousError, match="2 workers have joined"):
        machine.handle(JoinAsked(record(2)))


def test_in_every_order_each_newcomer_is_admitted_once_and_known_to_all():
    for seed in range(200):
        print(f"seed {seed}")
        rng = random.Random(seed)
        machine, told, admitted, live = Admissions(record(0)), {}, [], {0}
        waiting = [JoinAsked(record(rank)) for rank in range(1, 7)]
        while waiting:
            event = waiting.pop(rng.randrange(len(waiting)))
            if isinstance(event, Known) and event.by not in live:
                continue
            if isinstance(event, JoinAsked) and rng.random() < 0.3:
                waiting.append(JoinAsked(event.worker))
            for done in machine.handle(event):
                if isinstance(done, Tell):
                    told.setdefault(done.worker.number, set()).add(done.to)
                    waiting.append(Known(done.to, done.worker.number))
                else:
                    admitted.append(done.number)
            live |= {each.number for each in machine.members.records()}
            if rng.random() < 0.1 and len(live) > 1:
                live.discard(lost := rng.choice(sorted(live - {0})))
                admitted += [done.number for done in machine.handle(Gone(lost))]
                waiting = [
                    event for event in waiting if not isinstance(event, JoinAsked) or event.worker.number != lost
                ]
        assert live <= {0, *admitted}, f"seed {seed}"
        for one, other in itertools.combinations(sorted(live - {0}), 2):
            assert one in told[other] and other not in told.get(one, ()), f"seed {seed}"

"""History of a dynamic group: which workers its lines make members, whatever order the lines have."""

import random

import pytest
from telegrad.base.errors import RendezvousError
from telegrad.proto.rpc_pb2 import WorkerRecord
from telegrad.rpc.rendezvous import log
from telegrad.rpc.rendezvous.file import FileLog
from telegrad.rpc.rendezvous.group_log import GroupHistory, GroupLog
from telegrad.rpc.rendezvous.log import join_in_log
from telegrad.rpc.security.handshake import Credentials

SECRET = b"known to the workers"


def record(name, rank, identity):
    return WorkerRecord(name=name, rank=rank, identity=identity.encode())


def test_a_line_counts_once_and_a_name_has_one_member():
    history = GroupHistory()
    history.join(record("a", 0, "first"))
    history.join(record("a", 1, "second"))
    history.join(record("b", 0, "third"))
    assert history.members.numbers() == [0]
    history.leave(0)
    history.leave(7)
    history.join(record("a", 0, "first"))
    assert history.members.numbers() == []
    history.join(record("a", 1, "second"))
    assert history.members.numbers() == [1]


@pytest.mark.parametrize("seed", range(50))
def test_in_every_order_readers_agree_and_numbers_and_names_are_one_workers(seed):
    rng = random.Random(seed)
    lines = [("join", (f"w{rng.randrange(4)}", rng.randrange(4), f"identity {each}")) for each in range(12)]
    lines += [("leave", rng.randrange(12)) for _ in range(8)]
    lines += rng.choices(lines, k=6)
    rng.shuffle(lines)
    whole, parts = GroupHistory(), GroupHistory()
    owner = {}  # by number: the identity that had it
    for kind, what in lines:
        for history in (whole, parts):
            history.join(record(*what)) if kind == "join" else history.leave(what)
        members = whole.members.records()
        assert members == parts.members.records()
        for member in members:
            assert owner.setdefault(member.number, member.identity) == member.identity
        for facts in ([member.name for member in members], [member.rank for member in members]):
            assert len(set(facts)) == len(facts)
    assert len(set(owner.values())) == len(owner)


def members_of(history):
    return [(member.name, member.number) for member in history.members.records()]


def absent(history, number=99, known=None):
    members = history.members
    return members.absent(number, members.numbers() if known is None else known)


def test_a_job_of_fixed_size_begins_when_all_places_are_taken_at_a_time():
    history = GroupHistory(places=2)
    history.join(record("a", 0, "first"))
    history.leave(0)
    history.join(record("b", 1, "second"))
    assert history.members.founders == [] and history.members.missing() == "1 of 2 workers came; rank 0 did not"
    history.join(record("a", 0, "third"))
    assert [each.identity for each in history.members.founders] == [b"second", b"third"]


def test_a_place_is_taken_again_under_its_name_only():
    history = GroupHistory(places=2)
    for name, rank in (("a", 0), ("b", 1)):
        history.join(record(name, rank, name))
    history.leave(1)
    assert [each.name for each in absent(history)] == ["b"]
    history.join(record("c", 1, "other"))
    assert members_of(history) == [("a", 0)]
    with pytest.raises(RendezvousError, match=r"'c' cannot have rank 1, which is that of worker 'b'.*keeps its name"):
        history.members.check(record("c", 1, "other"))
    history.join(record("b", 1, "again"))
    assert members_of(history) == [("a", 0), ("b", 2)] and absent(history) == []


def test_a_joiner_knows_the_last_worker_of_each_place_before_it():
    history = GroupHistory(places=2)
    for name, rank in (("a", 0), ("b", 1)):
        history.join(record(name, rank, name))
    history.leave(1)
    history.join(record("b", 1, "joiner"))
    assert [each.number for each in absent(history, 2, {2})] == [0]  # lost, though no line says so yet
    history.leave(0)
    history.join(record("a", 0, "later"))
    assert members_of(history) == [("b", 2), ("a", 3)]
    assert [each.number for each in absent(history, 2, {2})] == [0]  # its successor tells the joiner of itself
    assert [each.number for each in absent(history, 3, {2, 3})] == []


def test_a_job_whose_workers_have_all_left_begins_anew():
    history = GroupHistory(places=1)
    for number in range(3):
        history.join(record(f"w{number}", 0, f"{number}"))
        assert [each.number for each in history.members.founders] == [number]
        history.leave(number)
        assert history.members.founders == absent(history) == []


@pytest.mark.parametrize("seed", range(30))
def test_in_every_order_all_readers_see_the_same_founders_and_no_place_is_taken_twice(seed):
    rng = random.Random(seed)
    lines = [("join", (f"w{rank}", rank, f"identity {each}")) for each in range(12) for rank in [rng.randrange(3)]]
    lines += [("leave", rng.randrange(12)) for _ in range(12)]
    rng.shuffle(lines)
    history = GroupHistory(places=3)
    for kind, what in lines:
        history.join(record(*what)) if kind == "join" else history.leave(what)
        members = history.members
        ranks = [each.rank for each in members.records()] + [each.rank for each in absent(history)]
        assert len(set(ranks)) == len(ranks) and len(members.founders) in (0, 3)
        assert not members.founders or sorted(ranks) == [0, 1, 2]


def test_another_world_size_is_told(tmp_path):
    me = record("a", 0, "first")
    GroupLog(FileLog(path := str(tmp_path / "job"), 10), SECRET, places=2).join(me)
    with pytest.raises(RendezvousError, match="worker 'a' gives world_size=2, this worker world_size=3"):
        GroupLog(FileLog(path, 10), SECRET, places=3).read(10)
    with pytest.raises(RendezvousError, match="worker 'a' gives world_size=2, this worker no world_size"):
        GroupLog(FileLog(path, 10), SECRET).read(10)


def test_another_version_of_the_protocol_is_told(tmp_path, monkeypatch):
    group = GroupLog(FileLog(path := str(tmp_path / "job"), 10), SECRET, places=2)
    with monkeypatch.context() as newer:
        newer.setattr(log, "PROTOCOL", 1_000)
        group.join(record("a", 0, "first"))
    with pytest.raises(
        RendezvousError, match=r"'a' speaks protocol 1000, this worker \d+; use one version of telegrad"
    ):
        GroupLog(FileLog(path, 10), SECRET, places=2).read(10)


def test_a_group_and_a_fixed_world_do_not_share_a_file(tmp_path):
    me = Credentials(record("a", 0, "first"), SECRET)
    group = GroupLog(FileLog(path := str(tmp_path / "group"), 10), SECRET)
    group.join(me.record)
    with pytest.raises(RendezvousError, match="a dynamic group is there, whose workers give no world_size"):
        join_in_log(FileLog(path, 10), me, 1, 10)
    assert group.read(10).numbers() == [0]

    join_in_log(FileLog(path := str(tmp_path / "fixed"), 10), me, 1, 10)
    with pytest.raises(RendezvousError, match="fixed world size; give world_size=, or delete it"):
        GroupLog(FileLog(path, 10), SECRET).read(10)
    assert group.read(10).numbers() == [0]


def test_process_groups_may_come_together_in_the_file_of_a_group(tmp_path):
    group = GroupLog(FileLog(path := str(tmp_path / "group"), 10), SECRET)
    for rank, name in enumerate("ab"):
        me = Credentials(record(name, rank, name), SECRET)
        group.join(me.record)
        assert [
            each.name for each in join_in_log(FileLog(path, 10), Credentials(record(name, 0, name), SECRET), 1, 10, "p")
        ] == [name]
    assert group.read(10).numbers() == [0, 1]

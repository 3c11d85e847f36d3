"""Arguments of init_rpc about the rendezvous are checked before anybody waits."""

import pytest
from telegrad.base.errors import RendezvousError
from telegrad.proto.rpc_pb2 import WorkerRecord
from telegrad.rpc.rendezvous.meeting import plan_rendezvous
from telegrad.rpc.rendezvous.members import MemberList


@pytest.mark.parametrize(
    "given", [{"rank": "0", "world_size": 2}, {"rank": 0, "world_size": "2"}, {"rank": None, "world_size": 2}]
)
def test_ranks_and_sizes_are_numbers(given):
    with pytest.raises(TypeError, match="must be a whole number; you gave "):
        plan_rendezvous("tcp://127.0.0.1:4711", **given)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "[::1]"])
def test_addresses_of_the_loopback(host):
    assert plan_rendezvous(f"tcp://{host}:4711", 0, 1).world_size == 1


@pytest.mark.parametrize("host", ["10.0.0.1", "127.example.org", "localhost.example.org"])
@pytest.mark.parametrize("rank", [0, 1])
def test_other_addresses_are_refused_without_tls(host, rank):
    plan = plan_rendezvous(f"tcp://{host}:4711", rank, 2)
    with pytest.raises(
        RendezvousError, match=f"the host of init_method= is '{host}': for a job on one machine write 127"
    ):
        plan.rendezvous.prepare([], rank, None, secured=False)


@pytest.fixture
def mistyped(monkeypatch):
    """Plan of a worker whose MASTER_ADDR is mistyped."""
    monkeypatch.setenv("MASTER_ADDR", "localhots.invalid")
    monkeypatch.setenv("MASTER_PORT", "4711")
    return plan_rendezvous("env://", 1, 2)


@pytest.mark.parametrize(
    ("variable", "port"), [("29500:4711", 4711), ("29501:4711", 29500), ("2950:4711", 29500), ("", 29500)]
)
def test_the_launchers_port_goes_with_its_master_port(monkeypatch, variable, port):
    for name, value in {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", "TELEGRAD_PORT": variable}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("TELEGRAD_INIT_METHOD", raising=False)
    assert plan_rendezvous("env://", 1, 2).rendezvous.address == f"127.0.0.1:{port}"
    assert plan_rendezvous("tcp://127.0.0.1:29500", 1, 2).rendezvous.address == "127.0.0.1:29500"


def test_a_mistyped_master_addr_is_named(mistyped):
    with pytest.raises(
        RendezvousError, match=r"^MASTER_ADDR is 'localhots.invalid': for a job on one machine write 127"
    ):
        mistyped.rendezvous.prepare([], 1, None, secured=False)


def test_a_master_addr_that_no_name_server_knows_is_named(mistyped):
    words = r"^MASTER_ADDR 'localhots.invalid' has no address \(.+\); check its name"
    with pytest.raises(RendezvousError, match=words) as refusal:
        mistyped.rendezvous.prepare([], 1, None, secured=True)
    assert refusal.value.__suppress_context__  # that of the look-up says nothing more


def test_workers_listen_where_others_reach_them():
    plan = plan_rendezvous("tcp://127.0.0.1:4711", 1, 2)
    assert plan.rendezvous.prepare([], 1, None, secured=True) is None
    assert plan.rendezvous.prepare([], 1, "node1", secured=True) == "node1:0"


@pytest.mark.parametrize("given", [None, 5, b"env://"])
def test_an_init_method_is_a_text(given):
    with pytest.raises(TypeError, match=r"init_method must be a text .*you gave "):
        plan_rendezvous(given, 0, 1)


def test_an_init_method_is_a_url():
    with pytest.raises(RendezvousError, match=r"init_method='tcp://\[::1:80' is no URL"):
        plan_rendezvous("tcp://[::1:80", 0, 1)


@pytest.mark.parametrize("text", ["first", "--5", "\u00b2", "1.0", ""])
def test_a_rank_of_the_environment_is_a_number(text, monkeypatch):
    monkeypatch.setenv("RANK", text)
    with pytest.raises(RendezvousError, match="rank must be a number; RANK or the URL says"):
        plan_rendezvous("tcp://127.0.0.1:4711", -1, 1)


def test_a_job_has_few_enough_workers_for_its_ids():
    assert plan_rendezvous("tcp://127.0.0.1:4711", 65535, 65536).rank == 65535
    with pytest.raises(RendezvousError, match=r"world_size=65537 is too many .*65536"):
        plan_rendezvous("tcp://127.0.0.1:4711", 0, 65537)


# -- the members


def member(rank, identity):
    return WorkerRecord(name=f"w{rank}", rank=rank, identity=identity * 16)


def test_a_joiner_may_come_again():
    """Its connection broke, before or after all had come."""
    members = MemberList(2)
    for record in (member(1, b"x"), member(1, b"x"), member(0, b"y"), member(1, b"x")):
        members.join(record, 2)
    assert members.complete and not members.failure
    with pytest.raises(RendezvousError, match="both have rank 1"):
        members.join(member(1, b"z"), 2)
    members.join(member(1, b"x"), 2)  # whatever others did since


def test_one_worker_of_each_host_tells_who_is_missing():
    """200 workers of a host would say the same 200 times."""
    members, hosts = MemberList(9), ["10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.1"]
    records = [WorkerRecord(name=f"w{n}", rank=n, addresses=[f"tcp://{host}:{n}"]) for n, host in enumerate(hosts)]
    for record in reversed(records):
        members.join(record, 9)
    assert [each.rank for each in records if members.speaks_for_its_host(each)] == [0, 2]
    members.forget(records[2], None)
    assert [each.rank for each in records if members.speaks_for_its_host(each)] == [0, 3]


def test_missing_ranks_are_told_in_few_words():
    assert (
        MemberList(10**12).missing().endswith("ranks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, ... did not")
    )

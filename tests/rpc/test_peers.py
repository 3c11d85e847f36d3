"""Records of all workers are one table of bytes, and a peer is made when this worker has to do with it, once."""

import sys
import threading

import pytest
from telegrad.base.errors import UnknownWorkerError
from telegrad.proto.rpc_pb2 import WorkerRecord
from telegrad.rpc.links.peers import Peers
from telegrad.rpc.links.worker_info import WorkerInfo
from telegrad.rpc.links.worker_records import WorkerRecords


def record(number, name=None, rank=None):
    rank = number if rank is None else rank
    return WorkerRecord(name=name or f"w{rank}", rank=rank, number=number, identity=number.to_bytes(16, "big"))


def peers_of(count, me=0):
    peers = Peers(record(me))
    peers.fill(WorkerRecords.of(map(record, range(count))))
    return peers


# -- the table


def test_a_table_arrives_as_it_was_sent():
    table = WorkerRecords.of([record(2), record(0), record(1)])
    received = WorkerRecords.decode(table.encode())
    assert received == table and [each.number for each in received] == [0, 1, 2]
    assert received.ranked and len(received) == 3 and received[1] == record(1)


@pytest.mark.parametrize("place", [-1, 3])
def test_there_is_nothing_beside_the_table(place):
    with pytest.raises(IndexError, match="no record at place"):
        WorkerRecords.of(map(record, range(3)))[place]


def test_every_name_is_found_and_no_other():
    table = WorkerRecords.of(record(number, name) for number, name in enumerate(["b", "ps", "a", "ps2"]))
    assert [table.place_of(name) for name in ("a", "b", "ps", "ps2", "", "c", "zz")] == [2, 0, 1, 3, -1, -1, -1]
    assert WorkerRecords.of(()).place_of("a") == -1


def test_numbers_that_are_no_ranks_are_no_places():
    assert not WorkerRecords.of([record(0), record(3)]).ranked
    assert not WorkerRecords.of([record(0), record(1, rank=2)]).ranked


def test_the_records_of_a_large_job_fit_into_one_message():
    """gRPC takes 4 MiB; a job has at most 65,536 workers."""
    size = 2000
    records = [record(number, f"worker{number}") for number in range(size)]
    for each in records:
        each.addresses.extend(f"{lane}://10.1.{each.number >> 8}.{each.number & 255}:40123" for lane in ("tcp", "grpc"))
        each.main_script, each.certificate_name = (
            "/home/somebody/a/project/train.py",
            f"worker{each.number}.job.telegrad",
        )
    assert len(WorkerRecords.of(records).encode()) / size * 65536 < 4 << 20


# -- peers


def test_a_peer_is_made_when_it_is_asked_for():
    peers = peers_of(1000)
    assert peers.met() == [] and len(peers) == 1000 and 999 in peers and 1000 not in peers
    peer = peers.find("w7")
    assert peer is peers.at(7) is peers.find(7) is peers.find(WorkerInfo("w7", 7))
    assert peers.met() == [peer]
    assert [info.name for info in peers.live()] == [f"w{rank}" for rank in range(1000)]
    assert peers.name(8) == "w8" and peers.met() == [peer]


def test_strangers_are_not_found():
    peers = peers_of(3)
    for stranger in ("w3", 3, -1):
        with pytest.raises(UnknownWorkerError, match="'w0' \\(0\\), 'w1'"):
            peers.find(stranger)
    with pytest.raises(UnknownWorkerError, match="has not heard"):
        peers.at(3)


def test_a_record_is_a_members_only_with_its_identity():
    peers = peers_of(3)
    assert peers.member(record(2)) is peers.at(2)
    assert peers.member(record(3)) is None
    again = record(2)
    again.identity = b"another run of it"
    assert peers.member(again) is None


def test_who_is_gone_is_not_among_the_live():
    peers = peers_of(3)
    peer = peers.at(1)
    assert peers.mark_gone(peer, "it died") and not peers.mark_gone(peer, "again")
    assert (
        peers.gone() == [peer] and [info.id for info in peers.live()] == [0, 2] and list(peers.numbers()) == [0, 1, 2]
    )


def test_threads_that_ask_at_the_same_time_get_one_peer():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(100):
            peers, found, go = peers_of(2), [], threading.Barrier(4)

            def ask(peers=peers, found=found, go=go):
                go.wait(30)
                found.append(peers.find("w1"))

            threads = [threading.Thread(target=ask) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len({id(peer) for peer in [*found, peers.at(1), peers.find(1)]}) == 1
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize("asked_first", [False, True])
def test_a_name_and_a_rank_are_the_last_workers_that_has_had_them(asked_first):
    peers = peers_of(3)
    if asked_first:
        peers.at(1)
    later = peers.add(record(3, rank=1))
    former = peers.at(1)
    assert peers.find("w1") is peers.find(1) is later is not former is peers.at(1)
    assert later is peers.add(record(3)) is peers.at(3)
    assert list(peers.numbers()) == [0, 1, 2, 3] and len(peers) == 4


def test_a_dynamic_group_whose_numbers_have_gaps():
    peers = Peers(record(5, rank=1))
    peers.fill([record(0), record(5, rank=1)])
    assert peers.mine().number == 5 and list(peers.numbers()) == [0, 5] and 1 not in peers


def test_a_worker_that_left_before_this_one_joined_is_gone_and_has_a_number_only():
    """A reference that passes through several workers may name it."""
    peers = Peers(record(3))
    with pytest.raises(UnknownWorkerError, match="'w3' has not heard of the worker with number 0"):
        peers.at(0)
    peers.fill(WorkerRecords.of([record(2), record(3)]))
    stranger = peers.at(0)
    assert stranger.gone and stranger.info.name == "number 0" and peers.at(0) is stranger
    assert [*peers.numbers()] == [2, 3] and peers.names() == {"w2", "w3"}
    with pytest.raises(UnknownWorkerError, match="number 4"):
        peers.at(4)

"""A file serves one meeting: who comes to one that failed or is over is told so, and never meets those who left."""

import threading

import pytest
from telegrad.core.errors import RendezvousError
from telegrad.proto.telegrad_pb2 import WorkerRecord
from telegrad.rpc.rendezvous_file import meet_in_file

SECRET = b"known to the workers"


def worker(rank):
    return WorkerRecord(name=f"w{rank}", rank=rank, process_id=1 + rank)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "meeting")


def test_who_comes_after_a_meeting_failed_does_not_meet_those_who_gave_up(path):
    with pytest.raises(RendezvousError, match=r"1 of 2 workers came; rank 1 did not .*delete it"):
        meet_in_file(path, SECRET, worker(0), 2, timeout=0)
    with pytest.raises(RendezvousError, match=r"rank 1 did not .*delete it"):
        meet_in_file(path, SECRET, worker(1), 2, timeout=10)


def test_a_finished_meeting_is_not_entered_again(path):
    met = []
    threads = [
        threading.Thread(target=lambda r=r: met.append(meet_in_file(path, SECRET, worker(r), 2, 10))) for r in (0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [[record.rank for record in records] for records in met] == [[0, 1], [0, 1]]
    with pytest.raises(RendezvousError, match="finished rendezvous; delete it"):
        meet_in_file(path, SECRET, worker(0), 2, timeout=10)

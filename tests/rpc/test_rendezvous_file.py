"""A rendezvous file serves once: a worker that comes to one that failed or is over is told, and meets nobody who left."""

import fcntl
import json
import logging
import os
import threading

import pytest
from google.protobuf import json_format
from helpers.disks import NEEDS_ROOT, fill, small_disk
from telegrad.base.errors import RendezvousError
from telegrad.proto.rpc_pb2 import WorkerRecord
from telegrad.rpc.rendezvous import log as rendezvous_log
from telegrad.rpc.rendezvous.file import FileLog
from telegrad.rpc.rendezvous.log import PURPOSE, join_in_log
from telegrad.rpc.security.handshake import Credentials
from telegrad.rpc.security.proofs import sign
from telegrad.rpc.threads import notices

SECRET = b"known to the workers"


def join_in_file(path, me, world_size, timeout):
    return join_in_log(FileLog(path, timeout), me, world_size, timeout)


def credentials(rank):
    return Credentials(WorkerRecord(name=f"w{rank}", rank=rank, process_id=1 + rank), SECRET)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "rendezvous")


def test_a_worker_that_comes_after_a_failed_rendezvous_does_not_join_those_that_gave_up(path):
    with pytest.raises(RendezvousError, match=r"1 of 2 workers came; rank 1 did not .*delete it"):
        join_in_file(path, credentials(0), 2, timeout=0)
    with pytest.raises(RendezvousError, match=r"rank 1 did not .*delete it"):
        join_in_file(path, credentials(1), 2, timeout=10)


def test_a_finished_rendezvous_is_not_joined_again(path):
    met = []
    threads = [
        threading.Thread(target=lambda r=r: met.append(join_in_file(path, credentials(r), 2, 10))) for r in (0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [[record.rank for record in records] for records in met] == [[0, 1], [0, 1]]
    with pytest.raises(RendezvousError, match="finished rendezvous; delete it"):
        join_in_file(path, credentials(0), 2, timeout=10)


def test_lines_of_somebody_else_are_refused(path):
    """A stranger who may write into the file could put an address of its own in the place of a worker's."""
    line = json.dumps({"world_size": 2, "worker": json_format.MessageToDict(credentials(1).record)})
    other = sign(b"another secret of the same kind", PURPOSE, line.encode()).hex()
    for mac in ("", "0" * 64, other):
        with open(path, "w") as file:
            file.write(f"{mac} {line}\n")
        with pytest.raises(RendezvousError, match=r"signed with this job's secret.*new file"):
            join_in_file(path, credentials(0), 2, timeout=10)


def test_a_line_that_was_changed_is_refused(path):
    with pytest.raises(RendezvousError, match="rank 1 did not"):
        join_in_file(path, credentials(0), 2, timeout=0)
    with open(path) as file:
        text = file.read()
    with open(path, "w") as file:
        file.write(text.replace('"w0"', '"w9"'))
    with pytest.raises(RendezvousError, match="something else than lines signed"):
        join_in_file(path, credentials(1), 2, timeout=10)


@pytest.mark.parametrize("difference", [-1, 1])
def test_workers_of_two_protocols_name_each_other(difference, path, monkeypatch):
    """Also where the record of one has fields that the other does not know."""
    other = rendezvous_log.PROTOCOL
    own = other + difference
    with open(path, "w") as file:
        line = json.dumps({"protocol": other, "world_size": 2, "worker": {"name": "w1", "news": 1}})
        file.write(f"{sign(SECRET, PURPOSE, line.encode()).hex()} {line}\n")
    monkeypatch.setattr(rendezvous_log, "PROTOCOL", own)
    words = f"worker 'w1' speaks protocol {other}, this worker {own}; use one version of telegrad"
    with pytest.raises(RendezvousError, match=words):
        join_in_file(path, credentials(0), 2, timeout=10)
    with open(path) as file:
        assert f'"protocol": {own}' in file.readlines()[1], "the other one hears of it, too"


@NEEDS_ROOT
def test_a_full_disk_is_told_and_leaves_no_half_line(tmp_path):
    with small_disk(tmp_path) as disk:
        path = str(disk / "rendezvous")
        log = FileLog(path, 10)
        log.append("x" * 4000)  # the next line begins in a page that is there, and ends in one that is not
        fill(disk)
        with pytest.raises(RendezvousError, match="cannot be written: No space left on device; free space, or name"):
            log.append("y" * 200)
        (disk / "filler").unlink()
        log.append("z")
        assert [line[0] for line in log.read()] == ["x", "z"]


@pytest.mark.parametrize("kind", ["link", "pipe", "device", "writable"])
def test_files_that_others_may_use_are_refused(kind, path, tmp_path):
    if kind == "link":
        (tmp_path / "target").touch(0o600)
        (tmp_path / "rendezvous").symlink_to(tmp_path / "target")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "writable":
        (tmp_path / "rendezvous").touch()
        (tmp_path / "rendezvous").chmod(0o622)
    with pytest.raises(RendezvousError, match=r"cannot be used: .*; name a new file"):
        join_in_file("/dev/null" if kind == "device" else path, credentials(0), 2, timeout=10)


@pytest.mark.slow
def test_waiting_for_the_lock_of_another_process_ends(path):
    with open(path, "x") as file:
        os.chmod(path, 0o600)
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(RendezvousError, match=r"was locked by another process.*end that process"):
            join_in_file(path, credentials(0), 2, timeout=0.1)


def test_a_wait_says_for_whom(path, caplog, monkeypatch):
    monkeypatch.setattr(notices, "FIRST_SECONDS", 0.05)
    with caplog.at_level(logging.WARNING, "telegrad.rpc"), pytest.raises(RendezvousError):
        join_in_file(path, credentials(0), 3, timeout=0.5)
    [told] = [record.getMessage() for record in caplog.records]
    assert "'w0' waits for the others" in told and "1 of 3 workers came; ranks 1, 2 did not" in told

"""Rendezvous in a real etcd, which the test starts."""

import shutil
import subprocess
import threading
import urllib.request
from contextlib import closing

import pytest
from helpers.launched import LAUNCHER
from helpers.programs import run_python
from telegrad.base.errors import RendezvousError
from telegrad.launcher.environment import reserve_port
from telegrad.proto.rpc_pb2 import WorkerRecord
from telegrad.rpc.rendezvous.etcd import EtcdLog
from telegrad.rpc.rendezvous.log import join_in_log
from telegrad.rpc.security.handshake import Credentials

SECRET = b"known to the workers"
pytestmark = [
    pytest.mark.processes,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("etcd") is None, reason="etcd is not installed: apt-get install etcd-server"),
]


def credentials(rank, name=None, identity=None):
    identity = identity or bytes([rank])
    return Credentials(WorkerRecord(name=name or f"w{rank}", rank=rank, identity=identity), SECRET)


@pytest.fixture(scope="module")
def etcd(tmp_path_factory):
    """Its address."""
    folder = tmp_path_factory.mktemp("etcd")
    with closing(reserve_port()) as first, closing(reserve_port()) as second:
        client, peer = (f"127.0.0.1:{each.getsockname()[1]}" for each in (first, second))
    options = {
        "data-dir": folder,
        "listen-client-urls": f"http://{client}",
        "advertise-client-urls": f"http://{client}",
        "listen-peer-urls": f"http://{peer}",
        "initial-advertise-peer-urls": f"http://{peer}",
        "initial-cluster": f"default=http://{peer}",
    }
    command = ["etcd", "--unsafe-no-fsync", *(f"--{name}={value}" for name, value in options.items())]
    with open(folder / "log", "wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            EtcdLog([client], "is it up?", 30).read()  # asks until it answers
            yield client
        finally:
            process.kill()


def meet(etcd, name, workers, world_size=None, timeout=20):
    """Let workers join, each in a thread; return the ranks that each has met, or its error."""
    results = [None] * len(workers)

    def join(index):
        try:
            log = EtcdLog([etcd], name, timeout)
            found = join_in_log(log, workers[index], world_size or len(workers), timeout)
            results[index] = [record.rank for record in found]
        except RendezvousError as error:
            results[index] = str(error)

    threads = [threading.Thread(target=join, args=(index,)) for index in range(len(workers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_workers_meet_and_later_ones_do_not(etcd):
    assert meet(etcd, "one", [credentials(rank) for rank in (2, 0, 1)]) == [[0, 1, 2]] * 3
    [late] = meet(etcd, "one", [credentials(0, identity=b"new")], world_size=3)
    assert "'one' in etcd" in late and "holds a finished rendezvous; name another" in late


def test_two_of_one_rank_fail_all(etcd):
    workers = [credentials(0), credentials(1), credentials(1, "other", b"x")]
    assert all("both have rank 1" in told for told in meet(etcd, "two", workers, world_size=4))


def test_who_gives_up_fails_it_for_those_who_come_later(etcd):
    assert "1 of 2 workers came; rank 1 did not" in meet(etcd, "three", [credentials(0)], 2, timeout=0.2)[0]
    assert "1 of 2 workers came; rank 1 did not" in meet(etcd, "three", [credentials(1)], 2)[0]


def test_lines_without_the_secret_are_refused(etcd):
    EtcdLog([etcd], "four", 5).append("0" * 64 + ' {"failure": "none of yours"}')
    assert "something else than lines signed" in meet(etcd, "four", [credentials(0)])[0]


def test_names_do_not_share_lines(etcd):
    EtcdLog([etcd], "five/a", 5).append("x")
    EtcdLog([etcd], "five0", 5).append("y")
    assert EtcdLog([etcd], "five", 5).read() == [
        "x"
    ]  # a name with a slash lies inside another: both are the user's own
    log = EtcdLog([etcd], "five0", 5)
    assert (log.read(), log.read()) == (["y"], [])


def test_the_first_server_that_answers_is_used(etcd):
    log = EtcdLog(["127.0.0.1:1", etcd], "six", 5)
    log.append("x")
    assert log.read() == ["x"]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["etcd", "file"])
def test_the_parameter_server_learns(kind, etcd, tmp_path, monkeypatch):
    place = {"etcd": f"etcd://{etcd}/nine", "file": f"file://{tmp_path}/rendezvous"}[kind]
    monkeypatch.setenv("TELEGRAD_INIT_METHOD", place)
    options = ["-n", "4", "--log-dir", tmp_path, "-m", "telegrad.examples.parameter_server", "--epochs", "1"]
    assert "accuracy of the checkpoint" in run_python(*LAUNCHER[1:], "run", *options, "--out", tmp_path)
    assert len(EtcdLog([etcd], "nine", 5).read()) == 4 if kind == "etcd" else (tmp_path / "rendezvous").exists()


def test_nobody_answers():
    with pytest.raises(RendezvousError, match=r"etcd did not answer \(http://127.0.0.1:1/v3/: .*is it running there"):
        EtcdLog(["127.0.0.1:1"], "seven", 0.1).read()


def test_a_server_that_is_no_etcd(etcd):
    with pytest.raises(RendezvousError, match="404"):
        EtcdLog([f"{etcd}/health"], "eight", 0.1).read()
    assert urllib.request.urlopen(f"http://{etcd}/health").status == 200

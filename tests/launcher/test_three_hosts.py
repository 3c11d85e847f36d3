"""Three hosts (network namespaces at one switch): a slow link, a cable that is pulled and put back, the end of one of them."""

import signal
import threading

import pytest
from helpers.hosts import NEEDS_ROOT, made_hosts
from helpers.launched import ended, read_until

pytestmark = [pytest.mark.processes, pytest.mark.slow, NEEDS_ROOT]

BEGIN = """
import os, signal, time
import telegrad as tg
from telegrad import rpc

def echo(tensor):
    return tensor * 2

def wait():
    while True:  # a worker whose launcher is gone gets a signal before it is killed
        signal.pause()

def around(size):
    for rank in range(3):
        assert rpc.rpc_sync(rank, echo, (tg.ones(size),)).sum() == 2 * size
    return rpc.get_worker_info().name

if __name__ == "__main__":
    rpc.init_rpc(rpc_backend_options=rpc.GrpcRpcBackendOptions(rpc_timeout=50))
    if os.environ["RANK"] == "0":
        print([rpc.rpc_sync(rank, around, (10,)) for rank in range(3)], flush=True)
        lanes = {rpc.debug_info()["peers"][name]["lane"] for name in ("worker1", "worker2")}
        print("lanes", *lanes, flush=True)
"""
LARGE = """
        began = time.monotonic()
        rpc.rpc_sync(1, around, (250_000,))
        print("all came" if time.monotonic() - began > 0.5 else "the link is not slow", flush=True)
    rpc.shutdown()
"""
GO_ON = """
        while not os.path.exists(os.environ["GO"]):
            rpc.rpc_sync(1, echo, (tg.ones(2),))  # to the host whose cable stays
        print([rpc.rpc_sync(rank, around, (10,)) for rank in range(3)], "again", flush=True)
    rpc.shutdown()
"""
WAIT = "    rpc.rpc_sync(2, wait, timeout=0)\n"
ALL = "['worker0', 'worker1', 'worker2']"


@pytest.fixture
def hosts(tmp_path):
    with made_hosts(tmp_path, 3) as made:
        yield made


def test_a_job_goes_on_over_a_slow_link(hosts):
    hosts.slow_down(2, "8mbit")  # a million bytes take a second
    first, *others = [hosts.launch(host, BEGIN + LARGE) for host in range(3)]
    out, err = ended(first, 0)
    assert ALL in out and "lanes tcp" in out and "all came" in out
    assert "node 0 of 3: rank 0 of 3, reached at 10.77.0.1" in err
    for each in others:
        ended(each, 0)


def test_the_others_go_on_while_a_cable_is_pulled(hosts, tmp_path):
    go = tmp_path / "go"
    first, *others = [hosts.launch(host, BEGIN + GO_ON, GO=str(go)) for host in range(3)]
    read_until(first, 1, "lanes")
    hosts.cable(2, "down")
    threading.Event().wait(2)  # the length of the cut is what is tried
    hosts.cable(2, "up")
    go.touch()
    assert f"{ALL} again" in ended(first, 0)[0]
    for each in others:
        ended(each, 0)


def test_the_end_of_a_host_is_told_by_both_others(hosts):
    processes = [hosts.launch(host, BEGIN + WAIT) for host in range(3)]
    read_until(processes[0], 1, "lanes")
    hosts.kill(2)
    for each in processes[:2]:
        assert "root cause: node 2: the launcher at 10.77.0.3 is gone, or cut off" in ended(each, 1)[1]
    assert processes[2].wait(30) == -signal.SIGKILL

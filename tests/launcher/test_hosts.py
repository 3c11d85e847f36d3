"""Two hosts (network namespaces), with a launcher in each, started by hand with a token."""

import signal
import sys
import threading
from contextlib import contextmanager

import pytest
from helpers.hosts import NEEDS_ROOT, made_hosts
from helpers.launched import CHECKPOINTED_TRAINING, ended, read_until

pytestmark = [pytest.mark.processes, pytest.mark.slow, NEEDS_ROOT]

# Reads every packet of an interface until it is asked to end.
CAPTURE = """
import signal, socket, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
wire.setsockopt(socket.SOL_SOCKET, 33, 1 << 27)  # SO_RCVBUFFORCE: none may be missed
wire.bind((sys.argv[1], 0))
with open(sys.argv[2], "wb", 0) as file:
    print("ready", flush=True)
    while True:
        file.write(wire.recv(1 << 17))
"""

MARK = "plain words that nobody on the way may read"
TALK = f"""
import os, signal, telegrad as tg
from telegrad import rpc

def echo(text, tensor):
    return text, tensor * 2

if __name__ == "__main__":
    rpc.init_rpc(os.environ["TELEGRAD_WORKER"], rpc_backend_options=rpc.GrpcRpcBackendOptions(rpc_timeout=90))
    if os.environ["RANK"] == "0":
        for size in (10, 300_000):
            text, tensor = rpc.rpc_sync(1, echo, ({MARK!r}, tg.ones(size)))
            assert text == {MARK!r} and tensor.sum() == 2 * size
        print("answered by", rpc.debug_info()["peers"]["worker1"]["lane"], flush=True)
"""
END = "    rpc.shutdown()\n"
GO_ON = """
    if os.environ["RANK"] == "0":
        input_file = os.environ["GO"]
        while not os.path.exists(input_file):
            rpc.rpc_sync(1, echo, ("x", tg.ones(2)))
        for _ in range(100):
            rpc.rpc_sync(1, echo, ("x", tg.ones(2)))
        print("all went on", flush=True)
    rpc.shutdown()
"""
WAIT = "    if os.environ['RANK'] == '1': signal.pause()\n    rpc.rpc_sync(1, signal.pause)\n"


@pytest.fixture
def hosts(tmp_path):
    with made_hosts(tmp_path, 2) as made:
        yield made


@contextmanager
def captured(hosts, file):
    """Record what goes over the cable."""
    watching = hosts.run(0, [sys.executable, "-c", CAPTURE, "wire", str(file)])
    assert watching.stdout.readline() == "ready\n"
    try:
        yield
    finally:
        watching.terminate()
        watching.wait(30)


@pytest.mark.parametrize("endpoint", ["10.77.0.1:29400", "[fd77::1]:29400"], ids=["ipv4", "ipv6"])
def test_workers_of_two_hosts_talk_and_the_wire_shows_nothing(endpoint, hosts, tmp_path):
    with captured(hosts, tmp_path / "wire"):
        first = hosts.launch(0, TALK + END, endpoint=endpoint)
        last = hosts.launch(1, TALK + END, endpoint=endpoint)
        out, err = ended(first, 0)
        _, other_err = ended(last, 0)
    assert "worker0 | answered by tcp" in out
    ours, theirs = ("fd77::1", "fd77::2") if "fd77" in endpoint else ("10.77.0.1", "10.77.0.2")
    assert f"reached at {ours}" in err and f"reached at {theirs}" in other_err
    wire = (tmp_path / "wire").read_bytes()
    assert len(wire) > 2_400_000 and b"\x16\x03\x01" in wire and b"\x17\x03\x03" in wire  # all of it, and it is TLS
    for secret in (
        MARK,
        hosts.token,
        hosts.token.removeprefix("telegrad-"),
        "echo",
        "worker1",
        "telegrad.Lane",
        "PRIVATE KEY",
    ):
        assert secret.encode() not in wire, secret


@pytest.mark.soak
def test_a_cable_is_pulled_and_put_back(hosts, tmp_path):
    go = tmp_path / "go"
    first, last = (hosts.launch(host, TALK + GO_ON, GO=str(go)) for host in (0, 1))
    read_until(first, 1, "answered")
    hosts.cable(1, "down")
    threading.Event().wait(2)  # the length of the cut is what is tried
    hosts.cable(1, "up")
    go.touch()
    assert "all went on" in ended(first, 0)[0]
    ended(last, 0)


@pytest.mark.soak
def test_the_end_of_a_host_is_told_by_the_other(hosts):
    first, last = (hosts.launch(host, TALK + WAIT) for host in (0, 1))
    read_until(first, 1, "answered")
    hosts.kill(1)
    _, err = ended(first, 1)
    assert "root cause: node 1: the launcher at 10.77.0.2 is gone, or cut off" in err, err
    assert last.wait(30) == -signal.SIGKILL


@pytest.mark.soak
def test_the_demo_learns_across_hosts(tmp_path):
    options = ["--roles", "ps,trainer=2", "-m"]
    demo = {"name": "telegrad.examples.parameter_server", "args": ["--epochs", "1"]}
    with made_hosts(tmp_path, 2) as hosts:
        first, other = [hosts.launch(host, None, *options, **demo) for host in range(2)]
        out, _ = ended(first, 0)
        ended(other, 0)
    assert "2 trainers" in out and "accuracy" in out


WAITS = (
    "all workers are started again if it comes back to 10.77.0.1",
    "a machine is lost: its launcher has 300 s to come",
)


@pytest.mark.parametrize("host", [pytest.param(0, marks=pytest.mark.soak), 1])
def test_a_host_whose_power_was_cut_comes_back_and_the_training_ends_with_the_same_weights(hosts, tmp_path, host):
    def run(folder, cut):
        folder.mkdir()
        options = {"OUT": str(folder)}
        nodes = [hosts.launch(host, CHECKPOINTED_TRAINING, "--restart", "all", **options) for host in (0, 1)]
        if cut:
            read_until(nodes[host], 3, "saved")
            hosts.kill(host)
            while WAITS[host] not in nodes[1 - host].stderr.readline():
                continue
            nodes[host] = hosts.launch(host, CHECKPOINTED_TRAINING, "--restart", "all", **options)
        _, err = ended(nodes[1 - host], 0)
        ended(nodes[host], 0)
        return err, [(folder / f"weights{rank}.npy").read_bytes() for rank in (0, 1)]

    _, expected = run(tmp_path / "undisturbed", cut=False)
    err, weights = run(tmp_path / "cut", cut=True)
    assert weights == expected
    lost = "the launcher at 10.77.0.2 is gone, or cut off" if host else "the connection to node 0's launcher is lost"
    assert "\nrestarts: 1\n" in err and lost in err

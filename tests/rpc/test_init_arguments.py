"""Arguments of ``init_rpc``: what they mean, and what is said of those that make no sense."""

import pytest
from helpers.joining import refused, start
from telegrad import rpc
from telegrad.base.errors import RendezvousError

pytestmark = pytest.mark.usefixtures("outside_a_job")


def test_rank_and_world_size_in_the_url(port):
    start(rank=-1, world_size=None, init_method=f"tcp://127.0.0.1:{port}?rank=0&world_size=1")
    assert rpc.get_worker_info().id == 0
    rpc.shutdown()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"rank": -1}, "rank is missing: pass rank= to init_rpc, or set RANK"),
        ({"world_size": None, "init_method": "etcd://127.0.0.1:1/x"}, "world_size is missing.*WORLD_SIZE"),
        (
            {"replace_within": 9},
            r"replace_within=9 needs a rendezvous that outlives each worker: give init_method='file://",
        ),
        ({"rank": 3, "world_size": 2}, "rank=3 with world_size=2 .* ranks go from 0"),
        ({"rank": 1, "world_size": 1}, "ranks go from 0"),
        (
            {"world_size": 0, "init_method": "etcd://127.0.0.1:1/x"},
            "join and leave while the job runs, which needs .*tcp",
        ),
        ({"init_method": "env://"}, "MASTER_ADDR is not set, which init_method='env://' needs.*telegrad run"),
        (
            {"init_method": "tcp://127.0.0.1"},
            "is none of env://, tcp://host:port, file:///path, etcd://host:port/job and mpi://",
        ),
        (
            {"init_method": "tcp://127.0.0.1:x"},
            r"'x' is not a port; MASTER_PORT \(or init_method=\) must have a number",
        ),
        ({"init_method": "tcp://127.0.0.1:99999"}, "is not a port"),
        ({"init_method": "tcp://8.8.8.8:80"}, "the host of init_method= is '8.8.8.8'.*needs TLS"),
        ({"init_method": "http://x"}, "is none of"),
        ({"init_method": "file://"}, "is none of"),
        ({"init_method": "file:///no/such/folder/file"}, "cannot be used: No such file"),
        ({"init_method": "file:///tmp"}, "cannot be used: Is a directory"),
    ],
)
def test_arguments_that_make_no_sense(arguments, words, port):
    refused(RendezvousError, words, **{"init_method": f"tcp://127.0.0.1:{port}", **arguments})


def test_variables_that_make_no_sense(monkeypatch, port):
    monkeypatch.setenv("RANK", "first")
    refused(RendezvousError, "rank must be a number; RANK or the URL says 'first'", rank=-1)


@pytest.mark.parametrize("keepalive", [1e9, float("inf")])
def test_a_lane_may_never_ask_whether_a_peer_is_there(keepalive, port):
    start(keepalive=keepalive, init_method=f"tcp://127.0.0.1:{port}")
    assert rpc.rpc_sync("w", abs, (-1,)) == 1
    rpc.shutdown()


@pytest.mark.parametrize("name", ["", "a b", "ü", "x" * 129, 3])
def test_names(name, port):
    refused(ValueError, "a worker's name is 1 to 128 letters", name, init_method=f"tcp://127.0.0.1:{port}")


def test_the_order_of_options():
    options = rpc.GrpcRpcBackendOptions(3, 4.0, "file:///x")
    assert (options.num_worker_threads, options.rpc_timeout, options.init_method) == (3, 4.0, "file:///x")


def test_options_that_make_no_sense(port):
    for wrong in (
        {"num_worker_threads": 0},
        {"rpc_timeout": -1},
        {"rpc_timeout": float("nan")},
        {"init_timeout": 0},
        {"keepalive": -1},
        {"reconnect_timeout": "x"},
        {"replace_within": -1},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            rpc.GrpcRpcBackendOptions(**wrong)
    refused(ValueError, "lanes= names 'pigeon', which is not a lane", lanes=["grpc", "pigeon"], init_method="file:///x")
    with pytest.raises(TypeError, match="must be GrpcRpcBackendOptions"):
        rpc.init_rpc("w", None, 0, 1, rpc.RpcBackendOptions())
    with pytest.raises(ValueError, match="backend must be one of"):
        rpc.init_rpc("w", "tensorpipe", 0, 1)

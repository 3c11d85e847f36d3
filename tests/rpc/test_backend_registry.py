"""Backends of others: registered by name, found, given options, started by ``init_rpc``."""

import copy
import pickle
from dataclasses import dataclass

import pytest
from telegrad import rpc
from telegrad.base.errors import RpcError
from telegrad.compat import torch
from telegrad.rpc import backend_registry as registry


@dataclass
class Options(rpc.RpcBackendOptions):
    color: str = "blue"


@pytest.fixture
def mine(monkeypatch):
    """A backend that keeps what it is started with, in ``started``, beside gRPC's. Those of other tests are not there."""
    for name in registry._members.keys() - {"GRPC"}:
        monkeypatch.delitem(registry._members, name)
    started = []
    made = registry.register_backend(
        "MINE",
        lambda seconds, method, **given: Options(seconds, method, **given),
        lambda **given: started.append(given),
    )
    made.started = started
    yield made
    del registry._members["MINE"]


def test_a_registered_backend_is_found_by_its_name(mine):
    assert registry.backend_registered("MINE") and not registry.backend_registered("OTHER")
    assert rpc.BackendType.MINE is rpc.BackendType["MINE"] is mine and mine.name == "MINE"
    assert list(rpc.BackendType) == [rpc.BackendType.GRPC, mine] and len(rpc.BackendType) == 2
    assert isinstance(mine, rpc.BackendType) and repr(mine) == "BackendType.MINE"
    assert pickle.loads(pickle.dumps(mine)) is mine and copy.deepcopy(rpc.BackendType.GRPC) is rpc.BackendType.GRPC


def test_init_rpc_starts_it_also_for_the_type_of_its_options(mine):
    options = registry.construct_rpc_backend_options(mine, 7, color="red")
    assert options == Options(7, "env://", "red")
    rpc.init_rpc("w", mine, 1, 2, options)
    rpc.init_rpc("w", rank=1, world_size=2, rpc_backend_options=options)
    expected = {"store": None, "name": "w", "rank": 1, "world_size": 2, "rpc_backend_options": options}
    assert mine.started == [expected, expected]


def test_the_grpc_agent_is_a_backend_too():
    options = registry.construct_rpc_backend_options(
        rpc.BackendType.GRPC, 5.0, "tcp://127.0.0.1:x", num_worker_threads=2
    )
    assert options == rpc.GrpcRpcBackendOptions(2, 5.0, "tcp://127.0.0.1:x")
    with pytest.raises(RpcError, match="is not a port"):
        registry.init_backend(rpc.BackendType.GRPC, name="w", rank=0, world_size=1, rpc_backend_options=options)


def test_pytorchs_names():
    theirs = torch.distributed.rpc
    assert theirs.BackendType is theirs.backend_registry.BackendType is rpc.BackendType
    assert theirs.backend_registry.construct_rpc_backend_options(theirs.BackendType.TENSORPIPE).num_worker_threads == 16


@pytest.mark.parametrize(
    "wrong, words",
    [
        (lambda mine: registry.register_backend("MINE", print, print), (RuntimeError, "registered already")),
        (lambda mine: registry.register_backend("no name", print, print), (TypeError, "a name such as")),
        (lambda mine: registry.register_backend("OTHER", print, None), (TypeError, "are functions; you gave None")),
        (
            lambda mine: registry.construct_rpc_backend_options("MINE"),
            (TypeError, r"one of .*GRPC, BackendType.MINE\]"),
        ),
        (lambda mine: registry.init_backend("MINE"), (TypeError, "you gave 'MINE'")),
        (lambda mine: rpc.init_rpc("w", backend="MINE"), (TypeError, "you gave 'MINE'")),
        (lambda mine: rpc.BackendType.OTHER, (AttributeError, "there is no backend OTHER; .* GRPC, MINE")),
        (lambda mine: rpc.BackendType["OTHER"], (KeyError, "OTHER")),
    ],
)
def test_wrong_uses(mine, wrong, words):
    with pytest.raises(words[0], match=words[1]):
        wrong(mine)

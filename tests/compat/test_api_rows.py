"""The public interface beside PyTorch's, row by row: where each name is, and the parameters of those of RPC in their order.

A row that is not there stands in docs/migrating.md, with the reason.
"""

import importlib
import inspect
from contextlib import closing
from pathlib import Path

import pytest
import telegrad as tg
from telegrad.base.errors import RpcError
from telegrad.compat import torch
from telegrad.launcher.environment import reserve_port
from telegrad.testing import cluster

PAGE = (Path(__file__).parents[2] / "docs" / "migrating.md").read_text()

# (PyTorch's path, ours): the names that each row lists
ROWS = {
    ("", "tg"): "tensor zeros ones randn mm Tensor float64 no_grad save load",
    (
        "autograd",
        "tg.autograd",
    ): """backward grad Function no_grad enable_grad set_grad_enabled gradcheck
        gradgradcheck detect_anomaly""",
    ("autograd.graph", "tg.autograd.graph"): "saved_tensors_hooks",
    ("autograd.profiler", "tg.profiler"): "profile record_function",
    ("nn", "tg.nn"): "Module Linear Parameter functional init utils",
    ("nn.functional", "tg.nn.functional"): "relu linear cross_entropy",
    ("nn.init", "tg.nn.init"): "xavier_uniform_ zeros_",
    ("nn.utils", "tg.nn.utils"): "clip_grad_norm_ parameters_to_vector",
    ("optim", "tg.optim"): "SGD Adam Adagrad lr_scheduler",
    ("optim.lr_scheduler", "tg.optim.lr_scheduler"): "StepLR OneCycleLR",
    ("utils.data", "tg.data"): "Dataset DataLoader TensorDataset",
    ("futures", "tg.futures"): "Future collect_all wait_all",
    (
        "distributed.rpc",
        "tg.rpc",
    ): """init_rpc shutdown rpc_sync rpc_async remote get_worker_info WorkerInfo BackendType
        RpcBackendOptions functions get_rpc_timeout _set_rpc_timeout RRef _all_gather _barrier _wait_all""",
    ("distributed.rpc.api", "tg.rpc"): "rpc_sync rpc_async remote shutdown get_worker_info _wait_all _all_gather",
    (
        "distributed.rpc.backend_registry",
        "tg.rpc.backend_registry",
    ): "BackendType BackendValue backend_registered register_backend construct_rpc_backend_options init_backend",
    ("distributed.rpc.functions", "tg.rpc.functions"): "async_execution",
    ("distributed.autograd", "tg.autograd_dist"): "context backward get_gradients",
    ("distributed.optim", "tg.autograd_dist"): "DistributedOptimizer",
    ("distributed.nn", "tg"): "RemoteModule",
    (
        "distributed",
        "tg.collective",
    ): """init_process_group all_reduce broadcast all_gather reduce_scatter all_to_all
        barrier new_group
        destroy_process_group get_rank get_world_size""",
    ("nn.parallel", "tg.nn.parallel"): "DistributedDataParallel",
    ("multiprocessing", "tg.launcher"): "spawn",
}
SYNONYMS = ["RRef", "RemoteModule", "DistributedOptimizer"]  # also at the top

# parameters in PyTorch's order, with its defaults; ours that come after them are keyword-only
UNSET = -1.0
CALL = {"to": ..., "func": ..., "args": None, "kwargs": None, "timeout": UNSET}
SIGNATURES = {
    "init_rpc": {"name": ..., "backend": None, "rank": -1, "world_size": None, "rpc_backend_options": None},
    "shutdown": {"graceful": True, "timeout": 0},
    "rpc_sync": CALL,
    "rpc_async": CALL,
    "remote": CALL,
    "stream": CALL,
    "get_worker_info": {"worker_name": None},
    "WorkerInfo": {"name": ..., "id": ...},
    "GrpcRpcBackendOptions": {"num_worker_threads": 16, "rpc_timeout": 60.0, "init_method": "env://"},
    "get_rpc_timeout": {},
    "_set_rpc_timeout": {},
    "debug_info": {},
    "RRef": {"value": ..., "type_hint": None},
    "RRef.owner": {},
    "RRef.owner_name": {},
    "RRef.is_owner": {},
    "RRef.confirmed_by_owner": {},
    "RRef.to_here": {"timeout": UNSET},
    "RRef.local_value": {},
    "RRef.rpc_sync": {"timeout": UNSET},
    "RRef.rpc_async": {"timeout": UNSET},
    "RRef.remote": {"timeout": UNSET},
    "RRef.backward": {"dist_autograd_ctx_id": -1, "retain_graph": False},
    "RRef._get_type": {"timeout": UNSET, "blocking": True},
    "RRef._get_future": {},
}

# what PyTorch has not
AHEAD = {
    "await on every future": "futures.Future.__await__",
    "rpc.stream": "rpc.stream",
    "Future.cancel": "futures.Future.cancel",
    "what a callee can see of its call": "rpc.current_call",
    "mutual TLS": "rpc.TlsFiles",
    "SMART backward": "autograd_dist.backward",
    "RRef.release": "rpc.RRef.release",
    "RRef in a with block": "rpc.RRef.__enter__",
    "several agents in a process": "testing.cluster",
    "a cluster for notebooks": "launcher.local_cluster",
    "rpc.map": "rpc.map",
    "the workers that are there": "rpc.get_worker_infos",
    "what all workers do": "rpc.observe",
    "streams of a value's methods": "rpc.RRef.stream",
    "forms to await of what blocks": "rpc.init_rpc_async",
    "a simulator for protocols of users": "testing.simulator.Workload",
}
ABSENT = ["a dashboard"]


def found_at(path, start):
    """The object at a path of attributes, where modules are imported as needed."""
    for part in filter(None, path.split(".")):
        if not hasattr(start, part) and inspect.ismodule(start):
            importlib.import_module(f"{start.__name__}.{part}")
        start = getattr(start, part)
    return start


@pytest.mark.parametrize(("theirs", "ours"), ROWS, ids=lambda path: path or "torch")
def test_pytorchs_path_and_ours_have_the_names(theirs, ours):
    for name in ROWS[theirs, ours].split():
        there = found_at(f"{theirs}.{name}", torch)
        assert there is found_at(f"{ours.removeprefix('tg')}.{name}", tg) or callable(there), name


@pytest.mark.parametrize("name", SYNONYMS)
def test_names_at_the_top(name):
    assert callable(getattr(tg, name))


@pytest.mark.parametrize("name", SIGNATURES)
def test_parameters_are_pytorchs(name):
    given = inspect.signature(found_at(name, tg.rpc)).parameters.values()
    given = [each for each in given if each.name != "self"]
    expected = SIGNATURES[name]
    for parameter, (wanted, default) in zip(given, expected.items(), strict=False):
        assert parameter.name == wanted
        assert default is ... or parameter.default == default
    if expected:
        assert len(given) >= len(expected)
        assert all(each.kind is each.KEYWORD_ONLY for each in given[len(expected) :])


@pytest.mark.parametrize("what", AHEAD)
def test_what_pytorch_has_not(what):
    assert callable(found_at(AHEAD[what], tg))


def test_deadlines_travel_and_lambdas_too():
    with cluster(2):
        assert 0 < tg.rpc.rpc_sync("worker1", lambda: tg.rpc.current_call().time_left, timeout=20) <= 20
    assert "mode" in inspect.signature(tg.autograd_dist.backward).parameters


@pytest.mark.parametrize("row", ABSENT)
def test_what_is_not_there_is_listed(row):
    assert row in PAGE.partition("## What is not there")[2]


def test_the_world_size_is_optional(monkeypatch, tmp_path):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with closing(reserve_port()) as reserved:
        options = tg.rpc.GrpcRpcBackendOptions(init_method=f"tcp://127.0.0.1:{reserved.getsockname()[1]}")
    tg.rpc.init_rpc("a", rank=0, rpc_backend_options=options)
    try:
        assert tg.rpc.get_worker_infos() == [tg.rpc.WorkerInfo("a", 0)]
        options.init_method = f"file://{tmp_path}/group"
        with pytest.raises(RpcError, match="already"):
            tg.rpc.init_rpc("b", rank=1, rpc_backend_options=options)
    finally:
        tg.rpc.shutdown()
    tg.rpc.init_rpc("b", rank=1, rpc_backend_options=options)
    try:
        assert tg.rpc.get_worker_infos() == [tg.rpc.WorkerInfo("b", 1)]
    finally:
        tg.rpc.shutdown()

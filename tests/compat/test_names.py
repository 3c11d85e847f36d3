"""``telegrad.compat.torch``: PyTorch's paths lead to the same objects as ours."""

import importlib

import pytest
import telegrad as tg
from telegrad.compat import torch

SAME = {
    "nn": tg.nn,
    "nn.functional": tg.nn.functional,
    "nn.parallel": tg.nn.parallel,
    "optim.lr_scheduler": tg.optim.lr_scheduler,
    "autograd": tg.autograd,
    "amp": tg.amp,
    "autograd.functional": tg.autograd.functional,
    "autograd.profiler": tg.profiler,
    "distributed.algorithms.ddp_comm_hooks.default_hooks": tg.nn.parallel.comm_hooks,
    "distributed.algorithms.ddp_comm_hooks.powerSGD_hook": tg.nn.parallel.comm_hooks,
    "distributed.algorithms.model_averaging.averagers": tg.collective.optim,
    "distributed.autograd": tg.autograd_dist,
    "distributed.rpc.functions": tg.rpc.functions,
    "distributions": tg.distributions,
    "futures": tg.futures,
    "linalg": tg.linalg,
    "utils.data": tg.data,
}


@pytest.mark.parametrize("path", SAME)
def test_a_module_is_ours(path):
    module = importlib.import_module(f"telegrad.compat.torch.{path}")
    assert module is SAME[path]
    assert module.__spec__.name == module.__name__
    found = torch
    for part in path.split("."):
        found = getattr(found, part)
    assert found is module


@pytest.mark.parametrize("path", ["distributed.nn", "distributed.nn.api.remote_module"])
def test_modules_on_other_workers_have_both_paths(path):
    assert importlib.import_module(f"telegrad.compat.torch.{path}").RemoteModule is tg.RemoteModule


def test_names_at_the_top_are_ours():
    assert torch.add is tg.add and torch.Tensor is tg.Tensor and torch.float64 is tg.float64
    assert {"add", "nn", "distributed", "compile"} <= set(dir(torch))


def test_what_is_not_there_says_so():
    with pytest.raises(AttributeError, match=r"telegrad has nothing for torch\.nothing; docs/migrating\.md"):
        _ = torch.nothing
    with pytest.raises(AttributeError, match=r"torch\.distributed\.nothing"):
        _ = torch.distributed.nothing
    with pytest.raises(AttributeError, match=r"torch\.utils\.nothing"):
        _ = torch.utils.nothing
    assert not hasattr(torch, "__wrapped__")


def test_compiled_modules_are_modules_and_replay():
    net = torch.nn.Linear(3, 2)
    model = torch.compile(net, mode="max-autotune")
    for _ in range(3):
        result = model(torch.ones(4, 3))
        assert result.equal(net(torch.ones(4, 3)))
    assert result.grad_fn.name() == "Replay(Linear)"
    assert isinstance(model, torch.nn.Module) and model.in_features == 3 and model._orig_mod is net
    assert list(model.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
    assert not model.eval().training and not net.training
    with pytest.raises(AttributeError, match="nothing"):
        _ = model.nothing


def test_compiled_functions_and_what_is_left_as_it_is():
    def double(x):
        return 2 * x

    assert torch.compile(mode="max-autotune", dynamic=True)(double)(torch.ones(2)).tolist() == [2, 2]
    assert torch.compile(double, backend="eager") is double and torch.compile(disable=True)(double) is double
    assert torch.jit.script(double) is double and not torch.jit.is_scripting()
    with pytest.raises(TypeError, match="model must be"):
        torch.compile(3)


def test_averaged_models_have_pytorchs_path():
    averages = importlib.import_module("telegrad.compat.torch.optim.swa_utils")
    assert averages.AveragedModel is tg.nn.utils.AveragedModel and averages.update_bn is tg.nn.utils.update_bn
    assert averages.SWALR is tg.optim.lr_scheduler.SWALR


def test_there_is_no_accelerator():
    assert not torch.cuda.is_available() and torch.cuda.device_count() == 0
    assert not torch.accelerator.is_available() and torch.accelerator.current_accelerator() is None
    assert not torch.backends.mps.is_available()
    torch.backends.cudnn.deterministic = True
    torch.cuda.manual_seed_all(0)
    torch.cuda.synchronize()
    assert torch.distributed.is_available() and torch.distributed.rpc.is_available()
    assert torch.distributed.all_reduce is tg.collective.all_reduce


def test_in_place_functions_at_the_top():
    x = torch.tensor([-1.0, 4.0])
    assert torch.relu_(x) is x and torch.sqrt_(x).tolist() == [0, 2]
    assert not hasattr(torch, "nothing_")


def test_settings_that_programs_make_first():
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert torch.are_deterministic_algorithms_enabled() and torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(False)
    assert not torch.are_deterministic_algorithms_enabled()
    torch.set_float32_matmul_precision("high")
    assert torch.get_float32_matmul_precision() == "high"
    torch.set_float32_matmul_precision("highest")
    with pytest.raises(RuntimeError, match="precision is one of"):
        torch.set_float32_matmul_precision("low")
    torch.set_default_device("cpu")
    assert torch.get_default_device().type == "cpu"
    with pytest.raises(ValueError, match="all tensors are on the cpu"):
        torch.set_default_device("cuda")
    assert torch.typename(3) == "int" and torch.typename(tg.nn.Linear(1, 1)) == "telegrad.nn.linear.Linear"


def test_options_of_tensorpipe():
    options = torch.distributed.rpc.TensorPipeRpcBackendOptions(
        num_worker_threads=3, init_method="tcp://localhost:1", device_maps={"b": {"cpu": "cpu"}}, _transports=["uv"]
    )
    assert isinstance(options, tg.rpc.GrpcRpcBackendOptions)
    assert (options.num_worker_threads, options.rpc_timeout, options.init_method) == (3, 60.0, "tcp://localhost:1")
    options.set_device_map("c", {"cpu": "cpu"})
    assert options.device_maps == {"b": {"cpu": "cpu"}, "c": {"cpu": "cpu"}}
    assert torch.distributed.rpc.TensorPipeRpcBackendOptions(
        device_maps={"b": {0: 1}}, devices=["cuda"]
    ).device_maps == {"b": {"cuda:0": "cuda:1"}}
    for wrong in ({"devices": ["cuda:x"]}, {"device_maps": {"b": {0: 1, 2: 1}}}, {"num_worker_threads": 0}):
        with pytest.raises(ValueError):
            torch.distributed.rpc.TensorPipeRpcBackendOptions(**wrong)
    with pytest.raises(TypeError):
        torch.distributed.rpc.TensorPipeRpcBackendOptions(3)


def test_multiprocessing_is_pythons_and_has_spawn():
    mp = torch.multiprocessing
    assert mp.spawn is tg.launcher.spawn is mp.start_processes and mp.Queue and mp.get_context("spawn").Process
    mp.set_sharing_strategy("file_descriptor")
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    with pytest.raises(ValueError, match="new_strategy"):
        mp.set_sharing_strategy("pigeon")

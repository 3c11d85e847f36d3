"""Import paths of PyTorch's own modules, which programs take classes from: both as imports and as attributes."""

import importlib
import pickle

import pytest
import telegrad as tg
from telegrad.compat import torch
from telegrad.compat.torch.places import PLACES

NAMES = {
    "amp.autocast_mode": "autocast custom_fwd custom_bwd",
    "autograd.anomaly_mode": "detect_anomaly",
    "autograd.gradcheck": "gradcheck gradgradcheck GradcheckError",
    "autograd.profiler_util": "FunctionEvent EventList FunctionEventAvg",
    "cuda.amp": "autocast GradScaler custom_fwd custom_bwd",
    "cuda.amp.grad_scaler": "GradScaler",
    "distributed.algorithms": "Join Joinable JoinHook",
    "distributed.distributed_c10d": "ProcessGroup ReduceOp all_reduce _get_default_group GroupMember",
    "distributed.nn": "RemoteModule all_reduce",
    "distributed.nn.functional": "all_reduce all_gather broadcast gather scatter reduce reduce_scatter all_to_all",
    "distributed.optim.optimizer": "DistributedOptimizer",
    "distributed.optim.zero_redundancy_optimizer": "ZeroRedundancyOptimizer",
    "distributed.rpc.api": """_all_gather _barrier _wait_all _require_initialized _is_current_rpc_agent_set AllGatherStates
        RRef WorkerInfo rpc_sync rpc_async remote shutdown get_worker_info get_rpc_timeout""",
    "distributed.rpc.server_process_global_profiler": "_server_process_global_profile",
    "distributions.half_normal": "HalfNormal",
    "multiprocessing.spawn": "spawn start_processes ProcessContext SpawnContext ProcessRaisedException",
    "nn.modules": "Module Linear Conv2d",
    "nn.modules.batchnorm": "_BatchNorm _NormBase BatchNorm2d",
    "nn.modules.container": "Sequential ModuleList ModuleDict ParameterList ParameterDict",
    "nn.modules.conv": "_ConvNd Conv1d ConvTranspose3d",
    "nn.modules.loss": "_Loss _WeightedLoss CrossEntropyLoss MSELoss",
    "nn.modules.module": "Module register_module_forward_hook",
    "nn.modules.rnn": "LSTM GRU RNNBase LSTMCell",
    "nn.modules.transformer": "TransformerEncoder TransformerEncoderLayer",
    "nn.modules.utils": "_single _pair _triple _quadruple _ntuple",
    "nn.parallel.data_parallel": "data_parallel DataParallel",
    "nn.parameter": "Parameter Buffer UninitializedParameter UninitializedBuffer",
    "nn.parallel.distributed": "DistributedDataParallel",
    "nn.utils.clip_grad": "clip_grad_norm_ clip_grad_value_",
    "optim.adamw": "AdamW",
    "optim.lr_scheduler": "_LRScheduler LRScheduler",
    "optim.sgd": "SGD sgd",
    "optim.swa_utils": "AveragedModel SWALR update_bn",
    "profiler": "profile record_function ProfilerActivity ProfilerAction schedule tensorboard_trace_handler",
    "utils.data._utils.collate": "default_collate default_convert",
    "utils.data.dataloader": "DataLoader default_collate",
    "utils.data.dataset": "Dataset Subset random_split ConcatDataset",
    "utils.data.distributed": "DistributedSampler",
    "utils.hooks": "RemovableHandle",
}


@pytest.mark.parametrize("path", NAMES)
def test_names_of_a_module(path):
    module = importlib.import_module(f"telegrad.compat.torch.{path}")
    for name in NAMES[path].split():
        assert callable(getattr(module, name)), name


@pytest.mark.parametrize("path", PLACES)
def test_every_place_can_be_imported(path):
    assert importlib.import_module(f"telegrad.compat.torch.{path}")


def test_modules_are_attributes_before_they_are_imported(run_python):
    """In a new process, where no test has imported them."""
    run_python(
        "-c",
        """
import telegrad.compat.torch as torch, telegrad as tg
assert torch.optim.swa_utils.SWALR is tg.optim.lr_scheduler.SWALR
assert torch.nn.modules.conv.Conv2d is torch.nn.modules.Conv2d is tg.nn.Conv2d
assert torch.utils.data.dataloader.DataLoader is tg.data.DataLoader
assert torch.cuda.amp.GradScaler and torch.autograd.profiler_util.FunctionEvent and torch.profiler.profile
try:
    torch.optim.nothing
except AttributeError as error:
    assert "nothing" in str(error)
else:
    raise AssertionError
""",
    )


@pytest.mark.parametrize("path", ["autograd.gradcheck", "multiprocessing.spawn", "nn.parallel.data_parallel"])
def test_a_function_stays_when_the_module_of_its_name_is_imported(path):
    module = importlib.import_module(f"telegrad.compat.torch.{path}")
    above, _, name = path.rpartition(".")
    function = getattr(importlib.import_module(f"telegrad.compat.torch.{above}"), name)
    assert function is getattr(module, name) and function.__name__ == name


def test_a_module_for_one_device():
    layer = torch.nn.Linear(3, 2)
    x = torch.ones(4, 3)
    assert torch.nn.parallel.data_parallel(layer, x, module_kwargs={}).tolist() == layer(x).tolist()
    assert torch.nn.parallel.data_parallel(torch.nn.Bilinear(3, 3, 2), (x, x)).shape == (4, 2)


def test_a_step_of_sgd_without_an_optimizer():
    options = {"lr": 0.1, "momentum": 0.9, "dampening": 0.0, "weight_decay": 0.01, "nesterov": True, "maximize": False}
    grads = [[torch.randn(3), torch.randn(2)] for _ in range(3)]
    mine = [torch.ones(3), torch.ones(2)]
    theirs = [torch.nn.Parameter(each.clone()) for each in mine]
    optimizer, buffers = torch.optim.SGD(theirs, **options), [None, None]
    for step in grads:
        torch.optim.sgd.sgd(mine, step, buffers, **options)
        for parameter, grad in zip(theirs, step, strict=True):
            parameter.grad = grad
        optimizer.step()
    assert [each.tolist() for each in mine] == [each.tolist() for each in theirs]
    assert buffers[0].shape == (3,)
    with pytest.raises(ValueError, match="found_inf"):
        torch.optim.sgd.sgd(mine, grads[0], buffers, found_inf=torch.ones(1), **options)


@pytest.mark.parametrize("name", ["TCPStore", "FileStore", "HashStore"])
def test_stores_are_not_there(name):
    with pytest.raises(AttributeError, match=rf"nothing for torch.distributed.{name}.*migrating"):
        getattr(torch.distributed, name)


# Subclasses of PyTorch's base classes, as PyTorch 2.13 has them; those that are not here are left out.
FAMILIES = {
    "conv._ConvNd": """Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyConv1d LazyConv2d LazyConv3d
        LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d""",
    "batchnorm._BatchNorm": "BatchNorm1d BatchNorm2d BatchNorm3d LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d",
    "batchnorm._NormBase": """BatchNorm1d BatchNorm2d BatchNorm3d InstanceNorm1d InstanceNorm2d InstanceNorm3d
        LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d""",
    "instancenorm._InstanceNorm": """InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d LazyInstanceNorm2d
        LazyInstanceNorm3d""",
    "dropout._DropoutNd": "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout",
    "loss._Loss": """BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CrossEntropyLoss GaussianNLLLoss
        HingeEmbeddingLoss HuberLoss KLDivLoss L1Loss MSELoss MarginRankingLoss MultiLabelMarginLoss
        MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss PoissonNLLLoss SmoothL1Loss SoftMarginLoss TripletMarginLoss
        TripletMarginWithDistanceLoss""",
    "loss._WeightedLoss": "BCELoss CrossEntropyLoss MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss",
}
LATER_LOSSES = {"LinearCrossEntropyLoss", "NLLLoss2d"}


@pytest.mark.parametrize("base", FAMILIES)
def test_base_classes_have_pytorchs_subclasses(base):
    module, name = base.split(".")
    kind = getattr(getattr(torch.nn.modules, module), name)
    layers = {name: each for name, each in vars(tg.nn).items() if isinstance(each, type) and not name.startswith("_")}
    assert {name for name, each in layers.items() if issubclass(each, kind)} - LATER_LOSSES == set(
        FAMILIES[base].split()
    )


def test_tuples_of_sizes():
    utils = torch.nn.modules.utils
    assert utils._pair(3) == (3, 3) and utils._triple([1, 2, 3]) == (1, 2, 3) and utils._ntuple(5)("ab") == ("a", "b")


def test_schedulers_of_programs():
    class Halved(torch.optim.lr_scheduler._LRScheduler):
        def get_lr(self):
            return [rate / 2 for rate in self.base_lrs]

    optimizer = torch.optim.SGD([tg.ones(1, requires_grad=True)], lr=1.0)
    schedule = Halved(optimizer)
    assert isinstance(schedule, torch.optim.lr_scheduler.LRScheduler) and schedule.get_last_lr() == [0.5]
    assert not isinstance(torch.optim.lr_scheduler.StepLR(optimizer, 1), torch.optim.lr_scheduler._LRScheduler)


def test_layers_are_pickled_by_their_own_path():
    layer = pickle.loads(pickle.dumps(torch.nn.modules.linear.Linear(2, 1)))
    assert type(layer) is tg.nn.Linear

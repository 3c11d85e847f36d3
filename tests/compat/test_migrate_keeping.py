"""``migrate --keep-torch`` changes lines of remote calls, and no others."""

import pytest
from telegrad.compat.migrate import migrate, migrate_file

OURS = "telegrad.compat.torch"


def changed(*lines):
    """The changed script's lines; the last line of each script uses nothing."""
    return migrate("\n".join(lines) + "\n", keep_torch=True).source.splitlines()


@pytest.mark.parametrize(
    "line",
    [
        "import torch",
        "import torch.nn as nn",
        "from torch import nn, optim",
        "import torch.distributed as dist",
        "from torch.distributed import init_process_group",
        "from torch.distributed.optim import ZeroRedundancyOptimizer",
        "import torch.multiprocessing as mp",
        "from . import rpc",
        "from .torch.distributed import rpc",
        "x = rpc.torch.distributed",
        "model.cuda()",
        'x = "torch.distributed.rpc"',
    ],
)
def test_what_stays(line):
    assert changed(line) == [line]


@pytest.mark.parametrize(
    "line, wanted",
    [
        ("import torch.distributed.rpc as rpc", f"import {OURS}.distributed.rpc as rpc"),
        ("import os, torch.distributed.autograd as a", f"import os, {OURS}.distributed.autograd as a"),
        ("from torch.distributed import rpc  # calls", f"from {OURS}.distributed import rpc  # calls"),
        ("from torch.distributed.rpc import RRef as R", f"from {OURS}.distributed.rpc import RRef as R"),
        ("from torch.distributed.nn import RemoteModule", f"from {OURS}.distributed.nn import RemoteModule"),
        ("from torch.futures import wait_all", f"from {OURS}.futures import wait_all"),
        (
            "from torch.distributed import rpc, barrier",
            f"from torch.distributed import barrier; from {OURS}.distributed import rpc",
        ),
        (
            "from torch.distributed.optim import DistributedOptimizer, ZeroRedundancyOptimizer",
            "from torch.distributed.optim import ZeroRedundancyOptimizer; "
            f"from {OURS}.distributed.optim import DistributedOptimizer",
        ),
    ],
)
def test_imports_that_change(line, wanted):
    assert changed(line) == [wanted]


def test_full_names_change_and_are_imported_before():
    script = [
        '"""A script."""',
        "from __future__ import annotations",
        "",
        "# PyTorch",
        "import torch.distributed as dist",
    ]
    more = ["import torch.distributed.rpc", "", "dist.rpc.shutdown(), torch.distributed.rpc.RRef, dist.barrier()"]
    last = f"{OURS}.distributed.rpc.shutdown(), {OURS}.distributed.rpc.RRef, dist.barrier()"
    assert changed(*script, *more) == [*script[:4], f"import {OURS}", script[4], *more[:2], last]


def test_a_name_that_is_something_else_stays():
    assert changed("dist = other()", "dist.rpc.shutdown()")[1] == "dist.rpc.shutdown()"


def test_findings_are_about_what_changes(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import torchvision\nimport torch.distributed.rpc as rpc\nmodel.cuda()\nrpc.nothing\n"
        "rpc.TensorPipeRpcBackendOptions(device_maps=maps)\nfrom torch.nn import nothing\n"
    )
    lines = migrate_file(script, diff=True, keep_torch=True)
    assert [line for line in lines if line.startswith(f"{script}:")] == [
        f"{script}:4: torch.distributed.rpc.nothing is not there"
    ]

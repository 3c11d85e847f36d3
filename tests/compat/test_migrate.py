"""``telegrad migrate``: imports change, everything else stays, and what needs a person is listed with its line."""

import pytest
from telegrad.compat.migrate import is_there, migrate
from telegrad.launcher.cli import app
from typer.testing import CliRunner


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import torch", "import telegrad.compat.torch as torch"),
        ("import torch as th", "import telegrad.compat.torch as th"),
        ("import os, torch  # both", "import os, telegrad.compat.torch as torch  # both"),
        ("import torch.distributed.rpc", "import telegrad.compat.torch as torch"),
        ("import torch.nn as nn", "import telegrad.compat.torch.nn as nn"),
        ("from torch import nn, optim as o", "from telegrad.compat.torch import nn, optim as o"),
        ("from torch.distributed.rpc import (\n    RRef,\n)", None),
        ("def f():\n    import torch.multiprocessing as mp", None),
        ("from .torch import mine", "from .torch import mine"),
        ("import torchlike", "import torchlike"),
        ("text = 'import torch'  # torch", "text = 'import torch'  # torch"),
    ],
)
def test_imports(before, after):
    if after is None:
        after = before.replace("torch", "telegrad.compat.torch")
    assert migrate(f"{before}\n") == (f"{after}\n", [])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (
            "import torch\ntorch.distributed.tensor('gloo')",
            "torch.distributed.tensor is not there",
        ),
        ("import torch.nn as nn\nnn.SyncBatchNorm(3)", "torch.nn.SyncBatchNorm is not there"),
        ("x = 1\nfrom torch.cuda.nvtx import mark", "torch.cuda.nvtx.mark is not there"),
        (
            "x = 1\nfrom torchvision import datasets",
            "torchvision.datasets is built on PyTorch, and does not work with telegrad",
        ),
        ("x = 1\nfrom torch import *", "`from torch import *` takes names that cannot be checked: name them"),
        ("x = 1\nx.cuda()", "there is no GPU: leave .cuda() out"),
        ("x = 1\nx.to('cuda:0')", 'there is no GPU: use "cpu" in place of "cuda:0"'),
    ],
)
def test_findings(line, reason):
    assert migrate(f"{line}\n").findings == [(2, reason)]


def test_names():
    for name in ("torch.add", "torch.nn.functional.relu", "torch.Tensor.anything", "torch.distributed.rpc.functions"):
        assert is_there(name), name
    for name in ("torch.nothing", "torch.nn.nothing", "torch.distributed.nothing", "torch.nothing.below"):
        assert not is_there(name), name


def test_the_command(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import torch\ntorch.nothing\n")
    shown = CliRunner().invoke(app, ["migrate", "--diff", str(script)])
    assert "-import torch\n+import telegrad.compat.torch as torch" in shown.output
    assert script.read_text().startswith("import torch\n")
    done = CliRunner().invoke(app, ["migrate", str(script)])
    assert done.output == f"{script}:2: torch.nothing is not there\n" and done.exit_code == 0
    assert script.read_text() == "import telegrad.compat.torch as torch\ntorch.nothing\n"


@pytest.mark.parametrize(("text", "reason"), [("def f(:\n", "line 1"), (None, "No such file")])
def test_what_cannot_be_read(tmp_path, text, reason):
    script = tmp_path / "train.py"
    if text is not None:
        script.write_text(text)
    refused = CliRunner().invoke(app, ["migrate", str(script)])
    assert refused.exit_code == 2 and reason in refused.output and str(script) in refused.output

"""Layers, losses and optimizers have recorded numbers of PyTorch in tests/golden, read off the files themselves."""

import inspect
import os
import re
import subprocess

import pytest
import telegrad as tg
from helpers.golden import FOLDER, recorded
from telegrad import distributions, nn, optim

TORCH = os.environ.get("TORCH_PYTHON")
RECORDERS = sorted(path.stem.removeprefix("record_") for path in FOLDER.glob("record_*.py"))
PROCESSOR = "a few results depend on the processor: autocast of an LSTM, and the gradient of logit at -0"
UNCHECKED = {"checkpoints": "files, no numbers", "amp": PROCESSOR, "ops_elementwise": PROCESSOR}

# What a case says of what it is about, under these keys: a name, an expression, or a list that begins with a name.
ABOUT = {"name", "function", "layer", "cell", "optimizer", "expression", "case"}
CONTAINER = "a container: it computes nothing itself"
BASE = "a base class"
CHANCE = "by chance, in training; there is nothing else to it"
EXEMPT = {
    **dict.fromkeys(
        ("Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict", "DataParallel"), CONTAINER
    ),
    **dict.fromkeys(
        (
            "Module",
            "RNNBase",
            "Optimizer",
            "LRScheduler",
            "_LRScheduler",
            "Distribution",
            "ExponentialFamily",
            "Transform",
        ),
        BASE,
    ),
    **dict.fromkeys(("Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer"), "a tensor"),
    **{name: "becomes an ordinary layer" for name in vars(nn) if name.startswith("Lazy")},
    **dict.fromkeys(("Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout", "gumbel_softmax"), CHANCE),
    "StateDictError": "an error",
    "multi_head_attention_forward": "what MultiheadAttention computes, which is recorded",
    "LinAlgError": "an error",
    "LinearCrossEntropyOptions": "options of a function: chunks change no number",
    "Muon": "PyTorch computes it in bfloat16; tests/optim/test_optim.py holds it against singular values",
}


def words(value):
    """The names that a golden file speaks of."""
    if isinstance(value, list):
        return set().union(*map(words, value))
    if not isinstance(value, dict):
        return set()
    found = set().union(*map(words, value.values()))
    for key in ABOUT & value.keys():
        about = value[key][0] if isinstance(value[key], list) else value[key]
        found.update(re.findall(r"\w+", str(about)))
    return found


RECORDED = set().union(*(words(recorded(path.stem)) for path in FOLDER.glob("*.json")))
OFFERED = {
    "modules": [name for name, value in vars(nn).items() if inspect.isclass(value)],
    "functions": [name for name, value in vars(nn.functional).items() if callable(value)],
    "optimizers": [name for name, value in vars(optim).items() if inspect.isclass(value)],
    "schedulers": [name for name, value in vars(optim.lr_scheduler).items() if inspect.isclass(value)],
    "distributions": [name for name, value in vars(distributions).items() if inspect.isclass(value)],
    "linear algebra": tg.linalg.__all__,
}


@pytest.mark.parametrize("package", OFFERED)
def test_everything_is_recorded(package):
    missing = set(OFFERED[package]) - RECORDED - EXEMPT.keys()
    assert not missing


def test_exemptions_are_needed():
    offered = {name for names in OFFERED.values() for name in names}
    unknown, recorded = EXEMPT.keys() - offered, EXEMPT.keys() & RECORDED
    assert not unknown
    assert not recorded


@pytest.mark.long
@pytest.mark.processes
@pytest.mark.skipif(TORCH is None, reason="TORCH_PYTHON names no Python that has PyTorch")
@pytest.mark.parametrize("name", sorted({*RECORDERS} - UNCHECKED.keys()))
def test_the_numbers_are_pytorchs(name):
    command = [TORCH, FOLDER / "oracle.py", "--check", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_record_says_which_torch_computed_it_and_has_a_recorder():
    texts = "".join((FOLDER / f"record_{name}.py").read_text() for name in RECORDERS)
    for path in FOLDER.glob("*.json"):
        assert recorded(path.stem)["torch"]
        assert f'"{path.stem.removeprefix("layers_")}":' in texts

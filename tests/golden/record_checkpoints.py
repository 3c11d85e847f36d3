"""Records files that torch.save() writes, for tests/core/test_torch_files.py. Needs torch, which nothing else here does.

PYTHONPATH=tests python tests/golden/record_checkpoints.py
"""

from collections import OrderedDict
from pathlib import Path

import torch
from helpers.checkpoint_models import residual_network, transformer

FOLDER = Path(__file__).parent / "checkpoints"


def trained(model, *inputs):
    """Take two steps, so that statistics and an optimizer's state are there; return the checkpoint."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(2):
        optimizer.zero_grad()
        model(*inputs).pow(2).mean().backward()
        optimizer.step()
    model.eval()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    return {**state, "inputs": inputs, "outputs": model(*inputs).detach()}


def objects():
    """Return one of each kind of object that a checkpoint may hold."""
    base = torch.arange(6.0).reshape(2, 3)
    complex_numbers = torch.tensor([1 + 2j, 3 - 4j])
    return {
        "dtypes": [torch.ones(2, dtype=dtype) for dtype in DTYPES],
        "bfloat16": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
        "base": base,
        "views": (base.t(), base[1], base[:, ::2]),
        "twice": [base, base],
        "conjugated": complex_numbers.conj(),
        "negated": complex_numbers.clone().conj().imag,
        "scalar": torch.tensor(7),
        "empty": torch.zeros(0, 3),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "attributes": with_attributes(),
        "sparse": torch.eye(2).to_sparse(),
        "kinds": [
            torch.Size([2, 3]),
            torch.device("cpu"),
            torch.float16,
            OrderedDict(a=1),
            {1, 2},
            1j,
            b"\xff",
            bytearray(b"x"),
        ],
        "plain": (None, True, -5, 2**40, 10**30, 2.5, "ünïcode", [], {"a": ()}),
    }


DTYPES = (
    *(
        torch.bool,
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.uint16,
        torch.uint32,
        torch.uint64,
    ),
    *(torch.float16, torch.float32, torch.float64, torch.complex64, torch.complex128),
)


def with_attributes():
    """Return a parameter with an attribute of its own."""
    parameter = torch.nn.Parameter(torch.zeros(1), requires_grad=False)
    parameter.tag = "mine"
    return parameter


if __name__ == "__main__":
    torch.manual_seed(0)
    FOLDER.mkdir(exist_ok=True)
    torch.save(trained(residual_network(torch.nn), torch.randn(3, 3, 8, 8)), FOLDER / "residual_network.pt")
    torch.save(trained(transformer(torch.nn), torch.randn(4, 2, 8), torch.randn(3, 2, 8)), FOLDER / "transformer.pt")
    torch.save(objects(), FOLDER / "objects.pt")
    older = {key: value for key, value in objects().items() if key != "dtypes"}
    torch.save(older, FOLDER / "older.pt", _use_new_zipfile_serialization=False)
    torch.save(residual_network(torch.nn)[0], FOLDER / "module.pt")
    torch.save(torch.eye(2).to_sparse_csr(), FOLDER / "rows.pt")
    torch.jit.save(torch.jit.script(torch.nn.Linear(1, 1)), FOLDER / "script.pt")

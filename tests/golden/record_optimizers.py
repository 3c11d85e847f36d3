"""Records where PyTorch's optimizers go, for tests/test_optim_golden.py. Needs torch, which nothing else here does.

python tests/golden/record_optimizers.py
"""

import json
from pathlib import Path

import torch

STEPS = 20
KEPT = (1, 2, 3, 10, 20)  # the steps whose parameters are recorded
START = ([0.5, -1.25, 3.0], [[0.0, 2.0], [-0.75, 1.5]])

CASES = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.05, "maximize": True}),
    ("SGD", {"lr": 0.05, "momentum": 0.9}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("Adam", {}),
    ("Adam", {"lr": 0.03, "betas": [0.8, 0.95], "eps": 1e-6, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.03, "amsgrad": True}),
    ("Adam", {"lr": 0.03, "amsgrad": True, "maximize": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.03, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.03, "weight_decay": 0.2, "amsgrad": True}),
    ("AdamW", {"lr": 0.03, "maximize": True}),
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.05, "weight_decay": 0.1, "initial_accumulator_value": 0.2, "eps": 1e-6}),
    ("Adagrad", {"lr": 0.1, "maximize": True}),
]


def gradient(value, step):
    """Depends on the value, so that errors grow, and on the step, so that signs change. Exact in any library."""
    return value * 0.75 - 1.5 + 0.5 * (step % 3 - 1)


def record(name, options):
    parameters = [torch.tensor(start, dtype=torch.float64, requires_grad=True) for start in START]
    optimizer = getattr(torch.optim, name)(parameters, **options)
    path = {}
    for step in range(1, STEPS + 1):
        for parameter in parameters:
            parameter.grad = gradient(parameter.detach(), step)
        optimizer.step()
        if step in KEPT:
            path[step] = [parameter.tolist() for parameter in parameters]
    return {"optimizer": name, "options": options, "path": path}


if __name__ == "__main__":
    recorded = {"torch": torch.__version__, "start": START, "cases": [record(*case) for case in CASES]}
    Path(__file__).with_name("optimizers.json").write_text(json.dumps(recorded, indent=1) + "\n")

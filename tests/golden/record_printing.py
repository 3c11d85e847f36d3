"""Records how PyTorch prints tensors, for tests/core/test_printing.py."""

import torch

OPTIONS = [
    {},
    {"precision": 2},
    {"sci_mode": True},
    {"sci_mode": False},
    {"profile": "short"},
    {"profile": "full", "linewidth": 120},
    {"profile": "default", "edgeitems": 1, "threshold": 5},
]
EXPRESSIONS = """
tg.tensor([1.0, 2, 3])
tg.tensor([1.5, -2, 1e5])
tg.tensor(3.14159)
tg.tensor([])
tg.zeros(2, 0, 3)
tg.tensor([1, 2, -300])
tg.tensor([True, False])
tg.tensor(True)
tg.tensor(-5)
tg.tensor([nan, inf, 1.0])
tg.tensor([nan, -inf, 1.25])
tg.tensor([0.0, 0.0])
tg.tensor(nan)
tg.arange(1200)
tg.arange(2000.0).reshape(20, 100)
tg.arange(1500).reshape(10, 10, 15)
tg.tensor([1e-5, 1.0])
tg.tensor([1e9, 1.0])
tg.tensor([1.0, 1000.0])
tg.tensor([1.0, 1001.0])
tg.tensor([1e20, nan])
tg.tensor([1.23456789e-7, 1])
tg.tensor([1 + 2j, 3 - 4.5j])
tg.tensor([[1e-6j, 2 + 0j], [nan + 1j, -3 - 1j]])
tg.tensor(2.0) * tg.tensor([1j])
tg.tensor([[1.5, 2], [3, 4]], dtype=tg.float64)
tg.arange(24.0).reshape(2, 3, 4) / 7
tg.arange(40) * 1000
tg.full((40,), 1 / 3)
tg.tensor([1, 2], dtype=tg.int32)
tg.tensor([], dtype=tg.int64)
tg.ones(3, dtype=tg.uint8)
tg.tensor([1.5, 2], dtype=tg.float16)
tg.tensor([1.5, 2.25], dtype=tg.bfloat16)
tg.tensor([1.5], requires_grad=True)
tg.ones(2, 2, 2, 2)
""".strip().split("\n")
NAMES = {"tg": torch, "nan": float("nan"), "inf": float("inf")}


def recorded():
    cases = []
    for options in OPTIONS:
        torch.set_printoptions(**options)
        cases += [[options, each, repr(eval(each, NAMES)).replace("torch.", "")] for each in EXPRESSIONS]
        torch.set_printoptions(profile="default")
    return {"printing": {"cases": cases}}

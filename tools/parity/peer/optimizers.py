"""Cases of the database of optimizers: some steps with given gradients, real and complex parameters, tensors as options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.testing._internal.common_optimizers import optim_db

from .packing import packed_all, pickled

STEPS = 6
SHAPES: tuple[tuple[int, ...], ...] = ((3, 4), (5,), ())
LEFT_OUT = ("capturable", "fused", "foreach", "differentiable")  # how torch computes, not what


def entries() -> dict[str, Any]:
    """The entries by name."""
    return {f"optim.{each.optim_cls.__name__}": each for each in optim_db}


def cases(name: str, entry: Any) -> Iterator[Any]:
    """The cases of one entry, or text that says why there is none."""
    for number, optim_input in enumerate(entry.optim_inputs_func("cpu")):
        options = {key: value for key, value in optim_input.kwargs.items() if key not in LEFT_OUT}
        kinds = [("real", torch.float64)] + ([("complex", torch.complex128)] if entry.supports_complex else [])
        for kind, dtype in kinds:
            variants = [("", options)]
            if entry.optim_cls is not torch.optim.SparseAdam and "lr" not in options:
                variants.append((" tensor lr", {**options, "lr": torch.tensor(0.02, dtype=torch.float64)}))
            for label, chosen in variants:
                note = f"{kind}{label} {number} {optim_input.desc}"
                try:
                    yield _case(name, note, entry.optim_cls, chosen, dtype)
                except Exception as error:
                    yield f"{note}: {type(error).__name__}: {str(error)[:120]}"


def _case(name: str, note: str, cls: Any, options: dict[str, Any], dtype: torch.dtype) -> dict[str, Any]:
    torch.manual_seed(1)
    shapes = {"optim.Muon": SHAPES[:1], "optim.SparseAdam": SHAPES[:2]}.get(name, SHAPES)
    parameters = [torch.randn(shape, dtype=dtype).requires_grad_() for shape in shapes]
    steps = [[torch.randn(shape, dtype=dtype) for shape in shapes] for _ in range(STEPS)]
    message: dict[str, Any] = {"entry": name, "note": note, "kind": "optimizer", "leaves": packed_all(parameters)}
    message["options"] = pickled((f"torch.{name}", options))
    message["gradients"] = [packed_all(grads) for grads in steps]
    message["closure"] = name == "optim.LBFGS"
    if message["closure"]:
        steps = steps[:3]  # it has arrived then: what follows is rounding
    optimizer = cls(parameters, **options)
    after = []
    for grads in steps:
        for parameter, grad in zip(parameters, grads):
            parameter.grad = grad.to_sparse() if name == "optim.SparseAdam" else grad.clone()
        if message["closure"]:
            optimizer.step(lambda: _loss(parameters))
        else:
            optimizer.step()
        after.append(packed_all([parameter.detach() for parameter in parameters]))
    message["after"] = after
    state = optimizer.state_dict()["state"]
    message["state_keys"] = sorted(state[0]) if 0 in state else []
    return message


def _loss(parameters: list[torch.Tensor]) -> torch.Tensor:
    # Any smooth convex function (rounding grows without bounds on the way down another one); replay has the same.
    loss = torch.zeros((), dtype=torch.float64)
    for number, parameter in enumerate(parameters):
        parameter.grad = None
        size = (parameter - 0.5).abs()
        loss = loss + (size**4 + (number + 1) * size**2).sum()
    loss.backward()
    return loss

"""Records what PyTorch computes for expressions that are the same here and there: values and gradients of both precisions.

An expression sees ``tg`` (the library), ``i(...)`` (an integer tensor), ``b(...)`` (a boolean one) and inputs ``x``, ``y``,
``z``, made of the shapes that the case gives.
"""

import torch


def make(shape, positive):
    numbers = torch.randn(tuple(shape), dtype=torch.float64).round(decimals=3)
    return (numbers.abs() + 0.3).requires_grad_() if positive else numbers.requires_grad_()


def listed(value):
    """A result as nested lists of its tensors, complex numbers as pairs."""
    if isinstance(value, torch.Tensor):
        value = torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
        return {"dtype": str(value.dtype).removeprefix("torch."), "shape": list(value.shape), "data": value.tolist()}
    return [listed(each) for each in value]


def total(value):
    """A sum of all results, in which every element has a weight of its own."""
    if isinstance(value, torch.Tensor):
        if not value.requires_grad:
            return 0
        value = torch.view_as_real(value) if value.is_complex() else value
        return (value * torch.arange(1, value.numel() + 1, dtype=value.dtype).reshape(value.shape)).sum()
    return sum(total(each) for each in value)


def record_case(expression, *shapes, positive=False):
    inputs = [make(shape, positive) for shape in shapes]
    names = dict(zip("xyz", inputs))
    value = eval(expression, {"tg": torch, "i": torch.tensor, "b": torch.tensor, "inf": float("inf"), **names})
    loss = total(value)
    grads = torch.autograd.grad(loss, inputs, allow_unused=True) if isinstance(loss, torch.Tensor) else []
    return {
        "expression": expression,
        "inputs": [listed(each.detach()) for each in inputs],
        "value": listed(value),
        "grads": [None if grad is None else listed(grad) for grad in grads],
    }


def record(cases):
    torch.manual_seed(0)
    return {"cases": [record_case(*case[0], **case[1]) for case in cases]}


def case(expression, *shapes, **options):
    return (expression, *shapes), options

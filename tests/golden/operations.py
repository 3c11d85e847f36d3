"""``Recorder``: runs functions of torch on named inputs, and lists their values and gradients."""

import torch


def plain(value):
    """Results as JSON: complex numbers as pairs, 9 digits for float32 and all of them for float64."""
    if isinstance(value, torch.Tensor):
        name = str(value.dtype).removeprefix("torch.")
        shown = torch.zeros(value.shape, dtype=value.dtype) if value._is_zerotensor() else value.detach()
        shown = torch.view_as_real(shown.resolve_conj()) if shown.is_complex() else shown
        return {"dtype": name, "data": rounded(shown.tolist(), 9 if name in ("float32", "complex64") else 17)}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value


def rounded(data, digits):
    if isinstance(data, list):
        return [rounded(item, digits) for item in data]
    return float(f"{data:.{digits}g}") if isinstance(data, float) else data


def opened(dtype, data):
    kind = getattr(torch, dtype)
    if kind.is_complex:
        parts = torch.float64 if kind == torch.complex128 else torch.float32
        return torch.view_as_complex(torch.tensor(data, dtype=parts))
    return torch.tensor(data, dtype=kind)


def weighted(outputs):
    """A sum of all elements with different weights, so that what adds up to a constant has a gradient too."""
    total = 0
    for output in outputs:
        factors = (torch.arange(1, output.numel() + 1, dtype=torch.float64) / 8).reshape(output.shape).to(output.dtype)
        term = output * (factors * (1 + 0.5j) if output.is_complex() else factors)
        term = torch.view_as_real(term).sum() if term.is_complex() else term.sum()
        total = total + term
    return total


class Recorder:
    def __init__(self, inputs):
        self.inputs, self.cases = inputs, []

    def case(self, function, *args, grads=True, tolerance=None, **kwargs):
        """``tolerance`` is for functions that torch itself computes less precisely."""
        given = {"function": function, "args": list(args), "kwargs": kwargs}
        if tolerance:
            given["tolerance"] = tolerance
        tensors = [opened(*self.inputs[arg]) if isinstance(arg, str) and arg in self.inputs else arg for arg in args]
        options = {
            key: opened(*self.inputs[arg]) if isinstance(arg, str) and arg in self.inputs else arg
            for key, arg in kwargs.items()
        }
        leaves = [
            arg for arg in tensors if isinstance(arg, torch.Tensor) and (arg.is_floating_point() or arg.is_complex())
        ]
        for leaf in leaves:
            leaf.requires_grad_(grads)
        try:
            value = getattr(torch, function)(*tensors, **options)
        except (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError) as error:
            print(f"{function}{args} {kwargs}: {str(error)[:100]}")
            self.cases.append({**given, "error": True})
            return
        outputs = [value] if isinstance(value, torch.Tensor) else value if isinstance(value, tuple) else []
        outputs = [output for output in outputs if isinstance(output, torch.Tensor) and output.requires_grad]
        if outputs:
            found = torch.autograd.grad(weighted(outputs), leaves, allow_unused=True)
            given["grads"] = [None if grad is None else plain(grad) for grad in found]
        self.cases.append({**given, "value": plain(value)})

    def recorded(self):
        return {"inputs": self.inputs, "cases": self.cases}

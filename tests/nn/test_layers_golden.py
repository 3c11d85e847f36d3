"""Modules and functions of nn compute what PyTorch's do, in both precisions, gradients, names and buffers too.

tests/golden/record_layers.py recorded that; it and this file make inputs and parameters by the same formula.
"""

import warnings

import numpy as np
import pytest
from helpers.golden import FOLDER, TOLERANCES, assert_close, largest, recorded
from telegrad import nn
from telegrad.core import Tensor, autograd, log_softmax, no_grad

CASES = [case for path in sorted(FOLDER.glob("layers_*.json")) for case in recorded(path.stem)["cases"]]


def sample(kind, shape, seed, *bounds):
    mixed = (np.arange(int(np.prod(shape))) * 7919 + seed * 104729 + 12345) * 2654435761 % 2**32 // 2**16
    if kind == "integers":
        values = bounds[0] + mixed % (bounds[1] - bounds[0])
    elif kind == "choice":
        values = np.array(bounds)[mixed % len(bounds)]
    else:
        low, high = {"signed": (-2, 2), "positive": (0.25, 2.25), "chance": (0, 1)}[kind]
        values = low + (high - low) * (mixed % 4095 + 1) / 4096
    return values.reshape(shape)


def opened(spec, seed, dtype):
    if not isinstance(spec, dict):
        return spec
    if "values" in spec:
        values = np.asarray(spec["values"])
    else:
        values = sample(spec["sample"], spec["shape"], seed, *spec.get("bounds", ()))
    return Tensor(values.astype(dtype) if values.dtype.kind == "f" else values, spec.get("grad", False))


def run(case, inputs, dtype):
    kwargs = {name: opened(value, 50, dtype) for name, value in case["kwargs"].items()}
    given = [
        log_softmax(value, spec["log_softmax"]) if "log_softmax" in spec else value
        for value, spec in zip(inputs, case["inputs"])
    ]
    if case["name"].endswith("_"):
        given[0] = given[0].clone()  # leaves are not changed in place
    if not case["name"][0].isupper():
        return nn.Module(), getattr(nn.functional, case["name"])(*given, *case["args"], **kwargs)
    module = getattr(nn, case["name"])(*case["args"], **kwargs).to(dtype)
    with no_grad():
        for seed, parameter in enumerate(module.parameters(), 100):
            parameter.copy_(Tensor(sample("signed", parameter.shape, seed).astype(dtype)))
    if case["eval"]:
        with no_grad():
            module(*given)
        module.eval()
    return module, module(*given)


def assert_recorded(found, expected, tolerance):
    shape, numbers = expected
    values = np.array(numbers).reshape(shape)
    assert_close(found, values, tolerance, largest(values))


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("case", CASES, ids=[f"{case['name']}{n}" for n, case in enumerate(CASES)])
def test_as_recorded(case, dtype):
    tolerance = TOLERANCES[dtype]
    inputs = [opened(spec, seed, dtype) for seed, spec in enumerate(case["inputs"])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # PyTorch warns of the same: kl_div, broadcast targets
        module, result = run(case, inputs, dtype)
    members = [*module.named_parameters(), *module.named_buffers()]
    assert {name: list(member.shape) for name, member in members} == case["state"]
    results = result if isinstance(result, tuple) else (result,)
    assert len(results) == len(case["results"])
    for part, expected in zip(results, case["results"]):
        assert_recorded(part, expected, tolerance)
        assert part.dtype == dtype or part.dtype.kind == "i"
    for name, buffer in module.named_buffers():
        assert_recorded(buffer, case["buffers"][name], tolerance)
    leaves = [leaf for leaf in (*inputs, *module.parameters()) if leaf.requires_grad]
    parts = [part for part in results if part.requires_grad]
    if leaves:
        total = sum((part * Tensor(sample("signed", part.shape, 7).astype(dtype))).sum() for part in parts)
        grads = autograd.grad(total, leaves)
        if case["name"].lower() == "hardsigmoid":
            tolerance = max(tolerance, 1e-7)  # PyTorch multiplies by a sixth of single precision
        for grad, expected in zip(grads, case["grads"]):
            assert_recorded(grad, expected, tolerance)

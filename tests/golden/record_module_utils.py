"""Records what PyTorch's pruning, fusion and orthogonal maps compute, for tests/nn/test_module_utils.py."""

import numpy as np
import torch
from torch import nn
from torch.nn.utils import fuse_conv_bn_eval, fuse_linear_bn_eval, parametrizations, prune

# Names of functions, and their arguments after the module and "weight", one after the other on one weight (4, 3).
PRUNINGS = [
    [["l1_unstructured", [0.5]]],
    [["l1_unstructured", [3]], ["l1_unstructured", [0.5]]],
    [["ln_structured", [0.5, 2, 0]]],
    [["ln_structured", [1, 1, -1]], ["l1_unstructured", [0.25]]],
    [["l1_unstructured", [2]], ["ln_structured", [0.5, float("inf"), 0]], ["ln_structured", [0.4, 2, 1]]],
    [["identity", []], ["l1_unstructured", [0.3]]],
]
SHAPES = [(3, 3), (4, 2), (2, 4)]


def numbers(seed, *shape):
    values = ((np.arange(int(np.prod(shape))) * 37 + seed * 11) % 29) / 16 - 0.9
    return torch.tensor(values.reshape(shape))


def fill(module):
    for seed, tensor in enumerate([*module.parameters(), *module.buffers()]):
        if tensor.is_floating_point():
            tensor.data = numbers(seed, *tensor.shape)
    if hasattr(module, "running_var"):
        module.running_var.abs_().add_(0.5)
    return module.double().eval()


def record_pruning(steps):
    layer = fill(nn.Linear(3, 4))
    for name, arguments in steps:
        getattr(prune, name)(layer, "weight", *arguments)
    return {"steps": steps, "mask": layer.weight_mask.tolist(), "weight": layer.weight.tolist()}


def record_global():
    layers = [fill(nn.Linear(3, 4)), fill(nn.Linear(4, 2))]
    prune.l1_unstructured(layers[0], "weight", 2)
    prune.global_unstructured([(layer, "weight") for layer in layers], prune.L1Unstructured, amount=0.4)
    return [layer.weight_mask.tolist() for layer in layers]


def record_fusion():
    conv = fuse_conv_bn_eval(fill(nn.Conv2d(2, 4, 3)), fill(nn.BatchNorm2d(4)))
    turned = fuse_conv_bn_eval(fill(nn.ConvTranspose2d(2, 4, 3, bias=False)), fill(nn.BatchNorm2d(4)), transpose=True)
    linear = fuse_linear_bn_eval(fill(nn.Linear(3, 4)), fill(nn.BatchNorm1d(4)))
    fused = {"conv": conv, "turned": turned, "linear": linear}
    return {name: [layer.weight.tolist(), layer.bias.tolist()] for name, layer in fused.items()}


def record_orthogonal(shape, kind):
    layer = fill(nn.Linear(shape[1], shape[0], bias=False))
    parametrizations.orthogonal(layer, orthogonal_map=kind, use_trivialization=False)
    first = layer.weight
    (first * numbers(5, *shape)).sum().backward()
    gradient = layer.parametrizations.weight.original.grad
    return {"shape": shape, "map": kind, "weight": first.tolist(), "gradient": gradient.tolist()}


def recorded():
    maps = ("matrix_exp", "cayley", "householder")
    return {
        "module_utils": {
            "prunings": [record_pruning(steps) for steps in PRUNINGS],
            "global": record_global(),
            "fusion": record_fusion(),
            "orthogonal": [record_orthogonal(shape, kind) for shape in SHAPES for kind in maps],
        }
    }

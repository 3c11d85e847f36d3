"""Records PyTorch's recurrent layers and cells, for tests/nn/test_recurrent.py."""

import torch
from torch import nn
from values import flat, numbers

STEPS, SEQUENCES, FEATURES, HIDDEN = 4, 3, 2, 3

# Layer, options, which input: padded, unbatched, packed, packed in another order; and whether first states are given.
CASES = [
    ("RNN", {}, "padded", False),
    ("RNN", {"nonlinearity": "relu", "num_layers": 2, "bidirectional": True}, "padded", True),
    ("RNN", {"bias": False, "batch_first": True}, "padded", True),
    ("RNN", {"bidirectional": True}, "packed", True),
    ("GRU", {}, "padded", True),
    ("GRU", {"num_layers": 2, "bidirectional": True, "batch_first": True}, "padded", False),
    ("GRU", {"bias": False}, "unbatched", True),
    ("GRU", {"bidirectional": True}, "shuffled", True),
    ("LSTM", {}, "padded", False),
    ("LSTM", {"num_layers": 2, "bidirectional": True}, "padded", True),
    ("LSTM", {"bias": False, "batch_first": True}, "padded", True),
    ("LSTM", {"proj_size": 2, "bidirectional": True, "num_layers": 2}, "padded", True),
    ("LSTM", {}, "unbatched", True),
    ("LSTM", {"bidirectional": True, "num_layers": 2}, "packed", True),
    ("LSTM", {"bidirectional": True}, "shuffled", True),
]
CELLS = [
    ("RNNCell", {}),
    ("RNNCell", {"nonlinearity": "relu", "bias": False}),
    ("GRUCell", {}),
    ("GRUCell", {"bias": False}),
    ("LSTMCell", {}),
    ("LSTMCell", {"bias": False}),
]
LENGTHS = {"packed": [4, 2, 1], "shuffled": [2, 4, 1]}


def states(layer, options, sequences):
    count = options.get("num_layers", 1) * (1 + options.get("bidirectional", False))
    shape = (count, sequences) if sequences else (count,)
    h = numbers(5, *shape, options.get("proj_size") or HIDDEN)
    return (h, numbers(6, *shape, HIDDEN)) if layer == "LSTM" else h


def fill(module):
    for seed, parameter in enumerate(module.parameters(), 20):
        with torch.no_grad():
            parameter.copy_(numbers(seed, *parameter.shape) * 0.8)


def weighted(outputs):
    return sum((output * numbers(seed + 40, *output.shape)).sum() for seed, output in enumerate(outputs))


def record(layer, options, kind, given):
    module = getattr(nn, layer)(FEATURES, HIDDEN, **options)
    fill(module)
    if kind == "unbatched":
        x = numbers(1, STEPS, FEATURES)
    else:
        x = numbers(1, *((SEQUENCES, STEPS) if options.get("batch_first") else (STEPS, SEQUENCES)), FEATURES)
    x.requires_grad_()
    hx = states(layer, options, 0 if kind == "unbatched" else SEQUENCES) if given else None
    first = [state.requires_grad_() for state in flat(hx)] if given else []
    if kind in LENGTHS:
        packed = nn.utils.rnn.pack_padded_sequence(x, LENGTHS[kind], enforce_sorted=kind == "packed")
        y, last = module(packed, hx)
        y, _ = nn.utils.rnn.pad_packed_sequence(y)
    else:
        y, last = module(x, hx)
    outputs = [y, *flat(last)]
    weighted(outputs).backward()
    return {
        "layer": layer,
        "options": options,
        "kind": kind,
        "given": given,
        "outputs": [output.tolist() for output in outputs],
        "gradients": {
            "x": x.grad.tolist(),
            "states": [state.grad.tolist() for state in first],
            **{name: parameter.grad.tolist() for name, parameter in module.named_parameters()},
        },
    }


def record_cell(cell, options):
    module = getattr(nn, cell)(FEATURES, HIDDEN, **options)
    fill(module)
    x = numbers(1, SEQUENCES, FEATURES).requires_grad_()
    h, c = numbers(2, SEQUENCES, HIDDEN).requires_grad_(), numbers(3, SEQUENCES, HIDDEN).requires_grad_()
    outputs = flat(module(x, (h, c) if cell == "LSTMCell" else h))
    weighted(outputs).backward()
    return {
        "cell": cell,
        "options": options,
        "outputs": [output.tolist() for output in outputs],
        "gradients": {
            "x": x.grad.tolist(),
            "h": h.grad.tolist(),
            **{name: parameter.grad.tolist() for name, parameter in module.named_parameters()},
        },
    }


def recorded():
    torch.set_default_dtype(torch.float64)
    return {
        "recurrent": {
            "lengths": LENGTHS,
            "layers": [record(*case) for case in CASES],
            "cells": [record_cell(*case) for case in CELLS],
        }
    }

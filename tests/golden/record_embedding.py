"""Records torch's embeddings, bags and sparse tensors, for tests/nn/test_embedding.py and tests/core/test_sparse.py."""

import warnings

import torch
from torch.nn import functional

torch.manual_seed(0)
warnings.filterwarnings("ignore", "Sparse")  # "is in beta"

TABLE = torch.randn(6, 3, dtype=torch.float64).round(decimals=3)
ROWS = torch.tensor([[1, 2, 5], [4, 4, 0], [1, 1, 1]])
FLAT = torch.tensor([1, 2, 4, 4, 0, 1, 5])
OFFSETS = torch.tensor([0, 2, 2, 6])
ENDS = torch.tensor([0, 3, 3, 5, 7])
WEIGHTS = torch.randn(7, dtype=torch.float64).round(decimals=3)

EMBEDDING = [
    {},
    {"padding_idx": 4},
    {"padding_idx": -5},
    {"max_norm": 1.0},
    {"max_norm": 1.5, "norm_type": 1.0},
    {"scale_grad_by_freq": True, "padding_idx": 4},
    {"sparse": True},
    {"sparse": True, "padding_idx": 1, "max_norm": 1.0},
]
BAGS = [
    (inputs, {"mode": mode, **options})
    for mode in ("sum", "mean", "max")
    for inputs in ({"input": ROWS}, {"input": FLAT, "offsets": OFFSETS})
    for options in ({}, {"padding_idx": 4}, {"max_norm": 1.0})
]
BAGS += [
    ({"input": FLAT, "offsets": ENDS}, {"mode": "mean", "include_last_offset": True}),
    ({"input": FLAT, "offsets": OFFSETS, "per_sample_weights": WEIGHTS}, {"mode": "sum"}),
    ({"input": FLAT, "offsets": OFFSETS, "per_sample_weights": WEIGHTS}, {"mode": "sum", "padding_idx": 1}),
    ({"input": ROWS}, {"mode": "sum", "sparse": True}),
    ({"input": FLAT, "offsets": OFFSETS}, {"mode": "mean", "sparse": True, "padding_idx": 4}),
]


def record(name, inputs, options):
    """Value and gradients of the sum of the elements, each times its number."""
    table = TABLE.clone().requires_grad_()
    given = dict(inputs)
    if "per_sample_weights" in given:
        given["per_sample_weights"] = given["per_sample_weights"].clone().requires_grad_()
    # max_norm changes the table in place.
    value = getattr(functional, name)(given.pop("input"), table, **given, **options)
    factors = torch.arange(1, value.numel() + 1, dtype=torch.float64).reshape(value.shape)
    (value * factors).sum().backward()
    gradient = table.grad
    rows = gradient._indices()[0].tolist() if gradient.is_sparse else None
    gradient = gradient.to_dense() if gradient.is_sparse else gradient
    weights = given.get("per_sample_weights")
    return {
        "function": name,
        "inputs": {key: tensor.tolist() for key, tensor in inputs.items()},
        "options": options,
        "value": value.tolist(),
        "table": table.tolist(),
        "gradient": gradient.tolist(),
        "rows": rows,
        "weights": None if weights is None else weights.grad.tolist(),
    }


def sparse():
    """A sparse tensor and what becomes of it."""
    indices = torch.tensor([[0, 2, 2, 0], [1, 0, 0, 3]])
    values = torch.randn(4, dtype=torch.float64).round(decimals=3).requires_grad_()
    dense = torch.randn(4, 3, dtype=torch.float64).round(decimals=3).requires_grad_()
    matrix = torch.sparse_coo_tensor(indices, values, (3, 4))
    product = torch.sparse.mm(matrix, dense)
    factors = torch.arange(1, 10, dtype=torch.float64).reshape(3, 3)
    gradients = torch.autograd.grad((product * factors).sum(), [values, dense])
    whole = matrix.detach().coalesce()
    return {
        "indices": indices.tolist(),
        "values": values.tolist(),
        "dense": dense.tolist(),
        "product": product.tolist(),
        "gradients": [gradient.tolist() for gradient in gradients],
        "coalesced": [whole.indices().tolist(), whole.values().tolist()],
        "to_dense": whole.to_dense().tolist(),
        "t": whole.t().to_dense().tolist(),
        "sum": [torch.sparse.sum(whole).tolist(), *(torch.sparse.sum(whole, d).to_dense().tolist() for d in (0, 1))],
    }


def recorded():
    cases = [record("embedding", {"input": ROWS}, options) for options in EMBEDDING]
    cases += [record("embedding_bag", *case) for case in BAGS]
    return {"embedding": {"table": TABLE.tolist(), "cases": cases, "sparse": sparse()}}

"""Records values and gradients of torch.nn.functional, for tests/nn/test_golden.py."""

import torch

torch.manual_seed(0)


def numbers(*shape):
    return torch.randn(*shape, dtype=torch.float64).round(decimals=3).requires_grad_()


def chances(*shape):
    return torch.rand(*shape, dtype=torch.float64).round(decimals=3)


def integers(high, *shape):
    return torch.randint(high, shape)


CLASSES = torch.tensor([1, 0, 2, -100, 2])
WEIGHTS = torch.tensor([0.5, 2.0, 1.25], dtype=torch.float64)
FAR = torch.tensor([-800.0, 800.0, 0.0, 30.0], dtype=torch.float64, requires_grad=True)
ROWS = torch.tensor([[0, 2, 2], [3, 2, 0]])

CASES = [
    ("cross_entropy", [numbers(5, 3), CLASSES], {}),
    ("cross_entropy", [numbers(5, 3), CLASSES], {"weight": WEIGHTS}),
    ("cross_entropy", [numbers(5, 3), CLASSES], {"weight": WEIGHTS, "label_smoothing": 0.2}),
    ("cross_entropy", [numbers(5, 3), CLASSES], {"weight": WEIGHTS, "label_smoothing": 0.2, "reduction": "none"}),
    ("cross_entropy", [numbers(5, 3), integers(3, 5)], {"ignore_index": 2, "reduction": "sum"}),
    ("cross_entropy", [numbers(2, 3, 4), integers(3, 2, 4)], {"weight": WEIGHTS}),
    ("cross_entropy", [numbers(3), torch.tensor(1)], {}),
    ("cross_entropy", [numbers(4, 3), chances(4, 3)], {"weight": WEIGHTS, "label_smoothing": 0.1}),
    ("nll_loss", [numbers(5, 3), CLASSES], {"weight": WEIGHTS}),
    ("nll_loss", [numbers(5, 3), CLASSES], {"reduction": "none"}),
    ("mse_loss", [numbers(4, 2), chances(4, 2)], {}),
    ("mse_loss", [numbers(4, 2), chances(4, 2)], {"reduction": "sum"}),
    ("mse_loss", [numbers(4, 2), chances(4, 2)], {"weight": chances(4, 2)}),
    ("l1_loss", [numbers(4, 2), chances(4, 2)], {}),
    ("l1_loss", [numbers(4, 2), chances(4, 2)], {"weight": chances(4, 2), "reduction": "none"}),
    ("binary_cross_entropy_with_logits", [numbers(4, 3), chances(4, 3)], {}),
    ("binary_cross_entropy_with_logits", [FAR, torch.tensor([0.0, 1.0, 0.25, 1.0], dtype=torch.float64)], {}),
    (
        "binary_cross_entropy_with_logits",
        [numbers(4, 3), chances(4, 3)],
        {"weight": chances(4, 1), "pos_weight": WEIGHTS, "reduction": "sum"},
    ),
    ("linear", [numbers(2, 4, 3), numbers(5, 3), numbers(5)], {}),
    ("embedding", [ROWS, numbers(5, 2)], {}),
    ("embedding", [ROWS, numbers(5, 2)], {"padding_idx": -3}),
    ("embedding", [ROWS, numbers(5, 2)], {"padding_idx": 3, "scale_grad_by_freq": True}),
    ("embedding", [ROWS, numbers(5, 2)], {"max_norm": 0.7}),
    ("layer_norm", [numbers(2, 3, 4), [4]], {}),
    ("layer_norm", [numbers(2, 3, 4), [3, 4], numbers(3, 4), numbers(3, 4)], {"eps": 0.01}),
    ("softmax", [numbers(2, 3)], {"dim": 0}),
    ("log_softmax", [numbers(2, 3)], {"dim": -1}),
    ("softplus", [FAR], {}),
    ("logsigmoid", [FAR], {}),
    ("relu", [numbers(6)], {}),
]


def plain(value):
    """A tensor as JSON; everything else is that already."""
    if isinstance(value, torch.Tensor):
        return {"data": value.tolist(), "dtype": str(value.dtype).removeprefix("torch."), "grad": value.requires_grad}
    return value


def record(name, args, kwargs):
    given = {"function": name, "args": [plain(a) for a in args], "kwargs": {k: plain(v) for k, v in kwargs.items()}}
    leaves = [arg for arg in args if isinstance(arg, torch.Tensor) and arg.requires_grad]
    if "max_norm" in kwargs:  # changes its argument, which must not be a leaf's own memory then
        args = [arg.detach().clone().requires_grad_(arg.requires_grad) for arg in args]
        leaves = args[1:]
    value = getattr(torch.nn.functional, name)(*args, **kwargs)
    # Weights of the sum, so that rows that add up to a constant have a gradient too.
    factors = torch.arange(1, value.numel() + 1, dtype=torch.float64).reshape(value.shape)
    grads = torch.autograd.grad((value * factors).sum(), leaves)
    return {**given, "value": value.tolist(), "grads": [grad.tolist() for grad in grads]}


def recorded():
    return {"functional": {"cases": [record(*case) for case in CASES]}}

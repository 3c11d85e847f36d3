"""Records where PyTorch's optimizers go, for tests/optim/test_optim_golden.py."""

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
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("Adamax", {}),
    ("Adamax", {"lr": 0.03, "betas": [0.8, 0.95], "eps": 1e-5, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.03, "betas": [0.8, 0.95], "eps": 1e-5, "weight_decay": 0.1, "momentum_decay": 0.01}),
    ("NAdam", {"lr": 0.03, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("RAdam", {}),
    ("RAdam", {"lr": 0.03, "betas": [0.8, 0.95], "eps": 1e-5, "weight_decay": 0.1, "maximize": True}),
    ("RAdam", {"lr": 0.03, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RMSprop", {}),
    ("RMSprop", {"lr": 0.03, "alpha": 0.9, "eps": 1e-5, "weight_decay": 0.1, "momentum": 0.8, "centered": True}),
    ("RMSprop", {"lr": 0.03, "momentum": 0.8, "maximize": True}),
    ("ASGD", {}),
    ("ASGD", {"lr": 0.1, "lambd": 0.02, "alpha": 0.5, "t0": 5, "weight_decay": 0.1, "maximize": True}),
    ("Adafactor", {}),
    (
        "Adafactor",
        {"lr": 0.2, "beta2_decay": -0.5, "eps": [1e-4, 0.1], "d": 1.5, "weight_decay": 0.1, "maximize": True},
    ),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.1, "etas": [0.4, 1.3], "step_sizes": [1e-3, 0.5], "maximize": True}),
]

# Several evaluations in a step, of a loss with a narrow bent valley, or one like a bowl.
CLOSURES = [
    ("LBFGS", {}),
    ("LBFGS", {"lr": 0.1, "max_iter": 3, "history_size": 2}),
    ("LBFGS", {"line_search_fn": "strong_wolfe"}),
    ("LBFGS", {"lr": 0.5, "max_iter": 4, "line_search_fn": "strong_wolfe", "history_size": 3}),
]
SPARSE = [
    ("SparseAdam", {"lr": 0.05}),
    ("SparseAdam", {"lr": 0.03, "betas": [0.8, 0.95], "eps": 1e-5, "maximize": True}),
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.05, "maximize": True}),
]
SAVED = 10  # the step whose state dict is recorded
ROWS = [[0, 2], [1, 1], [2, 0]]  # rows with a gradient, by step


def gradient(value, step):
    """Depends on the value, so that errors grow, and on the step, so that signs change. Exact in any library."""
    return value * 0.75 - 1.5 + 0.5 * (step % 3 - 1)


def plain(value):
    """A state dict without tensors: these become their elements."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.tolist() if isinstance(value, torch.Tensor) else value


def record(name, options, dtype):
    parameters = [torch.tensor(start, dtype=dtype, requires_grad=True) for start in START]
    optimizer = getattr(torch.optim, name)(parameters, **options)
    path, saved = {}, None
    for step in range(1, STEPS + 1):
        for parameter in parameters:
            parameter.grad = gradient(parameter.detach(), step)
        optimizer.step()
        if step in KEPT:
            path[str(step)] = [parameter.tolist() for parameter in parameters]
        if step == SAVED:
            saved = plain(optimizer.state_dict())
    return {"optimizer": name, "options": options, "path": path, "state": saved["state"]}


def record_both(name, options):
    single = record(name, options, torch.float32)
    return {**record(name, options, torch.float64), "single": single["path"][str(STEPS)]}


def valley(parameters):
    a, b = parameters
    flat = torch.cat([a, b.reshape(-1)]) * 0.5
    return ((1 - flat[:-1]) ** 2 + 10 * (flat[1:] - flat[:-1] ** 2) ** 2).sum()


def bowl(parameters):
    a, b = parameters
    flat = torch.cat([a, b.reshape(-1)])
    steepness = torch.arange(1, 8, dtype=flat.dtype) / 4
    return (steepness * (flat - 1) ** 2 + (flat - 0.5) ** 4 / 16).sum() + (flat[1:] * flat[:-1]).sum() / 8


def record_closure(name, options, shape):
    parameters = [torch.tensor(start, dtype=torch.float64, requires_grad=True) for start in START]
    optimizer = getattr(torch.optim, name)(parameters, **options)

    def closure():
        optimizer.zero_grad()
        loss = shape(parameters)
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(STEPS)]
    path = [parameter.tolist() for parameter in parameters]
    return {"optimizer": name, "options": options, "losses": losses, "end": path}


def record_sparse(name, options):
    parameter = torch.tensor([[1.0, 2.0], [-1.0, 0.5], [0.0, 3.0]], dtype=torch.float64, requires_grad=True)
    optimizer = getattr(torch.optim, name)([parameter], **options)
    for step in range(STEPS):
        rows = ROWS[step % len(ROWS)]
        values = [[0.5 + step % 4, -1.0], [0.25, 0.125 * step]]
        gradient = torch.sparse_coo_tensor([rows], torch.tensor(values, dtype=torch.float64), parameter.shape)
        parameter.grad = gradient
        optimizer.step()
    return {"optimizer": name, "options": options, "end": parameter.tolist()}


def recorded():
    torch.set_default_dtype(torch.float64)  # or NAdam keeps one of its factors in float32
    return {
        "optimizers": {
            "start": START,
            "saved": SAVED,
            "cases": [record_both(*case) for case in CASES],
            "closures": [record_closure(*case, valley) for case in CLOSURES],
            "bowls": [record_closure(*case, bowl) for case in CLOSURES],
            "rows": ROWS,
            "sparse": [record_sparse(*case) for case in SPARSE],
        }
    }

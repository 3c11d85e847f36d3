"""Records the learning rates and momenta of PyTorch's schedulers, for tests/optim/test_lr_scheduler.py."""

import math
import warnings

import torch
from torch.optim import lr_scheduler

EPOCHS = 40
JUMPS = [3, 4, 11, 2, 30, 0, 21]  # epochs that are gone to directly
FUNCTIONS = {"inverse": lambda epoch: 1 / (1 + epoch), "wave": lambda epoch: 1 + 0.1 * math.sin(epoch)}

# Scheduler, options; a string among the options names a function, a list of cases the inner schedulers.
CASES = [
    ("LambdaLR", {"lr_lambda": "inverse"}),
    ("LambdaLR", {"lr_lambda": ["inverse", "wave"]}),
    ("MultiplicativeLR", {"lr_lambda": "wave"}),
    ("StepLR", {"step_size": 7}),
    ("StepLR", {"step_size": 3, "gamma": 0.9}),
    ("MultiStepLR", {"milestones": [2, 5, 5, 30], "gamma": 0.5}),
    ("ConstantLR", {}),
    ("ConstantLR", {"factor": 0.5, "total_iters": 12}),
    ("LinearLR", {}),
    ("LinearLR", {"start_factor": 0.2, "end_factor": 0.7, "total_iters": 11}),
    ("ExponentialLR", {"gamma": 0.93}),
    ("PolynomialLR", {}),
    ("PolynomialLR", {"total_iters": 23, "power": 2.5}),
    ("CosineAnnealingLR", {"T_max": 9}),
    ("CosineAnnealingLR", {"T_max": 50, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 6}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2, "eta_min": 0.002}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.2, "step_size_up": 5}),
    (
        "CyclicLR",
        {"base_lr": [0.01, 0.02], "max_lr": 0.2, "step_size_up": 4, "step_size_down": 7, "mode": "triangular2"},
    ),
    (
        "CyclicLR",
        {
            "base_lr": 0.01,
            "max_lr": 0.2,
            "step_size_up": 5,
            "mode": "exp_range",
            "gamma": 0.97,
            "base_momentum": 0.6,
            "max_momentum": 0.95,
        },
    ),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.2, "step_size_up": 5, "scale_fn": "inverse", "cycle_momentum": False}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 40}),
    (
        "OneCycleLR",
        {"max_lr": [0.5, 0.3], "epochs": 5, "steps_per_epoch": 8, "anneal_strategy": "linear", "pct_start": 0.2},
    ),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 45, "three_phase": True, "div_factor": 10, "final_div_factor": 100}),
    ("SWALR", {"swa_lr": 0.02}),
    ("SWALR", {"swa_lr": [0.3, 0.01], "anneal_epochs": 7, "anneal_strategy": "linear"}),
    ("SWALR", {"swa_lr": 0.02, "anneal_epochs": 0}),
    ("ChainedScheduler", [("ConstantLR", {"factor": 0.1, "total_iters": 2}), ("ExponentialLR", {"gamma": 0.9})]),
    (
        "SequentialLR",
        [("LinearLR", {"total_iters": 6}), ("CosineAnnealingLR", {"T_max": 10}), ("StepLR", {"step_size": 4})],
        [6, 20],
    ),
    ("SequentialLR", [("ConstantLR", {"factor": 0.1, "total_iters": 20}), ("ExponentialLR", {"gamma": 0.9})], [20]),
]
PLATEAUS = [
    {"patience": 2, "factor": 0.5},
    {"mode": "max", "patience": 1, "threshold": 0.05, "cooldown": 3},
    {"patience": 0, "threshold_mode": "abs", "threshold": 0.1, "min_lr": [0.01, 0.02]},
    {"mode": "max", "patience": 1, "threshold_mode": "abs", "threshold": 0.02, "eps": 0.03},
]
MEASURES = [round(1 / (1 + epoch) + 0.05 * math.cos(epoch * 1.7), 6) for epoch in range(EPOCHS)]


def optimizers():
    def groups():
        return [{"params": [torch.zeros(1, requires_grad=True)], "lr": rate} for rate in (0.1, 0.05)]

    return torch.optim.SGD(groups(), momentum=0.9), torch.optim.Adam(groups())


def make(optimizer, name, options, *more):
    if isinstance(options, list):
        inner = [make(optimizer, *case) for case in options]
        return getattr(lr_scheduler, name)(inner) if not more else getattr(lr_scheduler, name)(optimizer, inner, *more)
    resolved = {key: function(value) for key, value in options.items()}
    room = torch.optim.swa_utils if name == "SWALR" else lr_scheduler
    return getattr(room, name)(optimizer, **resolved)


def function(value):
    if isinstance(value, list):
        return [function(item) for item in value]
    return FUNCTIONS.get(value, value) if isinstance(value, str) else value


def state(optimizer):
    return [[group["lr"], group.get("momentum", group.get("betas", [None])[0])] for group in optimizer.param_groups]


def record(optimizer, case):
    scheduler = make(optimizer, *case)
    path = [state(optimizer)]
    for _ in range(EPOCHS - 1):
        optimizer.step()
        scheduler.step()
        path.append(state(optimizer))
    return path


def record_jumps(case):
    optimizer, _ = optimizers()
    scheduler = make(optimizer, *case)
    path = []
    for epoch in JUMPS:
        scheduler.step(epoch)
        path.append(state(optimizer))
    return {"case": case, "path": path}


def record_plateau(options):
    optimizer, _ = optimizers()
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, **options)
    path = []
    for measure in MEASURES:
        scheduler.step(measure)
        path.append(state(optimizer))
    return path


def recorded():
    warnings.simplefilter("ignore")
    return {
        "schedulers": {
            "cases": [
                {"case": case, "paths": [record(optimizer, case) for optimizer in optimizers()]} for case in CASES
            ],
            "epochs": JUMPS,
            "jumps": [record_jumps(case) for case in CASES if isinstance(case[1], dict) and case[0] != "SWALR"],
            "measures": MEASURES,
            "plateaus": [
                {"name": "ReduceLROnPlateau", "options": options, "path": record_plateau(options)}
                for options in PLATEAUS
            ],
        }
    }

"""Schedulers set what PyTorch's set; tests/golden/record_schedulers.py recorded that."""

import math
import warnings

import numpy as np
import pytest
from helpers.golden import recorded
from telegrad import optim, tensor
from telegrad.optim import lr_scheduler

GOLDEN = recorded("schedulers")


def inverse(epoch):
    return 1 / (1 + epoch)


def wave(epoch):
    return 1 + 0.1 * math.sin(epoch)


FUNCTIONS = {"inverse": inverse, "wave": wave}


def make_optimizers():
    def groups():
        return [{"params": [tensor([0.0], requires_grad=True)], "lr": rate} for rate in (0.1, 0.05)]

    return optim.SGD(groups(), momentum=0.9), optim.Adam(groups())


def make(optimizer, name, options, *more):
    if isinstance(options, list):
        inner = [make(optimizer, *case) for case in options]
        return getattr(lr_scheduler, name)(inner) if not more else getattr(lr_scheduler, name)(optimizer, inner, *more)
    return getattr(lr_scheduler, name)(optimizer, **{key: function(value) for key, value in options.items()})


def function(value):
    if isinstance(value, list):
        return [function(item) for item in value]
    return FUNCTIONS.get(value, value) if isinstance(value, str) else value


def state(optimizer):
    return [[group["lr"], group.get("momentum", group.get("betas", [None])[0])] for group in optimizer.param_groups]


def assert_state(optimizer, expected):
    for have, wanted in zip(state(optimizer), expected):
        assert have == pytest.approx(wanted, rel=1e-12, abs=1e-15)


def label(case):
    return f"{case['case'][0]}-{case['case'][1]}".replace(" ", "")[:70]


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=label)
@pytest.mark.parametrize("which", [0, 1], ids=["momentum", "betas"])
def test_rates_and_momenta(case, which):
    optimizer = make_optimizers()[which]
    scheduler = make(optimizer, *case["case"])
    path = case["paths"][which]
    assert_state(optimizer, path[0])
    for expected in path[1:]:
        optimizer.step()
        scheduler.step()
        assert_state(optimizer, expected)
        assert scheduler.get_last_lr() == [group["lr"] for group in optimizer.param_groups]


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=label)
def test_going_on_from_saved_state(case):
    optimizer, _ = make_optimizers()
    scheduler = make(optimizer, *case["case"])
    for _ in range(11):
        optimizer.step()
        scheduler.step()
    again, _ = make_optimizers()
    other = make(again, *case["case"])
    again.load_state_dict(optimizer.state_dict())
    other.load_state_dict(scheduler.state_dict())
    for expected in case["paths"][0][12:]:
        again.step()
        other.step()
        assert_state(again, expected)


@pytest.mark.parametrize("case", GOLDEN["jumps"], ids=label)
@pytest.mark.filterwarnings("ignore:lr_scheduler.step")
def test_going_to_an_epoch_directly(case):
    optimizer, _ = make_optimizers()
    scheduler = make(optimizer, *case["case"])
    for epoch, expected in zip(GOLDEN["epochs"], case["path"]):
        scheduler.step(epoch)
        assert_state(optimizer, expected)
        assert scheduler.last_epoch == epoch


@pytest.mark.parametrize("case", GOLDEN["plateaus"], ids=lambda case: str(case["options"]))
def test_plateaus(case):
    optimizer, _ = make_optimizers()
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, **case["options"])
    for measure, expected in zip(GOLDEN["measures"], case["path"]):
        scheduler.step(tensor(measure))
        assert_state(optimizer, expected)


def test_stepping_before_the_optimizer_warns():
    optimizer, _ = make_optimizers()
    scheduler = lr_scheduler.StepLR(optimizer, 3)
    with pytest.warns(UserWarning, match="call optimizer.step\\(\\) first"):
        scheduler.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler.step()


def test_a_function_with_attributes_is_saved():
    class Decay:
        def __init__(self, rate):
            self.rate = rate

        def __call__(self, epoch):
            return self.rate**epoch

    optimizer, _ = make_optimizers()
    saved = lr_scheduler.LambdaLR(optimizer, Decay(0.5)).state_dict()
    other = lr_scheduler.LambdaLR(optimizer, Decay(0.9))
    other.load_state_dict(saved)
    assert other.lr_lambdas[0].rate == 0.5


def test_warm_restarts_go_to_an_epoch_between_two():
    optimizer, _ = make_optimizers()
    scheduler = lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=4, T_mult=2)
    scheduler.step(5.5)  # the second cycle, of 8 epochs, began at 4
    assert scheduler.T_i == 8 and scheduler.T_cur == pytest.approx(1.5)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.1 * (1 + math.cos(math.pi * 1.5 / 8)) / 2)


@pytest.mark.parametrize(
    "act, error, message",
    [
        (lambda o: lr_scheduler.StepLR([1], 2), TypeError, "needs an optimizer, not list"),
        (lambda o: lr_scheduler.StepLR(o, 2, last_epoch=3), KeyError, "has no 'initial_lr'"),
        (lambda o: lr_scheduler.LambdaLR(o, [inverse]), ValueError, "one value, or 2, one for each group; you gave 1"),
        (lambda o: lr_scheduler.ConstantLR(o, factor=2), ValueError, "factor must be between 0 and 1"),
        (lambda o: lr_scheduler.LinearLR(o, start_factor=0), ValueError, "start_factor must be above 0"),
        (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 0), ValueError, "T_0 must be a positive integer"),
        (lambda o: lr_scheduler.CyclicLR(o, 0.1, 0.2, mode="up"), ValueError, "mode must be"),
        (lambda o: lr_scheduler.OneCycleLR(o, 0.1), ValueError, "needs total_steps, or both"),
        (lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=0), ValueError, "positive integer"),
        (lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=9, pct_start=2), ValueError, "pct_start"),
        (lambda o: lr_scheduler.ReduceLROnPlateau(o, factor=1.0), ValueError, "factor must be below 1"),
        (lambda o: lr_scheduler.ReduceLROnPlateau(o, mode="up"), ValueError, "mode must be"),
        (lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.StepLR(o, 2)], [3]), ValueError, "need 0 milestones"),
        (lambda o: lr_scheduler.ChainedScheduler([]), ValueError, "at least one"),
        (lambda o: lr_scheduler.CyclicLR(optim.Adagrad(o.param_groups), 0.1, 0.2), ValueError, "no momentum to cycle"),
    ],
)
def test_misuse_is_told(act, error, message):
    optimizer, _ = make_optimizers()
    with pytest.raises(error, match=message):
        act(optimizer)


def test_one_cycle_ends():
    optimizer, _ = make_optimizers()
    scheduler = lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=2)
    optimizer.step()
    scheduler.step()
    scheduler.step()
    with pytest.raises(ValueError, match=r"step 3.*OneCycleLR.*2"):
        scheduler.step()


@pytest.mark.parametrize(
    "make",
    [
        lambda optimizer: lr_scheduler.StepLR(optimizer, 1, gamma=0.5),
        lambda optimizer: lr_scheduler.CyclicLR(optimizer, 0.25, 1.0, step_size_up=2),
        lambda optimizer: lr_scheduler.SequentialLR(
            optimizer, [lr_scheduler.ConstantLR(optimizer, 0.5), lr_scheduler.StepLR(optimizer, 1)], [2]
        ),
    ],
)
def test_a_tensor_as_rate_is_filled(make):
    rates = {}
    for kind in (float, tensor):
        rate = kind(0.25)
        optimizer = optim.SGD([tensor([1.0], requires_grad=True)], lr=rate)
        scheduler = make(optimizer)
        rates[kind] = []
        for _ in range(4):
            optimizer.step()
            scheduler.step()
            rates[kind].append(float(optimizer.param_groups[0]["lr"]))
    assert optimizer.param_groups[0]["lr"] is rate
    np.testing.assert_allclose(rates[tensor], rates[float], rtol=1e-6)

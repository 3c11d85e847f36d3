"""Conditions of a replay: the key of a plan, and what else must be as it was recorded."""

import cProfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
import telegrad as tg
from helpers.compiled import array, bits
from telegrad import nn, optim


def _tensor(*shape, seed=0, **options):
    return tg.tensor(array(*shape, seed=seed), **options)


@pytest.mark.parametrize(
    "arguments",
    [
        lambda call: [_tensor(3 + call % 2)],
        lambda call: [_tensor(3).to("float64" if call % 2 else "float32")],
        lambda call: [_tensor(3, 3) if call % 2 else _tensor(3, 3).t()],
        lambda call: [_tensor(3, requires_grad=bool(call % 2))],
        lambda call: [_tensor(3), call % 2],
        lambda call: [_tensor(3), 2.0 if call % 2 else 2],
        lambda call: [_tensor(3), [1.0, None, "a"] if call % 2 else {"b": (1,)}],
    ],
    ids=["shape", "dtype", "strides", "requires_grad", "number", "kind of number", "structure"],
)
def test_calls_of_other_kinds_have_other_plans(sides, arguments):
    def scaled(x, factor=1.0):
        return x * factor if isinstance(factor, (int, float)) else x + len(factor)

    sides.run(lambda: (scaled, list, arguments), 10)
    assert sides.replays() == 6 and not sides.reasons()


def test_grad_mode_and_default_dtype_are_part_of_the_key():
    weight = _tensor(3, requires_grad=True)
    compiled = tg.compile(lambda: weight * 2)
    for _ in range(4):
        assert compiled().requires_grad
        with tg.no_grad():
            assert not compiled().requires_grad


class _Config:
    scale = 2.0


@dataclass
class _Slotted:
    __slots__ = ("scale",)
    scale: float


def _changes():
    config = {"scale": 2.0}

    def from_dictionary(x):
        return x * config["scale"]

    def change_dictionary(value):
        config["scale"] = value

    scale = 2.0

    def from_variable(x):
        return x * scale

    def change_variable(value):
        nonlocal scale
        scale = value

    module = nn.Sequential(nn.Linear(3, 3), nn.LeakyReLU())

    def change_module(value):
        module[1].negative_slope = value

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = 2.0

        def forward(self, x):
            return x * self.scale

    scaled = Scaled()

    def change_attribute(value):
        scaled.scale = value

    last = [None]

    def from_class(x):
        return x * _Config.scale

    def change_class(value):
        _Config.scale = value

    slotted = _Slotted(2.0)

    def from_slot(x):
        return x * slotted.scale

    def change_slot(value):
        slotted.scale = value

    class Doubled(nn.Module):
        def forward(self, x):
            return x * 2

    doubled = Doubled()

    def change_method(value):
        if value > 1 and "scale" not in vars(Doubled):
            Doubled.scale = value
            Doubled.forward = lambda self, x: x * 3

    def change_parameter(value):
        if last[0] != value:
            module[0].weight = nn.Parameter(_tensor(3, 3) * value)
        last[0] = value

    def change_memory(value):
        if last[0] != value:
            module[0].weight.data = _tensor(3, 3) * value
        last[0] = value

    return {
        "dictionary": (from_dictionary, change_dictionary),
        "variable": (from_variable, change_variable),
        "option of a module": (module, change_module),
        "attribute of a class": (from_class, change_class),
        "slot": (from_slot, change_slot),
        "method": (doubled, change_method),
        "attribute": (scaled, change_attribute),
        "parameter": (module, change_parameter),
        "memory of a parameter": (module, change_memory),
    }


@pytest.mark.parametrize("name", _changes())
def test_what_the_function_reads_may_change_between_calls(sides, name):
    def make():
        function, change = _changes()[name]
        tg.manual_seed(0)
        if isinstance(function, nn.Module):
            for parameter in function.parameters():
                nn.init.constant_(parameter, 0.1)

        def arguments(call):
            change(0.5 + call // 4)
            return [_tensor(2, 3, seed=call)]

        return function, list, arguments

    sides.run(make, 12)
    assert sides.replays() >= 4 and not sides.reasons()


def test_a_parameter_of_another_shape(sides):
    def make():
        module = nn.Linear(3, 2, bias=False)
        nn.init.constant_(module.weight, 0.1)

        def arguments(call):
            if call == 4:
                module.weight.data = _tensor(5, 3)
            return [_tensor(2, 3, seed=call)]

        return module, list, arguments

    sides.run(make, 8)
    assert sides.replays() == 4


def test_training_mode_and_frozen_parameters(sides):
    def make():
        module = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
        nn.init.constant_(module[0].weight, 0.1)
        nn.init.constant_(module[0].bias, 0.1)

        def arguments(call):
            module.train(call % 2 == 0)
            module[0].requires_grad_(call % 8 > 3)
            return [_tensor(2, 3, seed=call)]

        return module, list, arguments

    sides.run(make, 16)
    assert sides.replays() == 8 and not sides.reasons()


def test_a_scheduler_changes_the_learning_rate_outside(sides):
    def make():
        weight = _tensor(3, requires_grad=True)
        optimizer = optim.SGD([weight], lr=0.1, momentum=0.9)
        scheduler = optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

        def step(x):
            optimizer.zero_grad()
            (weight * x).sum().backward()
            optimizer.step()

        def arguments(call):
            if call:
                scheduler.step()
            return [_tensor(3, seed=call)]

        return step, lambda: [weight], arguments

    sides.run(make, 8)
    assert sides.replays() == 6 and not sides.reasons()


def test_the_least_recently_used_plans_are_dropped():
    compiled = tg.compile(lambda x, factor: x * factor)
    with pytest.warns(UserWarning, match="more than 64 ways") as caught:
        for factor in range(80):
            compiled(tg.ones(2), factor)
    assert len(caught) == 1 and len(compiled._entries) == 64


def test_other_threads_and_watchers_do_not_disturb():
    compiled = tg.compile(lambda x: x.tanh())
    x = _tensor(3)
    expected = bits(x.tanh())
    for _ in range(3):
        compiled(x)
    with tg.profiler.profile() as profiled:
        result = compiled(x)
    assert bits(result) == expected
    assert [event.name for event in profiled.function_events] == ["aten::tanh"]


def test_a_call_is_replayed_while_another_thread_records():
    entered, gate = threading.Event(), threading.Event()

    def slow(x):
        entered.set()
        assert gate.wait(60)
        return x * 2

    compiled = tg.compile(lambda x: x.tanh())
    x = _tensor(3)
    for _ in range(3):
        compiled(x)
    with ThreadPoolExecutor(1) as pool:
        recorded = pool.submit(tg.compile(slow), x)
        assert entered.wait(60)
        result = compiled(x)
        gate.set()
    assert bits(result) == bits(x.tanh()) and compiled.plans()[0].replays == 2
    assert bits(recorded.result()) == bits(x * 2)


def _trained(seed):
    """Return the parameters of a small network after some compiled steps."""
    weight = _tensor(4, 4, seed=seed, requires_grad=True)
    optimizer = optim.Adam([weight], lr=0.1)

    @tg.compile
    def step(x):
        optimizer.zero_grad()
        (x @ weight).tanh().square().sum().backward()
        optimizer.step()

    for call in range(6):
        step(_tensor(2, 4, seed=call))
    return bits(weight.detach())


def test_threads_record_their_own_steps_at_the_same_time():
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(_trained, range(12))) == [_trained(seed) for seed in range(12)]


def test_a_global_of_the_name_of_a_method_is_the_function_itself(sides):
    names = {"optim": optim, "weight": _tensor(3, requires_grad=True)}
    names["optimizer"] = optim.SGD([names["weight"]], lr=0.1)
    exec("def step(x):\n    (weight * x).sum().backward()\n    optimizer.step()", names)
    names["step"] = compiled = tg.compile(names["step"])
    for call in range(5):
        compiled(_tensor(3, seed=call))
    (entry,) = compiled._entries.values()
    assert entry.plans[0].replays == 3


def test_sparse_arguments_and_hooks_of_arguments(sides):
    compiled = tg.compile(lambda x: (x * 2).sum().backward())
    x = _tensor(3, requires_grad=True)
    for _ in range(3):
        compiled(x)
    before, seen = x.grad.clone(), []
    x.register_hook(seen.append)
    compiled(x)
    assert len(seen) == 1 and (x.grad - before).tolist() == [2, 2, 2]
    sparse = tg.tensor([0.0, 1.0]).to_sparse()
    assert tg.compile(lambda x: x.to_dense())(sparse).tolist() == [0, 1]


@pytest.mark.parametrize("name", ["numpyro", "telegrad_models", "telegrad.examples.mine"])
def test_functions_of_packages_with_names_like_ours_are_searched(name):
    def make():
        options = {"scale": 2.0}
        names = {"__name__": name, "options": options}
        exec("def function(x):\n    return x * options['scale']\n", names)
        return names["function"], options

    (eager, one), (function, other) = make(), make()
    function = tg.compile(function)
    for call in range(7):
        if call == 4:
            one["scale"] = other["scale"] = 3.0
        assert eager(tg.ones(2)).equal(function(tg.ones(2)))


def test_cprofile_stays_active():
    function = tg.compile(lambda x: x * 2)
    profile = cProfile.Profile()
    with profile:
        for _ in range(4):
            function(tg.ones(2))
        len([])
    assert any("built-in method builtins.len" in str(entry.code) for entry in profile.getstats())

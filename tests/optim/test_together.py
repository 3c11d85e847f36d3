"""Small parameters that are stepped as one flat array: the bits of a step for each, and states that stay the user's."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import telegrad as tg
from telegrad.optim import together
from telegrad.optim.together import Together

SHAPES = [(3,), (4, 5), (), (70, 80), (1, 2, 3), (64, 64), (7,)]  # one is too large to be copied
OPTIMIZERS: dict[str, tuple[type, dict[str, Any]]] = {
    "Adam": (tg.optim.Adam, {}),
    "Adam, amsgrad": (tg.optim.Adam, {"amsgrad": True, "weight_decay": 0.1, "maximize": True}),
    "AdamW": (tg.optim.AdamW, {}),
    "Adagrad": (tg.optim.Adagrad, {"lr_decay": 0.1}),
    "RMSprop": (tg.optim.RMSprop, {"centered": True, "momentum": 0.9}),
    "Adadelta": (tg.optim.Adadelta, {}),
    "Adamax": (tg.optim.Adamax, {}),
    "NAdam": (tg.optim.NAdam, {}),
    "RAdam": (tg.optim.RAdam, {"weight_decay": 0.1}),
    "ASGD": (tg.optim.ASGD, {"lambd": 0.1, "t0": 2}),
    "Rprop": (tg.optim.Rprop, {}),
}


@pytest.fixture
def flat_steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of parameters in each step of flat arrays."""
    found: list[int] = []
    step = together.Flat.step

    def counted(self: Any, items: Any, *args: Any) -> None:
        found.append(len(items))
        step(self, items, *args)

    monkeypatch.setattr(together.Flat, "step", counted)
    return found


def parameters(seed: int = 0) -> list[tg.Tensor]:
    generator = np.random.default_rng(seed)
    return [tg.nn.Parameter(tg.tensor(generator.normal(size=shape).astype(np.float32))) for shape in SHAPES]


def give_gradients(params: list[tg.Tensor], seed: int) -> None:
    generator = np.random.default_rng(seed)
    for each in params:
        each.grad = tg.tensor(generator.normal(size=each.shape).astype(np.float32))


def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Together, "can_step", staticmethod(lambda count, update: False))


def both_ways(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run a loop's body as users do, and once more with a step for each parameter."""
    yield
    one_by_one(monkeypatch)
    yield


def bits(tensors: Any) -> list[bytes]:
    return [each.detach().numpy().tobytes() for each in tensors]


def states(opt: Any) -> list[Any]:
    return [
        {name: entry.numpy().tobytes() if isinstance(entry, tg.Tensor) else entry for name, entry in state.items()}
        for state in opt.state.values()
    ]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_bits_are_those_of_a_step_for_each(
    name: str, monkeypatch: pytest.MonkeyPatch, flat_steps: list[int]
) -> None:
    kind, options = OPTIMIZERS[name]
    results = []
    for _ in both_ways(monkeypatch):
        params = parameters()
        opt = kind(params, **options)
        for step in range(5):
            give_gradients(params, step)
            opt.step()
        results.append((bits(params), states(opt)))
    assert results[0] == results[1]
    assert flat_steps == [len(SHAPES) - 1] * 5


def test_what_a_step_for_each_needs_stays_out(flat_steps: list[int]) -> None:
    """A sparse gradient, a complex parameter, another dtype, and a view of other memory."""
    params = [
        *parameters(),
        tg.nn.Parameter(tg.ones(3, dtype=tg.complex64)),
        tg.nn.Parameter(tg.ones(3, dtype=tg.float64)),
    ]
    params.append(tg.ones(4, 4)[1:].detach().requires_grad_())
    opt = tg.optim.Adagrad(params)
    for each in params:
        each.grad = tg.ones(each.shape, dtype=each.dtype)
    params[1].grad = tg.ones(4, 5).to_sparse()
    before = bits(params)
    opt.step()
    assert flat_steps == [len(SHAPES) - 2]
    assert all(now != former for now, former in zip(bits(params), before))


def test_tensors_in_one_memory_are_stepped_one_after_the_other(flat_steps: list[int]) -> None:
    first = tg.nn.Parameter(tg.ones(3))
    second = first.detach().requires_grad_()
    params = [first, second, *parameters()]
    opt = tg.optim.Adam(params, lr=0.1)
    for each in params:
        each.grad = tg.ones(each.shape)
    opt.step()
    assert np.allclose(first.detach().numpy(), 0.8)  # both have moved it


def test_parameters_keep_their_memory() -> None:
    params = parameters()
    opt = tg.optim.Adam(params)
    arrays, seen = [each.detach().numpy() for each in params], params[0].detach()
    give_gradients(params, 1)
    opt.step()
    assert all(np.shares_memory(array, each.detach().numpy()) for array, each in zip(arrays, params))
    assert seen.equal(params[0].detach())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda opt: pickle.loads(pickle.dumps(opt))])
def test_a_copy_goes_on_by_itself(copied: Any) -> None:
    opt = tg.optim.Adam(parameters())
    give_gradients(opt.param_groups[0]["params"], 1)
    opt.step()
    other = copied(opt)
    mine, its = opt.param_groups[0]["params"], other.param_groups[0]["params"]
    give_gradients(mine, 2)
    opt.step()
    assert states(opt) != states(other)
    give_gradients(its, 2)
    other.step()
    assert states(opt) == states(other)
    assert bits(mine) == bits(its)


def test_a_loaded_state_is_gathered_again(flat_steps: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for _ in both_ways(monkeypatch):
        params = parameters()
        opt = tg.optim.Adam(params)
        give_gradients(params, 1)
        opt.step()
        saved = copy.deepcopy(opt.state_dict())
        file = io.BytesIO()
        tg.save(opt.state_dict(), file)
        file.seek(0)
        opt.step()
        opt.load_state_dict(tg.load(file))
        assert states(opt) == [
            {name: entry.numpy().tobytes() if isinstance(entry, tg.Tensor) else entry for name, entry in state.items()}
            for state in saved["state"].values()
        ]
        opt.step()
        results.append((bits(params), states(opt)))
    assert results[0] == results[1]
    assert len(flat_steps) == 3


def test_changed_entries_of_a_state_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries that a program sets, or writes to, between steps; and views of them that it holds."""
    results = []
    for _ in both_ways(monkeypatch):
        params = parameters()
        opt = tg.optim.Adam(params)
        for step in range(6):
            give_gradients(params, step)
            state = opt.state[params[1]]
            if step == 1:
                state["exp_avg"].mul_(2)
                held, tensor = state["exp_avg"].numpy(), state["exp_avg"]
            if step == 2:
                state["exp_avg"] = tensor * 3
            if step == 3:
                state["step"] = 40
            if step == 4:
                del opt.state[params[0]]
            opt.step()
        results.append((bits(params), states(opt), held.tobytes(), bits([tensor])))
    assert results[0] == results[1]


def test_gradients_that_come_and_go(monkeypatch: pytest.MonkeyPatch, flat_steps: list[int]) -> None:
    results = []
    for _ in both_ways(monkeypatch):
        params = parameters()
        opt = tg.optim.Adam(params)
        for step in range(30):
            give_gradients(params, step)
            if step % 2:
                params[0].grad = None
            opt.step()
        results.append((bits(params), states(opt)))
    assert results[0] == results[1]


def test_a_subclass_with_an_update_of_its_own_is_asked_for_each(flat_steps: list[int]) -> None:
    class Normed(tg.optim.Adam):
        def update(self, value: Any, grad: Any, state: Any, group: Any) -> None:
            super().update(value, grad / np.abs(grad).max(), state, group)

    opt = Normed(parameters())
    give_gradients(opt.param_groups[0]["params"], 1)
    opt.step()
    assert flat_steps == []


def test_another_thread_that_steps_is_not_waited_for() -> None:
    opt = tg.optim.Adam(parameters())
    params = opt.param_groups[0]["params"]
    give_gradients(params, 1)
    opt.step()
    opt._together[0]._lock.acquire()
    opt.step()
    assert [state["step"] for state in opt.state.values()] == [2] * len(SHAPES)


def test_a_compiled_step_has_the_same_bits(flat_steps: list[int]) -> None:
    results = []
    for compiled in (False, True):
        tg.manual_seed(0)
        net = tg.nn.Sequential(tg.nn.Linear(4, 8), tg.nn.Tanh(), tg.nn.Linear(8, 3))
        opt = tg.optim.Adam(net.parameters(), lr=0.01)

        def step(x: tg.Tensor, net: Any = net, opt: Any = opt) -> tg.Tensor:
            opt.zero_grad()
            loss = (net(x) ** 2).sum()
            loss.backward()
            opt.step()
            return loss.detach()

        run = tg.compile(step) if compiled else step
        losses = [run(tg.ones(2, 4) * number) for number in range(6)]
        results.append((bits(losses), bits(net.parameters()), states(opt)))
    assert results[0] == results[1]
    assert flat_steps == [4] * 12

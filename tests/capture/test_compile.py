"""``tg.compile``: replays give what eager calls give, bit by bit, and what leaves a replay is the caller's."""

import threading

import numpy as np
import pytest
import telegrad as tg
from helpers.compiled import array, bits
from telegrad import nn, optim
from telegrad.nn import functional as F


def _nothing():
    return []


def _chain(x):
    y = x
    for _ in range(20):
        y = (y * 1.01).tanh()
    y.sum().backward()


def test_a_function_with_its_backward(sides):
    def make():
        x = tg.tensor(array(8, 8), requires_grad=True)
        return _chain, lambda: [x], lambda call: [x]

    sides.run(make)
    assert sides.replays() == 4 and not sides.reasons()


@pytest.mark.parametrize("result", ["loss", "detached", "none"])
@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_a_whole_step(sides, kind, result):
    def make():
        net = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))
        optimizer = getattr(optim, kind)(net.parameters(), lr=0.1)

        def step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            return {"loss": loss, "detached": loss.detach(), "none": None}[result]

        return step, lambda: list(net.parameters()), lambda call: [tg.randn(4, 6), tg.randint(0, 3, (4,))]

    sides.run(make, 5)
    assert sides.replays() == 3 and not sides.reasons()


def test_a_module_whose_result_is_differentiated_outside():
    logs, modules = [], []
    for compiled in (False, True):
        tg.manual_seed(0)
        net = nn.Sequential(
            nn.Conv2d(1, 3, 3),
            nn.BatchNorm2d(3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Dropout(0.3),
            nn.Linear(12, 4),
        )
        optimizer = optim.Adam(net.parameters(), lr=0.01)
        modules.append(tg.compile(net) if compiled else net)
        log = []
        for _ in range(6):
            optimizer.zero_grad()
            result = modules[-1](tg.randn(4, 1, 6, 6))
            result.square().sum().backward()
            optimizer.step()
            log += [bits(result.detach()), bits(list(net.parameters())), bits(net.state_dict())]
        logs.append(log)
    assert logs[0] == logs[1]
    (entry,) = modules[1]._entries.values()
    assert entry.plans[0].replays == 4


def test_a_method_and_a_decorator_with_options(sides):
    class Trainer:
        def __init__(self):
            self.weight = tg.tensor(array(3), requires_grad=True)

        @tg.compile(explain=False)
        def loss(self, x):
            """Return the loss."""
            return (self.weight * x).sum()

    trainer = Trainer()
    results = [trainer.loss(tg.ones(3)) for _ in range(4)]
    assert Trainer.loss.__doc__ == "Return the loss."
    assert len({bits(each)[3] for each in results}) == 1
    results[-1].backward()
    assert trainer.weight.grad.tolist() == [1, 1, 1]


def test_what_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match="compile\\(\\) takes a function or a module, not int"):
        tg.compile(3)


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: x, (3,)),
        (lambda x: x[1:], (3,)),
        (lambda x: (x * 2, x.reshape(3, 1)), (3,)),
        (lambda x: {"a": x * 2, "b": [x + 1, None, 3]}, (3,)),
        (lambda x: x + tg.tensor([1.0, 2.0, 3.0]), (3,)),
        (lambda x: x + tg.randn(3), (3,)),
        (lambda x: F.dropout(x, 0.5), (4, 5)),
        (lambda x: (x * 2).add_(1).mul_(x), (3,)),
        (lambda x: x / 0 - (-x).log(), (3,)),
        (lambda x: x.double().mean(), (3, 4)),
        (lambda x: x.sum(0).t(), (3, 4)),
    ],
    ids="same view results containers constant random dropout changed infinite double transposed".split(),
)
def test_kinds_of_results(sides, function, shape):
    sides.run(lambda: (function, _nothing, lambda call: [tg.tensor(array(*shape, seed=call))]))
    assert sides.replays() == 4 and not sides.reasons()


def test_a_tensor_under_two_names_is_one():
    weight = tg.tensor(array(3), requires_grad=True)

    @tg.compile
    def run(x):
        y, z = (weight * x).tanh(), x.exp()
        return {"y": y, "all": [y, z, z.detach()]}, z

    for call in range(4):
        found, other = run(tg.tensor(array(3, seed=call)))
        y, z, detached = found["all"]
        assert found["y"] is y and other is z and detached is not z
        weight.grad = None
        (y + found["y"]).sum().backward()
        assert weight.grad.shape == (3,)
    assert run.plans()[0].replays == 2


def test_gradients_that_are_removed(sides):
    def make():
        weight = tg.tensor(array(3), requires_grad=True)

        def run(x):
            weight.grad = None
            (weight * x).sum().backward()

        return run, lambda: [weight], lambda call: [tg.tensor(array(3, seed=call))]

    sides.run(make)
    assert sides.replays() == 4 and not sides.reasons()


def test_results_and_gradients_are_the_callers():
    weight = tg.tensor(array(300, 300), requires_grad=True)

    optimizer = optim.SGD([weight], lr=0.0)

    @tg.compile
    def trained(x):
        optimizer.zero_grad()
        y = (x * weight).tanh()
        y.sum().backward()
        return y.detach(), y.detach()[0]

    kept = []
    for call in range(6):
        x = tg.tensor(array(300, 300, seed=call))
        y, row = trained(x)
        kept.append((y, row, weight.grad, bits(y), bits(row), bits(weight.grad)))
    for y, row, grad, *former in kept:
        assert [bits(y), bits(row), bits(grad)] == former


def test_replays_that_wait_for_their_backward_do_not_share_memory():
    weight = tg.tensor(array(5, 5), requires_grad=True)
    compiled = tg.compile(lambda x: (x @ weight).tanh().exp())
    inputs = [tg.tensor(array(5, 5, seed=each), requires_grad=True) for each in range(6)]
    results = [compiled(x).sum() for x in inputs]
    for result in reversed(results):
        result.backward()
    found = [x.grad.numpy() for x in inputs]
    for x, gradient in zip(inputs, found):
        other = x.detach().requires_grad_()
        (other @ weight).tanh().exp().sum().backward()
        assert (other.grad.numpy() == gradient).all()


def test_a_graph_is_freed_kept_and_checked_as_in_eager_mode():
    weight = tg.tensor(array(3), requires_grad=True)
    compiled = tg.compile(lambda x: (x * weight).tanh())
    for _ in range(3):
        result = compiled(tg.ones(3)).sum()
    result.backward(retain_graph=True)
    first = weight.grad.clone()
    result.backward()
    assert (weight.grad == 2 * first).all()
    with pytest.raises(tg.errors.AutogradError, match="retain_graph=True"):
        result.backward()
    x = tg.ones(3, requires_grad=True)
    result = [compiled(x).sum() for _ in range(3)][-1]
    with tg.no_grad():
        weight.mul_(2)
    with pytest.raises(tg.errors.AutogradError, match="modified in place"):
        result.backward()
    with pytest.raises(tg.errors.AutogradError, match="cannot be differentiated"):
        tg.autograd.grad(compiled(tg.ones(3)).sum(), weight, create_graph=True)


def changed_argument(x, v, average, part, optimizer):
    y = (v * x).tanh()
    x.mul_(0.5)
    return y


def changed_tensor(x, v, average, part, optimizer):
    y = (v * average).tanh()
    average.mul_(0.5).add_(x)
    return y


def changed_view(x, v, average, part, optimizer):
    y = (v * average).tanh()
    part.add_(1)
    return y


def stepped(x, v, average, part, optimizer):
    y = (v * v * x).tanh()
    y.sum().backward(retain_graph=True)
    optimizer.step()
    return y


def changed_before(x, v, average, part, optimizer):
    average.mul_(0.5).add_(x)
    return (v * average).tanh()


@pytest.mark.parametrize("function", [changed_argument, changed_tensor, changed_view, stepped, changed_before])
def test_a_value_that_the_call_changes_after_its_use_gives_no_gradient(function):
    logs = []
    for compiled in (False, True):
        v, average, log = tg.tensor(array(3), requires_grad=True), tg.tensor(array(3)), []
        part, optimizer = average[1:], optim.SGD([v], lr=0.1)
        call = tg.compile(function) if compiled else function
        for number in range(5):
            result = call(tg.ones(3) * (number + 1), v, average, part, optimizer)
            try:
                result.sum().backward()
            except tg.errors.AutogradError as error:
                log.append("in place" in str(error))
            log.append(bits([result, v, average]))
        logs.append(log)
    assert logs[0] == logs[1]
    assert (True in logs[0]) != (function is changed_before)
    assert [plan.replays for plan in call.plans()] == [3]


def test_tensors_from_outside_are_changed_in_place(sides):
    def make():
        average = tg.tensor(array(3))

        def update(x):
            x.mul_(2)
            average.mul_(0.9).add_(x)
            return average * 2

        seen = []

        def arguments(call):
            seen.append(tg.tensor(array(3, seed=call)))
            return seen[-1:]

        return update, lambda: [average, seen], arguments

    sides.run(make)
    assert sides.replays() == 4 and not sides.reasons()


def test_a_compiled_function_is_an_argument():
    net, doubled = tg.compile(nn.Linear(3, 3)), tg.compile(lambda x: x * 2)
    run = tg.compile(lambda function, x: function(x).sum())
    for _ in range(2):
        for function in (net, doubled):
            for _ in range(4):
                assert run(function, tg.ones(2, 3)).item() == function.__wrapped__(tg.ones(2, 3)).sum().item()
    assert [plan.replays for plan in run.plans()] == [6, 6]


def test_arguments_that_share_memory(sides):
    def make():
        whole = tg.tensor(array(4))

        def run(a, b):
            c = a * 2
            b.mul_(3)
            return a + b + c

        return run, lambda: [whole], lambda call: [whole[1:], whole[:3]] if call % 3 else [whole, whole]

    sides.run(make, 9)
    assert sides.replays()


def test_an_error_in_a_replay_is_that_of_an_eager_call():
    compiled = tg.compile(lambda x, index: x[index] * 2)
    x = tg.tensor(array(3))
    for _ in range(3):
        compiled(x, tg.tensor([0, 1]))
    with pytest.raises(IndexError, match=r"getitem\(\).*index 7"):
        compiled(x, tg.tensor([0, 7]))
    assert compiled(x, tg.tensor([2, 1])).tolist() == (x[[2, 1]] * 2).tolist()


def test_an_error_in_a_step_leaves_the_next_call_right(sides):
    weight = tg.tensor(array(3, 2), requires_grad=True)
    optimizer = optim.SGD([weight], lr=0.1)

    @tg.compile
    def step(x, target):
        optimizer.zero_grad()
        loss = F.cross_entropy(x @ weight, target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    x, good, bad = tg.tensor(array(4, 3)), tg.tensor([0, 1, 1, 0]), tg.tensor([0, 1, 9, 0])
    for _ in range(3):
        step(x, good)
    before = bits(weight.detach())
    with pytest.raises(IndexError):
        step(x, bad)
    assert bits(weight.detach()) == before
    other = weight.detach().clone().requires_grad_()
    F.cross_entropy(x @ other, good).backward()
    step(x, good)
    assert (weight.grad.numpy() == other.grad.numpy()).all()


def test_threads_at_once():
    weight = tg.tensor(array(40, 40))
    compiled = tg.compile(lambda x: ((x @ weight).tanh() @ weight).sigmoid())
    inputs = [tg.tensor(array(40, 40, seed=each)) for each in range(4)]
    expected = [((x @ weight).tanh() @ weight).sigmoid().numpy() for x in inputs]
    failures = []

    def run(place):
        results = [compiled(inputs[place]).numpy() for _ in range(30)]
        failures.extend(place for each in results if not np.array_equal(each, expected[place]))

    threads = [threading.Thread(target=run, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_compiled_functions_that_call_each_other(sides):
    inner = tg.compile(lambda x: x * 3)
    sides.run(lambda: (lambda x: inner(x) + 1, _nothing, lambda call: [tg.tensor(array(3, seed=call))]))
    assert sides.replays() == 4


def test_explanations(capsys):
    compiled = tg.compile(lambda x: F.dropout(x.tanh() * 2, 0.5), explain=True)
    for _ in range(3):
        compiled(tg.ones(5))
    text = compiled.explain()
    assert "1 replays" in text and "dropout as a whole: it draws random numbers" in text and "bytes" in text
    assert "dropout" in capsys.readouterr().out


@pytest.mark.parametrize("clip", ["norm", "norm returned", "inf", "value", "one", "generator"])
def test_gradients_are_clipped(sides, clip):
    def make():
        net = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))
        optimizer = optim.Adam(net.parameters(), lr=0.1)
        weights = list(net.parameters())

        def step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x) * 5, y)
            loss.backward()
            if clip == "value":
                nn.utils.clip_grad_value_(weights, 0.01)
            elif clip == "one":
                nn.utils.clip_grad_norm_(weights[0], 0.02)
            else:
                given = net.parameters() if clip == "generator" else weights
                norm = nn.utils.clip_grad_norm_(given, 0.1, float("inf") if clip == "inf" else 2.0)
            optimizer.step()
            return (loss.detach(), norm * 2, norm) if clip == "norm returned" else loss.detach()

        return step, lambda: weights, lambda call: [tg.randn(4, 6), tg.randint(0, 3, (4,))]

    sides.run(make, 6)
    assert sides.replays() == 4 and not sides.reasons()

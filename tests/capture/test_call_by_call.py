"""Operations that are usual in training are recorded call by call; and what a first call makes is found by the next."""

import pytest
import telegrad as tg
from helpers.compiled import array
from telegrad import nn
from telegrad.nn import functional as F

ROWS = tg.tensor([1, 0, 3, 1])
OTHER = tg.tensor(array(4, 5, seed=1))


CASES = {
    "norm": lambda w: w.norm(),
    "norm of rows": lambda w: tg.linalg.vector_norm(w, 3, dim=1),
    "cosine_similarity": lambda w: F.cosine_similarity(w, OTHER),
    "embedding": lambda w: F.embedding(ROWS, w),
    "nll_loss": lambda w: F.nll_loss(w.log_softmax(-1), ROWS),
    "with_logits": lambda w: F.binary_cross_entropy_with_logits(w, tg.ones(4, 5)),
    "softplus": lambda w: F.softplus(w * 30),
    "mish": F.mish,
    "pad": lambda w: F.pad(w, (1, 2), value=0.5),
    "zeros": lambda w: w + tg.zeros(4, 5) + tg.arange(5) + tg.tensor([1.0]) + tg.full((5,), -0.0),
}


@pytest.mark.parametrize("name", CASES)
def test_operations_are_recorded_call_by_call(sides, name):
    def make():
        weight = tg.tensor(array(4, 5), requires_grad=True)

        def run(x):
            weight.grad = None
            result = CASES[name](weight * x)
            result.square().sum().backward()
            return result.detach()

        return run, lambda: [weight.grad], lambda call: [tg.tensor(array(5, seed=call))]

    sides.run(make)
    assert sides.reasons() == []
    (plan,) = sides.compiled.plans()
    assert plan.replays == 4
    assert plan.whole == []


def test_constants_of_a_replay_are_the_callers(sides):
    def run(x):
        return tg.zeros(3), tg.tensor([1.0, 2.0]), x * 2

    def make():
        return run, list, lambda call: [tg.tensor(array(3, seed=call))]

    sides.run(make)
    first, second, _ = sides.compiled(tg.ones(3))
    first.add_(1)
    second.add_(1)
    assert [each.tolist() for each in sides.compiled(tg.ones(3))[:2]] == [[0.0] * 3, [1.0, 2.0]]


def test_indices_of_an_embedding_may_be_others_in_each_call(sides):
    def make():
        weight = tg.tensor(array(4, 5), requires_grad=True)

        def run(rows):
            weight.grad = None
            F.embedding(rows, weight).square().sum().backward()

        return run, lambda: [weight.grad], lambda call: [tg.tensor([call % 4, 3, 3 - call % 2])]

    sides.run(make)
    assert sides.replays() == 4
    with pytest.raises(IndexError, match="row 4, outside"):
        sides.compiled(tg.tensor([0, 4, 1]))


@pytest.mark.parametrize("make", [lambda: nn.LazyLinear(4), lambda: nn.LazyBatchNorm1d()])
def test_modules_with_lazy_parameters_are_recorded_from_the_second_call_on(sides, make):
    def program():
        module = make()
        return module, list, lambda call: [tg.tensor(array(3, 5, seed=call))]

    sides.run(program)
    assert sides.reasons() == []
    assert sides.replays() == 3


def test_what_fails_in_the_first_call_and_again_is_said_once(sides):
    sides.run(lambda: (lambda x: x * float(x.numpy().sum()), list, lambda call: [tg.ones(3)]))
    assert sides.replays() == 0
    assert len(sides.reasons()) == 1

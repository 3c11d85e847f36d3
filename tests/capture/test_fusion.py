"""Chains of element-wise calls that run block by block: same bits, less memory, nothing else is divided."""

import numpy as np
import pytest
import telegrad as tg
from telegrad.capture import fusion
from telegrad.capture.blocks import Blocks
from telegrad.capture.limits import LIMITS
from telegrad.tools.compiled_programs.program import check
from telegrad.tools.compiled_programs.tiny import tiny_limits

ROWS = 96  # of 128 numbers: several blocks of 4 KiB, and one that is shorter


@pytest.fixture
def small_blocks(monkeypatch):
    """Make blocks of 5 KiB, so that small arrays have several."""
    monkeypatch.setattr(LIMITS, "block", 5 << 10)
    monkeypatch.setattr(LIMITS, "chain", 8 << 10)


def chains(compiled):
    """Return the chains of the plans of a compiled function."""
    plans = [plan for entry in compiled._entries.values() for plan in entry.plans]
    return [each for plan in plans for each in plan.source.statements if isinstance(each, Blocks)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", sorted(fusion.EXACT | fusion.ROUNDED, key=lambda each: each.__name__))
def test_blocks_have_the_bits_of_the_whole(function, dtype):
    if not any(kinds.startswith(np.dtype(dtype).char) for kinds in function.types):
        dtype = np.int32
    random = np.random.default_rng(0)
    operands = [(random.standard_normal(5000) * scale).astype(dtype) for scale in (3, 50)][: function.nin]
    if dtype is not np.int32:
        for operand in operands:
            operand[random.integers(0, 5000, 200)] = random.choice(
                [0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e-40], 200
            )
    with np.errstate(all="ignore"):
        whole = function(*operands)
        for step in (64, 128, 1024, 4032):
            parts = [function(*[each[start : start + step] for each in operands]) for start in range(0, 5000, step)]
            assert np.concatenate(parts).tobytes() == whole.tobytes(), step


@pytest.mark.parametrize("shape", [(), (1,), (128,), (1, 1), (ROWS, 1), (1, 128), (ROWS, 128)])
def test_operands_of_all_shapes(sides, small_blocks, shape):
    def make():
        x, other = tg.randn(ROWS, 128, requires_grad=True), tg.randn(*shape, requires_grad=True)

        def run(x):
            y = (x * 1.01 + other).relu() - other / 3
            z = (y.tanh() * y).exp() - x
            (z * z).sum().backward()
            return y.detach()

        return run, lambda: [x, other], lambda call: [x]

    sides.run(make)
    assert sides.replays() == 4 and len(chains(sides.compiled)) >= 2


@pytest.mark.parametrize("rows", [1, 2, 3, 64])
def test_images_and_single_rows(sides, small_blocks, rows):
    def make():
        x, scale = tg.randn(rows, 3, 40, 40), tg.randn(1, 3, 1, 1)
        return lambda x: ((x * scale + 1).relu() * 2 - x).abs(), list, lambda call: [x + call]

    sides.run(make)
    assert sides.replays() == 4 and len(chains(sides.compiled)) >= (rows > 1)


def test_an_array_is_changed_while_others_read_it(sides, small_blocks):
    def make():
        def run(x):
            y = x * 2 + 1
            shifted = y[1:] - y[:-1]  # views of what the chain has written
            y.mul_(3).add_(x).relu_()
            return y, shifted, y.t() + 1, (y + y.flip(0)) * 2, y.sum()

        return run, list, lambda call: [tg.randn(ROWS, ROWS) + call]

    sides.run(make)
    assert sides.replays() == 4 and chains(sides.compiled)


def test_results_of_a_chain_are_the_callers(small_blocks):
    @tg.compile
    def run(x):
        y = x * 2
        return y, (y + 1).relu() * y

    x = tg.randn(ROWS, 128)
    for _ in range(2):
        run(x)
    first = run(x)
    kept = [each.clone() for each in first]
    run(x + 1)
    assert all((one == other).all() for one, other in zip(first, kept))


def test_what_only_the_chain_uses_has_memory_for_a_block(small_blocks):
    compiled = tg.compile(lambda x: ((x * 2 + 1).relu() - x).exp().sum())
    x = tg.randn(400, 128)
    for _ in range(3):
        compiled(x)
    (plan,) = next(iter(compiled._entries.values())).plans
    assert plan.memory < 1.5 * x.numpy().nbytes  # the operand of the sum
    assert "chain of 5 calls in 40 blocks of 1,280 elements: multiply, add, clip, subtract, ..." in compiled.explain()


@pytest.mark.parametrize("layout", ["expanded", "transposed", "cut", "in order"])
def test_the_gradient_of_a_result_has_any_layout(small_blocks, layout):
    gradients = {
        "expanded": lambda: tg.ones(1).expand(ROWS, 128),
        "transposed": lambda: tg.randn(128, ROWS).t(),
        "cut": lambda: tg.randn(ROWS, 130)[:, 1:129],
        "in order": lambda: tg.randn(ROWS, 128),
    }

    def make():
        x = tg.randn(ROWS, 128, requires_grad=True)
        return lambda: ((x * 2).tanh() + x * x) / 3, lambda: [x], lambda call: []

    kept = []
    for compiled in (False, True):
        tg.manual_seed(0)
        function, state, _ = make()
        function = tg.compile(function) if compiled else function
        for _ in range(5):
            function().backward(gradients[layout]())
        kept.append([each.grad.numpy().tobytes() for each in state()])
    assert kept[0] == kept[1]


def test_sums_are_not_divided(sides, small_blocks):
    def make():
        x = tg.randn(4, 5000)
        return lambda x: (x * 3 + 1).sum(-1), list, lambda call: [x + call]

    sides.run(make)
    assert all(part.function in fusion.EXACT for each in chains(sides.compiled) for part in each.parts)


def test_random_programs_in_tiny_blocks():
    with tiny_limits():
        assert not [seed for seed in range(300, 325) if check(seed).problem]

"""``blockwise``: large arrays are computed block by block, with the bits of the whole."""

import numpy as np
import pytest
import telegrad as tg
from telegrad.core.extend import blockwise
from telegrad.core.ops.special.single_error_arrays import normal_share

SIZE = 300_001


def test_blocks_have_the_bits_of_the_whole_array():
    x = np.random.default_rng(0).standard_normal(SIZE).astype(np.float32)
    assert normal_share(x).tobytes() == normal_share.__wrapped__(x).tobytes()


def test_arrays_of_other_shapes_and_layouts_are_computed_as_a_whole():
    lengths = []

    @blockwise
    def sums(x, y):
        lengths.append(x.size)
        return x + y

    x = np.ones((3, SIZE), np.float32)
    for given in ((x, x[:1]), (x[:, ::2], x[:, ::2]), (x[0, :100], x[0, :100])):
        assert np.array_equal(sums(*given), given[0] + given[1])
    assert lengths == [x.size, x[:, ::2].size, 100]
    lengths.clear()
    assert sums(x, x).shape == x.shape
    assert sum(lengths) == x.size and len(lengths) > 3


@pytest.mark.parametrize("name", ["hardswish", "gelu", "relu"])
def test_a_replay_has_the_bits_of_blocks(name):
    function = getattr(tg.nn.functional, name)
    x = tg.tensor(np.random.default_rng(0).standard_normal(SIZE).astype(np.float32) * 3, requires_grad=True)

    def step(x):
        result = function(x)
        result.backward(tg.ones_like(result))
        return result.detach()

    compiled, found = tg.compile(step), set()
    for call in (step, compiled, compiled, compiled):
        x.grad = None
        found.add((call(x).numpy().tobytes(), x.grad.numpy().tobytes()))
    assert len(found) == 1 and "replays" in compiled.explain()

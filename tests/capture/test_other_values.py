"""Replays with other elements than those that were recorded: repeated indices, other masks, classes out of range."""

import pytest
import telegrad as tg
from telegrad.nn import functional

ROWS, COLUMNS = 4, 3
FIRST, TWICE, EQUAL = [0, 1], [2, 2], [1, 1]
WIDE = [[[0, 1, 2], [1, 2, 3]], [[1, 1, 1], [1, 1, 1]]]
CASES = {
    "x[i]": (lambda x, i: x[i], [FIRST, TWICE, [-1, 3], [0, 9]]),
    "x[:, i]": (lambda x, i: x[:, i], [FIRST, TWICE]),
    "x[i, i]": (lambda x, i: x[i, i], [FIRST, TWICE]),
    "x[1, i]": (lambda x, i: x[1, i], [FIRST, TWICE]),
    "mask": (lambda x, i: x[i > 0], [[0, 1, 0, 1], [1, 1, 0, 0], [1, 1, 1, 0]]),
    "index_select": (lambda x, i: x.index_select(0, i), [FIRST, TWICE]),
    "gather": (lambda x, i: x.gather(0, i), WIDE),
    "take": (lambda x, i: x.take(i), [FIRST, TWICE]),
    "embedding": (lambda x, i: functional.embedding(i, x, padding_idx=1), [FIRST, TWICE, EQUAL]),
    "embedding_bag": (lambda x, i: functional.embedding_bag(i.reshape(1, 2), x), [FIRST, TWICE]),
    "index_add": (lambda x, i: tg.zeros(ROWS, COLUMNS).index_add(0, i, x), [[0, 1, 2, 3], [2, 2, 0, 0]]),
    "index_copy": (lambda x, i: tg.zeros(ROWS, COLUMNS).index_copy(0, i, x[:2]), [FIRST, TWICE]),
    "index_put": (lambda x, i: tg.zeros(ROWS, COLUMNS).index_put((i,), x[:2]), [FIRST, TWICE]),
    "accumulate": (lambda x, i: tg.zeros(ROWS, COLUMNS).index_put((i,), x[:2], accumulate=True), [FIRST, TWICE]),
    "scatter": (lambda x, i: tg.zeros(ROWS, COLUMNS).scatter(0, i, x), WIDE),
    "scatter_add": (lambda x, i: tg.zeros(ROWS, COLUMNS).scatter_add(0, i, x), WIDE),
    "prod": (lambda x, i: tg.ones(ROWS, COLUMNS).scatter_reduce(0, i, x, "prod"), WIDE),
    "amax": (lambda x, i: tg.ones(ROWS, COLUMNS).scatter_reduce(0, i, x, "amax"), WIDE),
    "cross_entropy": (functional.cross_entropy, [[0, 1, 2, 0], [2, 2, 1, 1], [0, -100, 1, 2], [0, 5, 1, 1]]),
    "power": (lambda x, i: x.detach().long() ** i, [[0, 1, 2], [2, 2, 1], [0, -1, 2]]),
    "one_hot": (lambda x, i: functional.one_hot(i, 3) * x, [[0, 1, 2, 0], [0, 3, 1, 2]]),
    "masked_select": (lambda x, i: x.masked_select(i > 1), [[0, 1, 2], [2, 2, 1], [3, 3, 3]]),
    "repeat_interleave": (lambda x, i: x.repeat_interleave(i, 0), [[0, 1, 2, 0], [2, 0, 0, 1], [1, 1, 1, 1]]),
    "unique": (lambda x, i: tg.unique(i), [[0, 1, 2, 0], [2, 0, 0, 1], [1, 1, 1, 1]]),
    "where": (lambda x, i: tg.where(i > 1, x, x * 2), [[0, 1, 2], [2, 2, 1]]),
    "sort": (lambda x, i: (x * (i - 1)).sort(0).values, [[0, 1, 2], [2, 0, 1]]),
    "zeros of a product": (lambda x, i: (x * i).prod(0), [[1, 1, 2], [2, 0, 1]]),
    "zeros of cumprod": (lambda x, i: (x * i).cumprod(0), [[1, 1, 2], [2, 0, 1]]),
    "zero norm": (lambda x, i: (x * i).norm(dim=0), [[1, 1, 2], [2, 0, 1]]),
}


def outcome(function, index):
    x = (tg.arange(float(ROWS * COLUMNS)).reshape(ROWS, COLUMNS) + 0.5).requires_grad_()
    try:
        result = function(x, tg.tensor(index))
        if result.requires_grad:
            result.sum().backward()
    except (RuntimeError, IndexError, ValueError) as error:
        return type(error), str(error)
    return result.detach().numpy().tobytes(), None if x.grad is None else x.grad.numpy().tobytes()


@pytest.mark.filterwarnings("ignore:.*runs eagerly")
@pytest.mark.parametrize("name", CASES)
def test_a_replay_depends_on_elements_as_the_function_does(name):
    function, indices = CASES[name]
    compiled = tg.compile(function)
    for index in indices:
        assert outcome(compiled, index) == outcome(function, index)

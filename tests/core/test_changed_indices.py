"""Indices, masks and targets that are changed in place between the passes: an error that names the operation."""

from __future__ import annotations

import numpy as np
import pytest
import telegrad as tg
from telegrad.base.errors import AutogradError

F = tg.nn.functional


def numbers(*values):
    return lambda: tg.tensor(values)


def written(x, index):
    """A copy of ``x`` with ones at the index."""
    copy = x.clone()
    copy[index] = 1.0
    return copy


MASK = numbers([True, False, True], [False, True, True], [True, True, False])
SQUARE = numbers([0, 1, 2], [2, 1, 0], [1, 1, 1])
ROWS = numbers(2, 0, 1)
USES = {
    "gather": (SQUARE, lambda x, index: x.gather(1, index)),
    "take": (SQUARE, lambda x, index: x.take(index)),
    "index_select": (ROWS, lambda x, index: x.index_select(0, index)),
    "index_add": (ROWS, lambda x, index: tg.zeros(3, 3).index_add(0, index, x)),
    "index_copy": (ROWS, lambda x, index: tg.zeros(3, 3).index_copy(0, index, x)),
    "index_fill": (ROWS, lambda x, index: x.index_fill(0, index[:1], 0.0)),
    "index_put": (ROWS, lambda x, index: x.index_put((index,), tg.ones(3))),
    "scatter": (SQUARE, lambda x, index: x.scatter(1, index, 0.0)),
    "scatter_add": (SQUARE, lambda x, index: tg.zeros(3, 3).scatter_add(1, index, x)),
    "getitem": (ROWS, lambda x, index: x[:, index]),
    "getitem of a mask": (MASK, lambda x, mask: x[mask]),
    "setitem": (ROWS, written),
    "where": (MASK, lambda x, mask: tg.where(mask, x, 0.0)),
    "masked_fill": (MASK, lambda x, mask: x.masked_fill(mask, 0.0)),
    "masked_select": (MASK, lambda x, mask: x.masked_select(mask)),
    "masked_scatter": (MASK, lambda x, mask: x.masked_scatter(mask, tg.ones(9))),
    "masked.softmax": (MASK, lambda x, mask: tg.masked.softmax(x, 1, mask=mask)),
    "embedding": (ROWS, lambda x, index: F.embedding(index, x)),
    "embedding, padded": (ROWS, lambda x, index: F.embedding(index, x, padding_idx=0)),
    "nll_loss": (ROWS, lambda x, target: F.nll_loss(x, target)),
    "cross_entropy": (ROWS, lambda x, target: F.cross_entropy(x, target)),
    "max_unpool1d": (SQUARE, lambda x, index: F.max_unpool1d(x, index, 2)),
}


@pytest.mark.parametrize("use", USES)
def test_changed_before_the_backward_pass(use):
    make, operation = USES[use]
    x, index = tg.rand(3, 3, requires_grad=True), make()
    result = operation(x, index).sum()
    index.zero_()
    with pytest.raises(AutogradError, match=r"\w+Backward needs an index, mask or target .* was modified in place"):
        result.backward()


@pytest.mark.parametrize("name", ["max", "min", "sort", "topk", "median", "mode", "kthvalue", "cummax", "cummin"])
def test_changed_results(name):
    x = tg.rand(3, 3, requires_grad=True)
    values, indices = getattr(x, name)(*([2, 1] if name in ("topk", "kthvalue") else [1]))
    indices.zero_()
    with pytest.raises(AutogradError, match="modified in place"):
        values.sum().backward()


def test_changed_before_the_second_backward_pass():
    x, index = tg.rand(3, requires_grad=True), tg.tensor([2, 0])
    (first,) = tg.autograd.grad((x[index] ** 3).sum(), x, create_graph=True)
    index.zero_()
    with pytest.raises(AutogradError, match="modified in place"):
        first.sum().backward()


def test_a_target_of_which_the_loss_keeps_a_copy():
    x, target = tg.tensor([[3.0, 2.0, 1.0]], requires_grad=True), tg.tensor([2])
    loss = F.multi_margin_loss(x, target)
    target.zero_()
    loss.backward()
    assert x.grad.argmin().item() == 2


def test_changed_afterwards():
    x, index = tg.rand(3, 3, requires_grad=True), tg.tensor([2, 0])
    x[index].sum().backward()
    index.zero_()
    assert x.grad.sum(1).tolist() == [3, 0, 3]


@pytest.mark.parametrize("read", [lambda x, index: x[index], lambda x, index: x[:, index], lambda x, index: x[[index]]])
@pytest.mark.parametrize(("index", "later"), [([0, 2], 1), ([True, False, True], False)])
def test_numpy_arrays_are_copied_as_their_changes_are_not_noticed(read, index, later):
    grads = []
    for change in (True, False):
        x, array = tg.ones(3, 3, requires_grad=True), np.array(index)
        y = read(x, array)
        if change:
            array[...] = later
        y.sum().backward()
        grads.append(x.grad.tolist())
    assert grads[0] == grads[1]


def test_a_numpy_array_changed_after_a_write():
    x, values, array = tg.ones(3, requires_grad=True), tg.ones(2, requires_grad=True), np.array([0, 1])
    copy = x * 1
    copy[array] = values
    array[...] = 2
    copy.sum().backward()
    assert x.grad.tolist() == [0, 0, 1] and values.grad.tolist() == [1, 1]

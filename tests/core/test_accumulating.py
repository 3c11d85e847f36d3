"""Adding to ``.grad``: nothing is lost when several threads do, and no lock is held while a tensor operation runs."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import telegrad as tg
from telegrad.core.autograd.accumulate import accumulate_grad
from telegrad.core.autograd.leaf_gradient import lend

SOON = 60


class Asks(tg.Tensor):
    """Its operations let another thread do something, and wait for it."""

    ask = staticmethod(lambda: None)

    @classmethod
    def __tensor_function__(cls, func, types, args, kwargs):
        thread = threading.Thread(target=cls.ask)
        thread.start()
        thread.join(SOON)
        assert not thread.is_alive(), "deadlock"
        return super().__tensor_function__(func, types, args, kwargs)


def asking(ask):
    return type("Asking", (Asks,), {"ask": staticmethod(ask)})


def backward_over(leaf):
    (leaf * 1.0).sum().backward()


def test_a_tensor_operation_that_adds_runs_without_a_lock():
    """As in a recorded pass: gradients are tensors, maybe of a user's class."""
    leaf, other = tg.ones(3, requires_grad=True), tg.ones(3, requires_grad=True)
    kind = asking(lambda: (backward_over(other), other.grad))
    for _ in range(3):
        accumulate_grad(leaf, tg.ones(3).as_subclass(kind))
    assert leaf.grad.tolist() == [3.0, 3.0, 3.0]
    assert other.grad.tolist() == [2.0, 2.0, 2.0]  # once for each sum; the first gradient needs none


def test_a_gradient_that_is_added_during_a_sum_is_not_lost():
    leaf, late = tg.ones(3, requires_grad=True), [1]
    kind = asking(lambda: late and late.pop() and backward_over(leaf))
    accumulate_grad(leaf, tg.ones(3).as_subclass(kind))
    accumulate_grad(leaf, tg.ones(3).as_subclass(kind))
    assert not late
    assert leaf.grad.tolist() == [3.0, 3.0, 3.0]


def test_arrays_and_sparse_gradients_add_up():
    leaf = tg.zeros(3, requires_grad=True)
    accumulate_grad(leaf, np.ones(3, leaf.dtype))
    accumulate_grad(leaf, tg.sparse_coo_tensor([[0]], [1.0], (3,)))
    accumulate_grad(leaf, np.ones(3, leaf.dtype))
    assert leaf.grad.tolist() == [3.0, 2.0, 2.0]


@pytest.mark.parametrize("looks", [False, True])
def test_passes_in_many_threads_add_up(looks):
    leaf = tg.ones(1000, requires_grad=True)
    go = threading.Barrier(4)

    def work():
        go.wait(SOON)
        for _ in range(100):
            backward_over(leaf)
            assert not looks or leaf.grad is not None

    with ThreadPoolExecutor(4) as pool:
        for each in [pool.submit(work) for _ in range(4)]:
            each.result(SOON)
    assert leaf.grad.tolist() == [400.0] * 1000


def test_a_gradient_that_somebody_holds_changes():
    leaf = tg.ones(2, requires_grad=True)
    backward_over(leaf)
    grad = leaf.grad
    backward_over(leaf)
    assert leaf.grad is grad and grad.tolist() == [2.0, 2.0]


class Dies:
    """Runs a pass from another thread when it dies."""

    def __init__(self, leaf):
        self.leaf = leaf

    def __del__(self):
        thread = threading.Thread(target=backward_over, args=(self.leaf,))
        thread.start()
        thread.join(SOON)
        assert not thread.is_alive(), "deadlock"


def test_what_is_replaced_dies_without_a_lock():
    leaf, other = tg.ones(2, requires_grad=True), tg.ones(2, requires_grad=True)
    leaf.grad = tg.ones(2)
    leaf.grad.note = Dies(other)
    accumulate_grad(leaf, tg.ones(2))
    assert leaf.grad.tolist() == [2.0, 2.0]
    assert other.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("size", [4, 1 << 13])
@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x,
        lambda x: x + 0,
        lambda x: -x,
        lambda x: x.reshape(2, -1),
        lambda x: x.flip(0),
        lambda x: x.double(),
        lambda x: x[1:],
        lambda x: x.expand(3, -1).sum(0),
        lambda x: x.reshape(-1, 2).sum(1),
        lambda x: x.clone().reshape(2, -1).t(),
    ],
)
def test_a_program_may_change_the_gradient_that_it_gave(operation, size):
    leaf = tg.ones(size, requires_grad=True)
    result = operation(leaf)
    given = tg.ones(result.shape, dtype=result.dtype)
    operation(leaf).backward(given.clone())
    wanted, leaf.grad = leaf.grad.tolist(), None
    result.backward(given)
    given.fill_(7)
    assert leaf.grad.tolist() == wanted
    leaf.grad.fill_(2)
    assert given.unique().tolist() == [7]


def test_a_large_gradient_that_a_program_gave_is_not_copied():
    given = np.ones(1 << 13)
    assert np.shares_memory(lend(given, given.dtype), given) and given.flags.writeable
    assert not np.shares_memory(lend(given[:4], given.dtype), given)


def test_a_program_may_change_the_memory_that_it_expanded_a_gradient_from():
    leaf, one = tg.ones(1 << 13, requires_grad=True), tg.ones(1)
    leaf.reshape(2, -1).backward(one.expand(2, 1 << 12))
    one.fill_(7)
    assert leaf.grad.unique().tolist() == [1]


def _doubled():
    class Doubled(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            return gradient.mul_(2)

    return Doubled.apply


def _hooked(x):
    x.register_hook(lambda gradient: gradient.mul_(2))
    return x.clone()


def _hooked_behind(x):
    result = x * 1
    result.grad_fn.register_prehook(lambda gradients: gradients[0].mul_(2))
    return result.reshape(2, -1)


@pytest.mark.parametrize("size", [4, 1 << 13])
@pytest.mark.parametrize("operation", [_doubled(), _hooked, _hooked_behind])
def test_a_programs_functions_may_change_a_gradient_in_place(operation, size):
    leaf = tg.ones(size, requires_grad=True)
    result = operation(leaf.reshape(-1))
    given = tg.ones(result.shape)
    result.backward(given)
    assert leaf.grad.unique().tolist() == [2] and given.unique().tolist() == [1]


def test_a_hook_may_keep_a_gradient_that_a_program_changes_later():
    leaf, given, kept = tg.ones(1 << 13, requires_grad=True), tg.ones(1 << 13), []
    result = leaf * 1
    result.register_hook(kept.append)
    result.backward(given)
    given.fill_(7)
    assert kept[0].unique().tolist() == [1]

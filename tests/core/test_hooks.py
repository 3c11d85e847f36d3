"""Hooks on tensors, on nodes before and after, and on leaves after accumulation."""

from __future__ import annotations

import copy
import pickle

import pytest
import telegrad.core as tg
from telegrad.base.errors import AutogradError
from telegrad.core.autograd import grad
from telegrad.core.extend import HookTable, gradient_edge


def leaf():
    return tg.ones(2, requires_grad=True)


@pytest.mark.parametrize("is_leaf", [True, False])
@pytest.mark.parametrize(
    ("hook", "factor"),
    [(lambda g: None, 1), (lambda g: g * 10, 10), (lambda g: g.detach(), 1)],
    ids=["none", "new", "same"],
)
def test_a_tensor_hook_sees_and_may_replace_the_gradient(is_leaf, hook, factor):
    a = leaf()
    y = a * 3
    seen = []
    tensor = a if is_leaf else y
    tensor.register_hook(lambda g: seen.append(g.tolist()))
    tensor.register_hook(hook)
    (y * 2).sum().backward()
    assert seen == [[6, 6] if is_leaf else [2, 2]]
    assert a.grad.tolist() == [6 * factor] * 2


def test_hooks_run_in_order_and_handles_remove_them():
    a = leaf()
    order = []
    first = a.register_hook(lambda g: order.append("first"))
    with a.register_hook(lambda g: order.append("second")):
        a.sum().backward()
    first.remove()
    first.remove()
    a.sum().backward()
    assert order == ["first", "second"]


def test_a_hook_may_remove_itself_and_others_while_hooks_run():
    a = leaf()
    order, handles = [], []

    def removes():
        order.append("remover")
        for handle in handles:
            handle.remove()

    handles.append(a.register_hook(lambda g: removes()))
    handles.append(a.register_hook(lambda g: order.append("removed")))
    a.register_hook(lambda g: order.append("stays"))
    a.sum().backward()
    a.sum().backward()
    assert order == ["remover", "stays", "stays"]


def test_hooks_on_one_of_several_outputs():
    a = tg.ones(4, requires_grad=True)

    class Halves(tg.Function):
        @staticmethod
        def forward(ctx, x):
            return x[:2] * 1, x[2:] * 1

        @staticmethod
        def backward(ctx, first, second):
            return tg.cat([first, second])

    first, second = Halves.apply(a)
    second.register_hook(lambda g: g * 7)
    (first.sum() + second.sum()).backward()
    assert a.grad.tolist() == [1, 1, 7, 7]


def test_node_hooks_before_and_after():
    a = leaf()
    y = a * 3
    calls = []
    y.grad_fn.register_prehook(lambda outputs: calls.append(("before", outputs[0].tolist())))
    y.grad_fn.register_prehook(lambda outputs: (outputs[0] * 2,))
    y.grad_fn.register_hook(lambda inputs, outputs: calls.append(("after", inputs[0].tolist(), outputs[0].tolist())))
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] + 1, *inputs[1:]))
    y.sum().backward()
    assert calls == [("before", [1, 1]), ("after", [6, 6], [2, 2])]
    assert a.grad.tolist() == [7, 7]


def test_node_hooks_get_none_for_missing_gradients():
    a = leaf()
    seen = []

    class Two(tg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, first, second):
            assert second is None
            return first

    first, second = Two.apply(a)
    first.grad_fn.register_prehook(lambda outputs: seen.append(outputs[1]))
    second.register_hook(lambda g: seen.append("never"))
    first.sum().backward()
    assert seen == [None]


def test_hooks_that_return_nonsense_are_named():
    a = leaf()
    y = a * 2
    y.register_hook(lambda g: 3)
    with pytest.raises(TypeError, match="must return a tensor or None, not int"):
        y.sum().backward()
    z = a * 2
    z.register_hook(lambda g: g.sum())
    with pytest.raises(AutogradError, match="gradient of shape"):
        z.sum().backward()
    w = a * 2
    w.grad_fn.register_prehook(lambda outputs: ())
    with pytest.raises(AutogradError, match="a prehook of MulBackward returned 0 gradients"):
        w.sum().backward()


def test_hooks_need_a_gradient_to_wait_for():
    with pytest.raises(AutogradError, match="would never be called"):
        tg.ones(2).register_hook(print)
    with pytest.raises(AutogradError, match="no gradient to retain"):
        tg.ones(2).retain_grad()
    with pytest.raises(AutogradError, match="only a leaf"):
        (leaf() * 2).register_post_accumulate_grad_hook(print)


def test_retain_grad():
    a = leaf()
    y = a * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 5)
    assert y.retains_grad and not a.retains_grad
    a.retain_grad()
    (y * 3).sum().backward()
    assert y.grad.tolist() == [15, 15] and a.grad.tolist() == [30, 30]


def test_post_accumulate_hook_sees_the_sum():
    a = leaf()
    seen = []
    handle = a.register_post_accumulate_grad_hook(lambda tensor: seen.append((tensor is a, tensor.grad.tolist())))
    a.sum().backward()
    a.sum().backward()
    handle.remove()
    a.sum().backward()
    assert seen == [(True, [1, 1]), (True, [2, 2])]


def test_hooks_run_in_grad_too():
    a = leaf()
    a.register_hook(lambda g: g * 2)
    y = a * 3
    y.register_hook(lambda g: g * 5)
    by_a, by_y = grad(y.sum(), [a, y])
    assert by_a.tolist() == [30, 30] and by_y.tolist() == [5, 5]


def test_hooks_in_a_recorded_pass_are_differentiable():
    a = tg.tensor([2.0], dtype=tg.float64, requires_grad=True)
    y = a * a
    y.register_hook(lambda g: g * a)
    (gradient,) = grad(y.sum(), a, create_graph=True)  # 2a * a
    assert gradient.item() == 8 and grad(gradient, a)[0].item() == 8


def test_what_a_hook_returns_stays_its_own():
    a = leaf()
    mine = tg.ones(2) * 4
    a.register_hook(lambda g: mine)
    a.sum().backward()
    mine.zero_()
    assert a.grad.tolist() == [4, 4]


def test_hooks_behind_a_leaf_get_its_gradient_as_a_tensor():
    a = tg.ones(2, requires_grad=True)
    node, seen = gradient_edge(a)[0], []
    node.register_hook(lambda inputs, outputs: seen.append((inputs, outputs[0].tolist())))
    (a * 3).sum().backward()
    assert seen == [((), [3, 3])]


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_copied_handle_removes_the_hook_of_the_copy(duplicate):
    table = HookTable()
    handle = table.add(print)
    table.add(len)
    alone = duplicate(handle)
    alone.remove()  # its table is gone
    others, other = duplicate((table, handle))
    other.remove()
    assert list(others.values()) == [len] and list(table.values()) == [print, len]
    handle.remove()
    assert list(table.values()) == [len]


def test_a_hook_that_knows_its_handle_can_be_copied_with_it():
    class Once:
        def __call__(self, *_):
            self.handle.remove()

    table, once = HookTable(), Once()
    once.handle = table.add(once)
    again = copy.deepcopy(once)
    assert again.handle.id == once.handle.id and again.handle is not once.handle


def test_a_hook_does_not_replace_one_that_came_from_another_process():
    number = HookTable().add(print).id
    table = HookTable({number + 1: len, number + 2: print})
    added = table.add(repr)
    assert list(table.values()) == [len, print, repr] and added.id not in (number + 1, number + 2)

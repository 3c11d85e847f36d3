"""In-place operations, assignment, views: values, histories and versions."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import telegrad.core as tg
from helpers.views import is_view_of
from telegrad.base.errors import AutogradError
from telegrad.core.autograd import grad, gradcheck, gradgradcheck
from telegrad.testing import count

RANDOM = np.random.default_rng(11)


def leaf(*shape):
    return tg.tensor(RANDOM.uniform(0.5, 1.5, shape), requires_grad=True)


def check(function, *inputs):
    gradcheck(function, inputs)
    gradgradcheck(function, inputs)


PROGRAMS = {
    "add_": lambda a, b: (a * 2).add_(b),
    "mul_ then use": lambda a, b: (a + b).mul_(3.0).exp(),
    "chain": lambda a, b: (a * 1).sub_(b).div_(4.0).tanh_().neg_(),
    "operators": lambda a, b: _operators(a, b),
    "setitem": lambda a, b: _set(a * 2, 0, b[0]),
    "setitem slice": lambda a, b: _set(a * 2, (slice(None), slice(0, 2)), b[:, 1:3]),
    "setitem broadcast": lambda a, b: _set(a * 2, slice(None), b[0]),
    "setitem number": lambda a, b: _set(a * b, 1, 5.0),
    "setitem list": lambda a, b: _set(a * 2, [1, 0], b),
    "setitem mask": lambda a, b: _set(a * 2, a.detach() > 1, 0.0),
    "setitem into constants": lambda a, b: _set(_set(tg.zeros(2, 3, dtype=tg.float64), 0, a[1]), 1, b[0]),
    "through a view": lambda a, b: _through_view(a, b),
    "through a view of a view": lambda a, b: _through_views(a, b),
    "siblings": lambda a, b: _siblings(a, b),
    "view made before": lambda a, b: _view_before(a, b),
    "copy_": lambda a, b: (a * 2).copy_(b * 3),
    "copy_ row": lambda a, b: (a * 2).copy_(b[0]),
    "copy_ constants into a row": lambda a, b: _constant_row(a * b),
    "fill and zero": lambda a, b: _fills(a * b),
    "clamp_": lambda a, b: (a * b).clamp_(0.7, 1.4),
    "masked_fill_": lambda a, b: (a * b).masked_fill_(a.detach() > 1, 2.0),
    "squared in place": lambda a, b: _squared(a * b),
    "pow_": lambda a, b: (a * 1).pow_(b),
    "relu_": lambda a, b: (a - b).relu_(),
    "rows of a buffer": lambda a, b: _rows(a, b),
}


def _operators(a, b):
    y = a * 1
    y += b
    y -= 1
    y *= 2
    y /= b
    return y


def _squared(y):
    return y.mul_(y)


def _set(target, index, value):
    target[index] = value
    return target


def _through_view(a, b):
    y = a * 2
    y[0].mul_(b[1])
    return y.exp()


def _through_views(a, b):
    y = a * 2
    row = y.view(6)[1:5]
    row.view(2, 2)[:, 1].add_(b[0, :2])
    return y * row.sum()


def _siblings(a, b):
    y = a * 2
    top, all_of_it = y[0], y.reshape(3, 2)
    top *= b[0]
    return all_of_it * y.reshape(3, 2) + top.sum()


def _view_before(a, b):
    buffer = tg.zeros(2, 3, dtype=tg.float64)
    early = buffer[0]
    buffer.copy_(a * b)
    return early * 2


def _constant_row(y):
    y[0].copy_(tg.ones(3, dtype=tg.float64))
    return y


def _fills(y):
    y[0].zero_()
    y[1, 1:].fill_(3.0)
    return y


def _rows(a, b):
    buffer = tg.zeros(2, 3, dtype=tg.float64)
    for row, source in zip(buffer, (a, b)):
        row.copy_((source * source).sum(0))
    return buffer


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_of_in_place_programs(name):
    check(PROGRAMS[name], leaf(2, 3), leaf(2, 3))


def test_views_share_memory_and_version():
    a = tg.arange(6.0).reshape(2, 3)
    row, column, flat = a[0], a[:, 1], a.view(6)
    assert row._version == 0
    row.add_(10)
    assert a.tolist() == [[10, 11, 12], [3, 4, 5]] and column.tolist() == [11, 4] and flat[2].item() == 12
    assert row._version == column._version == flat._version == a._version == 1
    assert a.clone()._version == 0 and a.detach()._version == 1 and a.data._version == 0
    element = a[0, 0]
    element.fill_(7)
    assert a[0, 0].item() == 7 and element._base is a.T._base is not None


def test_what_is_a_copy_and_what_a_view():
    a = tg.arange(6.0).reshape(2, 3)
    for view in (
        a[0],
        a[:, 1:],
        a.T,
        a.t(),
        a.reshape(3, 2),
        a.unsqueeze(0),
        a.expand(4, 2, 3),
        a[..., 0],
        a.flatten(),
    ):
        assert is_view_of(view, a)
    for copy in (a[[0, 1]], a[a > 1], a.T.reshape(6), a.clone(), a + 0, a.to(tg.float64)):
        assert not is_view_of(copy, a)
    with pytest.raises(ValueError, match="no such view"):
        a.T.view(6)


def test_modifying_what_was_saved_is_an_error_with_the_way_out():
    a = leaf(3)
    b = a * 1
    y = b.exp()
    y.mul_(2)
    with pytest.raises(AutogradError, match=r"ExpBackward needs its result .* modified in place"):
        y.sum().backward()
    c = a * 1
    z = c.log()
    c[0] = 1.0
    with pytest.raises(AutogradError, match=r"LogBackward needs an input .* at version 0.* at version 1"):
        z.sum().backward()
    d = a * 1
    product = d * a
    d.view(3).add_(1)
    with pytest.raises(AutogradError, match="clone"):
        product.sum().backward()


def test_modifying_what_was_not_needed_is_fine():
    a = leaf(3)
    b = a * 1
    y = b * 3.0 + b
    b.zero_()
    y.sum().backward()
    assert a.grad.tolist() == [4, 4, 4]


def test_leaves_are_protected_while_recording():
    a = leaf(3)
    for change in (
        lambda: a.add_(1),
        lambda: a.__setitem__(0, 1.0),
        lambda: a[0].mul_(2),
        lambda: a.view(3)[1:].zero_(),
        lambda: a.copy_(tg.ones(3)),
        lambda: a.exp_(),
    ):
        with pytest.raises(AutogradError, match="leaf that requires grad"):
            change()
    with tg.no_grad():
        a.add_(1)
        a[0] = 5.0
    assert a[0].item() == 5 and a.is_leaf and a._version == 2


def test_a_failed_in_place_operation_changes_nothing():
    a = tg.ones(2, 3)
    for change, error in (
        (lambda: a.add_(tg.ones(2, 2, 3)), ValueError),
        (lambda: a.mul_(tg.ones(4)), ValueError),
        (lambda: a.__setitem__(0, tg.ones(4)), ValueError),
        (lambda: a.__setitem__(9, 1.0), IndexError),
        (lambda: tg.ones(2, dtype=tg.int64).mul_(1.5), TypeError),
        (lambda: tg.ones(2, dtype=tg.int64).div_(2), TypeError),
        (lambda: tg.ones(2, dtype=tg.int64).__setitem__(0, tg.tensor([1.0, 2.0])), ValueError),
    ):
        with pytest.raises(error):
            change()
    assert a.tolist() == [[1, 1, 1], [1, 1, 1]] and a._version == 0


def test_dtypes_of_in_place_operations():
    a = tg.ones(2)
    a += tg.ones(2, dtype=tg.float64)
    a *= tg.tensor([1, 2])
    assert a.dtype == tg.float32 and a.tolist() == [2, 4]
    counts = tg.zeros(2, dtype=tg.int64)
    counts += 3
    assert counts.tolist() == [3, 3]


def test_replacing_data_leaves_recorded_graphs_alone():
    w = leaf(3)
    old = w.numpy(force=True).copy()
    y = (w * w).sum()
    w.data = tg.zeros(3, dtype=tg.float64)
    w.data = tg.ones(3, dtype=tg.float64)
    assert w.is_leaf and w.requires_grad and w.tolist() == [1, 1, 1]
    (gradient,) = grad(y, w, create_graph=True)
    assert np.allclose(gradient.numpy(force=True), 2 * old)
    y.backward()
    assert np.allclose(w.grad.numpy(), 2 * old)
    with pytest.raises(TypeError, match="data must be a tensor"):
        w.data = np.ones(3)


def test_retain_grad_and_hooks_follow_an_in_place_change():
    a = leaf(2)
    y = a * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.retain_grad()
    y.mul_(3)
    y.sum().backward()
    assert seen == [[3, 3]], "the hook was registered on the value before the change"
    assert y.grad.tolist() == [1, 1] and a.grad.tolist() == [6, 6]


def test_the_list_of_views_does_not_grow_for_ever():
    table = tg.zeros(10, 2)
    for index in range(5000):
        table[index % 10].sum()
    assert len(table._views) < 64


def test_views_made_under_no_grad_stand_outside():
    a = leaf(3) * 1
    with tg.no_grad():
        part = a[:2]
    assert not part.requires_grad and part._base is a and is_view_of(part, a)


@pytest.mark.parametrize("view", [lambda x: x[0], lambda x: x.T, lambda x: x[0][:1], lambda x: x.unbind()[0]])
def test_views_made_under_no_grad_refuse_recorded_writes(view):
    base, weight = tg.zeros(2, 2), tg.ones((), requires_grad=True)
    with tg.no_grad():
        part = view(base)
    part.add_(1)
    with pytest.raises(RuntimeError, match="made under no_grad"):
        part.mul_(weight)
    assert part.detach().numpy().all(), "a refused write changes nothing"
    base.detach()[0].mul_(weight)


def test_gradients_from_outside_do_not_leak_into_what_was_overwritten():
    a = leaf(3)
    y = a * 1
    y[:2].zero_()
    (y * tg.tensor([float("nan"), float("inf"), 2.0])).sum().backward()
    assert a.grad.tolist() == [0, 0, 2]


def test_the_parts_of_complex_numbers_are_changed_in_place():
    z = tg.tensor([1 + 2j, 3 + 1j], requires_grad=True)
    y = z * 1
    y.real.mul_(3)
    (gradient,) = tg.autograd.grad((y.real * y.imag).sum(), z, create_graph=True)
    assert y.tolist() == [3 + 2j, 9 + 1j] and gradient.tolist() == [6 + 3j, 3 + 9j]
    (second,) = tg.autograd.grad((gradient.real * tg.tensor([2.0, 5.0])).sum(), z)
    assert second.tolist() == [6j, 15j], "of 3 * imag, times 2 and 5"


def test_a_single_complex_number_is_changed_through_its_parts():
    z = tg.tensor(1 + 2j, requires_grad=True)
    y = z * 1
    parts = tg.view_as_real(y)
    parts.mul_(2)
    parts.sum().backward()
    assert y.item() == 2 + 4j and parts.tolist() == [2, 4] and z.grad.item() == 2 + 2j


def test_real_numbers_are_changed_as_complex_ones():
    a = tg.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    y = a * 1
    tg.view_as_complex(y.view(2, 2)).mul_(2j)
    (y * tg.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert y.tolist() == [-4, 2, -8, 6] and a.grad.tolist() == [4, -2, 8, -6]


def test_operands_by_name_are_differentiated():
    bound = tg.tensor(1.0, requires_grad=True)
    a = tg.tensor([0.5, 2.0])
    a.clamp_(max=bound)
    assert grad(a.sum(), bound)[0] == 1
    with pytest.raises(AutogradError, match="leaf"):
        tg.ones(2, requires_grad=True).clamp_(max=bound)


def test_gradients_keep_their_dtypes_when_the_result_is_converted():
    other = tg.tensor([3.0], requires_grad=True)
    half = tg.tensor([2.0], dtype=tg.float16)
    half.mul_(other)
    assert half.dtype == tg.float16
    assert grad(half.sum(), other)[0].dtype == tg.float32


@pytest.mark.parametrize("change", [lambda a: a.add_(tg.ones(4)), lambda a: a.mul_(tg.ones(2, 3))])
def test_errors_name_the_operation(change):
    with pytest.raises(ValueError, match=r"^(add|mul)_\(\).*you called (add|mul)_\(float32"):
        change(tg.ones(3))


@pytest.mark.parametrize("factor", (2, -0.3, 0.0, float("nan")))
@pytest.mark.parametrize("dtype", (tg.float16, tg.float32, tg.float64))
def test_a_factor_is_applied_in_place(dtype, factor):
    """With the bits of the sum, in the memory of the tensor, and with the calls of a sum without a factor."""
    given, other = tg.tensor(RANDOM.normal(size=(3, 4)), dtype=dtype), tg.tensor(RANDOM.normal(size=4), dtype=dtype)
    for change, compute in ((tg.Tensor.add_, tg.add), (tg.Tensor.sub_, tg.sub)):
        changed, version = given.clone(), given._version
        memory = changed._array
        assert change(changed, other, alpha=factor) is changed and changed._version == version + 1
        assert changed._array is memory and memory.tobytes() == compute(given, other, alpha=factor)._array.tobytes()
        counted = [count(partial(change, given.clone(), other, **more)) for more in ({}, {"alpha": factor})]
        plain, scaled = [sum(each.python_calls.values()) for each in counted]
        assert scaled <= plain + 2


def test_a_factor_of_what_has_none_is_refused():
    with pytest.raises(TypeError, match="alpha"):
        tg.ones(3).mul_(tg.ones(3), alpha=2)


def test_a_copy_of_what_is_alike_makes_no_view():
    """With the values, versions and errors of other copies."""
    target, source = tg.ones(2, 3), tg.arange(6.0).reshape(2, 3)
    calls = [sum(count(partial(target.copy_, each)).python_calls.values()) for each in (source, source[:1])]
    assert target.copy_(source) is target and target.tolist() == source.tolist() and calls[0] < 0.7 * calls[1]
    assert target.copy_(target.clone().t().contiguous().t()).tolist() == source.tolist()
    recorded = tg.ones(2, 3, requires_grad=True) * 1
    assert recorded.copy_(source).requires_grad and not grad(recorded.sum(), [leaf(1), recorded], allow_unused=True)[0]
    given = tg.ones(2, 3, requires_grad=True)
    assert grad((target.copy_(given) * source).sum(), given)[0].tolist() == source.tolist()
    with pytest.raises(AutogradError, match="leaf"):
        given.copy_(source)

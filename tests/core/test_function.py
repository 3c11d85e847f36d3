"""Custom functions: contexts, marks, saved tensors, and the errors of using them wrongly."""

from __future__ import annotations

import pytest
import telegrad.core as tg
from telegrad.base.errors import AutogradError
from telegrad.core.autograd import grad, gradcheck, gradgradcheck, once_differentiable


class Cube(tg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 3 * x * x


class Exponential(tg.Function):
    """Saves its output."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        ctx.note = "kept"
        return y

    @staticmethod
    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        assert ctx.note == "kept"
        return gradient * y


def leaf(*values):
    return tg.tensor(list(values), dtype=tg.float64, requires_grad=True)


def test_gradients_of_first_and_second_order():
    for function in (Cube, Exponential):
        gradcheck(function.apply, leaf(0.5, 1.5))
        gradgradcheck(function.apply, leaf(0.5, 1.5))


def test_saved_inputs_and_living_outputs_come_back_as_the_same_object():
    seen = []

    class Both(tg.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.save_for_backward(x, None, y)
            return y

        @staticmethod
        def backward(ctx, gradient):
            seen.append(ctx.saved_tensors)
            return gradient * 2

    a = leaf(1.0)
    a.nickname = "alpha"
    y = Both.apply(a)
    node = y.grad_fn
    y.backward()
    ((x, nothing, output),) = seen
    assert x is a and x.nickname == "alpha" and nothing is None and output is y
    with pytest.raises(AutogradError, match="retain_graph=True"):
        node.saved_tensors  # noqa: B018


def test_a_saved_output_that_died_comes_back_on_its_node():
    a = leaf(1.0)
    total = Exponential.apply(a).sum()
    node = total.grad_fn.next_functions[0][0]
    (y,) = node.saved_tensors
    assert y.grad_fn is node and y.requires_grad
    total.backward()


def test_setup_context_and_arguments_that_are_no_tensors():
    class Scale(tg.Function):
        @staticmethod
        def forward(x, factor, name):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            _, ctx.factor, ctx.label = inputs
            assert ctx.needs_input_grad == (True, False, False)

        @staticmethod
        def backward(ctx, gradient):
            return gradient * ctx.factor, None, None

    a = leaf(1.0, 2.0)
    Scale.apply(a, 4.0, "name").sum().backward()
    assert a.grad.tolist() == [4, 4]


def test_needs_input_grad_and_missing_gradients():
    seen = []

    class Product(tg.Function):
        @staticmethod
        def forward(ctx, x, y):
            seen.append(ctx.needs_input_grad)
            ctx.save_for_backward(x, y)
            return x * y, x + y

        @staticmethod
        def backward(ctx, by_product, by_sum):
            _, y = ctx.saved_tensors
            assert by_sum.tolist() == [0], "missing gradients are zeros"
            return by_product * y + by_sum, None

    a = leaf(2.0)
    product, _ = Product.apply(a, leaf(3.0).detach())
    product.backward()
    assert a.grad.item() == 3 and seen == [(True, False)]


def test_non_differentiable_outputs_and_integers():
    class Sort(tg.Function):
        @staticmethod
        def forward(ctx, x):
            order = x.argmax(0, keepdim=True)
            flag = x * 0
            ctx.mark_non_differentiable(flag)
            return x * 1, order, flag, "text"

        @staticmethod
        def backward(ctx, by_x, by_order, by_flag, by_text):
            return by_x

    values, order, flag, text = Sort.apply(leaf(1.0, 2.0))
    assert values.requires_grad and not order.requires_grad and not flag.requires_grad and text == "text"


def test_returning_an_input_gives_an_alias_on_the_node():
    class Same(tg.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 9

    a = leaf(1.0)
    y = Same.apply(a)
    assert y is not a and y.data_ptr() == a.data_ptr() and a.is_leaf
    y.backward()
    assert a.grad.item() == 9


def test_mark_dirty_changes_the_argument_itself():
    class DoubleInPlace(tg.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    a = leaf(1.0)
    b = a * 1
    c = DoubleInPlace.apply(b)
    assert c is b and b.item() == 2
    b.backward()
    assert a.grad.item() == 2
    with pytest.raises(AutogradError, match="leaf that requires grad"):
        DoubleInPlace.apply(leaf(1.0))


def test_nothing_is_recorded_when_nothing_requires_grad():
    assert Cube.apply(tg.ones(2)).is_leaf
    with tg.no_grad():
        assert Cube.apply(leaf(1.0)).is_leaf


def test_modified_and_freed_saved_tensors():
    a = leaf(1.0) * 1
    y = Cube.apply(a)
    a.add_(1)
    with pytest.raises(AutogradError, match="modified in place since"):
        y.backward()
    z = Cube.apply(leaf(1.0))
    z.backward()
    with pytest.raises(AutogradError, match="freed its saved tensors"):
        z.backward()


def test_a_context_that_outlives_its_node_says_so():
    kept = []

    class Keeps(tg.Function):
        @staticmethod
        def forward(ctx, x):
            kept.append(ctx)
            ctx.save_for_backward(x)
            with pytest.raises(AutogradError, match="once forward has returned"):
                ctx.saved_tensors  # noqa: B018
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    a = leaf(1.0)
    y = Keeps.apply(a)
    (ctx,) = kept
    assert ctx.saved_tensors == (a,) and ctx.next_functions[0][0].variable is a and ctx.name() == "KeepsBackward"
    del y
    for use in (
        lambda: ctx.saved_tensors,
        lambda: ctx.next_functions,
        lambda: ctx.register_hook(print),
        lambda: ctx.metadata,
    ):
        with pytest.raises(AutogradError, match="died with the outputs"):
            use()


def test_old_forms_are_refused_with_the_new_one_shown():
    class Old(tg.Function):
        def forward(self, x):
            return x

        def backward(self, gradient):
            return gradient

    with pytest.raises(AutogradError, match=r"Old.forward is not a static method[\s\S]*@staticmethod"):
        Old.apply(leaf(1.0))
    with pytest.raises(AutogradError, match=r"not instantiated[\s\S]*y = Old.apply\(x\)"):
        Old()


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        ((tg.ones(1), tg.ones(1)), AutogradError, "returned 2 gradients, and forward took 1"),
        ((), AutogradError, "returned 0 gradients"),
        (tg.ones(3), AutogradError, r"shape \(3,\) for argument 0, of shape \(2,\)"),
        (3.0, TypeError, "must return tensors and None"),
    ],
)
def test_wrong_gradients_are_named(returned, error, message):
    class Wrong(tg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return returned

    with pytest.raises(error, match=message):
        Wrong.apply(leaf(1.0, 2.0)).sum().backward()


def test_a_gradient_for_something_that_is_no_tensor():
    class Wrong(tg.Function):
        @staticmethod
        def forward(ctx, x, factor):
            return x * factor

        @staticmethod
        def backward(ctx, gradient):
            return gradient, gradient

    with pytest.raises(AutogradError, match="argument 1, which is not a tensor"):
        Wrong.apply(leaf(1.0), 2.0).backward()


def test_a_broadcast_gradient_is_summed():
    class Wide(tg.Function):
        @staticmethod
        def forward(ctx, x):
            return x.expand(3, 2) * 1

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    a = leaf(1.0, 2.0)
    Wide.apply(a).sum().backward()
    assert a.grad.tolist() == [3, 3]


def test_once_differentiable():
    class Once(tg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return gradient * 2 * x

    a = leaf(3.0)
    (gradient,) = grad(Once.apply(a), a, create_graph=True)
    assert gradient.item() == 6
    with pytest.raises(AutogradError, match="marked once_differentiable"):
        gradient.backward()
    with pytest.raises(TypeError, match="saves tensors, not float"):
        tg.autograd.FunctionContext().save_for_backward(1.0)


class Rows(tg.autograd.Function):
    @staticmethod
    def forward(ctx, table, rows):
        ctx.rows, ctx.shape = rows, tuple(table.shape)
        return table[rows]

    @staticmethod
    def backward(ctx, gradient):
        return tg.sparse_coo_tensor(ctx.rows.reshape(1, -1), gradient, ctx.shape), None


def test_a_sparse_gradient_stays_sparse_for_a_leaf_and_is_dense_elsewhere():
    table, rows, dense = (
        tg.ones(4, 2, requires_grad=True),
        tg.tensor([0, 3, 3]),
        [[1.0] * 2, [0.0] * 2, [0.0] * 2, [2.0] * 2],
    )
    Rows.apply(table, rows).sum().backward()
    assert table.grad.is_sparse and table.grad.to_dense().tolist() == dense
    (Rows.apply(table * 2, rows).sum() + table.sum() * 0).backward()
    assert table.grad.tolist() == [[3 * each for each in row] for row in dense]
    (second,) = tg.autograd.grad(Rows.apply(table, rows).pow(2).sum(), table, create_graph=True)
    assert second.to_dense().tolist() == [[2 * each for each in row] for row in dense]

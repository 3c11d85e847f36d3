"""grad, vjp, jvp, Jacobians and Hessians: against formulas and against one another; nested; bad input."""

import numpy as np
import pytest
import telegrad as tg
from telegrad import func
from telegrad.autograd import forward_ad


def cubes(x):
    return (x**3).sum()


@pytest.fixture
def x():
    return tg.tensor([1.0, 2.0, 3.0], dtype=tg.float64)


def same(found, expected):
    np.testing.assert_allclose(found.detach(), expected, rtol=1e-12)


def test_derivatives_of_derivatives(x):
    first, second = func.grad(cubes), func.grad(lambda x: func.grad(cubes)(x).sum())
    same(first(x), 3 * x**2)
    same(second(x), 6 * x)
    same(func.grad(lambda x: second(x).sum())(x), [6, 6, 6])
    assert not first(x).requires_grad and not second(x).requires_grad


def test_an_inner_derivative_sees_outer_variables_as_constants():
    # d/dx of x * d/dy (x + y) at y = 1 is 1: the inner derivative is 1 wherever x is.
    found = func.grad(lambda x: x * func.grad(lambda y: x + y)(tg.tensor(1.0)))(tg.tensor(5.0))
    assert found.item() == 1
    # d/dx of d/dy (x * y * y) is 2y.
    assert func.grad(lambda x: func.grad(lambda y: x * y * y)(tg.tensor(3.0)))(tg.tensor(5.0)).item() == 6


def test_ordinary_gradients_go_through(x):
    x.requires_grad_()
    scale = tg.tensor(2.0, dtype=tg.float64, requires_grad=True)
    (func.grad(lambda x: cubes(x) * scale)(x).sum()).backward()
    same(x.grad, 12 * x.detach())
    same(scale.grad, (3 * x.detach() ** 2).sum())


def test_a_derivative_needs_no_recorded_arguments_nor_mode(x):
    with tg.no_grad():
        same(func.grad(cubes)(x), 3 * x**2)
        same(func.jvp(cubes, (x,), (tg.ones_like(x),))[1], (3 * x**2).sum())
        same(func.hessian(cubes)(x), tg.diag(6 * x))


def test_trees_and_aux():
    def loss(weights, *, scale):
        value = (weights["a"] * weights["more"][0]).sum() * scale
        return value, "aux"

    weights = {"a": tg.tensor([1.0, 2.0]), "more": [tg.tensor([3.0, 4.0])]}
    found, (value, aux) = func.grad_and_value(loss, has_aux=True)(weights, scale=2)
    assert (found["a"].tolist(), found["more"][0].tolist(), value.item(), aux) == ([6, 8], [2, 4], 22, "aux")
    assert func.grad(loss, has_aux=True)(weights, scale=2)[1] == "aux"


def test_several_arguments():
    first, last = func.grad(lambda x, y, z: (x * y * z).sum(), argnums=(0, -1))(
        *(tg.tensor(n) for n in (2.0, 3.0, 5.0))
    )
    assert (first.item(), last.item()) == (15, 6)
    alone = func.grad(lambda x, y: x * y, argnums=(1,))(tg.tensor(2.0), tg.tensor(3.0))
    assert isinstance(alone, tuple) and alone[0].item() == 2


def test_an_argument_that_takes_no_part_has_zeros():
    assert func.grad(lambda x, y: y.sum())(tg.ones(2), tg.ones(1)).tolist() == [0, 0]
    assert func.grad(lambda x: tg.ones(()))(tg.ones(2)).tolist() == [0, 0]


def outer(x, y):
    return {"product": x[:, None] * y, "sum": x.sum() + y}


def test_rows_and_columns_agree(x):
    y = tg.tensor([4.0, 5.0], dtype=tg.float64)
    by_rows, by_columns = (transform(outer, argnums=(0, 1))(x, y) for transform in (func.jacrev, func.jacfwd))
    expected = tg.autograd.functional.jacobian(lambda x, y: tuple(outer(x, y).values()), (x, y))
    for name, derivatives in zip(("product", "sum"), expected):
        for rows, columns, known in zip(by_rows[name], by_columns[name], derivatives):
            assert rows.shape == columns.shape == known.shape
            same(rows, known)
            same(columns, known)


def test_hessian(x):
    same(func.hessian(lambda x: x[0] * x[1] * x[2])(x), [[0, 3, 2], [3, 0, 1], [2, 1, 0]])
    same(func.jacrev(func.jacfwd(cubes))(x), np.diag([6, 12, 18]))


def test_vjp_can_be_used_again(x):
    output, vjp_fn = func.vjp(lambda x: (x * x, x.sum()), x)
    same(output[0], x**2)
    for scale in (1.0, 2.0):
        (found,) = vjp_fn((x * scale, tg.tensor(scale, dtype=tg.float64)))
        same(found, scale * (2 * x**2 + 1))
    assert not output[0].requires_grad and not found.requires_grad


def test_jvp_and_linearize(x):
    tangent = tg.tensor([1.0, 0.0, 2.0], dtype=tg.float64)
    output, product = func.jvp(tg.sin, (x,), (tangent,))
    same(output, x.sin())
    same(product, x.cos() * tangent)
    output, push = func.linearize(tg.sin, x)
    same(push(tangent), product)
    same(push(2 * tangent), 2 * product)
    assert func.jvp(lambda x: (x, 3), (x,), (tangent,), has_aux=True)[2] == 3


def test_jvp_inside_grad(x):
    tangent = tg.ones(3, dtype=tg.float64)
    same(func.grad(lambda x: func.jvp(cubes, (x,), (tangent,))[1])(x), 6 * x)
    same(func.jvp(func.grad(cubes), (x,), (tangent,))[1], 6 * x)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: func.grad(lambda x: x)(x), RuntimeError, r"one element.*shape \(3,\)"),
        (lambda x: func.grad(lambda x: 3)(x), ValueError, "result of the function must be a tensor"),
        (lambda x: func.grad(cubes, argnums=2)(x), ValueError, "argnums=2 names argument 2.* got 1"),
        (lambda x: func.grad(cubes)("text"), ValueError, "argument 0 to differentiate by must be a tensor"),
        (lambda x: func.grad(cubes, has_aux=True)(x), TypeError, r"\(output, aux\)"),
        (lambda x: func.vjp(tg.sin, x)[1](tg.ones(2)), ValueError, r"\[\(3,\)\].*\[\(2,\)\]"),
        (lambda x: func.jvp(tg.sin, (x,), (tg.ones(2),)), ValueError, r"\[\(3,\)\].*\[\(2,\)\]"),
        (
            lambda x: func.jvp(lambda x, y: x, (x, x), (x, x), strict=True),
            RuntimeError,
            "not used|no part|unused|reach",
        ),
    ],
)
def test_bad_input(x, call, error, words):
    with pytest.raises(error, match=words):
        call(x)


# Forward mode.


def test_dual_tensors(x):
    tangent = tg.tensor([1.0, 10.0, 100.0], dtype=tg.float64)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, tangent)
        found = forward_ad.unpack_dual(dual.sin() * 2)
        same(found.tangent, 2 * x.cos() * tangent)
        same(found.primal, 2 * x.sin())
        assert forward_ad.unpack_dual(x).tangent is None
        same(forward_ad.unpack_dual(dual).tangent, tangent)
        assert not found.primal.requires_grad


def test_two_dual_tensors_add_up(x):
    with forward_ad.dual_level():
        first, second = (forward_ad.make_dual(x, tg.full_like(x, scale)) for scale in (1.0, 10.0))
        same(forward_ad.unpack_dual(first * second).tangent, 11 * x)


def test_reverse_over_forward(x):
    x.requires_grad_()
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(cubes(forward_ad.make_dual(x, tg.ones_like(x)))).tangent
    tangent.backward()
    same(x.grad, 6 * x.detach())


def test_levels():
    with pytest.raises(RuntimeError, match="dual_level"):
        forward_ad.make_dual(tg.ones(1), tg.ones(1))
    with forward_ad.dual_level(), pytest.raises(RuntimeError, match="inside another"), forward_ad.dual_level():
        pass
    with forward_ad.dual_level(), pytest.raises(ValueError, match="shape"):
        forward_ad.make_dual(tg.ones(1), tg.ones(2))
    with forward_ad.dual_level(), tg.no_grad(), pytest.raises(RuntimeError, match="enabled"):
        forward_ad.make_dual(tg.ones(1), tg.ones(1))

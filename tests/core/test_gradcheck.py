"""Every operation against numeric gradients, on ordinary, 0-d, empty, broadcast and non-contiguous tensors."""

from __future__ import annotations

import numpy as np
import pytest
import telegrad.core as tg
from telegrad.core.autograd import gradcheck, gradgradcheck

RANDOM = np.random.default_rng(7)
SHAPES = [(), (3,), (2, 3), (0,), (2, 0, 3), (2, 3, 4)]


def make(*shape, low=0.3, high=1.7, signs=False):
    data = RANDOM.uniform(low, high, shape)
    if signs:
        data = data * RANDOM.choice([-1.0, 1.0], shape)
    return tg.tensor(data, requires_grad=True)


def strided(*shape, **kwargs):
    """A non-contiguous leaf: transposed, and every second element of its memory."""
    data = RANDOM.uniform(0.3, 1.7, tuple(2 * n for n in reversed(shape)))
    view = data[tuple(slice(None, None, 2) for _ in shape)].transpose()
    return tg.from_numpy(view).requires_grad_()


def check(function, *inputs):
    gradcheck(function, inputs)
    gradgradcheck(function, inputs)


UNARY = {
    "exp": tg.exp, "log": tg.log, "sqrt": tg.sqrt, "sin": tg.sin, "cos": tg.cos, "tanh": tg.tanh,
    "sigmoid": tg.sigmoid, "neg": tg.neg, "abs": tg.abs, "relu": tg.relu, "sign": tg.sign, "clone": tg.clone,
    "clamp": lambda a: tg.clamp(a, 0.5, 1.1), "clamp_low": lambda a: tg.clamp(a, min=0.5),
    "clamp_high": lambda a: tg.clamp(a, max=1.1), "pow2": lambda a: a**2, "pow0": lambda a: a**0,
    "pow_half": lambda a: a**-1.5, "scalar_base": lambda a: 1.7**a, "rsub": lambda a: 2 - a, "rdiv": lambda a: 2 / a,
    "affine": lambda a: 3 * a + 1.5 - a / 4,
}  # fmt: skip

BINARY = {
    "add": tg.add, "sub": tg.sub, "mul": tg.mul, "div": tg.div, "pow": tg.pow, "maximum": tg.maximum,
    "minimum": tg.minimum, "where": lambda a, b: tg.where(tg.tensor(a.numpy(force=True) > 0.9), a, b),
}  # fmt: skip

PAIRS = [
    ((), ()), ((3,), ()), ((), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((4, 1, 3), (2, 1)), ((0,), ()),
    ((2, 0), (1, 1)), ((2, 3), (2, 3)),
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, shape):
    check(UNARY[name], make(*shape))


@pytest.mark.parametrize("name", UNARY)
def test_unary_strided(name):
    check(UNARY[name], strided(2, 3))


@pytest.mark.parametrize("shapes", PAIRS, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name, shapes):
    check(BINARY[name], make(*shapes[0]), make(*shapes[1]))


@pytest.mark.parametrize("name", BINARY)
def test_binary_strided_and_one_sided(name):
    check(BINARY[name], strided(2, 3), strided(3, 2).T)
    check(BINARY[name], strided(2, 3), make(3).detach())
    check(BINARY[name], make(3).detach(), strided(2, 3))


def test_equal_operands_share_the_gradient():
    a = tg.tensor([1.0, 2.0], requires_grad=True)
    tg.maximum(a, tg.tensor([1.0, 3.0])).sum().backward()
    assert a.grad.tolist() == [0.5, 0.0]


REDUCTIONS = {
    "sum": tg.sum, "mean": tg.mean, "var": tg.var, "amax": tg.amax, "amin": tg.amin, "logsumexp": tg.logsumexp,
    "std": tg.std,
}  # fmt: skip


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [0, -1, 1, (0, 2), None])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, dim, keepdim):
    function = REDUCTIONS[name]
    for a in (make(2, 3, 4), strided(2, 3, 4)):
        check(lambda a: function(a, dim, keepdim=keepdim), a)


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin", "logsumexp"])
def test_reductions_of_one_element(name):
    check(lambda a: REDUCTIONS[name](a, None), make())
    check(lambda a: REDUCTIONS[name](a, 0), make())


def test_reductions_of_nothing():
    a = make(2, 0)
    check(lambda a: a.sum(), a)
    check(lambda a: a.sum(1), a)
    check(lambda a: a.sum(0), a)
    check(lambda a: a.mean(0), a)
    check(lambda a: a.logsumexp(0), a)


@pytest.mark.parametrize("pick", [tg.max, tg.min])
def test_extremes_along_a_dimension(pick):
    for dim in (0, 1, -1):
        check(lambda a, dim: pick(a, dim).values, make(2, 3, 4), dim)
        check(lambda a, dim: pick(a, dim, keepdim=True).values, strided(2, 3, 4), dim)
    check(lambda a: pick(a), make(2, 3))


MATRICES = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (4, 3, 2)), ((3,), (5, 3, 4)), ((5, 2, 3), (3,)), ((0, 3), (3, 4)),
    ((2, 0), (0, 4)), ((2, 3), (3, 0)),
]  # fmt: skip


@pytest.mark.parametrize("shapes", MATRICES, ids=str)
def test_matmul(shapes):
    check(tg.matmul, make(*shapes[0]), make(*shapes[1]))
    if all(len(shape) == 2 for shape in shapes):
        check(tg.matmul, strided(*shapes[0]), strided(*shapes[1]))
        check(tg.mm, make(*shapes[0]), make(*shapes[1]).detach())


def test_other_products():
    check(tg.bmm, make(2, 3, 4), strided(2, 4, 2))
    check(tg.mv, make(2, 3), make(3))
    check(tg.dot, make(3), make(3))
    check(tg.outer, make(3), make(2))
    check(lambda c, a, b: tg.addmm(c, a, b, beta=0.5, alpha=2.0), make(4), make(2, 3), make(3, 4))


@pytest.mark.parametrize("shape", [(3,), (2, 3), (4, 2, 3), (0, 3)], ids=str)
def test_linear(shape):
    check(tg.linear, make(*shape), make(4, 3), make(4))
    check(tg.linear, make(*shape), make(4, 3))


SHAPING = {
    "reshape": lambda a: a.reshape(3, -1), "view": lambda a: a.view(2, 12), "transpose": lambda a: a.transpose(0, 2),
    "permute": lambda a: a.permute(2, 0, 1), "T": lambda a: a[0].T, "mT": lambda a: a.mT, "t": lambda a: a[1].t(),
    "unsqueeze": lambda a: a.unsqueeze(1), "squeeze": lambda a: a.unsqueeze(0).squeeze(),
    "flatten": lambda a: a.flatten(1),
    "expand": lambda a: a.unsqueeze(1).expand(-1, 5, -1, -1), "reshape_copy": lambda a: a.transpose(0, 1).reshape(-1),
    "contiguous": lambda a: a.mT.contiguous(), "to": lambda a: a.to(tg.float64, copy=True), "index": lambda a: a[1],
    "slice": lambda a: a[:, 1:3, ::2], "newaxis": lambda a: a[..., None, 0], "mask": lambda a: a[a.detach() > 1.0],
    "list": lambda a: a[[0, 1, 1]], "element": lambda a: a[1, 2, 3],
    "tensors": lambda a: a[tg.tensor([0, 1, 1]), :, tg.tensor([3, 3, 0])], "split": lambda a: a.split(2, 1),
    "sizes": lambda a: a.split([1, 3], -1), "chunk": lambda a: a.chunk(3, 2), "unbind": lambda a: a.unbind(1),
    "cat": lambda a: tg.cat([a, a * 2, a[:1]]), "stack": lambda a: tg.stack([a, a * a], 1),
    "masked_fill": lambda a: a.masked_fill(a.detach() > 1.0, 3.0),
    "masked_select": lambda a: a.masked_select(a.detach() > 1),
    "index_select": lambda a: a.index_select(1, tg.tensor([2, 0, 2])),
    "gather": lambda a: a.gather(2, tg.tensor([[[3, 3], [0, 1], [2, 2]]])),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPING)
def test_shaping_and_indexing(name):
    check(SHAPING[name], make(2, 3, 4))
    if name != "view":
        check(SHAPING[name], strided(2, 3, 4))


def test_shaping_of_odd_shapes():
    check(lambda a: a.reshape(1, 1), make())
    check(lambda a: a.flatten(), make())
    check(lambda a: a.expand(2, 3), make())
    check(lambda a: a[...], make())
    check(lambda a: a.reshape(0, 5), make(2, 0))
    check(lambda a: tg.cat([a, tg.zeros(0, dtype=tg.float64)]), make(3))
    check(lambda a: a[tg.tensor([], dtype=tg.int64)], make(3))


@pytest.mark.parametrize("function", [tg.softmax, tg.log_softmax])
def test_softmax(function):
    for dim in (0, 1, -1):
        check(function, make(2, 3, 4, signs=True), dim)
        check(function, strided(2, 3, 4), dim)
    check(lambda a: function(a, 0), make())
    check(lambda a: function(a, 0), make(0))


def test_embedding():
    check(lambda w: tg.embedding(w, tg.tensor([[0, 2], [2, 2]])), make(4, 3))
    check(lambda w: tg.embedding(w, tg.tensor(1)), make(4, 3))
    check(lambda w: tg.embedding(w, tg.zeros(0, dtype=tg.int64)), make(4, 3))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses(reduction):
    classes, ignored = tg.tensor([1, 0, 3]), tg.tensor([1, -100, 3])
    weight = tg.tensor([0.5, 1.0, 2.0, 0.25], dtype=tg.float64)
    check(lambda x: tg.cross_entropy(x, classes, reduction=reduction), make(3, 4, signs=True))
    check(lambda x: tg.cross_entropy(x, ignored, weight, reduction=reduction), make(3, 4))
    check(lambda x: tg.cross_entropy(x, ignored, weight, reduction=reduction, label_smoothing=0.1), make(3, 4))
    check(lambda x: tg.cross_entropy(x, tg.tensor([[1, 0], [3, 2]]), reduction=reduction), make(2, 4, 2))
    check(lambda x: tg.cross_entropy(x, tg.tensor(2), reduction=reduction), make(4))
    check(lambda x, p: tg.cross_entropy(x, p, weight, reduction=reduction, label_smoothing=0.2), make(3, 4), make(3, 4))
    check(lambda x: tg.nll_loss(x, classes, reduction=reduction), make(3, 4))
    check(lambda x, y: tg.mse_loss(x, y, reduction), make(3, 4), make(3, 4))
    check(lambda x, y: tg.l1_loss(x, y, reduction), make(3, 4), make(3, 4))


def test_dropout_scales_what_it_keeps():
    tg.manual_seed(3)
    a = tg.ones(1000, requires_grad=True)
    out = tg.dropout(a, 0.25)
    out.sum().backward()
    assert set(np.unique(out.numpy(force=True)).round(5).tolist()) == {0.0, np.float32(1 / 0.75).round(5).item()}
    assert 0.2 < (out == 0).float().mean().item() < 0.3
    assert np.array_equal(a.grad.numpy(), out.numpy(force=True))
    assert tg.dropout(a, 0.25, training=False) is a
    assert tg.dropout(a, 1.0).sum().item() == 0


def test_gradients_come_in_the_dtype_of_their_leaf():
    a, b = tg.ones(2, 3, requires_grad=True), tg.ones(3, dtype=tg.float64, requires_grad=True)
    c = tg.tensor(2.0, dtype=tg.float16, requires_grad=True)
    (a * b / c).sum().backward()
    assert (a.grad.dtype, b.grad.dtype, c.grad.dtype) == (tg.float32, tg.float64, tg.float16)


@pytest.mark.parametrize("dtype", [tg.float16, tg.float32, tg.float64])
def test_every_operation_keeps_the_dtype(dtype):
    a = tg.tensor(RANDOM.uniform(0.3, 1.7, (2, 3, 4)), dtype=dtype, requires_grad=True)
    for functions in (UNARY, REDUCTIONS, {k: v for k, v in SHAPING.items() if k != "to"}):
        for name, function in functions.items():
            results = function(a) if functions is not REDUCTIONS else function(a, None)
            for result in results if isinstance(results, tuple) else (results,):
                assert result.dtype == dtype, name
                (grad,) = tg.autograd.grad(result, a, tg.ones_like(result), retain_graph=True)
                assert grad.dtype == dtype, name
    for name, function in BINARY.items():
        result = function(a, a[0])
        (grad,) = tg.autograd.grad(result.sum(), a)
        assert (result.dtype, grad.dtype) == (dtype, dtype), name


def test_gradcheck_finds_a_wrong_gradient():
    class Wrong(tg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    with pytest.raises(tg.autograd.GradcheckError, match="differs from the numeric one"):
        gradcheck(Wrong.apply, make(3))
    assert not gradcheck(Wrong.apply, make(3), raise_exception=False)
    with pytest.raises(ValueError, match="float64"):
        gradcheck(tg.exp, tg.ones(2, requires_grad=True))


# -- complex numbers, and the fast mode


def complex_leaf(*shape, seed=0):
    random = np.random.default_rng(seed)
    return tg.tensor(random.normal(size=shape) + 1j * random.normal(size=shape), requires_grad=True)


COMPLEX = {
    "exp": tg.exp,
    "log": tg.log,
    "sqrt": tg.sqrt,
    "tanh": tg.tanh,
    "abs": tg.abs,
    "real and imaginary": lambda z: (z.real, z.imag),
    "conj": lambda z: z.conj() * z,
    "product": lambda z: z.prod(),
    "power": lambda z: z**3,
    "cumprod": lambda z: z.cumprod(0),
    "softsign": lambda z: z / (z.abs() + 1),
    "matmul": lambda z: z @ z.mH,
    "inverse": lambda z: tg.linalg.inv(z),
    "eigh": lambda z: (lambda w, v: (w, v * w.exp() @ v.mH))(*tg.linalg.eigh(z + z.mH)),
    "svd": lambda z: (lambda u, s, v: (s, u * s.exp() @ v))(*tg.linalg.svd(z, full_matrices=False)),
    "scattered product": lambda z: z.reshape(-1).scatter_reduce(0, tg.tensor([0, 0, 3]), z[0], "prod"),
    "in place": lambda z: _in_place(z * 1),
}


def _in_place(z):
    z[0].mul_(z[1].clone())
    return z


@pytest.mark.parametrize("fast", [False, True], ids=["whole", "fast"])
@pytest.mark.parametrize("name", COMPLEX)
def test_gradients_by_complex_numbers(name, fast):
    z = complex_leaf(3, 3)
    gradcheck(COMPLEX[name], z, fast_mode=fast)
    gradgradcheck(COMPLEX[name], z, fast_mode=fast)


@pytest.mark.parametrize("shape", [(), (0,), (2,)], ids=str)
@pytest.mark.parametrize("operation", [tg.add, tg.sub, tg.mul, tg.div, tg.pow])
def test_real_and_complex_operands_mix(operation, shape):
    z, x = complex_leaf(*shape), make(*shape)
    for operands in ((z, x), (x, z)):
        gradcheck(operation, operands)
        gradgradcheck(operation, operands)
    (slope,) = tg.autograd.grad(operation(z, x).abs().sum(), z, create_graph=True)
    (second,) = tg.autograd.grad(slope.abs().sum(), x, materialize_grads=True)
    assert second.dtype == tg.float64


def test_the_gradient_by_a_complex_number_is_pytorchs():
    """Of ``L`` by ``x + iy``: ``dL/dx + i dL/dy``, so that a step against it is downhill."""
    z = tg.tensor([3 + 4j], requires_grad=True)
    (z.abs() ** 2).sum().backward()
    assert z.grad.tolist() == [6 + 8j]


def test_real_functions_refuse_complex_numbers():
    for function in (tg.erf, tg.erfc, tg.erfinv, tg.lgamma, tg.digamma, tg.logit, lambda z: tg.polygamma(1, z)):
        with pytest.raises(TypeError, match="real numbers only"):
            function(complex_leaf(2))


def test_gradcheck_finds_a_gradient_that_is_not_conjugated():
    class Unconjugated(tg.Function):
        @staticmethod
        def forward(ctx, z):
            ctx.save_for_backward(z)
            return z * z

        @staticmethod
        def backward(ctx, grad):
            (z,) = ctx.saved_tensors
            return grad * 2 * z

    for fast in (False, True):
        with pytest.raises(tg.autograd.GradcheckError, match="differs from the numeric one"):
            gradcheck(Unconjugated.apply, complex_leaf(2), fast_mode=fast)


def test_the_fast_mode_calls_the_function_a_few_times_only():
    calls = []

    def function(a, b):
        calls.append(1)
        return tg.exp(a) @ b, (a * b.T).sum()

    a, b = make(20, 30), make(30, 20)
    assert gradcheck(function, (a, b), fast_mode=True) and len(calls) < 15
    assert gradgradcheck(function, (a, b), fast_mode=True)


@pytest.mark.parametrize("place", [0, 5])
def test_the_fast_mode_finds_one_wrong_element(place):
    class Wrong(tg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            result = grad * 2
            result[place] += 0.5
            return result

    with pytest.raises(tg.autograd.GradcheckError, match=r"checked input 0 differs"):
        gradcheck(Wrong.apply, make(6), fast_mode=True)
    assert not gradcheck(Wrong.apply, make(6), fast_mode=True, raise_exception=False)

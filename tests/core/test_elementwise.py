"""Element-wise operations beside their recorded values: in place, out=, synonyms, errors, views, complex gradients."""

import math

import numpy as np
import pytest
import telegrad as tg
from telegrad.core.ops.table.registry import FUNCTIONS, functions_of

UNARY = """abs neg sign sgn floor ceil round trunc frac exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square sin cos
tan asin acos atan sinh cosh tanh asinh atanh sinc sigmoid logit erf erfc erfinv lgamma digamma relu deg2rad rad2deg nan_to_num
positive""".split()
BINARY = """add sub mul div atan2 hypot copysign logaddexp xlogy maximum minimum fmax fmin fmod remainder pow eq ne lt le gt ge
logical_and floor_divide""".split()


@pytest.mark.parametrize("name", UNARY)
def test_in_place_and_out_do_the_same(name):
    a = tg.tensor([0.3, 0.5, 0.75])
    expected = getattr(tg, name)(a)
    assert tg.equal(getattr(a, name)(), expected)
    out = tg.zeros(3)
    if name not in ("positive", "sgn") or name == "sgn":
        assert getattr(tg, name)(a, out=out) is out and tg.equal(out, expected)
    if hasattr(tg.Tensor, f"{name}_"):
        target = a.clone()
        assert getattr(target, f"{name}_")() is target and tg.equal(target, expected) and target._version == 1
        leaf = a.clone().requires_grad_()
        recorded = leaf * 1
        getattr(recorded, f"{name}_")()
        one = tg.autograd.grad(recorded.sum(), leaf)[0]
        assert tg.allclose(one, tg.autograd.grad(getattr(tg, name)(leaf * 1).sum(), leaf)[0])


@pytest.mark.parametrize("name", BINARY)
def test_binary_in_place_and_out_do_the_same(name):
    a, b = tg.tensor([0.3, 2.5, 0.75]), tg.tensor([2.0, 0.5, 0.75])
    expected = getattr(tg, name)(a, b)
    assert tg.equal(getattr(a, name)(b), expected)
    out = tg.zeros(3, dtype=expected.dtype)
    assert getattr(tg, name)(a, b, out=out) is out and tg.equal(out, expected)
    if hasattr(tg.Tensor, f"{name}_"):
        target = a.clone()
        assert getattr(target, f"{name}_")(b) is target and tg.equal(target, expected.to(tg.float32))


def test_synonyms():
    words = """absolute abs clip clamp divide div fix trunc greater gt greater_equal ge less lt less_equal le multiply mul
    negative neg not_equal ne subtract sub true_divide div arccos acos arcsin asin arctan atan arctan2 atan2 arcsinh asinh
    arccosh acosh arctanh atanh""".split()
    pairs = dict(zip(words[::2], words[1::2]))
    for second, first in pairs.items():
        assert getattr(tg, second) is getattr(tg, first) and getattr(tg.Tensor, second) is getattr(tg.Tensor, first)
        assert hasattr(tg.Tensor, f"{second}_")


def test_every_declared_function_is_where_it_says():
    assert {"add", "linalg.norm", "fft.rfft2", "special.psi"} <= FUNCTIONS.keys()
    for namespace, module in (("", tg), ("linalg", tg.linalg), ("fft", tg.fft), ("special", tg.special)):
        for name, function in functions_of(namespace).items():
            assert getattr(module, name) is function


def test_operators():
    a = tg.tensor([6, 3])
    assert (a << 1).tolist() == [12, 6] and (a >> 1).tolist() == [3, 1] and (~a).tolist() == [-7, -4]
    assert (2 << tg.tensor([1])).tolist() == [4] and (+a).tolist() == [6, 3]
    a //= 4
    assert a.tolist() == [1, 0]
    a |= 2
    a ^= 1
    a &= 6
    assert a.tolist() == [2, 2]
    a %= 2
    assert a.tolist() == [0, 0]
    b = tg.tensor([-7.5, 7.5])
    assert (b % 2).tolist() == [0.5, 1.5] and (b // 2).tolist() == [-4, 3] and tg.fmod(b, 2).tolist() == [-1.5, 1.5]


def test_alpha_and_value():
    a, b = tg.tensor([1.0, 2.0]), tg.tensor([10.0, 20.0])
    assert tg.add(a, b, alpha=2).tolist() == a.add(b, alpha=2).tolist() == [21, 42]
    assert a.clone().sub_(b, alpha=0.5).tolist() == [-4, -8] and tg.rsub(a, b, alpha=2).tolist() == [8, 16]
    assert a.clone().addcmul_(a, b, value=0.1).tolist() == [2, 6] and tg.addcdiv(a, b, a).tolist() == [11, 12]
    assert a.clone().lerp_(b, 0.5).tolist() == [5.5, 11.0]
    assert tg.add(input=a, other=b).tolist() == [11, 22]


def test_questions():
    a = tg.tensor([1.0, math.nan, math.inf])
    assert not tg.equal(a, a) and tg.equal(a[:1], a[:1]) and not tg.equal(a, a[:2])
    assert (
        not tg.allclose(a, a) and tg.allclose(a, a, equal_nan=True) and tg.isclose(a, a).tolist() == [True, False, True]
    )
    assert tg.isreal(tg.tensor([1j, 1 + 0j])).tolist() == [False, True]
    with pytest.raises(TypeError, match="one dtype"):
        tg.isclose(a, a.double())


@pytest.mark.parametrize(
    ("wrong", "error", "match"),
    [
        (lambda a, n: tg.add(a, tg.ones(4)), ValueError, r"add\(float32 \(3,\), float32 \(4,\)\)"),
        (lambda a, n: tg.exp([1.0]), TypeError, r"exp\(\) takes a tensor, not list"),
        (lambda a, n: tg.floor(2.5), TypeError, "floor"),
        (lambda a, n: tg.isinf("x"), TypeError, "isinf"),
        (lambda a, n: -(n > 0), TypeError, "neg"),
        (lambda a, n: +(n > 0), TypeError, "positive"),
        (lambda a, n: tg.bitwise_and(a, a), TypeError, "bitwise_and"),
        (lambda a, n: tg.clamp(a), ValueError, "min, max, or both"),
        (lambda a, n: tg.div(a, a, rounding_mode="up"), ValueError, "floor"),
        (lambda a, n: n // 0, ZeroDivisionError, "integers"),
        (lambda a, n: tg.fmod(n, 0), ZeroDivisionError, "integers"),
        (lambda a, n: n % tg.tensor([1, 0, 2]), ZeroDivisionError, "integers"),
        (lambda a, n: tg.polygamma(-1, a), ValueError, "order"),
        (lambda a, n: tg.lerp(a, a.double(), 0.5), TypeError, "one dtype"),
        (lambda a, n: n.add_(1.5), TypeError, "add_"),
        (lambda a, n: tg.sign(tg.tensor([1j])), TypeError, "sgn"),
    ],
)
def test_errors_name_the_operation(wrong, error, match):
    with pytest.raises(error, match=match):
        wrong(tg.ones(3), tg.tensor([1, 2, 3]))


def test_nothing_warns():
    # Warnings are errors here.
    a = tg.tensor([math.nan, math.inf, -math.inf, 0.0, -1.0, 1e38])
    for name in UNARY:
        getattr(tg, name)(a)
    for name in BINARY:
        getattr(tg, name)(a, a.flip(0) if hasattr(a, "flip") else a)
    for name in ("sum", "mean", "prod", "var", "std", "amax", "logsumexp", "norm", "median"):
        getattr(tg, name)(a, *([0] if name == "logsumexp" else []))


class TestSpecialFunctions:
    def test_erf_to_the_last_digits(self):
        x = np.concatenate([np.linspace(-6, 6, 2001), np.linspace(-30, 30, 301), [0.0, 1e-300, 1e-10, 27.0]])
        for name in ("erf", "erfc"):
            expected = [getattr(math, name)(value) for value in x]
            np.testing.assert_allclose(getattr(tg, name)(tg.tensor(x)).numpy(), expected, rtol=1e-15, atol=0)
        single = tg.erf(tg.tensor(x).float()).numpy()
        np.testing.assert_allclose(single, [math.erf(value) for value in x.astype("f4")], rtol=5e-7)

    def test_erfinv_is_the_inverse(self):
        x = tg.tensor(np.concatenate([np.linspace(-0.999, 0.999, 999), [1e-200, 1e-12]]))
        np.testing.assert_allclose(tg.erf(tg.erfinv(x)).numpy(), x.numpy(), rtol=1e-14)
        far = 1 - tg.logspace(-15, -1, 15, dtype=tg.float64)
        np.testing.assert_allclose(tg.erfc(tg.erfinv(far)).numpy(), (1 - far).numpy(), rtol=1e-14)

    def test_lgamma_to_the_last_digits(self):
        x = np.concatenate([np.linspace(0.01, 30, 3001), 10.0 ** np.arange(2, 300, 20), np.linspace(-9.9, -0.1, 50)])
        expected = np.array([math.lgamma(value) for value in x])
        np.testing.assert_allclose(tg.lgamma(tg.tensor(x)).numpy(), expected, rtol=1e-13, atol=2e-14)

    def test_digamma_satisfies_its_recurrence_and_reflection(self):
        x = tg.tensor(np.concatenate([np.linspace(0.05, 20, 400), np.linspace(-5.95, -0.05, 60)]))
        np.testing.assert_allclose((tg.digamma(x + 1) - tg.digamma(x)).numpy(), (1 / x).numpy(), rtol=1e-11, atol=1e-13)
        assert tg.digamma(tg.tensor(1.0, dtype=tg.float64)).item() == pytest.approx(-0.5772156649015329, abs=1e-15)

    def test_polygamma_of_one_is_zeta(self):
        zeta = {1: math.pi**2 / 6, 3: 6 * math.pi**4 / 90, 5: 120 * math.pi**6 / 945}
        one = tg.ones((), dtype=tg.float64)
        for order, expected in zeta.items():
            assert tg.polygamma(order, one).item() == pytest.approx(expected, rel=1e-14)
        assert one.polygamma(1).item() == pytest.approx(zeta[1])
        x = tg.tensor(np.linspace(-3.7, 5.3, 19))
        difference = tg.polygamma(2, x + 1) - tg.polygamma(2, x)
        np.testing.assert_allclose(difference.numpy(), (2 / x**3).numpy(), rtol=1e-9)


class TestComplexGradients:
    def test_a_step_along_the_gradient_goes_down(self):
        z = tg.tensor([1 + 2j, -0.5 + 0.25j], dtype=tg.complex128, requires_grad=True)

        def loss(z):
            return ((z.exp() * z - 1).abs() ** 2).sum()

        (gradient,) = tg.autograd.grad(loss(z), z)
        step = 1e-6
        for place in range(2):
            for direction in (1, 1j):
                moved = z.detach().clone()
                moved[place] += step * direction
                slope = (loss(moved) - loss(z)).item() / step
                expected = (gradient[place].item() * np.conj(direction)).real
                assert slope == pytest.approx(expected, rel=1e-4)

    def test_real_operands_have_real_gradients(self):
        a = tg.tensor([1.0, 2.0], requires_grad=True)
        (a * 1j * (2 - 3j)).real.sum().backward()
        assert a.grad.dtype == tg.float32 and a.grad.tolist() == [3, 3]
        b = tg.ones(2, requires_grad=True)
        b.to(tg.complex64).abs().sum().backward()
        assert b.grad.tolist() == [1, 1]

    def test_twice(self):
        x = tg.tensor([0.5, -1.5], dtype=tg.float64, requires_grad=True)
        y = tg.tensor([1.5, 0.5], dtype=tg.float64, requires_grad=True)

        def function(x, y):
            z = tg.complex(x, y)
            return tg.view_as_real((z * z.sin()).cumsum(0) / (1 + z.conj()))

        assert tg.autograd.gradcheck(function, (x, y)) and tg.autograd.gradgradcheck(function, (x, y))


def test_alpha_scales_numbers_too():
    x = tg.ones(2)
    assert x.add(3, alpha=2).tolist() == tg.add(x, x * 3, alpha=2).tolist() == [7, 7]
    assert x.sub(3, alpha=0.5).tolist() == [-0.5, -0.5] and tg.tensor([1]).add(1, alpha=2).dtype == tg.int64


@pytest.mark.parametrize("name", "lt le gt ge maximum minimum fmax fmin atan2 hypot heaviside copysign".split())
def test_complex_numbers_have_no_order(name):
    a = tg.tensor([1j, 2.0])
    for other in (a, tg.ones(2)):
        with pytest.raises(TypeError, match=rf"{name}\(\): complex numbers have no such function"):
            getattr(tg, name)(a, other)


@pytest.mark.parametrize("name", "relu round erf erfc erfinv lgamma digamma deg2rad rad2deg".split())
def test_real_functions_take_no_complex_numbers(name):
    with pytest.raises(TypeError, match=rf"^{name}\(\)"):
        getattr(tg, name)(tg.tensor([1j]))


def test_alpha_scales_a_number_too():
    assert tg.add(tg.ones(2), 3, alpha=2).tolist() == [7, 7]
    assert tg.ones(2).sub_(3, alpha=2).tolist() == [-5, -5]


def test_whole_numbers_to_negative_powers():
    base, power = tg.tensor([2, 1, -1, -1, 3]), tg.tensor([-1, -3, -3, -2, 2])
    assert (base**power).tolist() == [0, 1, -1, 1, 9]
    assert base.clone().pow_(power).tolist() == [0, 1, -1, 1, 9]


def test_numbers_beside_unsigned_ones():
    a = tg.tensor([5, 0], dtype=tg.uint8)
    assert (a | -1).tolist() == [255, 255] and tg.div(a, -1).tolist() == [-5, 0] and (a / 300).tolist()[0] > 0
    assert tg.xlogy(a, 0.5).dtype == tg.float32


def test_gradient_of_acosh_left_of_zero():
    pairs = tg.tensor([[-0.4, 0.8], [3.5, 0.5]], dtype=tg.float64, requires_grad=True)
    assert tg.autograd.gradcheck(lambda x: tg.view_as_real(tg.acosh(tg.view_as_complex(x))), (pairs,))


def test_positive_is_the_tensor_itself():
    a = tg.ones(2)
    assert +a is a


def test_the_real_part_does_not_share_memory_after_a_conversion():
    a = tg.tensor([1 + 1j])
    a.to(tg.float32).zero_()
    assert a.tolist() == [1 + 1j]


def test_xlogy_with_a_number_can_be_differentiated_twice():
    a = tg.tensor([0.5, 2.0], dtype=tg.float64, requires_grad=True)
    assert tg.autograd.gradgradcheck(lambda x: tg.xlogy(x * x, 3), (a,))


def test_alpha_is_applied_in_the_type_of_the_result():
    a = tg.tensor([2, 3], dtype=tg.uint8)
    assert tg.rsub(a, tg.zeros(2), alpha=-2).tolist() == [4, 6]


def test_logit_keeps_bfloat16():
    assert tg.logit(tg.tensor([0.5], dtype=tg.bfloat16), eps=0.1).dtype == tg.bfloat16


def test_bounds_that_a_type_cannot_hold():
    a = tg.tensor([6, 200], dtype=tg.uint8)
    assert a.clamp(-5, 300).tolist() == [6, 200] and a.clamp_max(-1).tolist() == [0, 0]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["fmod", "hypot"])
def test_large_singles_have_the_bits_of_numpy(name):
    generator = np.random.default_rng(0)
    special = np.float32([0.0, -0.0, 1, -6, 2, np.inf, -np.inf, np.nan, 3e38, 1e-45, -1e-38, 2**24, 2.5])
    for scale in (1e-42, 1e-3, 1.0, 1e5, 1e30):
        x, y = (generator.standard_normal((2, 1500)) * [[1.0], [scale]]).astype(np.float32)
        whole = np.rint(x * 9).astype(np.float32)
        for first, second in ((x, y), (whole, np.float32([3.0]).repeat(1500)), (y[::-1], x)):
            _same_bits(name, first, second)
        x[: special.size**2], y[: special.size**2] = (each.ravel() for each in np.meshgrid(special, special))
        _same_bits(name, x, y)


def _same_bits(name, x, y):
    ours = getattr(tg, name)(tg.tensor(x), tg.tensor(y)).numpy()
    expected = getattr(np, name)(x, y)
    np.testing.assert_array_equal(ours, expected)
    assert (np.signbit(ours) == np.signbit(expected))[~np.isnan(ours)].all()

"""Special functions: values of 40-digit arithmetic (mpmath 1.3), ends, errors. tools/ops/special.py checks gradients."""

import math
import pickle

import numpy as np
import pytest
import telegrad as tg
from telegrad import special
from telegrad.core.ops.special import exponential_arrays

POINTS = (0.001, 0.7, 1.9, 2.5, 5.5, 11.0, 60.0)
VALUES = {
    "bessel_j0": (
        0.9999997500000156,
        0.8812008886074053,
        0.28181855937438555,
        -0.048383776468198,
        -0.006843869417819197,
        -0.1711903004071961,
        -0.09147180408906187,
    ),
    "bessel_j1": (
        0.0004999999375000026,
        0.32899574154005895,
        0.5811570727134341,
        0.49709410246427405,
        -0.34143821542904335,
        -0.17678529895672151,
        0.046598383758166315,
    ),
    "bessel_y0": (
        -4.471416611375923,
        -0.19066492933739512,
        0.4968199712838202,
        0.4980703596152319,
        -0.339480592881911,
        -0.16884732389207954,
        0.0473589522094494,
    ),
    "bessel_y1": (
        -636.6221672311394,
        -1.1032498719076334,
        -0.1644057723315953,
        0.1459181379667858,
        -0.023758238956389618,
        0.16370553741494284,
        0.09186960936986689,
    ),
    "i0": (
        1.0000002500000156,
        1.1263030183068092,
        2.127740194053888,
        3.289839144050123,
        42.69464515184779,
        7288.489339821248,
        5.894077055609801e24,
    ),
    "i0e": (
        0.9990007495835156,
        0.5593055265070683,
        0.31824316288914156,
        0.27004644161220276,
        0.17448325638192988,
        0.1217301681665896,
        0.05161154917360984,
    ),
    "i1": (
        0.0005000000625000026,
        0.37187967777700864,
        1.4482443730548888,
        2.5167162452886984,
        38.58816461632739,
        6948.858659812163,
        5.844751588390468e24,
    ),
    "i1e": (
        0.0004995003123542213,
        0.18466998276274732,
        0.21661191117477052,
        0.20658464953126657,
        0.15770100901675652,
        0.1160577581698902,
        0.05117963018902872,
    ),
    "modified_bessel_k0": (
        7.023688800562382,
        0.6605198599151016,
        0.1288459792760475,
        0.06234755320036619,
        0.0021387085659502875,
        6.243020547653677e-06,
        1.4138978405591078e-27,
    ),
    "modified_bessel_k1": (
        999.9962381560856,
        1.050283535312918,
        0.15966015303266762,
        0.07389081634774707,
        0.0023255690088490053,
        6.520860674580886e-06,
        1.4256320265171043e-27,
    ),
    "scaled_modified_bessel_k0": (
        7.030716002378251,
        1.3301236562420558,
        0.8614506167517558,
        0.7595486903280996,
        0.5233247315524157,
        0.37379549700110815,
        0.16146817823629392,
    ),
    "scaled_modified_bessel_k1": (
        1000.9967345590684,
        2.1150113128480523,
        1.0674709298145701,
        0.900174423907878,
        0.5690479743890509,
        0.3904309361349164,
        0.16280823094404426,
    ),
    "spherical_bessel_j0": (
        0.9999998333333416,
        0.9203109817681301,
        0.49805267773021816,
        0.2393888576415826,
        -0.1282800591946167,
        -0.09090820059551849,
        -0.005080177018370278,
    ),
    "airy_ai": (
        0.3547692345431742,
        0.18916240039815008,
        0.0405944200315295,
        0.01572592338047049,
        3.368531190859981e-05,
        4.2262758649603595e-12,
        2.7831487094969354e-136,
    ),
    "erfcx": (
        0.9988726200811514,
        0.525930337349441,
        0.26650937366167265,
        0.2108063640611436,
        0.10096221839949909,
        0.051080594758088446,
        0.009401854275176388,
    ),
    "log_ndtr": (
        -0.6923496142726883,
        -0.2770239422771313,
        -0.02913694784510576,
        -0.006229025485860002,
        -1.8989562646189464e-08,
        -1.9106595744986297e-28,
        0.0,
    ),
}
LEFT = (-30.0, -6.5, -1.2, -0.3)
VALUES_LEFT = {
    "bessel_j0": (
        -0.08636798358104021,
        0.2600946055816064,
        0.6711327442643626,
        0.9776262465382961,
    ),
    "bessel_j1": (
        0.11875106261662294,
        0.15384130140997185,
        -0.4982890575672155,
        -0.148318816273104,
    ),
    "i0e": (
        0.0731459464822373,
        0.15980484901763226,
        0.41978207893513303,
        0.7575806251825479,
    ),
    "i1e": (
        -0.07191633059864755,
        -0.1469386457237643,
        -0.21525685937698316,
        -0.1123775606398388,
    ),
    "airy_ai": (
        -0.08796818845684216,
        -0.2380203019971158,
        0.5261943748021201,
        0.43090309528558085,
    ),
    "erfcx": (
        math.inf,
        4.466546463040817e18,
        8.062854217063865,
        1.4537492328427655,
    ),
    "log_ndtr": (
        -454.3212439563432,
        -23.938149495161838,
        -2.1622175060437394,
        -0.9621028181688507,
    ),
}
GAMMA = (  # a, x, P, Q
    (1e-06, 0.001, 0.9999936684798586, 6.33152014144515e-06),
    (0.5, 0.2, 0.4729107431344619, 0.5270892568655381),
    (2.5, 9.0, 0.9970535954121197, 0.0029464045878802906),
    (12.0, 4.0, 0.000915229147270063, 0.99908477085273),
    (35.0, 33.0, 0.38664643184970654, 0.6133535681502935),
    (200.0, 260.0, 0.999952499875557, 4.750012444300876e-05),
    (5000.0, 4900.0, 0.07794495622651391, 0.9220550437734861),
    (1000000.0, 1002000.0, 0.9771959041012301, 0.022804095898769864),
    (3.0, 80.0, 1.0, 5.921717403520807e-32),
)
ZETA = (  # s, q, value
    (1.01, 1, 100.57794333849678),
    (2, 1, 1.6449340668482264),
    (2.5, 0.01, 100001.31377370734),
    (17.5, 3.25, 1.1119799525854338e-09),
    (4, 100, 3.383666650002222e-07),
)

inf, nan = math.inf, math.nan


def at(name, points):
    return getattr(special, name)(tg.tensor(points, dtype=tg.float64)).numpy()


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    np.testing.assert_allclose(at(name, POINTS), VALUES[name], rtol=3e-14, atol=3e-15 * (name[0] in "bs"))


@pytest.mark.parametrize("name", VALUES_LEFT)
def test_values_left_of_0(name):
    np.testing.assert_allclose(at(name, LEFT), VALUES_LEFT[name], rtol=3e-14, atol=3e-15)


@pytest.mark.parametrize(("a", "x", "lower", "upper"), GAMMA)
def test_incomplete_gamma_functions(a, x, lower, upper):
    parameter, point = tg.tensor([a], dtype=tg.float64), tg.tensor([x], dtype=tg.float64)
    assert special.gammainc(parameter, point).item() == pytest.approx(lower, rel=2e-12, abs=0)
    assert special.gammaincc(parameter, point).item() == pytest.approx(upper, rel=2e-12, abs=0)


@pytest.mark.parametrize(("s", "q", "value"), ZETA)
def test_zeta(s, q, value):
    assert special.zeta(s, tg.tensor(q, dtype=tg.float64)).item() == pytest.approx(value, rel=2e-14)


ENDS = {  # at 0, -1, inf, nan
    "bessel_j0": (1, 0.7651976865579666, nan, nan),
    "bessel_y0": (-inf, nan, nan, nan),
    "bessel_y1": (-inf, nan, nan, nan),
    "i0e": (1, 0.46575960759364043, 0, nan),
    "i1e": (0, -0.20791041534970845, 0, nan),
    "modified_bessel_k0": (inf, nan, 0, nan),
    "modified_bessel_k1": (inf, nan, 0, nan),
    "scaled_modified_bessel_k1": (inf, nan, 0, nan),
    "spherical_bessel_j0": (1, math.sin(1), 0, nan),
    "erfcx": (1, 5.00898008076228, 0, nan),
    "log_ndtr": (-math.log(2), -1.841021645009264, 0, nan),
}


@pytest.mark.parametrize("name", ENDS)
def test_ends(name):
    np.testing.assert_allclose(at(name, (0.0, -1.0, inf, nan)), ENDS[name], rtol=1e-14)


def test_ends_of_the_incomplete_gamma_functions():
    a = tg.tensor([0.0, 0.0, 2.0, 2.0, inf, inf, -1.0, 1.0])
    x = tg.tensor([0.0, 1.0, 0.0, inf, 1.0, inf, 1.0, -1.0])
    np.testing.assert_equal(tg.igamma(a, x).numpy(), np.float32([nan, 1, 0, 1, 0, nan, nan, nan]))
    np.testing.assert_equal(tg.igammac(a, x).numpy(), np.float32([nan, 0, 1, 0, 1, nan, nan, nan]))


def test_ends_of_zeta():
    s, q = tg.tensor([1.0, 0.5, 2.0, 2.5, 3.0, 2.0]), tg.tensor([1.0, 1.0, -1.0, -0.5, -0.5, 0.0])
    np.testing.assert_allclose(special.zeta(s, q).numpy(), [inf, nan, inf, nan, 0.4143982887, inf], rtol=1e-6)


def test_the_gradient_to_the_parameter_is_refused_by_name():
    a, x = tg.tensor(2.0, requires_grad=True), tg.tensor(1.0)
    for function in (tg.igamma, tg.igammac, special.zeta):
        with pytest.raises(RuntimeError, match="no gradient with respect to input"):
            function(a, x + 1).backward()


@pytest.mark.parametrize("name", ["bessel_j1", "i1", "i1e", "spherical_bessel_j0"])
def test_gradients_at_0(name):
    x = tg.zeros(1, dtype=tg.float64, requires_grad=True)
    (slope,) = tg.autograd.grad(getattr(special, name)(x).sum(), x, create_graph=True)
    (bend,) = tg.autograd.grad(slope.sum(), x)
    assert slope.item() == (0 if name[0] == "s" else 0.5)
    assert bend.item() == pytest.approx(-1 / 3 if name[0] == "s" else 0, abs=1e-15)


KINDS = [name for name in special.__all__ if "_polynomial_" in name]


@pytest.mark.parametrize("name", KINDS)
def test_degrees_are_cut_and_negative_ones_give_0(name):
    polynomial = getattr(special, name)
    x = tg.tensor([0.3, -0.8], dtype=tg.float64)
    assert polynomial(x, -1).tolist() == [0, 0]
    assert polynomial(x, 0).tolist() == [1, 1]
    assert polynomial(x, 3.9).tolist() == polynomial(x, tg.tensor([3, 3])).tolist()
    assert polynomial(2.0, tg.tensor([1, 5])).shape == (2,)
    with pytest.raises(ValueError, match="degrees up to 100000"):
        polynomial(x, 10**9)


def test_chebyshev_polynomials_are_cosines_and_sines():
    x = tg.linspace(-0.95, 0.95, 7, dtype=tg.float64)
    t, n = tg.acos(x), 9
    for shifted in ("", "shifted_"):
        y = (x + 1) / 2 if shifted else x
        for kind, expected in {
            "t": tg.cos(n * t),
            "u": tg.sin((n + 1) * t) / tg.sin(t),
            "v": tg.cos((n + 0.5) * t) / tg.cos(t / 2),
            "w": tg.sin((n + 0.5) * t) / tg.sin(t / 2),
        }.items():
            value = getattr(special, f"{shifted}chebyshev_polynomial_{kind}")(y, n)
            assert tg.allclose(value, expected, rtol=1e-12, atol=1e-12)


def test_every_function_can_be_named_from_another_process():
    for name in special.__all__:
        function = getattr(special, name)
        assert pickle.loads(pickle.dumps(function)) is function, name


@pytest.mark.parametrize("name", [*VALUES, "modified_bessel_i0"])
def test_types(name):
    function = getattr(special, name)
    assert function(tg.tensor([1, 2])).dtype == tg.float32
    assert function(tg.tensor([1.0], dtype=tg.float16)).dtype == tg.float16
    with pytest.raises(TypeError, match=r"real numbers|no such function"):
        function(tg.tensor([1j]))


@pytest.mark.parametrize("vectors", [False, True])
def test_both_ways_to_compute_smooth_exponentials_are_precise(vectors, monkeypatch):
    """By NumPy's functions, where it has vector instructions for them, and by polynomials."""
    monkeypatch.setattr(exponential_arrays, "in_vectors", lambda name: vectors)
    x = -np.logspace(-6, 2, 5000).astype(np.float32)
    exact = x.astype(np.float64)
    assert np.allclose(exponential_arrays.log1p_exp(x), np.log1p(np.exp(exact)), rtol=5e-7, atol=1e-38)
    assert np.allclose(exponential_arrays.expm1_negative(x), np.expm1(exact), rtol=5e-7)
    assert not exponential_arrays.expm1_negative(-x).any()
    assert np.isnan(exponential_arrays.log1p_exp(np.float32([np.nan, -1]))).tolist() == [True, False]

"""Functions of ``telegrad.special``: written by ``python -m telegrad.core.signatures.write``; do not edit."""

from ..ops.elementwise.exponential import entr as entr
from ..ops.elementwise.exponential import exp2 as exp2
from ..ops.elementwise.exponential import expm1 as expm1
from ..ops.elementwise.exponential import log1p as log1p
from ..ops.elementwise.exponential import logit as logit
from ..ops.elementwise.exponential import sigmoid as expit
from ..ops.elementwise.exponential import xlog1py as xlog1py
from ..ops.elementwise.exponential import xlogy as xlogy
from ..ops.elementwise.rounding import round as round
from ..ops.elementwise.trigonometric import sinc as sinc
from ..ops.reduce.softmax import log_softmax as log_softmax
from ..ops.reduce.softmax import logsumexp as logsumexp
from ..ops.reduce.softmax import softmax as softmax
from ..ops.special.bessel import airy_ai as airy_ai
from ..ops.special.bessel import bessel_j0 as bessel_j0
from ..ops.special.bessel import bessel_j1 as bessel_j1
from ..ops.special.bessel import bessel_y0 as bessel_y0
from ..ops.special.bessel import bessel_y1 as bessel_y1
from ..ops.special.bessel import i0 as i0
from ..ops.special.bessel import i0 as modified_bessel_i0
from ..ops.special.bessel import i0e as i0e
from ..ops.special.bessel import i1 as i1
from ..ops.special.bessel import i1 as modified_bessel_i1
from ..ops.special.bessel import i1e as i1e
from ..ops.special.bessel import modified_bessel_k0 as modified_bessel_k0
from ..ops.special.bessel import modified_bessel_k1 as modified_bessel_k1
from ..ops.special.bessel import scaled_modified_bessel_k0 as scaled_modified_bessel_k0
from ..ops.special.bessel import scaled_modified_bessel_k1 as scaled_modified_bessel_k1
from ..ops.special.bessel import spherical_bessel_j0 as spherical_bessel_j0
from ..ops.special.error_and_gamma import digamma as digamma
from ..ops.special.error_and_gamma import digamma as psi
from ..ops.special.error_and_gamma import erf as erf
from ..ops.special.error_and_gamma import erfc as erfc
from ..ops.special.error_and_gamma import erfcx as erfcx
from ..ops.special.error_and_gamma import erfinv as erfinv
from ..ops.special.error_and_gamma import igamma as gammainc
from ..ops.special.error_and_gamma import igammac as gammaincc
from ..ops.special.error_and_gamma import lgamma as gammaln
from ..ops.special.error_and_gamma import log_ndtr as log_ndtr
from ..ops.special.error_and_gamma import mvlgamma as multigammaln
from ..ops.special.error_and_gamma import ndtr as ndtr
from ..ops.special.error_and_gamma import ndtri as ndtri
from ..ops.special.error_and_gamma import polygamma as polygamma
from ..ops.special.error_and_gamma import zeta as zeta
from ..ops.special.orthogonal_polynomials import chebyshev_polynomial_t as chebyshev_polynomial_t
from ..ops.special.orthogonal_polynomials import chebyshev_polynomial_u as chebyshev_polynomial_u
from ..ops.special.orthogonal_polynomials import chebyshev_polynomial_v as chebyshev_polynomial_v
from ..ops.special.orthogonal_polynomials import chebyshev_polynomial_w as chebyshev_polynomial_w
from ..ops.special.orthogonal_polynomials import hermite_polynomial_h as hermite_polynomial_h
from ..ops.special.orthogonal_polynomials import hermite_polynomial_he as hermite_polynomial_he
from ..ops.special.orthogonal_polynomials import laguerre_polynomial_l as laguerre_polynomial_l
from ..ops.special.orthogonal_polynomials import legendre_polynomial_p as legendre_polynomial_p
from ..ops.special.orthogonal_polynomials import shifted_chebyshev_polynomial_t as shifted_chebyshev_polynomial_t
from ..ops.special.orthogonal_polynomials import shifted_chebyshev_polynomial_u as shifted_chebyshev_polynomial_u
from ..ops.special.orthogonal_polynomials import shifted_chebyshev_polynomial_v as shifted_chebyshev_polynomial_v
from ..ops.special.orthogonal_polynomials import shifted_chebyshev_polynomial_w as shifted_chebyshev_polynomial_w

__all__ = [
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammaln",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
    "sinc",
    "softmax",
    "spherical_bessel_j0",
    "xlog1py",
    "xlogy",
    "zeta",
]

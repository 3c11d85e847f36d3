"""``tg.special``: functions of mathematical physics and statistics under the names of ``torch.special``."""

from __future__ import annotations

import math

from .creation import as_tensor
from .operation import delivered, operation
from .ops.elementwise import basic, exponential
from .ops.elementwise.basic import sigmoid as expit
from .ops.elementwise.exponential import exp2, expm1, log1p, logit, xlogy
from .ops.elementwise.rounding import round
from .ops.elementwise.trigonometric import sinc
from .ops.index import masking
from .ops.reduce.softmax import log_softmax, logsumexp, softmax
from .ops.special import error_and_gamma
from .ops.special.bessel import (
    airy_ai,
    bessel_j0,
    bessel_j1,
    bessel_y0,
    bessel_y1,
    i0,
    i0e,
    i1,
    i1e,
    modified_bessel_k0,
    modified_bessel_k1,
    scaled_modified_bessel_k0,
    scaled_modified_bessel_k1,
    spherical_bessel_j0,
)
from .ops.special.bessel import i0 as modified_bessel_i0
from .ops.special.bessel import i1 as modified_bessel_i1
from .ops.special.error_and_gamma import digamma, erf, erfc, erfcx, erfinv, log_ndtr, polygamma
from .ops.special.error_and_gamma import digamma as psi
from .ops.special.error_and_gamma import lgamma as gammaln
from .ops.special.error_and_gamma import mvlgamma as multigammaln
from .ops.special.gamma_and_zeta import igamma as gammainc
from .ops.special.gamma_and_zeta import igammac as gammaincc
from .ops.special.gamma_and_zeta import zeta
from .ops.special.orthogonal_polynomials import (
    chebyshev_polynomial_t,
    chebyshev_polynomial_u,
    chebyshev_polynomial_v,
    chebyshev_polynomial_w,
    hermite_polynomial_h,
    hermite_polynomial_he,
    laguerre_polynomial_l,
    legendre_polynomial_p,
    shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
)
from .tensors import Operand, Tensor

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


@operation
def entr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``-input * log(input)``: 0 at 0, and -inf below."""
    result = masking.where(input < 0, -math.inf, -exponential.xlogy(input, input))
    return delivered("special.entr", result, out)


@operation
def ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The share of a standard normal distribution that is below ``input``."""
    return delivered("special.ndtr", error_and_gamma.erfc(input * -math.sqrt(0.5)) * 0.5, out)


@operation
def ndtri(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of ``ndtr``: infinite at 0 and 1, nan beyond."""
    return delivered("special.ndtri", error_and_gamma.erfinv(input * 2 - 1) * math.sqrt(2), out)


@operation
def xlog1py(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``input * log1p(other)``, and 0 where ``input`` is 0, unless ``other`` is nan."""
    dtype = input.dtype if isinstance(input, Tensor) and not isinstance(other, Tensor) else None
    other = as_tensor(other, dtype)
    silent = basic.eq(as_tensor(input), 0) & ~basic.isnan(other)
    # Silenced before the product, or 0 times an infinity would be nan, in the gradient too.
    return delivered("special.xlog1py", basic.mul(input, masking.where(silent, 0.0, exponential.log1p(other))), out)

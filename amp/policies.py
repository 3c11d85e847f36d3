"""Precision of operations under autocast: PyTorch's lists for the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.extend import ArgumentCast, Tensor

DType = np.dtype[Any]
LOWER = ("bfloat16", "float16")
_SINGLE = np.dtype(np.float32)
_HALVES = {*LOWER, "float32"}


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Computed in the lower precision.
_PRODUCTS = _names(
    """mm matmul bmm addmm addbmm baddbmm inner einsum tensordot chain_matmul multi_dot vecdot matrix_power affine_grid
    linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc prelu
    scaled_dot_product_attention attention lstm_layer rnn_layer"""
)
# Computed in float32.
_SINGLES = _names(
    """cdist pdist prod trace quantile nanquantile polar view_as_complex complex stft grid_sample
    avg_pool3d adaptive_avg_pool3d adaptive_max_pool3d max_pool3d max_unpool1d max_unpool2d max_unpool3d fractional_max_pool2d
    fractional_max_pool3d binary_cross_entropy binary_cross_entropy_with_logits mse_loss l1_loss smooth_l1_loss huber_loss
    nll_loss cross_entropy kl_div poisson_nll_loss soft_margin_loss multi_margin_loss multilabel_margin_loss
    hinge_embedding_loss cosine_embedding_loss margin_ranking_loss triplet_margin_loss ctc_loss
    cholesky cholesky_ex cholesky_inverse cholesky_solve inv inv_ex inverse pinv pinverse det slogdet logdet eigvalsh eigh
    eigvals eig svdvals svd linalg_svd qr linalg_qr geqrf householder_product orgqr ormqr solve solve_ex solve_triangular
    triangular_solve lstsq lu lu_factor lu_factor_ex linalg_lu lu_solve linalg_lu_solve cond matrix_rank tensorinv
    tensorsolve ldl_factor ldl_factor_ex ldl_solve
    fft_fft fft_ifft fft_rfft fft_irfft fft_hfft fft_ihfft fft_fft2 fft_ifft2 fft_rfft2 fft_irfft2 fft_fftn fft_ifftn
    fft_rfftn fft_irfftn fft_hfft2 fft_ihfft2 fft_hfftn fft_ihfftn"""
)
# Computed in the widest precision of their tensors.
_JOINING = _names("cat stack hstack vstack dstack column_stack index_copy")
# Computed as given, also where this library computes them by products.
_AS_GIVEN = _names(
    "mv dot vdot outer addmv addr bilinear kron matrix_exp linalg_norm matrix_norm vector_norm norm gru_layer"
)


def cast_to(lower: DType) -> ArgumentCast:
    """Return the function that converts the arguments of operations whose lower precision is ``lower``."""

    def cast(
        func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        name = func.__name__
        if kwargs.get("out") is not None or (name.endswith("_") and not name.endswith("__")) or name in _AS_GIVEN:
            return args, kwargs
        if name in _PRODUCTS:
            wanted = lower
        elif name in _SINGLES or (name == "pad" and _reflects(*args, **kwargs)):
            wanted = _SINGLE
        elif name in _JOINING:
            wanted = _widest([args, kwargs], lower)
        else:
            return None
        return _converted(args, wanted), _converted(kwargs, wanted)

    return cast


def _reflects(input: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> bool:  # noqa: A002
    return mode == "replicate" or (mode == "reflect" and len(pad) < 6)


def _widest(value: Any, lower: DType) -> DType:
    if isinstance(value, Tensor):
        return _SINGLE if value.dtype == _SINGLE else lower
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return _SINGLE if any(_widest(part, lower) == _SINGLE for part in parts) else lower


def _converted(value: Any, dtype: DType) -> Any:
    """Return ``value`` with the tensors in it converted that are floating-point, but not those of float64."""
    if isinstance(value, Tensor):
        return value.to(dtype) if value.dtype.name in _HALVES and value.dtype != dtype else value
    if type(value) in (tuple, list):
        return type(value)([_converted(part, dtype) for part in value])
    if type(value) is dict:
        return {key: _converted(part, dtype) for key, part in value.items()}
    return value

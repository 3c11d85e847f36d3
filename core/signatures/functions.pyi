"""Functions of ``telegrad``: written by ``python -m telegrad.core.signatures.write``; do not edit."""

from ..ops.create.filled_tensors import empty as empty
from ..ops.create.filled_tensors import empty_like as empty_like
from ..ops.create.filled_tensors import empty_permuted as empty_permuted
from ..ops.create.filled_tensors import empty_strided as empty_strided
from ..ops.create.filled_tensors import full as full
from ..ops.create.filled_tensors import full_like as full_like
from ..ops.create.filled_tensors import ones as ones
from ..ops.create.filled_tensors import ones_like as ones_like
from ..ops.create.filled_tensors import zeros as zeros
from ..ops.create.filled_tensors import zeros_like as zeros_like
from ..ops.create.filling import fill as fill
from ..ops.create.filling import zero_ as zero_
from ..ops.create.from_data import as_tensor as as_tensor
from ..ops.create.from_data import asarray as asarray
from ..ops.create.from_data import from_dlpack as from_dlpack
from ..ops.create.from_data import from_numpy as from_numpy
from ..ops.create.from_data import frombuffer as frombuffer
from ..ops.create.from_data import scalar_tensor as scalar_tensor
from ..ops.create.from_data import tensor as tensor
from ..ops.create.ranges import arange as arange
from ..ops.create.ranges import eye as eye
from ..ops.create.ranges import linspace as linspace
from ..ops.create.ranges import logspace as logspace
from ..ops.create.ranges import tril_indices as tril_indices
from ..ops.create.ranges import triu_indices as triu_indices
from ..ops.create.sparse import sparse_coo_tensor as sparse_coo_tensor
from ..ops.create.typed_tensors import BoolTensor as BoolTensor
from ..ops.create.typed_tensors import ByteTensor as ByteTensor
from ..ops.create.typed_tensors import CharTensor as CharTensor
from ..ops.create.typed_tensors import DoubleTensor as DoubleTensor
from ..ops.create.typed_tensors import FloatTensor as FloatTensor
from ..ops.create.typed_tensors import HalfTensor as HalfTensor
from ..ops.create.typed_tensors import IntTensor as IntTensor
from ..ops.create.typed_tensors import LongTensor as LongTensor
from ..ops.create.typed_tensors import ShortTensor as ShortTensor
from ..ops.elementwise.arithmetic import addcdiv as addcdiv
from ..ops.elementwise.arithmetic import addcmul as addcmul
from ..ops.elementwise.arithmetic import copysign as copysign
from ..ops.elementwise.arithmetic import fmod as fmod
from ..ops.elementwise.arithmetic import heaviside as heaviside
from ..ops.elementwise.arithmetic import lerp as lerp
from ..ops.elementwise.arithmetic import nan_to_num as nan_to_num
from ..ops.elementwise.arithmetic import positive as positive
from ..ops.elementwise.arithmetic import rsub as rsub
from ..ops.elementwise.arithmetic import sgn as sgn
from ..ops.elementwise.bitwise import bitwise_and as bitwise_and
from ..ops.elementwise.bitwise import bitwise_left_shift as bitwise_left_shift
from ..ops.elementwise.bitwise import bitwise_not as bitwise_not
from ..ops.elementwise.bitwise import bitwise_or as bitwise_or
from ..ops.elementwise.bitwise import bitwise_right_shift as bitwise_right_shift
from ..ops.elementwise.bitwise import bitwise_xor as bitwise_xor
from ..ops.elementwise.bitwise import logical_and as logical_and
from ..ops.elementwise.bitwise import logical_or as logical_or
from ..ops.elementwise.bitwise import logical_xor as logical_xor
from ..ops.elementwise.comparison import allclose as allclose
from ..ops.elementwise.comparison import eq as eq
from ..ops.elementwise.comparison import equal as equal
from ..ops.elementwise.comparison import fmax as fmax
from ..ops.elementwise.comparison import fmin as fmin
from ..ops.elementwise.comparison import ge as ge
from ..ops.elementwise.comparison import ge as greater_equal
from ..ops.elementwise.comparison import gt as greater
from ..ops.elementwise.comparison import gt as gt
from ..ops.elementwise.comparison import isclose as isclose
from ..ops.elementwise.comparison import isfinite as isfinite
from ..ops.elementwise.comparison import isinf as isinf
from ..ops.elementwise.comparison import isnan as isnan
from ..ops.elementwise.comparison import isneginf as isneginf
from ..ops.elementwise.comparison import isposinf as isposinf
from ..ops.elementwise.comparison import isreal as isreal
from ..ops.elementwise.comparison import le as le
from ..ops.elementwise.comparison import le as less_equal
from ..ops.elementwise.comparison import logical_not as logical_not
from ..ops.elementwise.comparison import lt as less
from ..ops.elementwise.comparison import lt as lt
from ..ops.elementwise.comparison import maximum as maximum
from ..ops.elementwise.comparison import minimum as minimum
from ..ops.elementwise.comparison import ne as ne
from ..ops.elementwise.comparison import ne as not_equal
from ..ops.elementwise.comparison import signbit as signbit
from ..ops.elementwise.complex_numbers import angle as angle
from ..ops.elementwise.complex_numbers import complex as complex
from ..ops.elementwise.complex_numbers import conj as conj
from ..ops.elementwise.complex_numbers import conj_physical as conj_physical
from ..ops.elementwise.complex_numbers import imag as imag
from ..ops.elementwise.complex_numbers import is_complex as is_complex
from ..ops.elementwise.complex_numbers import polar as polar
from ..ops.elementwise.complex_numbers import real as real
from ..ops.elementwise.complex_numbers import resolve_conj as resolve_conj
from ..ops.elementwise.complex_numbers import resolve_neg as resolve_neg
from ..ops.elementwise.complex_numbers import view_as_complex as view_as_complex
from ..ops.elementwise.complex_numbers import view_as_real as view_as_real
from ..ops.elementwise.conversion import clone as clone
from ..ops.elementwise.conversion import detach as detach
from ..ops.elementwise.exponential import exp as exp
from ..ops.elementwise.exponential import exp2 as exp2
from ..ops.elementwise.exponential import expm1 as expm1
from ..ops.elementwise.exponential import float_power as float_power
from ..ops.elementwise.exponential import hypot as hypot
from ..ops.elementwise.exponential import log as log
from ..ops.elementwise.exponential import log10 as log10
from ..ops.elementwise.exponential import log1p as log1p
from ..ops.elementwise.exponential import log2 as log2
from ..ops.elementwise.exponential import logaddexp as logaddexp
from ..ops.elementwise.exponential import logaddexp2 as logaddexp2
from ..ops.elementwise.exponential import logit as logit
from ..ops.elementwise.exponential import reciprocal as reciprocal
from ..ops.elementwise.exponential import rsqrt as rsqrt
from ..ops.elementwise.exponential import sigmoid as sigmoid
from ..ops.elementwise.exponential import sqrt as sqrt
from ..ops.elementwise.exponential import square as square
from ..ops.elementwise.exponential import xlogy as xlogy
from ..ops.elementwise.operators import abs as abs
from ..ops.elementwise.operators import abs as absolute
from ..ops.elementwise.operators import add as add
from ..ops.elementwise.operators import div as div
from ..ops.elementwise.operators import div as divide
from ..ops.elementwise.operators import div as true_divide
from ..ops.elementwise.operators import floor_divide as floor_divide
from ..ops.elementwise.operators import mul as mul
from ..ops.elementwise.operators import mul as multiply
from ..ops.elementwise.operators import neg as neg
from ..ops.elementwise.operators import neg as negative
from ..ops.elementwise.operators import pow as pow
from ..ops.elementwise.operators import relu as relu
from ..ops.elementwise.operators import remainder as remainder
from ..ops.elementwise.operators import sign as sign
from ..ops.elementwise.operators import sub as sub
from ..ops.elementwise.operators import sub as subtract
from ..ops.elementwise.rounding import ceil as ceil
from ..ops.elementwise.rounding import clamp as clamp
from ..ops.elementwise.rounding import clamp as clip
from ..ops.elementwise.rounding import clamp_max as clamp_max
from ..ops.elementwise.rounding import clamp_min as clamp_min
from ..ops.elementwise.rounding import floor as floor
from ..ops.elementwise.rounding import frac as frac
from ..ops.elementwise.rounding import frexp as frexp
from ..ops.elementwise.rounding import gcd as gcd
from ..ops.elementwise.rounding import lcm as lcm
from ..ops.elementwise.rounding import ldexp as ldexp
from ..ops.elementwise.rounding import nextafter as nextafter
from ..ops.elementwise.rounding import round as round
from ..ops.elementwise.rounding import trunc as fix
from ..ops.elementwise.rounding import trunc as trunc
from ..ops.elementwise.trigonometric import acos as acos
from ..ops.elementwise.trigonometric import acos as arccos
from ..ops.elementwise.trigonometric import acosh as acosh
from ..ops.elementwise.trigonometric import acosh as arccosh
from ..ops.elementwise.trigonometric import asin as arcsin
from ..ops.elementwise.trigonometric import asin as asin
from ..ops.elementwise.trigonometric import asinh as arcsinh
from ..ops.elementwise.trigonometric import asinh as asinh
from ..ops.elementwise.trigonometric import atan as arctan
from ..ops.elementwise.trigonometric import atan as atan
from ..ops.elementwise.trigonometric import atan2 as arctan2
from ..ops.elementwise.trigonometric import atan2 as atan2
from ..ops.elementwise.trigonometric import atanh as arctanh
from ..ops.elementwise.trigonometric import atanh as atanh
from ..ops.elementwise.trigonometric import cos as cos
from ..ops.elementwise.trigonometric import cosh as cosh
from ..ops.elementwise.trigonometric import deg2rad as deg2rad
from ..ops.elementwise.trigonometric import rad2deg as rad2deg
from ..ops.elementwise.trigonometric import sin as sin
from ..ops.elementwise.trigonometric import sinc as sinc
from ..ops.elementwise.trigonometric import sinh as sinh
from ..ops.elementwise.trigonometric import tan as tan
from ..ops.elementwise.trigonometric import tanh as tanh
from ..ops.index.index_select import embedding as embedding
from ..ops.index.index_select import index_add as index_add
from ..ops.index.index_select import index_copy as index_copy
from ..ops.index.index_select import index_fill as index_fill
from ..ops.index.index_select import index_reduce as index_reduce
from ..ops.index.index_select import index_select as index_select
from ..ops.index.index_select import select as select
from ..ops.index.index_select import select_scatter as select_scatter
from ..ops.index.index_select import slice_scatter as slice_scatter
from ..ops.index.indexing import index_put as index_put
from ..ops.index.indexing import put as put
from ..ops.index.indexing import take as take
from ..ops.index.masking import argwhere as argwhere
from ..ops.index.masking import masked_fill as masked_fill
from ..ops.index.masking import masked_scatter as masked_scatter
from ..ops.index.masking import masked_select as masked_select
from ..ops.index.masking import nonzero as nonzero
from ..ops.index.masking import nonzero_static as nonzero_static
from ..ops.index.masking import where as where
from ..ops.index.scatter import gather as gather
from ..ops.index.scatter import scatter as scatter
from ..ops.index.scatter import scatter_add as scatter_add
from ..ops.index.scatter import scatter_reduce as scatter_reduce
from ..ops.index.scatter import take_along_dim as take_along_dim
from ..ops.linalg.added_products import addbmm as addbmm
from ..ops.linalg.added_products import addmm as addmm
from ..ops.linalg.added_products import addmv as addmv
from ..ops.linalg.added_products import addr as addr
from ..ops.linalg.added_products import baddbmm as baddbmm
from ..ops.linalg.decompositions import cholesky as cholesky
from ..ops.linalg.decompositions import geqrf as geqrf
from ..ops.linalg.decompositions import orgqr as orgqr
from ..ops.linalg.decompositions import ormqr as ormqr
from ..ops.linalg.decompositions import qr as qr
from ..ops.linalg.eigenvalues import svd as svd
from ..ops.linalg.einsum import einsum as einsum
from ..ops.linalg.einsum import kron as kron
from ..ops.linalg.einsum import tensordot as tensordot
from ..ops.linalg.lobpcg import lobpcg as lobpcg
from ..ops.linalg.low_rank import pca_lowrank as pca_lowrank
from ..ops.linalg.low_rank import svd_lowrank as svd_lowrank
from ..ops.linalg.lu import lu as lu
from ..ops.linalg.lu import lu_solve as lu_solve
from ..ops.linalg.lu import lu_unpack as lu_unpack
from ..ops.linalg.matrix_functions import chain_matmul as chain_matmul
from ..ops.linalg.matrix_functions import det as det
from ..ops.linalg.matrix_functions import logdet as logdet
from ..ops.linalg.matrix_functions import matrix_exp as matrix_exp
from ..ops.linalg.matrix_functions import matrix_power as matrix_power
from ..ops.linalg.matrix_functions import slogdet as slogdet
from ..ops.linalg.matrix_products import bmm as bmm
from ..ops.linalg.matrix_products import dot as dot
from ..ops.linalg.matrix_products import inner as inner
from ..ops.linalg.matrix_products import linear as linear
from ..ops.linalg.matrix_products import matmul as matmul
from ..ops.linalg.matrix_products import mm as mm
from ..ops.linalg.matrix_products import mv as mv
from ..ops.linalg.matrix_products import outer as ger
from ..ops.linalg.matrix_products import outer as outer
from ..ops.linalg.matrix_products import vdot as vdot
from ..ops.linalg.norms import dist as dist
from ..ops.linalg.norms import norm as norm
from ..ops.linalg.norms import renorm as renorm
from ..ops.linalg.solving import cholesky_inverse as cholesky_inverse
from ..ops.linalg.solving import cholesky_solve as cholesky_solve
from ..ops.linalg.solving import inverse as inverse
from ..ops.linalg.solving import pinverse as pinverse
from ..ops.linalg.triangular import triangular_solve as triangular_solve
from ..ops.linalg.vector_products import cdist as cdist
from ..ops.linalg.vector_products import cross as cross
from ..ops.linalg.vector_products import pdist as pdist
from ..ops.linalg.vector_products import vander as vander
from ..ops.random.sampling import bernoulli as bernoulli
from ..ops.random.sampling import multinomial as multinomial
from ..ops.random.sampling import normal as normal
from ..ops.random.sampling import poisson as poisson
from ..ops.random.sampling import rand as rand
from ..ops.random.sampling import rand_like as rand_like
from ..ops.random.sampling import randint as randint
from ..ops.random.sampling import randint_like as randint_like
from ..ops.random.sampling import randn as randn
from ..ops.random.sampling import randn_like as randn_like
from ..ops.random.sampling import randperm as randperm
from ..ops.reduce.counting import bincount as bincount
from ..ops.reduce.counting import bucketize as bucketize
from ..ops.reduce.counting import histc as histc
from ..ops.reduce.counting import isin as isin
from ..ops.reduce.counting import searchsorted as searchsorted
from ..ops.reduce.counting import unique as unique
from ..ops.reduce.counting import unique_consecutive as unique_consecutive
from ..ops.reduce.counting import unravel_index as unravel_index
from ..ops.reduce.cumulative import cummax as cummax
from ..ops.reduce.cumulative import cummin as cummin
from ..ops.reduce.cumulative import cumprod as cumprod
from ..ops.reduce.cumulative import cumsum as cumsum
from ..ops.reduce.cumulative import diff as diff
from ..ops.reduce.cumulative import logcumsumexp as logcumsumexp
from ..ops.reduce.extremes import amax as amax
from ..ops.reduce.extremes import amin as amin
from ..ops.reduce.extremes import aminmax as aminmax
from ..ops.reduce.extremes import argmax as argmax
from ..ops.reduce.extremes import argmin as argmin
from ..ops.reduce.extremes import max as max
from ..ops.reduce.extremes import min as min
from ..ops.reduce.hashing import hash_tensor as hash_tensor
from ..ops.reduce.histograms import histogram as histogram
from ..ops.reduce.histograms import histogramdd as histogramdd
from ..ops.reduce.integrals import cumulative_trapezoid as cumulative_trapezoid
from ..ops.reduce.integrals import gradient as gradient
from ..ops.reduce.integrals import trapezoid as trapezoid
from ..ops.reduce.integrals import trapezoid as trapz
from ..ops.reduce.losses import cross_entropy as cross_entropy
from ..ops.reduce.losses import l1_loss as l1_loss
from ..ops.reduce.losses import mse_loss as mse_loss
from ..ops.reduce.losses import nll_loss as nll_loss
from ..ops.reduce.reductions import all as all
from ..ops.reduce.reductions import any as any
from ..ops.reduce.reductions import count_nonzero as count_nonzero
from ..ops.reduce.reductions import mean as mean
from ..ops.reduce.reductions import nanmean as nanmean
from ..ops.reduce.reductions import nansum as nansum
from ..ops.reduce.reductions import prod as prod
from ..ops.reduce.reductions import sum as sum
from ..ops.reduce.softmax import dropout as dropout
from ..ops.reduce.softmax import log_softmax as log_softmax
from ..ops.reduce.softmax import logsumexp as logsumexp
from ..ops.reduce.softmax import softmax as softmax
from ..ops.reduce.sorting import argsort as argsort
from ..ops.reduce.sorting import kthvalue as kthvalue
from ..ops.reduce.sorting import median as median
from ..ops.reduce.sorting import mode as mode
from ..ops.reduce.sorting import msort as msort
from ..ops.reduce.sorting import nanmedian as nanmedian
from ..ops.reduce.sorting import nanquantile as nanquantile
from ..ops.reduce.sorting import quantile as quantile
from ..ops.reduce.sorting import sort as sort
from ..ops.reduce.sorting import topk as topk
from ..ops.reduce.statistics import corrcoef as corrcoef
from ..ops.reduce.statistics import cov as cov
from ..ops.reduce.statistics import std as std
from ..ops.reduce.statistics import std_mean as std_mean
from ..ops.reduce.statistics import var as var
from ..ops.reduce.statistics import var_mean as var_mean
from ..ops.shape.copies import alias_copy as alias_copy
from ..ops.shape.copies import as_strided_copy as as_strided_copy
from ..ops.shape.copies import diagonal_copy as diagonal_copy
from ..ops.shape.copies import expand_copy as expand_copy
from ..ops.shape.copies import narrow_copy as narrow_copy
from ..ops.shape.copies import permute_copy as permute_copy
from ..ops.shape.copies import select_copy as select_copy
from ..ops.shape.copies import split_copy as split_copy
from ..ops.shape.copies import split_with_sizes_copy as split_with_sizes_copy
from ..ops.shape.copies import squeeze_copy as squeeze_copy
from ..ops.shape.copies import t_copy as t_copy
from ..ops.shape.copies import transpose_copy as transpose_copy
from ..ops.shape.copies import unbind_copy as unbind_copy
from ..ops.shape.copies import unfold_copy as unfold_copy
from ..ops.shape.copies import unsqueeze_copy as unsqueeze_copy
from ..ops.shape.copies import view_copy as view_copy
from ..ops.shape.diagonal import diag as diag
from ..ops.shape.diagonal import diag_embed as diag_embed
from ..ops.shape.diagonal import diagflat as diagflat
from ..ops.shape.diagonal import diagonal as diagonal
from ..ops.shape.diagonal import diagonal_scatter as diagonal_scatter
from ..ops.shape.diagonal import trace as trace
from ..ops.shape.diagonal import tril as tril
from ..ops.shape.diagonal import triu as triu
from ..ops.shape.flipping import flip as flip
from ..ops.shape.flipping import fliplr as fliplr
from ..ops.shape.flipping import flipud as flipud
from ..ops.shape.flipping import roll as roll
from ..ops.shape.flipping import rot90 as rot90
from ..ops.shape.joining import block_diag as block_diag
from ..ops.shape.joining import cat as cat
from ..ops.shape.joining import cat as concat
from ..ops.shape.joining import cat as concatenate
from ..ops.shape.joining import column_stack as column_stack
from ..ops.shape.joining import dstack as dstack
from ..ops.shape.joining import hstack as hstack
from ..ops.shape.joining import stack as stack
from ..ops.shape.joining import vstack as row_stack
from ..ops.shape.joining import vstack as vstack
from ..ops.shape.padding import constant_pad_nd as constant_pad_nd
from ..ops.shape.padding import pad as pad
from ..ops.shape.queries import is_conj as is_conj
from ..ops.shape.queries import is_floating_point as is_floating_point
from ..ops.shape.queries import is_inference as is_inference
from ..ops.shape.queries import is_neg as is_neg
from ..ops.shape.queries import is_nonzero as is_nonzero
from ..ops.shape.queries import is_same_size as is_same_size
from ..ops.shape.queries import is_signed as is_signed
from ..ops.shape.queries import is_tensor as is_tensor
from ..ops.shape.queries import numel as numel
from ..ops.shape.repeating import broadcast_shapes as broadcast_shapes
from ..ops.shape.repeating import broadcast_tensors as broadcast_tensors
from ..ops.shape.repeating import broadcast_to as broadcast_to
from ..ops.shape.repeating import cartesian_prod as cartesian_prod
from ..ops.shape.repeating import combinations as combinations
from ..ops.shape.repeating import meshgrid as meshgrid
from ..ops.shape.repeating import repeat_interleave as repeat_interleave
from ..ops.shape.repeating import tile as tile
from ..ops.shape.reshaping import atleast_1d as atleast_1d
from ..ops.shape.reshaping import atleast_2d as atleast_2d
from ..ops.shape.reshaping import atleast_3d as atleast_3d
from ..ops.shape.reshaping import flatten as flatten
from ..ops.shape.reshaping import ravel as ravel
from ..ops.shape.reshaping import reshape as reshape
from ..ops.shape.reshaping import squeeze as squeeze
from ..ops.shape.reshaping import unflatten as unflatten
from ..ops.shape.reshaping import unsqueeze as unsqueeze
from ..ops.shape.resizing import resize_as_ as resize_as_
from ..ops.shape.splitting import chunk as chunk
from ..ops.shape.splitting import chunk as unsafe_chunk
from ..ops.shape.splitting import dsplit as dsplit
from ..ops.shape.splitting import hsplit as hsplit
from ..ops.shape.splitting import narrow as narrow
from ..ops.shape.splitting import split as split
from ..ops.shape.splitting import split as unsafe_split
from ..ops.shape.splitting import split_with_sizes as split_with_sizes
from ..ops.shape.splitting import tensor_split as tensor_split
from ..ops.shape.splitting import unbind as unbind
from ..ops.shape.splitting import vsplit as vsplit
from ..ops.shape.strided import as_strided as as_strided
from ..ops.shape.strided import as_strided_scatter as as_strided_scatter
from ..ops.shape.transposing import adjoint as adjoint
from ..ops.shape.transposing import movedim as moveaxis
from ..ops.shape.transposing import movedim as movedim
from ..ops.shape.transposing import permute as permute
from ..ops.shape.transposing import swapaxes as swapaxes
from ..ops.shape.transposing import t as t
from ..ops.shape.transposing import transpose as swapdims
from ..ops.shape.transposing import transpose as transpose
from ..ops.special.bessel import i0 as i0
from ..ops.special.error_and_gamma import digamma as digamma
from ..ops.special.error_and_gamma import erf as erf
from ..ops.special.error_and_gamma import erfc as erfc
from ..ops.special.error_and_gamma import erfinv as erfinv
from ..ops.special.error_and_gamma import igamma as igamma
from ..ops.special.error_and_gamma import igammac as igammac
from ..ops.special.error_and_gamma import lgamma as lgamma
from ..ops.special.error_and_gamma import mvlgamma as mvlgamma
from ..ops.special.error_and_gamma import polygamma as polygamma
from ..ops.spectral.spectrogram import istft as istft
from ..ops.spectral.spectrogram import stft as stft
from ..ops.spectral.window_functions import bartlett_window as bartlett_window
from ..ops.spectral.window_functions import blackman_window as blackman_window
from ..ops.spectral.window_functions import hamming_window as hamming_window
from ..ops.spectral.window_functions import hann_window as hann_window
from ..ops.spectral.window_functions import kaiser_window as kaiser_window
from ..ops.window.adaptive_pooling import adaptive_avg_pool1d as adaptive_avg_pool1d
from ..ops.window.adaptive_pooling import adaptive_avg_pool2d as adaptive_avg_pool2d
from ..ops.window.adaptive_pooling import adaptive_avg_pool3d as adaptive_avg_pool3d
from ..ops.window.adaptive_pooling import adaptive_max_pool1d as adaptive_max_pool1d
from ..ops.window.adaptive_pooling import adaptive_max_pool2d as adaptive_max_pool2d
from ..ops.window.adaptive_pooling import adaptive_max_pool3d as adaptive_max_pool3d
from ..ops.window.convolution import conv1d as conv1d
from ..ops.window.convolution import conv2d as conv2d
from ..ops.window.convolution import conv3d as conv3d
from ..ops.window.convolution import conv_transpose1d as conv_transpose1d
from ..ops.window.convolution import conv_transpose2d as conv_transpose2d
from ..ops.window.convolution import conv_transpose3d as conv_transpose3d
from ..ops.window.folding import col2im as col2im
from ..ops.window.folding import im2col as im2col
from ..ops.window.fractional_pooling import fractional_max_pool2d as fractional_max_pool2d
from ..ops.window.fractional_pooling import fractional_max_pool3d as fractional_max_pool3d
from ..ops.window.interpolation import interpolate as interpolate
from ..ops.window.max_pooling import max_pool1d as max_pool1d
from ..ops.window.max_pooling import max_pool2d as max_pool2d
from ..ops.window.max_pooling import max_pool3d as max_pool3d
from ..ops.window.max_pooling import max_unpool1d as max_unpool1d
from ..ops.window.max_pooling import max_unpool2d as max_unpool2d
from ..ops.window.max_pooling import max_unpool3d as max_unpool3d
from ..ops.window.pooling import avg_pool1d as avg_pool1d
from ..ops.window.pooling import avg_pool2d as avg_pool2d
from ..ops.window.pooling import avg_pool3d as avg_pool3d
from ..ops.window.pooling import lp_pool1d as lp_pool1d
from ..ops.window.pooling import lp_pool2d as lp_pool2d
from ..ops.window.pooling import lp_pool3d as lp_pool3d

__all__ = [
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "abs",
    "absolute",
    "acos",
    "acosh",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "add",
    "addbmm",
    "addcdiv",
    "addcmul",
    "addmm",
    "addmv",
    "addr",
    "adjoint",
    "alias_copy",
    "all",
    "allclose",
    "amax",
    "amin",
    "aminmax",
    "angle",
    "any",
    "arange",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "as_strided",
    "as_strided_copy",
    "as_strided_scatter",
    "as_tensor",
    "asarray",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "baddbmm",
    "bartlett_window",
    "bernoulli",
    "bincount",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "blackman_window",
    "block_diag",
    "bmm",
    "broadcast_shapes",
    "broadcast_tensors",
    "broadcast_to",
    "bucketize",
    "cartesian_prod",
    "cat",
    "cdist",
    "ceil",
    "chain_matmul",
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "chunk",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "clone",
    "col2im",
    "column_stack",
    "combinations",
    "complex",
    "concat",
    "concatenate",
    "conj",
    "conj_physical",
    "constant_pad_nd",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "copysign",
    "corrcoef",
    "cos",
    "cosh",
    "count_nonzero",
    "cov",
    "cross",
    "cross_entropy",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "cumulative_trapezoid",
    "deg2rad",
    "det",
    "detach",
    "diag",
    "diag_embed",
    "diagflat",
    "diagonal",
    "diagonal_copy",
    "diagonal_scatter",
    "diff",
    "digamma",
    "dist",
    "div",
    "divide",
    "dot",
    "dropout",
    "dsplit",
    "dstack",
    "einsum",
    "embedding",
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "eq",
    "equal",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expand_copy",
    "expm1",
    "eye",
    "fill",
    "fix",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "float_power",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "frac",
    "fractional_max_pool2d",
    "fractional_max_pool3d",
    "frexp",
    "from_dlpack",
    "from_numpy",
    "frombuffer",
    "full",
    "full_like",
    "gather",
    "gcd",
    "ge",
    "geqrf",
    "ger",
    "gradient",
    "greater",
    "greater_equal",
    "gt",
    "hamming_window",
    "hann_window",
    "hash_tensor",
    "heaviside",
    "histc",
    "histogram",
    "histogramdd",
    "hsplit",
    "hstack",
    "hypot",
    "i0",
    "igamma",
    "igammac",
    "im2col",
    "imag",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_reduce",
    "index_select",
    "inner",
    "interpolate",
    "inverse",
    "is_complex",
    "is_conj",
    "is_floating_point",
    "is_inference",
    "is_neg",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "is_tensor",
    "isclose",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "istft",
    "kaiser_window",
    "kron",
    "kthvalue",
    "l1_loss",
    "lcm",
    "ldexp",
    "le",
    "lerp",
    "less",
    "less_equal",
    "lgamma",
    "linear",
    "linspace",
    "lobpcg",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_softmax",
    "logaddexp",
    "logaddexp2",
    "logcumsumexp",
    "logdet",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logit",
    "logspace",
    "logsumexp",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "lt",
    "lu",
    "lu_solve",
    "lu_unpack",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "matmul",
    "matrix_exp",
    "matrix_power",
    "max",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "maximum",
    "mean",
    "median",
    "meshgrid",
    "min",
    "minimum",
    "mm",
    "mode",
    "moveaxis",
    "movedim",
    "mse_loss",
    "msort",
    "mul",
    "multinomial",
    "multiply",
    "mv",
    "mvlgamma",
    "nan_to_num",
    "nanmean",
    "nanmedian",
    "nanquantile",
    "nansum",
    "narrow",
    "narrow_copy",
    "ne",
    "neg",
    "negative",
    "nextafter",
    "nll_loss",
    "nonzero",
    "nonzero_static",
    "norm",
    "normal",
    "not_equal",
    "numel",
    "ones",
    "ones_like",
    "orgqr",
    "ormqr",
    "outer",
    "pad",
    "pca_lowrank",
    "pdist",
    "permute",
    "permute_copy",
    "pinverse",
    "poisson",
    "polar",
    "polygamma",
    "positive",
    "pow",
    "prod",
    "put",
    "qr",
    "quantile",
    "rad2deg",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "ravel",
    "real",
    "reciprocal",
    "relu",
    "remainder",
    "renorm",
    "repeat_interleave",
    "reshape",
    "resize_as_",
    "resolve_conj",
    "resolve_neg",
    "roll",
    "rot90",
    "round",
    "row_stack",
    "rsqrt",
    "rsub",
    "scalar_tensor",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "searchsorted",
    "select",
    "select_copy",
    "select_scatter",
    "sgn",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "slice_scatter",
    "slogdet",
    "softmax",
    "sort",
    "sparse_coo_tensor",
    "split",
    "split_copy",
    "split_with_sizes",
    "split_with_sizes_copy",
    "sqrt",
    "square",
    "squeeze",
    "squeeze_copy",
    "stack",
    "std",
    "std_mean",
    "stft",
    "sub",
    "subtract",
    "sum",
    "svd",
    "svd_lowrank",
    "swapaxes",
    "swapdims",
    "t",
    "t_copy",
    "take",
    "take_along_dim",
    "tan",
    "tanh",
    "tensor",
    "tensor_split",
    "tensordot",
    "tile",
    "topk",
    "trace",
    "transpose",
    "transpose_copy",
    "trapezoid",
    "trapz",
    "triangular_solve",
    "tril",
    "tril_indices",
    "triu",
    "triu_indices",
    "true_divide",
    "trunc",
    "unbind",
    "unbind_copy",
    "unflatten",
    "unfold_copy",
    "unique",
    "unique_consecutive",
    "unravel_index",
    "unsafe_chunk",
    "unsafe_split",
    "unsqueeze",
    "unsqueeze_copy",
    "vander",
    "var",
    "var_mean",
    "vdot",
    "view_as_complex",
    "view_as_real",
    "view_copy",
    "vsplit",
    "vstack",
    "where",
    "xlogy",
    "zero_",
    "zeros",
    "zeros_like",
]

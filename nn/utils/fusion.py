"""Fusion of a layer with the batch normalization after it, for evaluation (``torch.nn.utils.fusion``)."""

from __future__ import annotations

import copy
from typing import TypeVar

from ...core import no_grad, ones_like, rsqrt, zeros_like
from ...core.extend import Tensor
from ..batch_normalization import _BatchNorm
from ..convolution import _ConvNd
from ..linear import Linear
from ..parameter import Parameter

C = TypeVar("C", bound="_ConvNd")
L = TypeVar("L", bound=Linear)


@no_grad()
def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of a convolution that does what a convolution and a normalization do.

    Args:
        conv_w: weight, of shape ``(outputs, inputs / groups, *kernel)``.
        conv_b: bias of shape ``(outputs,)``; zeros if ``None``.
        bn_rm: running mean, of shape ``(outputs,)``.
        bn_rv: running variance, of shape ``(outputs,)``.
        bn_eps: number added to the variance.
        bn_w: weight of the normalization; ones if ``None``.
        bn_b: its bias; zeros if ``None``.
        transpose: whether outputs are the second dimension of ``conv_w``, as in transposed convolutions.
    """
    scale = (ones_like(bn_rm) if bn_w is None else bn_w) * rsqrt(bn_rv + bn_eps)
    shift = zeros_like(bn_rm) if bn_b is None else bn_b
    bias = (zeros_like(bn_rm) if conv_b is None else conv_b) - bn_rm
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    weight = (conv_w * scale.reshape(shape)).to(conv_w.dtype)
    fused_bias = (bias * scale + shift).to(conv_w.dtype if conv_b is None else conv_b.dtype)
    learned = conv_w.requires_grad
    return Parameter(weight, learned), Parameter(fused_bias, learned if conv_b is None else conv_b.requires_grad)


def fuse_conv_bn_eval(conv: C, bn: _BatchNorm, transpose: bool = False) -> C:
    """Return a copy of a convolution that does what ``bn(conv(x))`` does in evaluation.

    Args:
        conv: the convolution.
        bn: the normalization after it.
        transpose: whether the convolution is a transposed one.

    Raises:
        ValueError: one of them is in training mode, or ``bn`` has no running statistics.
    """
    mean, variance = _statistics(conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, mean, variance, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of a linear layer that does what a linear layer and a normalization do.

    Args:
        linear_w: weight, of shape ``(outputs, inputs)``.
        linear_b: bias of shape ``(outputs,)``; zeros if ``None``.
        bn_rm: running mean, of shape ``(outputs,)`` or ``(1,)``.
        bn_rv: running variance, of the same shape.
        bn_eps: number added to the variance.
        bn_w: weight of the normalization; ones if ``None``.
        bn_b: its bias; zeros if ``None``.
    """
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_linear_bn_eval(linear: L, bn: _BatchNorm) -> L:
    """Return a copy of a linear layer that does what ``bn(linear(x))`` does in evaluation.

    Args:
        linear: the layer.
        bn: the normalization after it, of as many features or of one.

    Raises:
        ValueError: one of them is in training mode, ``bn`` has no running statistics, or the numbers of features differ.
    """
    mean, variance = _statistics(linear, bn)
    if bn.num_features not in (1, linear.out_features):
        raise ValueError(f"bn has {bn.num_features} features, and linear makes {linear.out_features}")
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, mean, variance, bn.eps, bn.weight, bn.bias
    )
    return fused


def _statistics(layer: _ConvNd | Linear, bn: _BatchNorm) -> tuple[Tensor, Tensor]:
    if layer.training or bn.training:
        raise ValueError("fusion is for evaluation; call eval() of both modules first")
    if bn.running_mean is None or bn.running_var is None:
        raise ValueError("bn has no running statistics; make it with track_running_stats=True")
    return bn.running_mean, bn.running_var

"""Functions of neural networks: convolutions, pooling, normalisation, losses, attention."""

from __future__ import annotations

from typing import Any

from .base import case, cases, indices, normal

IMAGES = normal(8, 32, 16, 16)
WIDE = normal(64, 128)


def grid_sample(lib: Any, x: Any, grid: Any) -> Any:
    """Return the image sampled at points inside it."""
    return lib.nn.functional.grid_sample(x, lib.tanh(grid), align_corners=False)


CASES = (
    case("linear", lambda lib, x, w, b: lib.nn.functional.linear(x, w, b), WIDE, normal(128, 128), normal(128)),
    case("bilinear", lambda lib, x, w: lib.nn.functional.bilinear(x, x, w), normal(32, 16), normal(16, 16, 16)),
    case("conv1d", lambda lib, x, w: lib.nn.functional.conv1d(x, w), normal(16, 16, 128), normal(32, 16, 5)),
    *cases(
        (IMAGES, normal(32, 32, 3, 3)),
        {
            "conv2d 3x3": lambda lib, x, w: lib.nn.functional.conv2d(x, w, padding=1),
            "conv2d 3x3, stride 2": lambda lib, x, w: lib.nn.functional.conv2d(x, w, stride=2),
            "conv2d, dilated": lambda lib, x, w: lib.nn.functional.conv2d(x, w, dilation=2),
            "conv_transpose2d": lambda lib, x, w: lib.nn.functional.conv_transpose2d(x, w, stride=2),
        },
    ),
    case("conv2d 1x1", lambda lib, x, w: lib.nn.functional.conv2d(x, w), IMAGES, normal(64, 32, 1, 1)),
    case("conv2d, depthwise", lambda lib, x, w: lib.nn.functional.conv2d(x, w, groups=32), IMAGES, normal(32, 1, 3, 3)),
    case(
        "conv2d 512 on 1x1",
        lambda lib, x, w: lib.nn.functional.conv2d(x, w, padding=1),
        normal(8, 512, 1, 1),
        normal(512, 512, 3, 3),
    ),
    case("conv3d", lambda lib, x, w: lib.nn.functional.conv3d(x, w), normal(2, 8, 8, 8, 8), normal(8, 8, 3, 3, 3)),
    *cases(
        (IMAGES,),
        {
            "max_pool2d": lambda lib, x: lib.nn.functional.max_pool2d(x, 2),
            "max_pool2d, overlapping": lambda lib, x: lib.nn.functional.max_pool2d(x, 3, stride=2, padding=1),
            "avg_pool2d": lambda lib, x: lib.nn.functional.avg_pool2d(x, 2),
            "adaptive_avg_pool2d": lambda lib, x: lib.nn.functional.adaptive_avg_pool2d(x, 4),
            "interpolate, nearest": lambda lib, x: lib.nn.functional.interpolate(x, scale_factor=2),
            "interpolate, bilinear": lambda lib, x: lib.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
            "pixel_shuffle": lambda lib, x: lib.nn.functional.pixel_shuffle(x, 2),
            "batch_norm": lambda lib, x: lib.nn.functional.batch_norm(x, None, None, training=True),
            "group_norm": lambda lib, x: lib.nn.functional.group_norm(x, 8),
            "instance_norm": lambda lib, x: lib.nn.functional.instance_norm(x),
            "unfold 3x3": lambda lib, x: lib.nn.functional.unfold(x, 3),
            "local_response_norm": lambda lib, x: lib.nn.functional.local_response_norm(x, 4),
        },
    ),
    case("grid_sample", grid_sample, normal(4, 8, 16, 16), normal(4, 16, 16, 2)),
    case("grid_sample of 64x64", grid_sample, normal(4, 16, 64, 64), normal(4, 64, 64, 2)),
    *cases(
        (WIDE,),
        {
            "layer_norm": lambda lib, x: lib.nn.functional.layer_norm(x, (128,)),
            "rms_norm": lambda lib, x: lib.nn.functional.rms_norm(x, (128,)),
            "normalize": lambda lib, x: lib.nn.functional.normalize(x),
            "glu": lambda lib, x: lib.nn.functional.glu(x),
        },
    ),
    *cases(
        (WIDE, normal(64, 128, grad=False)),
        {
            "mse_loss": lambda lib, x, y: lib.nn.functional.mse_loss(x, y),
            "l1_loss": lambda lib, x, y: lib.nn.functional.l1_loss(x, y),
            "smooth_l1_loss": lambda lib, x, y: lib.nn.functional.smooth_l1_loss(x, y),
            "huber_loss": lambda lib, x, y: lib.nn.functional.huber_loss(x, y),
            "binary_cross_entropy_with_logits": lambda lib, x, y: lib.nn.functional.binary_cross_entropy_with_logits(
                x, lib.sigmoid(y)
            ),
            "kl_div": lambda lib, x, y: lib.nn.functional.kl_div(x, lib.sigmoid(y), reduction="batchmean"),
            "cosine_similarity": lambda lib, x, y: lib.nn.functional.cosine_similarity(x, y),
        },
    ),
    case("cross_entropy", lambda lib, x, y: lib.nn.functional.cross_entropy(x, y), WIDE, indices(128, 64)),
    case("nll_loss", lambda lib, x, y: lib.nn.functional.nll_loss(x, y), WIDE, indices(128, 64)),
    case(
        "scaled_dot_product_attention",
        lambda lib, q, k, v: lib.nn.functional.scaled_dot_product_attention(q, k, v),
        *[normal(8, 4, 32, 16)] * 3,
    ),
)

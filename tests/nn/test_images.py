"""Layers of images: errors, normalisation, second derivatives, memory, and how they are shown."""

import gc

import numpy as np
import pytest
import telegrad as tg
from telegrad import nn
from telegrad.core import autograd, randn, tensor, zeros

F = nn.functional
pytestmark = pytest.mark.usefixtures("seeded")


@pytest.mark.parametrize(
    "act, error, message",
    [
        (
            lambda: F.conv2d(zeros(1, 3, 5, 5), zeros(2, 4, 3, 3)),
            ValueError,
            r"^conv2d\(\): a weight of shape \(2, 4, 3, 3\) with groups=1 takes 4 channels, and the input .* has 3",
        ),
        (lambda: nn.Conv2d(3, 2, 3)(zeros(3, 2, 2)), ValueError, r"spans \(3, 3\) .* has \(2, 2\)"),
        (lambda: F.conv2d(zeros(5, 5), zeros(1, 1, 1, 1)), ValueError, r"\(N, C, H, W\) or \(C, H, W\), not \(5, 5\)"),
        (lambda: F.conv1d(zeros(1, 1, 5), zeros(1, 1, 3), zeros(2)), ValueError, r"bias must have shape \(1,\)"),
        (lambda: F.conv1d(zeros(1, 1, 5), zeros(1, 1, 3), stride=0), ValueError, "stride must be at least 1"),
        (lambda: F.conv1d(zeros(1, 1, 5), zeros(1, 1, 3), padding=-1), ValueError, "padding must be at least 0"),
        (lambda: F.conv1d(zeros(1, 1, 5), zeros(1, 1, 3), padding="full"), ValueError, '"same", "valid" or a number'),
        (lambda: F.conv1d(zeros(1, 1, 5), zeros(1, 1, 3), 0 * zeros(1), 2, "same"), ValueError, "needs stride 1"),
        (
            lambda: F.conv2d(zeros(1, 1, 5, 5), zeros(1, 1, 3, 3), stride=(1, 2, 3)),
            ValueError,
            "stride must be .* 2 of",
        ),
        (
            lambda: F.conv2d(zeros(1, 1, 5, 5), zeros(1, 1, 3, 3), dilation=1.5),
            TypeError,
            "dilation must be an integer",
        ),
        (lambda: F.conv1d(zeros(1, 3, 5), zeros(3, 1, 3), groups=2), ValueError, "groups=2 must divide the channels"),
        (lambda: F.conv1d(zeros(1, 1, 5), zeros(1, 1, 3, dtype="float64")), TypeError, "are float32, float64"),
        (lambda: F.conv_transpose1d(zeros(1, 1, 5), zeros(1, 1, 3), output_padding=1), ValueError, "output_padding"),
        (lambda: F.conv_transpose1d(zeros(1, 1, 1), zeros(1, 1, 1), padding=3), ValueError, "less padding"),
        (lambda: nn.Conv2d(3, 2, 3, groups=2), ValueError, "Conv2d: groups=2 must divide in_channels=3"),
        (lambda: nn.Conv2d(1, 1, 3, padding="same", stride=2), ValueError, 'Conv2d: padding="same" needs stride 1'),
        (lambda: nn.Conv2d(1, 1, 3, padding_mode="mirror"), ValueError, "padding_mode must be one of zeros, reflect"),
        (
            lambda: nn.ConvTranspose1d(1, 1, 3)(zeros(1, 1, 3), [9]),
            ValueError,
            r"from \(5,\) to \(5,\), and you gave \(9,\)",
        ),
        (lambda: F.max_pool2d(zeros(1, 1, 4, 4), 2, padding=2), ValueError, "at most half of kernel_size"),
        (
            lambda: F.max_pool2d(zeros(1, 1, 2, 2), 3),
            ValueError,
            r"spans \(3, 3\) .* has \(2, 2\)",
        ),
        (lambda: F.avg_pool2d(zeros(1, 1, 2, 2), 2, divisor_override=0), ValueError, "must not be 0"),
        (lambda: F.avg_pool1d(tensor([[True, False]]), 2), TypeError, "the input is bool; convert it"),
        (lambda: F.max_unpool1d(zeros(1, 1, 2), tensor([[[0, 9]]]), 2), ValueError, "from 0 to 3"),
        (lambda: F.max_unpool1d(zeros(1, 1, 2), tensor([[[0, 1]]]), 2, output_size=[9]), ValueError, "the usual is"),
        (lambda: F.adaptive_avg_pool2d(zeros(1, 1, 2, 2), 0), ValueError, "output_size must be at least 1"),
        (
            lambda: F.interpolate(zeros(1, 1, 2), mode="bilinear", size=3),
            ValueError,
            "mode of a 3-d input must be one of",
        ),
        (lambda: F.interpolate(zeros(1, 1, 2)), ValueError, "either size or scale_factor"),
        (lambda: F.interpolate(zeros(1, 1, 2), size=3, align_corners=True), ValueError, "align_corners has no meaning"),
        (lambda: F.fold(zeros(1, 4, 9), 5, 2), ValueError, r"must have shape \(N, C \* 4, 16\), not \(1, 4, 9\)"),
        (lambda: F.pixel_shuffle(zeros(1, 3, 2, 2), 2), ValueError, r"\(..., C \* 4, H, W\)"),
        (lambda: F.group_norm(zeros(1, 3, 2), 2), ValueError, "num_groups=2 must divide the 3 channels"),
        (lambda: F.batch_norm(zeros(2, 3), zeros(2), zeros(3)), ValueError, r"running_mean must have shape \(3,\)"),
        (
            lambda: nn.BatchNorm2d(3)(zeros(2, 3)),
            ValueError,
            r"BatchNorm2d needs an input of 4 dimensions, not .* \(2, 3\)",
        ),
        (lambda: nn.BatchNorm1d(3)(zeros(1, 3)), ValueError, "more than one value for each channel"),
        (lambda: nn.InstanceNorm1d(3)(zeros(1, 2, 4)), ValueError, r"of 3 features got an input of \(1, 2, 4\)"),
        (lambda: nn.LayerNorm(3)(tensor([1, 2, 3])), TypeError, "floating-point numbers, not int64"),
    ],
)
def test_misuse_is_told(act, error, message):
    with pytest.raises(error, match=message):
        act()


def test_errors_say_what_was_called():
    with pytest.raises(ValueError, match=r"you called conv1d\(float32 \(1, 1, 2\), float32 \(1, 1, 3\)"):
        tg.conv1d(zeros(1, 1, 2), zeros(1, 1, 3))


def test_results_can_be_viewed():
    out = nn.MaxPool2d(2)(nn.Conv2d(1, 4, 3)(randn(2, 1, 8, 8)))
    assert out.view(2, -1).shape == (2, 36)


def test_batch_norm_follows_its_input():
    layer, x = nn.BatchNorm1d(2), randn(50, 2) * 3 + 1
    for _ in range(200):
        layer(x)
    assert layer.num_batches_tracked.item() == 200
    np.testing.assert_allclose(layer.running_mean.numpy(), x.numpy().mean(0), rtol=1e-4)
    np.testing.assert_allclose(layer.running_var.numpy(), x.numpy().var(0, ddof=1), rtol=1e-4)
    out = layer.eval()(x)
    np.testing.assert_allclose(out.detach().numpy().std(0, ddof=1), 1, rtol=1e-3)
    layer.reset_running_stats()
    assert layer.running_var.tolist() == [1, 1] and layer.num_batches_tracked.item() == 0


def test_second_derivatives_of_a_network_of_images():
    net = nn.Sequential(
        nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2), nn.Softplus(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2, 2)
    )
    net.double()
    for buffer in net.buffers():
        buffer.detach_()
    x = randn(2, 1, 3, 3, dtype="float64", requires_grad=True)
    assert autograd.gradgradcheck(lambda x: F.cross_entropy(net(x), tensor([0, 1])), (x,))


@pytest.mark.parametrize(
    "make",
    [
        lambda: (nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2)), randn(2, 1, 8, 8)),
        lambda: (nn.Upsample(scale_factor=2, mode="bilinear"), randn(1, 1, 4, 4, requires_grad=True)),
        lambda: (nn.LayerNorm(4), randn(2, 4)),
    ],
)
def test_graphs_die_with_their_results(make, no_collector):
    module, x = make()
    module(x).sum().backward()
    before = len(gc.get_objects())
    for _ in range(50):
        module(x).sum().backward()
    assert len(gc.get_objects()) < before + 50


@pytest.mark.parametrize(
    "module, text",
    [
        (nn.Conv2d(3, 4, 3), "Conv2d(3, 4, kernel_size=(3, 3), stride=(1, 1))"),
        (
            nn.Conv1d(4, 4, 3, padding="same", groups=2, bias=False),
            "Conv1d(4, 4, kernel_size=(3,), stride=(1,), padding=same, groups=2, bias=False)",
        ),
        (nn.MaxPool2d(2), "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)"),
        (nn.BatchNorm2d(3), "BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)"),
        (nn.LeakyReLU(0.2, True), "LeakyReLU(negative_slope=0.2, inplace=True)"),
        (nn.GroupNorm(2, 4), "GroupNorm(2, 4, eps=1e-05, affine=True)"),
        (nn.Upsample(scale_factor=2), "Upsample(scale_factor=2, mode='nearest')"),
        (nn.ZeroPad2d(1), "ZeroPad2d((1, 1, 1, 1))"),
    ],
)
def test_repr(module, text):
    assert repr(module) == text

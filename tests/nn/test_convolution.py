"""Convolution: results of its ways to compute, its gradients, and images of no channels, samples or pixels."""

import numpy as np
import pytest
import telegrad as tg
from telegrad import nn
from telegrad.core import autograd, randn, zeros
from telegrad.core.ops.window import long_rows, products, small_images
from telegrad.core.ops.window.arguments import window_over
from telegrad.core.ops.window.window import overlap_add, padded, patches

F = nn.functional
pytestmark = pytest.mark.usefixtures("seeded")


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_an_image_without_channels_gives_one_without_channels_as_in_pytorch(dims):
    shapes = [(2, 0, *(5,) * dims), (4, 0, *(3,) * dims), (4,)]
    x, weight, bias = (tg.ones(*shape, requires_grad=True) for shape in shapes)
    result = getattr(F, f"conv{dims}d")(x, weight, bias, stride=2, padding=1)
    assert result.shape == (2, 0, *(3,) * dims)
    result.sum().backward()
    assert (x.grad.shape, weight.grad.shape, bias.grad.tolist()) == (*shapes[:2], [0, 0, 0, 0])


@pytest.mark.parametrize(("conv", "weight"), [("conv2d", (0, 4, 3, 3)), ("conv_transpose2d", (4, 0, 3, 3))])
def test_a_weight_without_output_channels_is_refused(conv, weight):
    with pytest.raises(ValueError, match="of one channel or more"):
        getattr(F, conv)(zeros(2, 4, 5, 5), zeros(*weight))


def naive_conv2d(x, weight, stride, padding, dilation):
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    span = dilation * (weight.shape[2] - 1) + 1
    size = (x.shape[2] - span) // stride + 1
    out = np.zeros((len(x), len(weight), size, size))
    for i in range(size):
        for j in range(size):
            patch = x[:, :, i * stride : i * stride + span : dilation, j * stride : j * stride + span : dilation]
            out[:, :, i, j] = np.einsum("nchw,ochw->no", patch, weight)
    return out


@pytest.mark.parametrize("stride, padding, dilation", [(1, 0, 1), (2, 1, 1), (3, 2, 2), (1, 4, 1)])
def test_convolution_of_many_samples_is_done_in_parts(stride, padding, dilation):
    x, w = randn(300, 3, 9, 9, dtype="float64"), randn(4, 3, 3, 3, dtype="float64")
    out = F.conv2d(x, w, stride=stride, padding=padding, dilation=dilation)
    np.testing.assert_allclose(out.numpy(), naive_conv2d(x.numpy(), w.numpy(), stride, padding, dilation), atol=1e-12)
    g = randn(*out.shape, dtype="float64")
    parts = [gradients(x[part], w, g[part], stride, padding, dilation) for part in (slice(200), slice(200, 300))]
    dx, dw = gradients(x, w, g, stride, padding, dilation)
    np.testing.assert_allclose(dx, np.concatenate([each for each, _ in parts]), atol=1e-12)
    np.testing.assert_allclose(dw, parts[0][1] + parts[1][1], atol=1e-10)


def gradients(x, w, g, stride, padding, dilation):
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    out = F.conv2d(x, w, stride=stride, padding=padding, dilation=dilation)
    return [each.numpy() for each in autograd.grad(out, (x, w), g)]


@pytest.mark.parametrize("dtype", ["float64", "complex128", "int64", "float16"])
@pytest.mark.parametrize(
    "size, kernel, stride, padding, dilation, groups",
    [
        ((1, 1), (3, 3), 1, 1, 1, 1),
        ((4, 5), (3, 2), 1, 1, 1, 2),
        ((4, 3), (3, 3), 2, 1, 1, 1),
        ((3,), (5,), 3, 4, 1, 2),
        ((1,), (2,), 1, 2, 3, 1),
        ((2, 2), (3, 3), 1, 4, 4, 1),
        ((1, 2, 3), (2, 2, 3), 1, 2, 1, 2),
    ],
)
def test_a_batch_of_small_images_gives_what_each_image_gives(size, kernel, stride, padding, dilation, groups, dtype):
    window = window_over(size, kernel, stride, padding, dilation)
    values = np.random.default_rng(1)
    image, weight, output = (
        values.integers(-3, 4, shape).astype(dtype)
        for shape in ((9, 4, *size), (6, 4 // groups, *kernel), (9, 6, *window.output_size))
    )
    each = [slice(number, number + 1) for number in range(9)]
    maps = small_images.convolve, small_images.convolve_image, small_images.convolve_weight
    out, back, product = (
        one(*pair, window, groups) for one, pair in zip(maps, ((image, weight), (output, weight), (output, image)))
    )
    np.testing.assert_array_equal(
        out, np.concatenate([products.convolve(image[n], weight, window, groups) for n in each])
    )
    np.testing.assert_array_equal(
        back, np.concatenate([products.convolve_image(output[n], weight, window, groups) for n in each])
    )
    np.testing.assert_array_equal(
        product, sum(products.convolve_weight(output[n], image[n], window, groups) for n in each)
    )
    assert {out.dtype, back.dtype, product.dtype} == {np.dtype(dtype)}


@pytest.mark.parametrize("outputs", [3, 24, 130])
@pytest.mark.parametrize("count, size", [(20, (2, 2)), (3, (6, 5))])
def test_gradients_of_convolution_for_few_and_many_channels(outputs, count, size):
    """The products are arranged by the number of channels: see ``products`` and ``small_images``."""
    window = window_over(size, (3, 3), 1, 1, 1)
    values = np.random.default_rng(2)
    image, weight, output = (
        values.integers(-3, 4, shape).astype("float64")
        for shape in ((count, 5, *size), (outputs, 5, 3, 3), (count, outputs, *size))
    )
    columns = patches(padded(image, window), window)
    found = small_images.convolve_weight(output, image, window, 1)
    np.testing.assert_array_equal(found, np.einsum("noyx,ncijyx->ocij", output, columns))
    assert found.flags.c_contiguous
    back = small_images.convolve_image(output, weight, window, 1)
    parts = np.einsum("noyx,ocij->ijncyx", output, weight).reshape(9, count, 5, *size)
    np.testing.assert_array_equal(back, overlap_add(parts, image.shape, image.dtype, window))


def test_the_three_maps_are_transposes_of_each_other():
    x, w = randn(2, 4, 6, 5, dtype="float64"), randn(6, 2, 3, 2, dtype="float64")
    y = F.conv2d(x, w, stride=2, padding=1, groups=2)
    g = randn(*y.shape, dtype="float64")
    back = F.conv_transpose2d(g, w, stride=2, padding=1, groups=2, output_padding=(1, 1))
    np.testing.assert_allclose((y * g).sum().item(), (x * back).sum().item(), rtol=1e-12)


def test_convolution_of_nothing():
    assert nn.Conv2d(2, 3, 2)(zeros(0, 2, 5, 5)).shape == (0, 3, 4, 4)


def test_transposed_layers_reach_the_size_asked_for():
    layer = nn.ConvTranspose2d(1, 1, 3, stride=2)
    assert layer(zeros(1, 1, 3, 3), output_size=[1, 1, 8, 7]).shape == (1, 1, 8, 7)


@pytest.mark.parametrize(
    "dims, options",
    [
        (1, {}),
        (2, {"padding": (2, 0), "dilation": (1, 2)}),
        (2, {"stride": 2}),
        (3, {"padding": 1}),
    ],
)
@pytest.mark.parametrize("batch", [2, 9])
def test_depthwise_convolution_is_that_of_each_channel(dims, options, batch):
    function = getattr(F, f"conv{dims}d")
    x, w, b = randn(batch, 3, *(7, 6, 5)[:dims]), randn(3, 1, *(3, 2, 2)[:dims]), randn(3)
    inputs = [each.to(tg.float64).requires_grad_() for each in (x, w, b)]
    whole = function(*inputs, groups=3, **options)
    each = tg.cat([function(inputs[0][:, [i]], inputs[1][[i]], inputs[2][[i]], **options) for i in range(3)], 1)
    np.testing.assert_allclose(whole.detach(), each.detach(), atol=1e-12)
    weights = randn(*whole.shape).to(tg.float64)
    ours, theirs = (autograd.grad((result * weights).sum(), inputs) for result in (whole, each))
    for one, other in zip(ours, theirs):
        np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize(
    "dims, kernel, options",
    [
        (1, (5,), {"stride": 3, "padding": 4}),
        (2, (3, 3), {"stride": 2}),
        (2, (3, 4), {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}),
        (2, (2, 1), {"stride": 2, "padding": (1, 0)}),
        (2, (3, 3), {"stride": (1, 2), "dilation": (2, 1), "padding": (0, 3)}),
        (3, (2, 2, 3), {"stride": (2, 1, 2)}),
    ],
)
def test_pixels_a_stride_apart_are_computed_as_images(monkeypatch, dims, kernel, options):
    function = getattr(F, f"conv_transpose{dims}d")
    groups = options.get("groups", 1)
    x, w = (
        randn(*shape).to(tg.float64).requires_grad_()
        for shape in ((2, 4, *(5, 4, 3)[:dims]), (4, 6 // groups, *kernel))
    )

    def passes():
        result = function(x, w, **options)
        return [result, *autograd.grad((result**2).sum(), (x, w))]

    expected, calls, phase_by_phase = passes(), [], products._phase_by_phase
    monkeypatch.setattr(products, "LEAST_PRODUCTS", 1)
    monkeypatch.setattr(products, "_phase_by_phase", lambda *args: calls.append(1) or phase_by_phase(*args))
    for one, other in zip(expected, passes()):
        np.testing.assert_allclose(one.detach(), other.detach(), atol=1e-12)
    assert calls


def test_a_depthwise_convolution_of_no_images():
    images, weight = tg.ones(0, 4, 5, 5, requires_grad=True), tg.ones(4, 1, 3, 3, requires_grad=True)
    result = nn.functional.conv2d(images, weight, padding=1, groups=4)
    result.sum().backward()
    assert result.shape == images.grad.shape == (0, 4, 5, 5)
    assert weight.grad.shape == weight.shape and not weight.grad.any()


@pytest.mark.parametrize(
    "shape, kernel, options",
    [
        ((2, 3, 5, 6, 7), (4, 3, 2, 3, 2), {"padding": (1, 0, 2), "dilation": (1, 2, 1)}),
        ((1, 2, 4, 4, 4), (5, 2, 4, 4, 4), {}),
        ((0, 2, 4, 4, 4), (3, 2, 2, 2, 2), {}),
        ((2, 0, 4, 4, 4), (3, 0, 2, 2, 2), {}),
    ],
)
def test_convolution_of_volumes_by_runs_is_that_by_patches(shape, kernel, options, monkeypatch):
    image, weight = (randn(*each, dtype=tg.float64, requires_grad=True) for each in (shape, kernel))
    bias = randn(kernel[0], dtype=tg.float64)

    def results():
        output = F.conv3d(image, weight, bias, **options)
        return [output, *autograd.grad(output.sin().sum(), (image, weight))]

    by_runs = results()
    monkeypatch.setattr(long_rows, "fits", lambda *given: False)
    for ours, expected in zip(by_runs, results()):
        assert ours.shape == expected.shape and tg.allclose(ours, expected)

"""Convolution, pooling, interpolation and normalisation: what golden values do not show; errors, empties, memory."""

import gc

import numpy as np
import pytest
import telegrad as tg
from telegrad import nn
from telegrad.core import arange, autograd, manual_seed, randn, tensor, zeros
from telegrad.core.ops.window import long_rows, products, small_images
from telegrad.core.ops.window.arguments import window_over
from telegrad.core.ops.window.window import overlap_add, padded, patches
from telegrad.nn.functional import grid_corners

F = nn.functional


@pytest.fixture(autouse=True)
def _seeded():
    manual_seed(5)


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


def test_errors_say_what_was_called():
    with pytest.raises(ValueError, match=r"you called conv1d\(float32 \(1, 1, 2\), float32 \(1, 1, 3\)"):
        tg.conv1d(zeros(1, 1, 2), zeros(1, 1, 3))


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


@pytest.mark.parametrize("length, kernel, stride", [(6, 2, 2), (7, 2, 2), (7, 2, 3), (6, 3, 3), (7, 3, 2), (5, 1, 2)])
def test_max_pool_puts_gradients_where_the_largest_element_is(length, kernel, stride):
    x = randn(40, 3, length, length, dtype="float64", requires_grad=True)
    out = F.max_pool2d(x, kernel, stride)
    g = randn(*out.shape, dtype="float64")
    out.backward(g)
    expected = np.zeros(x.shape)
    for stop in np.ndindex(*out.shape[2:]):
        first = [stride * each for each in stop]
        part = (..., *(slice(start, start + kernel) for start in first))
        seen = x.detach().numpy()[part]
        chosen = seen == seen.max(axis=(2, 3), keepdims=True)
        expected[part] += np.where(chosen, g.numpy()[(..., *stop)][..., None, None], 0)
        np.testing.assert_array_equal(out.detach().numpy()[(..., *stop)], seen.max(axis=(2, 3)))
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-12)


def test_results_of_pooling_are_in_order_whatever_the_input_is():
    x = randn(2, 6, 5, 3).permute(0, 3, 1, 2)
    for pooled in (F.max_pool2d(x, 2), F.avg_pool2d(x, 2)):
        assert pooled.is_contiguous() and pooled.view(2, -1).shape == (2, 18)


def test_the_three_maps_are_transposes_of_each_other():
    x, w = randn(2, 4, 6, 5, dtype="float64"), randn(6, 2, 3, 2, dtype="float64")
    y = F.conv2d(x, w, stride=2, padding=1, groups=2)
    g = randn(*y.shape, dtype="float64")
    back = F.conv_transpose2d(g, w, stride=2, padding=1, groups=2, output_padding=(1, 1))
    np.testing.assert_allclose((y * g).sum().item(), (x * back).sum().item(), rtol=1e-12)


def test_convolution_of_nothing():
    assert nn.Conv2d(2, 3, 2)(zeros(0, 2, 5, 5)).shape == (0, 3, 4, 4)


def test_results_can_be_viewed():
    out = nn.MaxPool2d(2)(nn.Conv2d(1, 4, 3)(randn(2, 1, 8, 8)))
    assert out.view(2, -1).shape == (2, 36)


def test_max_pool_of_nan_and_ties_and_lowest():
    x = tensor([[[1.0, float("nan"), 3.0, 3.0, float("-inf"), float("-inf")]]], requires_grad=True)
    values, places = F.max_pool1d(x, 2, return_indices=True)
    np.testing.assert_array_equal(values.detach().numpy(), [[[np.nan, 3, -np.inf]]])
    assert places.tolist() == [[[1, 2, 4]]]
    values[..., 1].sum().backward()
    assert x.grad.tolist() == [[[0, 0, 1, 0, 0, 0]]]
    _, places = F.max_pool1d(tensor([[[float("-inf"), 1.0, 2.0]]]), 3, 2, padding=1, return_indices=True)
    assert places.tolist() == [[[1, 2]]]


def test_max_pool_of_integers():
    assert F.max_pool1d(tensor([[-3, -5, -1]]), 2, padding=1).tolist() == [[-3, -1]]


def test_interpolation_keeps_infinities_apart():
    x = tensor([[[1.0, float("inf"), 2.0, 4.0, 6.0]]])
    assert F.interpolate(x, size=10).numpy()[0, 0, [0, 1, 4, 9]].tolist() == [1, 1, 2, 6]
    assert F.adaptive_avg_pool1d(x, 2).tolist() == [[[float("inf"), 4.0]]]


def test_tensors_of_resized_images_are_plain():
    assert F.interpolate(arange(4.0).reshape(1, 1, 2, 2), scale_factor=2).tolist()[0][0][0] == [0, 0, 1, 1]
    assert F.interpolate(tensor([[[1, 2]]]), size=4).dtype == np.int64


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


def test_transposed_layers_reach_the_size_asked_for():
    layer = nn.ConvTranspose2d(1, 1, 3, stride=2)
    assert layer(zeros(1, 1, 3, 3), output_size=[1, 1, 8, 7]).shape == (1, 1, 8, 7)


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


def test_fractional_pooling_begins_windows_where_pytorch_does():
    samples = tg.tensor([[[0.3, 0.7]]])
    largest, places = F.fractional_max_pool2d(
        tg.arange(49.0).reshape(1, 1, 7, 7), 2, output_size=(3, 4), return_indices=True, _random_samples=samples
    )
    assert places.tolist() == [[[[8, 10, 11, 13], [29, 31, 32, 34], [43, 45, 46, 48]]]]
    assert largest.tolist() == places.tolist()


def test_fractional_pooling_draws_its_windows():
    x = tg.rand(3, 2, 9, 9, 9)
    layer = nn.FractionalMaxPool3d(2, output_ratio=0.5, return_indices=True)
    largest, places = layer(x)
    assert largest.shape == (3, 2, 4, 4, 4)
    assert (x.flatten(2).gather(2, places.flatten(2)) == largest.flatten(2)).all()
    assert any((layer(x)[1] != places).any() for _ in range(9))


def test_bad_arguments_of_fractional_pooling():
    x = tg.rand(1, 1, 4, 4)
    with pytest.raises(ValueError, match="either output_size or output_ratio"):
        F.fractional_max_pool2d(x, 2)
    with pytest.raises(ValueError, match="either output_size or output_ratio"):
        nn.FractionalMaxPool2d(2, 2, 0.5)
    with pytest.raises(ValueError, match="between 0 and 1"):
        F.fractional_max_pool2d(x, 2, output_ratio=1.5)
    with pytest.raises(ValueError, match="do not fit into an image"):
        F.fractional_max_pool2d(x, 2, output_size=4)
    with pytest.raises(ValueError, match="must have shape"):
        F.fractional_max_pool2d(x, 2, output_size=2, _random_samples=tg.rand(1, 1, 3))


def test_images_of_bytes_are_rounded_after_each_dimension():
    x = tg.tensor([[[[0, 10, 255], [3, 100, 7]]]], dtype=tg.uint8)
    linear, cubic = (F.interpolate(x, size=(3, 5), mode=mode)[0, 0].tolist() for mode in ("bilinear", "bicubic"))
    assert linear == [[0, 4, 10, 157, 255], [2, 23, 55, 101, 131], [3, 42, 100, 44, 7]]
    assert cubic == [[0, 0, 2, 171, 255], [0, 24, 55, 106, 128], [0, 51, 108, 40, 0]]


def test_older_names_of_interpolation():
    x = tg.rand(1, 1, 3, 3)
    assert (F.upsample_bilinear(x, 5) == F.interpolate(x, 5, mode="bilinear", align_corners=True)).all()
    assert (F.upsample_nearest(x, scale_factor=2) == F.interpolate(x, scale_factor=2)).all()
    assert (F.upsample(x, 4, mode="bicubic") == F.interpolate(x, 4, mode="bicubic")).all()


def test_bicubic_sampling_of_a_plain_grid_is_bicubic_resizing():
    x = randn(2, 3, 5, 4, dtype=tg.float64)
    grid = F.affine_grid(tg.eye(2, 3, dtype=tg.float64).expand(2, 2, 3), (2, 3, 9, 7), align_corners=True)
    expected = F.interpolate(x, (9, 7), mode="bicubic", align_corners=True)
    found = F.grid_sample(x, grid, mode="bicubic", padding_mode="border", align_corners=True)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_gradients_of_bicubic_sampling(padding):
    x = randn(1, 2, 4, 4, dtype=tg.float64, requires_grad=True)
    grid = (tg.rand(1, 3, 3, 2, dtype=tg.float64) * 2.4 - 1.2).requires_grad_()
    assert autograd.gradcheck(
        lambda x, grid: F.grid_sample(x, grid, "bicubic", padding, align_corners=False), (x, grid)
    )
    with pytest.raises(ValueError, match="for images"):
        F.grid_sample(zeros(1, 1, 2, 2, 2), zeros(1, 2, 2, 2, 3), "bicubic", padding, align_corners=False)


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


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample_adds_to_the_same_gradients_in_parts_of_the_batch(monkeypatch, dims, padding):
    x = randn(3, 2, *(3, 4, 2)[:dims]).to(tg.float64).requires_grad_()
    grid = (tg.rand(3, *(2, 3, 2)[:dims], dims) * 3 - 1.5).to(tg.float64).requires_grad_()

    def passes():
        result = F.grid_sample(x, grid, padding_mode=padding, align_corners=False)
        return [result, *autograd.grad((result**2).sum(), (x, grid))]

    whole = passes()
    monkeypatch.setattr(grid_corners, "PART", 1)
    for one, other in zip(whole, passes()):
        np.testing.assert_array_equal(one.detach(), other.detach())


@pytest.mark.parametrize("shape", [(2, 3, 1, 4), (2, 3, 4, 1), (2, 1, 1, 1), (0, 2, 3, 3), (2, 0, 3, 3)])
def test_grid_sample_of_images_of_one_pixel_a_row_or_of_none(shape):
    x = randn(*shape).to(tg.float64).requires_grad_()
    grid = (tg.rand(shape[0], 3, 5, 2) * 3 - 1.5).to(tg.float64).requires_grad_()
    lengths = tensor(shape[:1:-1], dtype=tg.float64)
    framed = F.pad(x, (2, 2, 2, 2))
    results = (
        F.grid_sample(x, grid, align_corners=False),
        F.grid_sample(framed, grid * lengths / (lengths + 4), align_corners=False),
    )
    ours, theirs = (autograd.grad((result**2).sum(), (x, grid)) for result in results)
    for one, other in zip((results[0], *ours), (results[1], *theirs)):
        np.testing.assert_allclose(one.detach(), other.detach(), atol=1e-12)


def test_grid_sample_beyond_all_bounds():
    x, grid = tg.ones(1, 1, 2, 2), tensor([[[[np.inf, 0.0], [-np.inf, 0.0], [np.nan, 0.0], [1e30, 0.0]]]])
    assert F.grid_sample(x, grid, align_corners=False)[0, 0, 0, 3] == 0
    x.requires_grad_()
    F.grid_sample(x, grid[:, :, 2:], align_corners=False).sum().backward()
    np.testing.assert_array_equal(x.grad, np.zeros((1, 1, 2, 2)))  # as PyTorch's
    nearest = F.grid_sample(x, grid, "nearest", align_corners=False)
    assert nearest.tolist() == [[[[0, 0, 0, 0]]]]


def test_grid_sample_adds_many_points_plane_by_plane_to_the_same_gradients(monkeypatch):
    x = randn(2, 3, 9, 7).requires_grad_()
    grid = (tg.rand(2, 40, 30, 2) * 3 - 1.5).requires_grad_()

    def passes():
        result = F.grid_sample(x, grid, align_corners=False)
        return [result, *autograd.grad((result**2).sum(), (x, grid))]

    found = passes()
    assert grid_corners.MANY <= 4 * 40 * 30
    monkeypatch.setattr(grid_corners, "MANY", 1 << 30)
    for one, other in zip(found, passes()):
        np.testing.assert_array_equal(one.detach(), other.detach())


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

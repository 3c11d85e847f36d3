"""Plans as models of ONNX: another runtime computes what the function does, up to roundings."""

import io

import numpy as np
import pytest
import telegrad as tg
from helpers.plans import compiled
from telegrad import nn
from telegrad.nn import functional as F

pytest.importorskip("onnx", reason="the extra onnx is not installed")
runtime = pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")

IMAGE, ROWS, STEPS = (2, 4, 8, 8), (3, 6), (5, 2, 6)
MODULES = {
    "linear": (nn.Linear, (6, 5), ROWS),
    "conv1d": (nn.Conv1d, (2, 4, 3), (5, 2, 6)),
    "conv2d": (lambda: nn.Conv2d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2), (), IMAGE),
    "conv, same": (lambda: nn.Conv2d(4, 6, 3, padding="same", bias=False), (), IMAGE),
    "conv_transpose2d": (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1), (), IMAGE),
    "max_pool": (nn.MaxPool2d, (3, 2, 1), IMAGE),
    "avg_pool": (nn.AvgPool2d, (3, 2, 1), IMAGE),
    "adaptive pool": (nn.AdaptiveAvgPool2d, (2,), IMAGE),
    "batch_norm": (nn.BatchNorm2d, (4,), IMAGE),
    "layer_norm": (nn.LayerNorm, (6,), ROWS),
    "group_norm": (nn.GroupNorm, (2, 4), IMAGE),
    "instance_norm": (nn.InstanceNorm2d, (4,), IMAGE),
    "rms_norm": (nn.RMSNorm, (6,), ROWS),
    "softmax": (nn.Softmax, (-1,), ROWS),
    "log_softmax": (nn.LogSoftmax, (0,), ROWS),
    "lstm": (lambda: First(nn.LSTM(6, 4, num_layers=2, bidirectional=True)), (), STEPS),
    "gru": (lambda: First(nn.GRU(6, 4, batch_first=True)), (), STEPS),
    "rnn": (lambda: First(nn.RNN(6, 4, nonlinearity="relu", bias=False)), (), STEPS),
    "transformer": (nn.TransformerEncoderLayer, (6, 2, 12), STEPS),
    "prelu": (nn.PReLU, (4,), IMAGE),
    "pixel shuffle": (nn.PixelShuffle, (2,), IMAGE),
    "dropout": (nn.Dropout, (), ROWS),
    "flatten": (nn.Flatten, (), IMAGE),
}
ACTIVATIONS = (
    "CELU ELU GELU Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid Mish ReLU ReLU6 SELU SiLU Sigmoid Softplus Tanh"
)
MODULES.update({name: (getattr(nn, name), (), ROWS) for name in ACTIVATIONS.split()})
FUNCTIONS = {
    "arithmetic": lambda x: (x * 2 + 1 - x / 3) ** 2 + (1 - x.abs()).exp() + tg.add(x, x, alpha=3) - x.square(),
    "comparisons": lambda x: tg.where((x > 0) & (x < 1), x, -x).masked_fill(x.eq(x.amax()), 7),
    "numbers": lambda x: (x.clamp(-0.5, 0.5), x.maximum(tg.zeros(6)), x.abs().log1p(), x.abs().rsqrt()),
    "reductions": lambda x: (x.sum(0), x.mean((0, 1)), x.amax(1, keepdim=True), x.prod(), x.argmax(1), x.logsumexp(0)),
    "moves": lambda x: (x.t(), x[1:, ::2], x[..., None, 3], x.flip(0), x.chunk(3, 1), x.roll(1, 0), x.expand(2, 3, 6)),
    "joined": lambda x: {"a": tg.cat([x, x * 2], 1), "b": [tg.stack([x, x], -1), x.unsqueeze(0).reshape(-1)]},
    "in place": lambda x: (x + 1).relu_().mul_(2),
    "dtypes": lambda x: (x.double() * x.sum().int()).half().float(),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
}


class First(nn.Module):
    """The first result of a module."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)[0]


def flat(tree):
    """Return the arrays of a result in order."""
    if isinstance(tree, tg.Tensor):
        return [tree.numpy(force=True)]
    return [each for part in (tree.values() if isinstance(tree, dict) else tree) for each in flat(part)]


def check(function, *args):
    """Export a function, and compare the results of the runtime for other arguments."""
    model, file = compiled(function, *args)[0], io.BytesIO()
    model.plans()[-1].to_onnx(file)
    session = runtime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    other = [tg.tensor(np.flip(each.numpy(force=True)).copy()) for each in args]
    found = session.run(None, {f"input{place}": each.numpy() for place, each in enumerate(other)})
    with tg.no_grad():
        expected = flat(function(*other))
    assert len(found) == len(expected)
    for one, two in zip(found, expected):
        assert one.dtype == two.dtype and one.shape == two.shape
        np.testing.assert_allclose(one, two, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", MODULES)
def test_modules(name):
    tg.manual_seed(0)
    make, args, shape = MODULES[name]
    module = make(*args).eval()
    for tensor in module.buffers():
        if tensor.is_floating_point():
            tensor.copy_(tg.rand_like(tensor) + 0.5)
    check(module, tg.randn(*shape))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    tg.manual_seed(0)
    check(FUNCTIONS[name], tg.randn(3, 6))


def test_several_arguments_and_indices():
    table = nn.Embedding(7, 3)
    check(lambda x, index: x @ table(index).mT + x.gather(1, index), tg.randn(4, 3), tg.randint(0, 3, (4, 3))[:, :3])


def exported(function, *args):
    """Export a function."""
    compiled(function, *args)[0].plans()[-1].to_onnx(io.BytesIO())


def test_what_cannot_be_exported_is_named():
    x = tg.randn(3, 6)
    net = nn.Linear(6, 2)
    with pytest.raises(TypeError, match=r"cumsum\(\) cannot be exported to ONNX: it has no form there"):
        exported(lambda x: x.cumsum(0), x)
    with pytest.raises(TypeError, match=r"max\(\) cannot be exported to ONNX: it returns indices"):
        exported(lambda x: x.max(dim=0)[0], x)
    with pytest.raises(
        TypeError, match=r"dropout\(\) cannot be exported to ONNX: it draws|it changes tensors from outside"
    ):
        exported(nn.Dropout(), x)
    with pytest.raises(
        TypeError, match=r"relu_\(\) cannot be exported to ONNX: it changes memory that other tensors use"
    ):
        exported(lambda x: (y := x + 1)[0].relu_() + y, x)
    with pytest.raises(TypeError, match="it changes tensors from outside"):
        exported(lambda x: net(x).sum().backward(), x)
    with pytest.raises(TypeError, match="it changes tensors from outside"):
        exported(nn.BatchNorm1d(6), x)

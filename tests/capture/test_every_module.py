"""Every module of ``nn``, compiled: the bits of eager calls, with gradients; or eager calls with a reason."""

import inspect

import pytest
import telegrad as tg
from helpers.compiled import bits
from telegrad import nn

LINE, IMAGE, SOLID, ROWS, STEPS = (2, 4, 8), (2, 4, 8, 8), (2, 4, 4, 4, 4), (3, 6), (5, 2, 6)
SHAPES = {1: LINE, 2: IMAGE, 3: SOLID}
CONTAINERS = set("DataParallel Module ModuleDict ModuleList ParameterDict ParameterList RNNBase Sequential".split())


def of(*shape):
    """Return a function that makes an input."""
    return lambda: tg.randn(*shape)


def classes(*shape, count=5):
    """Return a function that makes numbers of classes."""
    return lambda: tg.randint(0, count, shape)


def signs(*shape):
    """Return a function that makes numbers that are -1 or 1."""
    return lambda: tg.randint(0, 2, shape).float() * 2 - 1


def chances(*shape):
    """Return a function that makes numbers between 0 and 1."""
    return lambda: tg.rand(*shape) * 0.8 + 0.1


CASES = {}  # a function that makes the module, and functions that make its inputs


def made(name, *args):
    """Return a function that makes a module."""
    return lambda: getattr(nn, name)(*args)


def case(name, make, *inputs):
    CASES[name] = (make, inputs)


_ELEMENTS = (
    "CELU ELU GELU Hardshrink Hardsigmoid Hardswish Hardtanh Identity LeakyReLU LogSigmoid Mish PReLU RReLU ReLU ReLU6 SELU "
    "SiLU Sigmoid Softplus Softshrink Softsign Tanh Tanhshrink GLU Flatten Dropout AlphaDropout FeatureAlphaDropout"
)
for _name in _ELEMENTS.split():
    case(_name, getattr(nn, _name), of(*ROWS))
for _name in ("Softmax", "LogSoftmax", "Softmin"):
    case(_name, made(_name, -1), of(*ROWS))
for _count, _shape in SHAPES.items():
    for _name, _args in {
        "AdaptiveAvgPool{}d": (2,),
        "AdaptiveMaxPool{}d": (2,),
        "AvgPool{}d": (2,),
        "MaxPool{}d": (2,),
        "LPPool{}d": (2, 2),
        "BatchNorm{}d": (4,),
        "InstanceNorm{}d": (4,),
        "CircularPad{}d": (1,),
        "ConstantPad{}d": (1, 0.5),
        "ReflectionPad{}d": (1,),
        "ReplicationPad{}d": (1,),
        "ZeroPad{}d": (1,),
        "Conv{}d": (4, 3, 3),
        "ConvTranspose{}d": (4, 3, 3),
        "LazyConv{}d": (3, 3),
        "LazyConvTranspose{}d": (3, 3),
        "LazyBatchNorm{}d": (),
        "LazyInstanceNorm{}d": (),
        "Dropout{}d": (),
        "FractionalMaxPool{}d": (2, 2),
    }.items():
        if hasattr(nn, _name.format(_count)):
            case(_name.format(_count), made(_name.format(_count), *_args), of(*_shape))


class Unpooled(nn.Module):
    """A maximum pool and its reverse."""

    def __init__(self, count):
        super().__init__()
        self.pool = getattr(nn, f"MaxPool{count}d")(2, return_indices=True)
        self.unpool = getattr(nn, f"MaxUnpool{count}d")(2)

    def forward(self, x):
        return self.unpool(*self.pool(x))


for _count, _shape in SHAPES.items():
    case(f"MaxUnpool{_count}d", lambda count=_count: Unpooled(count), of(*_shape))
for _name in "BCEWithLogitsLoss MSELoss L1Loss SmoothL1Loss HuberLoss PoissonNLLLoss".split():
    case(_name, getattr(nn, _name), of(*ROWS), chances(*ROWS))
for _name in "HingeEmbeddingLoss SoftMarginLoss".split():
    case(_name, getattr(nn, _name), of(*ROWS), signs(*ROWS))
for _name in "CosineSimilarity PairwiseDistance".split():
    case(_name, getattr(nn, _name), of(*ROWS), of(*ROWS))
for _name in "TripletMarginLoss TripletMarginWithDistanceLoss".split():
    case(_name, getattr(nn, _name), of(*ROWS), of(*ROWS), of(*ROWS))
for _name in "CrossEntropyLoss MultiMarginLoss".split():
    case(_name, getattr(nn, _name), of(*ROWS), classes(3))
for _name in "RNNCell GRUCell LSTMCell".split():
    case(_name, made(_name, 6, 4), of(*ROWS))
for _name in "RNN GRU LSTM".split():
    case(_name, made(_name, 6, 4), of(*STEPS))
case("KLDivLoss", lambda: nn.KLDivLoss(reduction="batchmean"), of(*ROWS), chances(*ROWS))
case("BCELoss", nn.BCELoss, chances(*ROWS), chances(*ROWS))
case("NLLLoss", nn.NLLLoss, of(*ROWS), classes(3))
case("GaussianNLLLoss", nn.GaussianNLLLoss, of(*ROWS), of(*ROWS), chances(*ROWS))
case("MarginRankingLoss", nn.MarginRankingLoss, of(3), of(3), signs(3))
case("CosineEmbeddingLoss", nn.CosineEmbeddingLoss, of(*ROWS), of(*ROWS), signs(3))
case("MultiLabelMarginLoss", nn.MultiLabelMarginLoss, of(*ROWS), classes(*ROWS))
case("MultiLabelSoftMarginLoss", nn.MultiLabelSoftMarginLoss, of(*ROWS), chances(*ROWS))
case("LinearCrossEntropyLoss", lambda: nn.LinearCrossEntropyLoss(6, 5), of(*ROWS), classes(3))
case("AdaptiveLogSoftmaxWithLoss", lambda: nn.AdaptiveLogSoftmaxWithLoss(6, 9, [4]), of(*ROWS), classes(3, count=9))
case("Linear", lambda: nn.Linear(6, 5), of(*ROWS))
case("LazyLinear", lambda: nn.LazyLinear(5), of(*ROWS))
case("Bilinear", lambda: nn.Bilinear(6, 6, 5), of(*ROWS), of(*ROWS))
case("Embedding", lambda: nn.Embedding(5, 3), classes(4))
case("EmbeddingBag", lambda: nn.EmbeddingBag(5, 3), classes(4, 2))
case("ChannelShuffle", lambda: nn.ChannelShuffle(2), of(*IMAGE))
case("PixelShuffle", lambda: nn.PixelShuffle(2), of(*IMAGE))
case("PixelUnshuffle", lambda: nn.PixelUnshuffle(2), of(*IMAGE))
case("Fold", lambda: nn.Fold(4, 2), of(2, 8, 9))
case("Unfold", lambda: nn.Unfold(2), of(*IMAGE))
case("GroupNorm", lambda: nn.GroupNorm(2, 4), of(*IMAGE))
case("LayerNorm", lambda: nn.LayerNorm(6), of(*ROWS))
case("RMSNorm", lambda: nn.RMSNorm(6), of(*ROWS))
case("LocalResponseNorm", lambda: nn.LocalResponseNorm(2), of(*IMAGE))
case("Softmax2d", nn.Softmax2d, of(*IMAGE))
case("Threshold", lambda: nn.Threshold(0.1, 0.5), of(*ROWS))
case("Unflatten", lambda: nn.Unflatten(1, (2, 3)), of(*ROWS))
case("Upsample", lambda: nn.Upsample(scale_factor=2), of(*IMAGE))
case("UpsamplingBilinear2d", lambda: nn.UpsamplingBilinear2d(scale_factor=2), of(*IMAGE))
case("UpsamplingNearest2d", lambda: nn.UpsamplingNearest2d(scale_factor=2), of(*IMAGE))
case("MultiheadAttention", lambda: nn.MultiheadAttention(6, 2), of(*STEPS), of(*STEPS), of(*STEPS))
case("TransformerEncoderLayer", lambda: nn.TransformerEncoderLayer(6, 2, 8), of(*STEPS))
case("TransformerDecoderLayer", lambda: nn.TransformerDecoderLayer(6, 2, 8), of(*STEPS), of(*STEPS))
case("TransformerEncoder", lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8), 2), of(*STEPS))
case(
    "TransformerDecoder", lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2, 8), 1), of(*STEPS), of(*STEPS)
)
case("Transformer", lambda: nn.Transformer(6, 2, 1, 1, 8), of(*STEPS), of(*STEPS))
case("CTCLoss", lambda: Aligned(), lambda: tg.randn(8, 2, 5).log_softmax(-1), lambda: tg.randint(1, 5, (2, 3)))


class Aligned(nn.Module):
    """A loss of sequences, with their lengths."""

    def __init__(self):
        super().__init__()
        self.loss = nn.CTCLoss()

    def forward(self, scores, targets):
        return self.loss(scores, targets, tg.tensor([8, 8]), tg.tensor([3, 3]))


EAGER = dict.fromkeys(
    ["AdaptiveLogSoftmaxWithLoss", "EmbeddingBag"], "reads elements"
)  # modules that run eagerly, and a part of the reason


def test_the_table_has_all_modules():
    public = {
        name for name in dir(nn) if inspect.isclass(getattr(nn, name)) and issubclass(getattr(nn, name), nn.Module)
    }
    assert public - CONTAINERS == set(CASES)


def tensors(tree):
    """Return the tensors of a result in order."""
    if isinstance(tree, tg.Tensor):
        return [tree]
    return [each for part in tree for each in tensors(part)] if isinstance(tree, (tuple, list)) else []


def run(name, compiled):
    """Return what calls of a module give and leave, and the compiled function."""
    tg.manual_seed(0)
    make, inputs = CASES[name]
    module = make()
    given = [each() for each in inputs]
    if name.startswith("Lazy"):
        module(*given)
    function, log = tg.compile(module) if compiled else module, []
    for call in range(4):
        tg.manual_seed(call)
        given = [each() for each in inputs]
        if given[0].is_floating_point():
            given[0].requires_grad_()
        module.zero_grad()
        found = tensors(function(*given))
        differentiable = [each for each in found if each.requires_grad]
        if differentiable:
            sum(each.square().mean() for each in differentiable).backward()
        log.append(bits([[each.detach() for each in found], given[0], [*module.parameters()], [*module.buffers()]]))
    return log, function


@pytest.mark.parametrize("name", sorted(CASES))
@pytest.mark.filterwarnings("ignore:.*runs eagerly")
def test_modules_have_the_bits_of_eager_calls(name):
    eager, _ = run(name, False)
    found, compiled = run(name, True)
    assert eager == found
    (entry,) = compiled._entries.values()
    assert (EAGER[name] in entry.reason) if name in EAGER else (entry.reason is None), entry.reason
    assert sum(plan.replays for plan in entry.plans) == (0 if name in EAGER else 2)

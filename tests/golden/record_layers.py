"""Records what torch's modules and functions compute, and their gradients, for tests/nn/test_layers_golden.py."""

import warnings

import torch


def sample(kind, shape, seed, *bounds):
    """Numbers that are exact in float32: see ``sample`` in the test."""
    count = 1
    for length in shape:
        count *= length
    mixed = (torch.arange(count) * 7919 + seed * 104729 + 12345) * 2654435761 % 2**32 // 2**16
    if kind == "integers":
        values = bounds[0] + mixed % (bounds[1] - bounds[0])
    elif kind == "choice":
        values = torch.tensor(bounds)[mixed % len(bounds)]
    else:
        low, high = {"signed": (-2, 2), "positive": (0.25, 2.25), "chance": (0, 1)}[kind]
        values = low + (high - low) * (mixed % 4095 + 1) / 4096
    return values.reshape(shape)


S, P, C = "signed", "positive", "chance"


def x(*shape, kind=S, grad=True):
    """An input to differentiate."""
    return {"sample": kind, "shape": list(shape), "grad": grad}


def fixed(*shape, kind=C, bounds=()):
    """An input that is not differentiated."""
    return {"sample": kind, "shape": list(shape), "bounds": list(bounds), "grad": False}


def classes(high, *shape, low=0):
    return fixed(*shape, kind="integers", bounds=(low, high))


def signs(*shape):
    return fixed(*shape, kind="choice", bounds=(-1, 1))


def given(values):
    return {"values": values}


def case(name, *inputs, args=(), kwargs=None, evaluated=False):
    """A class of torch.nn made with ``args`` and ``kwargs``, or a function of torch.nn.functional called with them."""
    return {"name": name, "inputs": list(inputs), "args": list(args), "kwargs": kwargs or {}, "eval": evaluated}


IMAGE = x(2, 4, 5, 6)
CONV = [
    case("Conv1d", x(2, 3, 6), args=(3, 2, 3)),
    case("Conv1d", x(4, 7), args=(4, 2, 3), kwargs={"stride": 2, "padding": 2, "dilation": 2, "groups": 2}),
    case("Conv1d", x(1, 2, 6), args=(2, 2, 4), kwargs={"padding": "same", "bias": False}),
    case("Conv2d", x(2, 3, 4, 5), args=(3, 2, 3)),
    case("Conv2d", IMAGE, args=(4, 4, (2, 3)), kwargs={"stride": (1, 2), "padding": (1, 0), "groups": 2}),
    case("Conv2d", x(1, 2, 4, 5), args=(2, 2, 3), kwargs={"padding": "same", "dilation": 2}),
    case("Conv2d", x(2, 3, 3), args=(2, 3, 1)),
    case("Conv2d", x(1, 3, 3, 3), args=(3, 3, 2), kwargs={"groups": 3, "padding": "valid"}),
    case("Conv3d", x(1, 2, 3, 4, 3), args=(2, 2, (2, 3, 2))),
    case("Conv3d", x(2, 3, 3, 3), args=(2, 2, 2), kwargs={"stride": 2, "padding": 1}),
    case("ConvTranspose1d", x(2, 3, 4), args=(3, 2, 3)),
    case(
        "ConvTranspose1d",
        x(1, 4, 3),
        args=(4, 2, 3),
        kwargs={"stride": 2, "padding": 1, "output_padding": 1, "groups": 2},
    ),
    case("ConvTranspose2d", x(1, 2, 3, 2), args=(2, 3, 2), kwargs={"stride": 2, "bias": False}),
    case("ConvTranspose2d", x(2, 2, 3), args=(2, 2, 3), kwargs={"padding": 1, "dilation": 2, "output_padding": 1}),
    case("ConvTranspose3d", x(1, 2, 2, 2, 2), args=(2, 1, 2), kwargs={"stride": (1, 2, 1)}),
    case("Unfold", x(1, 2, 4, 4), args=((2, 3),), kwargs={"dilation": 1, "padding": 1, "stride": 2}),
    case("Fold", x(1, 8, 9), args=((4, 5), 2), kwargs={"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2)}),
    case("Fold", x(8, 6), args=((3, 4), 2)),
    case("conv2d", x(1, 2, 4, 4), x(3, 2, 2, 2), x(3), kwargs={"stride": 2}),
    case("conv_transpose2d", x(1, 2, 2, 2), x(2, 3, 2, 2), x(3), kwargs={"stride": 2}),
    case("Conv1d", x(1, 2, 5), args=(2, 2, 3), kwargs={"padding": 2, "padding_mode": "reflect"}),
    case("Conv2d", x(1, 1, 4, 5), args=(1, 2, 3), kwargs={"padding": (1, 2), "padding_mode": "circular"}),
    case("Conv2d", x(1, 1, 4, 3), args=(1, 2, 2), kwargs={"padding": "same", "padding_mode": "replicate"}),
]
POOL = [
    case("MaxPool1d", x(2, 2, 7), args=(3,)),
    case("MaxPool1d", x(2, 8), args=(3,), kwargs={"stride": 2, "padding": 1, "dilation": 2, "ceil_mode": True}),
    case("MaxPool2d", x(2, 2, 4, 6), args=(2,)),
    case("MaxPool2d", x(1, 2, 5, 5), args=((3, 2),), kwargs={"stride": (2, 1), "padding": (1, 0), "ceil_mode": True}),
    case("MaxPool2d", x(1, 1, 5, 5), args=(3,), kwargs={"stride": 2, "return_indices": True}),
    case("MaxPool2d", x(1, 1, 5, 5), args=(3,), kwargs={"stride": 2, "padding": 1, "return_indices": True}),
    case("MaxPool3d", x(1, 2, 4, 4, 3), args=(2,)),
    case("max_pool2d_with_indices", x(1, 2, 4, 4), args=(2,)),
    case("AvgPool1d", x(2, 2, 7), args=(3,), kwargs={"stride": 2, "padding": 1}),
    case("AvgPool1d", x(2, 6), args=(4,), kwargs={"stride": 3, "ceil_mode": True, "count_include_pad": False}),
    case("AvgPool2d", x(2, 2, 4, 6), args=(2,)),
    case("AvgPool2d", x(1, 2, 5, 5), args=(3,), kwargs={"stride": 2, "padding": 1, "count_include_pad": False}),
    case("AvgPool2d", x(1, 2, 6, 5), args=(3,), kwargs={"stride": 2, "padding": 1, "ceil_mode": True}),
    case("AvgPool2d", x(1, 1, 4, 4), args=(2,), kwargs={"divisor_override": 3}),
    case("AvgPool3d", x(1, 2, 2, 4, 3), args=(2,)),
    case("LPPool1d", x(2, 2, 7, kind=P), args=(2, 3), kwargs={"stride": 2}),
    case("LPPool1d", x(2, 6, kind=P), args=(2, 4), kwargs={"ceil_mode": True}),
    case("LPPool2d", x(1, 2, 4, 5, kind=P), args=(3, 2)),
    case("LPPool3d", x(1, 1, 2, 4, 2, kind=P), args=(2, 2)),
    case("AdaptiveAvgPool1d", x(2, 2, 7), args=(3,)),
    case("AdaptiveAvgPool2d", x(1, 2, 6, 5), args=((2, None),)),
    case("AdaptiveAvgPool2d", x(2, 5, 7), args=((3, 4),)),
    case("AdaptiveAvgPool2d", x(1, 2, 4, 6), args=(1,)),
    case("AdaptiveAvgPool3d", x(1, 2, 3, 4, 3), args=(2,)),
    case("AdaptiveMaxPool1d", x(2, 2, 7), args=(3,), kwargs={"return_indices": True}),
    case("AdaptiveMaxPool2d", x(1, 2, 5, 7), args=((3, 4),), kwargs={"return_indices": True}),
    case("AdaptiveMaxPool2d", x(1, 2, 4, 6), args=(2,)),
    case("AdaptiveMaxPool3d", x(1, 1, 3, 4, 3), args=(2,)),
    case("MaxUnpool1d", x(1, 1, 3), given([[[0, 3, 5]]]), args=(2,)),
    # The last window is at the end of the image, whatever is drawn.
    case("FractionalMaxPool2d", x(1, 2, 5, 4), args=(2,), kwargs={"output_size": 1}),
    case("FractionalMaxPool3d", x(1, 2, 3, 4, 3), args=([1, 2, 2],), kwargs={"output_size": 1}),
    case("MaxUnpool2d", x(1, 1, 2, 2), given([[[[1, 2], [9, 14]]]]), args=(2,), kwargs={"stride": 2}),
    case("MaxUnpool3d", x(1, 1, 1, 1, 2), given([[[[[0, 7]]]]]), args=(2,)),
    case("Upsample", x(1, 2, 3), kwargs={"scale_factor": 2}),
    case("Upsample", x(1, 2, 3, 4), kwargs={"size": [5, 3]}),
    case("Upsample", x(1, 1, 3, 4), kwargs={"scale_factor": 2.5, "mode": "bilinear"}),
    case("Upsample", x(1, 1, 3, 4), kwargs={"size": [6, 2], "mode": "bilinear", "align_corners": True}),
    case("Upsample", x(1, 1, 3, 4), kwargs={"size": [5, 7], "mode": "bicubic"}),
    case("Upsample", x(1, 1, 3, 4), kwargs={"size": [5, 7], "mode": "bicubic", "align_corners": True}),
    case("Upsample", x(1, 1, 4), kwargs={"size": 7, "mode": "linear"}),
    case("Upsample", x(1, 1, 2, 3, 2), kwargs={"size": [3, 2, 4], "mode": "trilinear"}),
    case("Upsample", x(1, 1, 5, 4), kwargs={"size": [2, 3], "mode": "nearest-exact"}),
    case("UpsamplingNearest2d", x(1, 1, 2, 3), kwargs={"scale_factor": 2}),
    case("UpsamplingBilinear2d", x(1, 1, 2, 3), kwargs={"scale_factor": 2}),
    case("interpolate", x(1, 1, 5, 4), kwargs={"size": [2, 3], "mode": "area"}),
    case("interpolate", x(1, 1, 7, 6), kwargs={"size": [3, 4], "mode": "bilinear", "antialias": True}),
    case("interpolate", x(1, 1, 7, 6), kwargs={"size": [3, 4], "mode": "bicubic", "antialias": True}),
    case("interpolate", x(1, 1, 5), kwargs={"scale_factor": 1.5, "mode": "linear", "recompute_scale_factor": True}),
    case("PixelShuffle", x(1, 8, 2, 3), args=(2,)),
    case("PixelUnshuffle", x(1, 2, 4, 6), args=(2,)),
    case("ChannelShuffle", x(1, 6, 2, 2), args=(3,)),
    case("affine_grid", x(1, 2, 3), args=([1, 1, 3, 4],), kwargs={"align_corners": False}),
    case("affine_grid", x(1, 3, 4), args=([1, 1, 2, 1, 3],), kwargs={"align_corners": True}),
    case("grid_sample", x(1, 2, 3, 4), x(1, 2, 3, 2), kwargs={"align_corners": False}),
    case("grid_sample", x(1, 1, 3, 4), x(1, 3, 3, 2), kwargs={"padding_mode": "border", "align_corners": True}),
    case("grid_sample", x(1, 1, 3, 4), x(1, 3, 3, 2), kwargs={"padding_mode": "reflection", "align_corners": False}),
    case("grid_sample", x(1, 1, 3, 4), x(1, 3, 3, 2, grad=False), kwargs={"mode": "nearest", "align_corners": False}),
    case("grid_sample", x(1, 1, 2, 3, 2), x(1, 1, 2, 2, 3), kwargs={"align_corners": True}),
]
PAD = [
    case("ConstantPad1d", x(2, 3), args=((1, 2), 3.5)),
    case("ConstantPad2d", x(1, 1, 2, 3), args=(1, -1.0)),
    case("ConstantPad3d", x(1, 1, 2, 2, 2), args=(1, 0.5)),
    case("ZeroPad1d", x(1, 2, 3), args=((2, 0),)),
    case("ZeroPad2d", x(1, 1, 2, 3), args=((-1, 1, 2, 0),)),
    case("ZeroPad3d", x(1, 1, 2, 1, 2), args=(1,)),
    case("ReflectionPad1d", x(1, 2, 4), args=((2, 1),)),
    case("ReflectionPad2d", x(1, 1, 3, 4), args=((1, 2, 0, 1),)),
    case("ReflectionPad3d", x(1, 1, 2, 2, 3), args=(1,)),
    case("ReplicationPad1d", x(2, 3), args=(2,)),
    case("ReplicationPad2d", x(1, 1, 2, 3), args=((1, 2, 0, 1),)),
    case("ReplicationPad3d", x(1, 1, 2, 2, 2), args=((1, 0, 0, 1, 1, 1),)),
    case("CircularPad1d", x(1, 2, 4), args=((2, 1),)),
    case("CircularPad2d", x(1, 1, 3, 4), args=((1, 2, 0, 1),)),
    case("CircularPad3d", x(1, 1, 2, 2, 2), args=(1,)),
]
NORM = [
    case("LayerNorm", x(2, 3, 4), args=(4,)),
    case("LayerNorm", x(2, 3, 4), args=([3, 4],), kwargs={"eps": 0.1, "bias": False}),
    case("LayerNorm", x(2, 4), args=(4,), kwargs={"elementwise_affine": False}),
    case("RMSNorm", x(2, 3, 4), args=(4,)),
    case("RMSNorm", x(2, 3, 4), args=([3, 4],), kwargs={"eps": 0.1, "elementwise_affine": False}),
    case("GroupNorm", x(2, 4, 3), args=(2, 4)),
    case("GroupNorm", x(2, 4, 2, 2), args=(1, 4), kwargs={"affine": False}),
    case("BatchNorm1d", x(4, 3), args=(3,)),
    case("BatchNorm1d", x(4, 3), args=(3,), evaluated=True),
    case("BatchNorm1d", x(3, 2, 4), args=(2,), kwargs={"momentum": None, "eps": 0.01}),
    case("BatchNorm2d", x(2, 3, 2, 3), args=(3,)),
    case("BatchNorm2d", x(2, 3, 2, 2), args=(3,), kwargs={"affine": False}, evaluated=True),
    case("BatchNorm2d", x(2, 2, 2, 2), args=(2,), kwargs={"track_running_stats": False}, evaluated=True),
    case("BatchNorm3d", x(2, 2, 2, 1, 3), args=(2,), kwargs={"momentum": 0.3}),
    case("InstanceNorm1d", x(2, 3, 4), args=(3,)),
    case("InstanceNorm1d", x(3, 4), args=(3,), kwargs={"affine": True}),
    case("InstanceNorm2d", x(2, 2, 2, 3), args=(2,), kwargs={"affine": True, "track_running_stats": True}),
    case("InstanceNorm2d", x(2, 2, 2, 3), args=(2,), kwargs={"track_running_stats": True}, evaluated=True),
    case("InstanceNorm3d", x(1, 2, 2, 2, 2), args=(2,)),
    case("LocalResponseNorm", x(1, 5, 2, 2), args=(3,), kwargs={"alpha": 0.1}),
    case("LocalResponseNorm", x(2, 4, 3), args=(2,), kwargs={"alpha": 0.5, "beta": 0.5, "k": 2.0}),
    case("normalize", x(3, 4)),
    case("normalize", x(3, 4), kwargs={"p": 1.5, "dim": 0}),
    case("normalize", x(3, 4), kwargs={"p": float("inf"), "dim": -1}),
    case("CosineSimilarity", x(3, 4), x(3, 4)),
    case("CosineSimilarity", x(2, 3, 4), x(1, 3, 4), kwargs={"dim": -1}),
    case("PairwiseDistance", x(3, 4), x(3, 4)),
    case("PairwiseDistance", x(3, 4), x(1, 4), kwargs={"p": 1.0, "keepdim": True}),
    case("PairwiseDistance", x(4), x(4), kwargs={"p": 3.0}),
    case("Linear", x(2, 3, 4), args=(4, 2)),
    case("Bilinear", x(2, 3, 2), x(2, 3, 3), args=(2, 3, 4)),
    case("Bilinear", x(2), x(3), args=(2, 3, 2), kwargs={"bias": False}),
    case("Identity", x(2, 3)),
    case("Flatten", x(2, 3, 2)),
    case("Unflatten", x(2, 6), args=(1, [2, -1])),
]
PLAIN = [
    *(
        "ReLU",
        "ReLU6",
        "LeakyReLU",
        "ELU",
        "SELU",
        "CELU",
        "GELU",
        "SiLU",
        "Mish",
        "Hardtanh",
        "Hardsigmoid",
        "Hardswish",
    ),
    *("Hardshrink", "Softshrink", "Tanhshrink", "Softplus", "Softsign", "LogSigmoid", "Tanh", "Sigmoid", "PReLU"),
]
ACT = [
    *(case(name, x(3, 4)) for name in PLAIN),
    case("RReLU", x(3, 4), evaluated=True),
    case("Dropout", x(3, 4), evaluated=True),
    case("AlphaDropout", x(3, 4), evaluated=True),
    case("LeakyReLU", x(3, 4), kwargs={"negative_slope": 0.3}),
    case("ELU", x(3, 4), kwargs={"alpha": 0.5}),
    case("CELU", x(3, 4), kwargs={"alpha": 2.0}),
    case("GELU", x(3, 4), kwargs={"approximate": "tanh"}),
    case("Hardtanh", x(3, 4), args=(-0.5, 1.5)),
    case("Hardshrink", x(3, 4), args=(1.0,)),
    case("Softshrink", x(3, 4), args=(1.0,)),
    case("Softplus", x(3, 4), kwargs={"beta": 3.0, "threshold": 4.0}),
    case("Threshold", x(3, 4), args=(0.1, -3.0)),
    case("PReLU", x(2, 3, 2), args=(3,)),
    case("GLU", x(3, 4)),
    case("GLU", x(4, 3), args=(0,)),
    case("Softmax", x(3, 4), kwargs={"dim": 0}),
    case("Softmin", x(3, 4), kwargs={"dim": 1}),
    case("LogSoftmax", x(3, 4), kwargs={"dim": -1}),
    case("Softmax2d", x(1, 3, 2, 2)),
    case("one_hot", classes(4, 2, 3)),
    case("one_hot", classes(3, 4), kwargs={"num_classes": 5}),
]
N, CLASSES, LABELS = x(4, 3), classes(3, 4), fixed(4, 3)
FEW = given([0.5, 2.0, 1.25])
REDUCTIONS = ({"reduction": "sum"}, {"reduction": "none"})
TARGETS = given([[1, 2, 2, 0], [3, 1, 0, 0]])
LOSS = [
    *(case("MSELoss", N, LABELS, kwargs=each) for each in ({}, *REDUCTIONS)),
    *(case("L1Loss", N, LABELS, kwargs=each) for each in ({}, *REDUCTIONS)),
    *(case("SmoothL1Loss", N, x(4, 3), kwargs=each) for each in ({}, {"beta": 0.3}, {"beta": 0.0}, *REDUCTIONS)),
    *(case("HuberLoss", N, x(4, 3), kwargs=each) for each in ({}, {"delta": 0.3}, *REDUCTIONS)),
    case("huber_loss", N, LABELS, kwargs={"weight": fixed(4, 3)}),
    *(case("BCELoss", x(4, 3, kind=C), x(4, 3, kind=C), kwargs=each) for each in ({}, {"weight": FEW}, *REDUCTIONS)),
    *(case("BCEWithLogitsLoss", N, x(4, 3, kind=C), kwargs=each) for each in ({}, {"pos_weight": FEW}, *REDUCTIONS)),
    *(
        case("CrossEntropyLoss", N, CLASSES, kwargs=each)
        for each in ({}, {"weight": FEW}, {"ignore_index": 1}, {"label_smoothing": 0.3, "weight": FEW}, *REDUCTIONS)
    ),
    case("CrossEntropyLoss", x(2, 3, 2, 2), classes(3, 2, 2, 2), kwargs={"ignore_index": 0, "weight": FEW}),
    case("CrossEntropyLoss", x(2, 3, 2), x(2, 3, 2, kind=C), kwargs={"label_smoothing": 0.1, "weight": FEW}),
    case("CrossEntropyLoss", x(3), given(2)),
    *(
        case("LinearCrossEntropyLoss", x(4, 5), CLASSES, args=(5, 3), kwargs=each)
        for each in ({}, {"bias": True, "weight": FEW}, {"ignore_index": 1}, {"label_smoothing": 0.3}, *REDUCTIONS)
    ),
    case("LinearCrossEntropyLoss", x(4, 5), classes(3, 4, 2), args=(5, 3), kwargs={"out_features": (2,), "bias": True}),
    case("LinearCrossEntropyLoss", x(4, 5), x(4, 3, kind=C), args=(5, 3)),
    case("LinearCrossEntropyLoss", x(5), given(2), args=(5, 3)),
    case("linear_cross_entropy", x(4, 5), x(3, 5), CLASSES, kwargs={"linear_bias": x(3), "weight": FEW}),
    *(case("NLLLoss", N, CLASSES, kwargs=each) for each in ({}, {"weight": FEW, "ignore_index": 2}, *REDUCTIONS)),
    *(
        case("KLDivLoss", N, x(4, 3, kind=C), kwargs=each)
        for each in ({}, {"reduction": "batchmean"}, *REDUCTIONS, {"log_target": True, "reduction": "sum"})
    ),
    *(case("PoissonNLLLoss", N, classes(6, 4, 3), kwargs=each) for each in ({}, {"full": True}, *REDUCTIONS)),
    case("PoissonNLLLoss", x(4, 3, kind=P), classes(6, 4, 3), kwargs={"log_input": False}),
    *(case("GaussianNLLLoss", N, x(4, 3), x(4, 3, kind=P), kwargs=each) for each in ({}, {"full": True}, *REDUCTIONS)),
    case("GaussianNLLLoss", N, x(4, 3), x(4, kind=P), kwargs={"eps": 1.0}),
    case("gaussian_nll_loss", N, x(4, 3), x(4, 1, kind=P)),
    *(case("HingeEmbeddingLoss", N, signs(4, 3), kwargs=each) for each in ({}, {"margin": 0.3}, *REDUCTIONS)),
    *(case("MarginRankingLoss", x(4), x(4), signs(4), kwargs=each) for each in ({}, {"margin": 0.3}, *REDUCTIONS)),
    *(
        case("MultiMarginLoss", N, CLASSES, kwargs=each)
        for each in ({}, {"p": 2, "margin": 0.5, "weight": FEW}, *REDUCTIONS)
    ),
    case("MultiMarginLoss", x(3), given(1)),
    *(
        case("MultiLabelMarginLoss", x(2, 4), given([[1, 3, -1, 0], [2, -1, 0, 1]]), kwargs=each)
        for each in ({}, *REDUCTIONS)
    ),
    case("MultiLabelMarginLoss", x(3), given([2, 0, -1])),
    *(case("MultiLabelSoftMarginLoss", N, LABELS, kwargs=each) for each in ({}, {"weight": FEW}, *REDUCTIONS)),
    *(case("SoftMarginLoss", N, signs(4, 3), kwargs=each) for each in ({}, *REDUCTIONS)),
    *(case("CosineEmbeddingLoss", N, x(4, 3), signs(4), kwargs=each) for each in ({}, {"margin": 0.3}, *REDUCTIONS)),
    *(
        case("TripletMarginLoss", N, x(4, 3), x(4, 3), kwargs=each)
        for each in ({}, {"p": 1.0, "swap": True}, *REDUCTIONS)
    ),
    *(
        case("TripletMarginWithDistanceLoss", N, x(4, 3), x(4, 3), kwargs=each)
        for each in ({}, {"swap": True, "margin": 0.5})
    ),
    # Of log_softmax, because of which torch leaves a part of the gradient out that is 0 there.
    *(
        case("CTCLoss", {**x(6, 2, 4), "log_softmax": 2}, TARGETS, given([6, 5]), given([3, 2]), kwargs=each)
        for each in ({}, {"blank": 3}, *REDUCTIONS)
    ),
    case(
        "CTCLoss",
        {**x(2, 1, 4), "log_softmax": 2},
        given([[1, 1, 2]]),
        given([2]),
        given([3]),
        kwargs={"zero_infinity": True},
    ),
    case("CTCLoss", {**x(5, 4), "log_softmax": 1}, given([1, 2, 2]), given(5), given(3)),
]
LOSS = [one for one in LOSS if one["kwargs"].get("blank") != 3 or one["name"] != "CTCLoss"] + [
    case(
        "CTCLoss",
        {**x(6, 2, 4), "log_softmax": 2},
        given([[1, 2, 0], [0, 1, 2]]),
        given([6, 6]),
        given([3, 3]),
        kwargs={"blank": 3},
    )
]
GROUPS = {"convolution": CONV, "pooling": POOL, "padding": PAD, "normalization": NORM, "activation": ACT, "loss": LOSS}


def opened(spec, seed):
    if not isinstance(spec, dict):
        return spec
    if "values" in spec:
        value = torch.tensor(spec["values"])
        return value.double() if value.is_floating_point() else value
    value = sample(spec["sample"], spec["shape"], seed, *spec.get("bounds", ()))
    value = value.double() if value.is_floating_point() else value
    return value.requires_grad_() if spec["grad"] else value


def as_called(value, spec):
    return torch.log_softmax(value, spec["log_softmax"]) if "log_softmax" in spec else value


def run(one, inputs):
    kwargs = {name: opened(value, 50) for name, value in one["kwargs"].items()}
    given = [as_called(value, spec) for value, spec in zip(inputs, one["inputs"])]
    if one["name"].endswith("_"):
        given[0] = given[0].clone()  # leaves are not changed in place
    if not one["name"][0].isupper():
        return {}, {}, getattr(torch.nn.functional, one["name"])(*given, *one["args"], **kwargs)
    module = getattr(torch.nn, one["name"])(*one["args"], **kwargs).double()
    with torch.no_grad():
        for seed, value in enumerate(module.parameters(), 100):
            value.copy_(sample("signed", value.shape, seed))
    if one["eval"]:
        with torch.no_grad():
            module(*given)  # so that there are running statistics
        module.eval()
    result = module(*given)
    return dict(module.named_parameters()), dict(module.named_buffers()), result


def record(one):
    inputs = [opened(spec, seed) for seed, spec in enumerate(one["inputs"])]
    parameters, buffers, result = run(one, inputs)
    results = result if isinstance(result, tuple) else (result,)
    leaves = [leaf for leaf in (*inputs, *parameters.values()) if leaf.requires_grad]
    total = sum((part * sample("signed", part.shape, 7)).sum() for part in results if part.requires_grad)
    grads = torch.autograd.grad(total, leaves) if leaves else []
    return {
        **one,
        "state": {name: list(value.shape) for name, value in {**parameters, **buffers}.items()},
        "results": [numbers(part) for part in results],
        "grads": [numbers(grad) for grad in grads],
        "buffers": {name: numbers(value) for name, value in buffers.items()},
    }


def numbers(tensor):
    """The shape, and the elements with 15 digits."""
    return [list(tensor.shape), [float(f"{value:.15g}") for value in tensor.detach().double().reshape(-1).tolist()]]


def recorded(groups=GROUPS):
    """For each group ``layers_<group>.json``."""
    warnings.simplefilter("ignore")
    return {f"layers_{group}": {"cases": [record(one) for one in members]} for group, members in groups.items()}

"""Records functions of torch.nn.functional, and modules, that no other file here records."""

import record_layers
from record_layers import C, P, case, classes, fixed, given, signs, x

ACTIVATIONS = [
    *(
        case(name, x(3, 4))
        for name in (
            "gelu",
            "glu",
            "hardshrink",
            "hardsigmoid",
            "hardswish",
            "logsigmoid",
            "mish",
            "relu",
            "relu6",
            "selu",
            "sigmoid",
            "silu",
            "softplus",
            "softshrink",
            "softsign",
            "tanh",
            "tanhshrink",
            "relu_",
            "selu_",
        )
    ),
    *(case(name, x(3, 4), kwargs={"alpha": 0.75}) for name in ("celu", "celu_", "elu", "elu_")),
    *(case(name, x(3, 4), kwargs={"min_val": -0.5, "max_val": 0.75}) for name in ("hardtanh", "hardtanh_")),
    *(case(name, x(3, 4), kwargs={"negative_slope": 0.125}) for name in ("leaky_relu", "leaky_relu_")),
    *(case(name, x(3, 4), kwargs={"lower": 0.25, "upper": 0.5}) for name in ("rrelu", "rrelu_")),
    *(case(name, x(3, 4), args=(0.5, -3.0)) for name in ("threshold", "threshold_")),
    case("gelu", x(3, 4), kwargs={"approximate": "tanh"}),
    case("glu", x(2, 4, 3), kwargs={"dim": 1}),
    case("hardshrink", x(3, 4), args=(0.75,)),
    case("softshrink", x(3, 4), args=(0.75,)),
    case("softplus", x(3, 4), kwargs={"beta": 2.0, "threshold": 1.0}),
    case("prelu", x(2, 3, 2), x(3)),
    case("prelu", x(4), x(1)),
    *(case(name, x(2, 3, 4), kwargs={"dim": dim}) for name in ("softmax", "log_softmax", "softmin") for dim in (0, -1)),
]
# By chance, but for what they do while not training, or leave out everything.
DROPOUT = [
    *(
        case(name, x(2, 3, *spaces), kwargs={"training": False})
        for name, spaces in (
            ("dropout", ()),
            ("dropout1d", (4,)),
            ("dropout2d", (2, 2)),
            ("dropout3d", (2, 1, 2)),
            ("alpha_dropout", ()),
            ("feature_alpha_dropout", (2, 2)),
        )
    ),
    case("dropout", x(2, 3), kwargs={"p": 1.0}),
    case("dropout2d", x(2, 3, 2, 2), kwargs={"p": 1.0}),
]
QUERY = (x(2, 2, 3, 4), x(2, 2, 5, 4), x(2, 2, 5, 4))
STATISTICS = (fixed(3, kind=C), fixed(3, kind=P))
OTHERS = [
    case(
        "AdaptiveLogSoftmaxWithLoss", x(5, 4), given([0, 5, 2, 9, 1]), args=(4, 10, [2, 5]), kwargs={"div_value": 2.0}
    ),
    case("AdaptiveLogSoftmaxWithLoss", x(4), given(3), args=(4, 8, [3]), kwargs={"head_bias": True, "div_value": 1.0}),
    case("Embedding", classes(6, 2, 3), args=(6, 4)),
    case("Embedding", classes(6, 2, 3), args=(6, 4), kwargs={"padding_idx": 2, "scale_grad_by_freq": True}),
    *(case("EmbeddingBag", classes(6, 2, 3), args=(6, 4), kwargs={"mode": mode}) for mode in ("sum", "mean", "max")),
    case("EmbeddingBag", classes(6, 5), given([0, 2, 2, 5]), args=(6, 4), kwargs={"include_last_offset": True}),
    case("linear", x(2, 3, 4), x(5, 4), x(5)),
    case("bilinear", x(2, 3), x(2, 4), x(5, 3, 4), x(5)),
    case("scaled_dot_product_attention", *QUERY),
    case("scaled_dot_product_attention", *QUERY, kwargs={"is_causal": True, "scale": 0.25}),
    case("scaled_dot_product_attention", *QUERY, kwargs={"attn_mask": fixed(3, 5)}),
    case("batch_norm", x(4, 3, 2), *STATISTICS),
    case("batch_norm", x(4, 3, 2), *STATISTICS, kwargs={"weight": x(3, grad=False), "eps": 0.5}),
    case("batch_norm", x(4, 3, 2), *STATISTICS, kwargs={"training": True, "momentum": 0.25}),
    case("group_norm", x(2, 4, 3), args=(2,), kwargs={"weight": x(4, grad=False), "bias": x(4, grad=False)}),
    case("instance_norm", x(2, 3, 4)),
    case("instance_norm", x(2, 3, 4), *STATISTICS, kwargs={"use_input_stats": False}),
    case("layer_norm", x(2, 3, 4), args=([3, 4],)),
    case("local_response_norm", x(2, 4, 3), args=(3,), kwargs={"alpha": 0.5, "k": 2.0}),
    case("rms_norm", x(2, 3, 4), args=([4],)),
    case("rms_norm", x(2, 3, 4), args=([3, 4],), kwargs={"eps": 0.5}),
    case("cosine_similarity", x(3, 4), x(3, 4)),
    case("cosine_similarity", x(3, 1, 4), x(2, 4), kwargs={"dim": 2}),
    case("pairwise_distance", x(3, 4), x(3, 4), kwargs={"p": 3.0, "keepdim": True}),
    case("pdist", x(4, 3)),
    case("pdist", x(4, 3), kwargs={"p": 1.0}),
    case("pdist", x(4, 3), kwargs={"p": 3.0}),
    case("pixel_shuffle", x(1, 8, 2, 3), args=(2,)),
    case("pixel_unshuffle", x(1, 2, 4, 6), args=(2,)),
    case("channel_shuffle", x(1, 6, 2), args=(3,)),
    *(
        case("pad", x(1, 2, 3, 4), args=([1, 2, 0, 1], mode))
        for mode in ("constant", "reflect", "replicate", "circular")
    ),
    case("pad", x(2, 3), args=([1, -1], "constant", 1.5)),
]
SPACES = {1: (7,), 2: (5, 6), 3: (4, 3, 4)}
POOLS = [
    one
    for n, spaces in SPACES.items()
    for one in (
        case(f"avg_pool{n}d", x(1, 2, *spaces), args=(2,), kwargs={"stride": 1, "padding": 1}),
        case(f"max_pool{n}d", x(1, 2, *spaces), args=(2,), kwargs={"stride": 1, "padding": 1, "ceil_mode": True}),
        case(f"max_pool{n}d", x(1, 2, *spaces), args=(2,), kwargs={"return_indices": True}),
        case(f"max_pool{n}d_with_indices", x(1, 2, *spaces), args=(3,), kwargs={"stride": 2}),
        case(f"lp_pool{n}d", x(1, 2, *spaces, kind=P), args=(3.0, 2)),
        case(f"adaptive_avg_pool{n}d", x(1, 2, *spaces), args=(2,)),
        case(f"adaptive_max_pool{n}d", x(1, 2, *spaces), args=(2,)),
        case(f"adaptive_max_pool{n}d_with_indices", x(1, 2, *spaces), args=(3,)),
    )
]
POOLS += [
    # The last window is at the end of the image, whatever is drawn.
    case(f"fractional_max_pool{n}d{more}", x(1, 2, *SPACES[n]), args=(2, 1))
    for n in (2, 3)
    for more in ("", "_with_indices")
]
POOLS += [
    case("upsample", x(1, 2, 3), kwargs={"scale_factor": 2, "mode": "linear"}),
    case("upsample_nearest", x(1, 2, 3, 2), kwargs={"size": 5}),
    case("upsample_bilinear", x(1, 2, 3, 2), kwargs={"size": [4, 5]}),
]
CONVOLUTIONS = [
    one
    for n in (1, 2, 3)
    for one in (
        case(f"conv{n}d", x(1, 4, *SPACES[n]), x(2, 2, *(2,) * n), x(2), kwargs={"stride": 2, "groups": 2}),
        case(f"conv_transpose{n}d", x(1, 2, *(3,) * n), x(2, 2, *(2,) * n), x(2), kwargs={"stride": 2, "padding": 1}),
    )
] + [
    case("max_unpool1d", x(1, 1, 3), given([[[0, 3, 5]]]), args=(2,)),
    case("max_unpool2d", x(1, 1, 2, 2), given([[[[1, 2], [9, 14]]]]), args=(2,), kwargs={"stride": 2}),
    case("max_unpool3d", x(1, 1, 1, 1, 2), given([[[[[0, 7]]]]]), args=(2,)),
    case("unfold", x(1, 2, 4, 4), args=((2, 3),), kwargs={"padding": 1, "stride": 2}),
    case("fold", x(1, 8, 9), args=((4, 4), 2)),
]
LOSSES = [
    one
    for reduction in ("mean", "sum", "none")
    for one in (
        case("mse_loss", x(4, 3), x(4, 3), kwargs={"reduction": reduction}),
        case("l1_loss", x(4, 3), x(4, 3), kwargs={"reduction": reduction}),
        case("smooth_l1_loss", x(4, 3), x(4, 3), kwargs={"reduction": reduction, "beta": 0.5}),
        case("huber_loss", x(4, 3), x(4, 3), kwargs={"reduction": reduction, "delta": 0.5}),
        case("binary_cross_entropy", x(4, 3, kind=C), fixed(4, 3), kwargs={"reduction": reduction}),
        case("binary_cross_entropy_with_logits", x(4, 3), fixed(4, 3), kwargs={"reduction": reduction}),
        case("kl_div", x(4, 3), fixed(4, 3), kwargs={"reduction": reduction}),
        case("poisson_nll_loss", x(4, 3), fixed(4, 3), kwargs={"reduction": reduction, "full": True}),
        case("gaussian_nll_loss", x(4, 3), x(4, 3), x(4, 1, kind=P), kwargs={"reduction": reduction}),
        case("soft_margin_loss", x(4, 3), signs(4, 3), kwargs={"reduction": reduction}),
        case("hinge_embedding_loss", x(4, 3), signs(4, 3), kwargs={"reduction": reduction, "margin": 0.5}),
        case("margin_ranking_loss", x(4), x(4), signs(4), kwargs={"reduction": reduction, "margin": 0.5}),
        case("cosine_embedding_loss", x(4, 3), x(4, 3), signs(4), kwargs={"reduction": reduction, "margin": 0.25}),
        case("triplet_margin_loss", x(4, 3), x(4, 3), x(4, 3), kwargs={"reduction": reduction, "swap": True}),
        case("triplet_margin_with_distance_loss", x(4, 3), x(4, 3), x(4, 3), kwargs={"reduction": reduction}),
        case("multi_margin_loss", x(4, 3), classes(3, 4), kwargs={"reduction": reduction, "p": 2}),
        case("multilabel_margin_loss", x(2, 3), given([[2, 0, -1], [1, -1, 0]]), kwargs={"reduction": reduction}),
        case("multilabel_soft_margin_loss", x(4, 3), fixed(4, 3), kwargs={"reduction": reduction}),
        case("nll_loss", x(4, 3), classes(3, 4), kwargs={"reduction": reduction}),
        case("cross_entropy", x(4, 3), classes(3, 4), kwargs={"reduction": reduction}),
        case(
            "ctc_loss",
            {**x(5, 2, 4), "log_softmax": 2},
            given([[1, 2, 2], [3, 1, 1]]),
            given([5, 5]),
            given([3, 2]),
            kwargs={"reduction": reduction},
        ),
    )
]


def recorded():
    functions = [*ACTIVATIONS, *DROPOUT, *OTHERS, *POOLS, *CONVOLUTIONS]
    return record_layers.recorded({"functions": functions, "function_losses": LOSSES})

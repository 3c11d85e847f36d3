"""Layers as nodes of ONNX: products, convolution, pooling, normalization, activations, attention, recurrence."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .onnx_elements import ELEMENTS
from .onnx_graph import Call, Converter, Graph, NotExportable

_DROPOUT = "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout"
LAYERS: dict[str, Converter] = {}


def _linear(graph: Graph, call: Call) -> Any:
    weight = graph.node("Transpose", call.weight, perm=[1, 0]) if len(call.weight.shape) == 2 else call.weight
    product = graph.node("MatMul", call.input, weight)
    return product if call.bias is None else graph.node("Add", product, call.bias)


def _ints(given: Any, count: int) -> list[int]:
    numbers = [given] * count if isinstance(given, int) else list(given)
    return numbers * count if len(numbers) == 1 else numbers


def _batched(count: int, graph: Graph, given: Any) -> Any:
    if len(given.shape) != count + 2:
        raise NotExportable("its input has no dimension of a batch")
    return given


def _convolution(count: int, kind: str, graph: Graph, call: Call) -> Any:
    inputs = [_batched(count, graph, call.input), call.weight] + [call.bias] * (call.bias is not None)
    more: dict[str, Any] = {}
    if isinstance(call.padding, str):
        more["auto_pad"] = {"same": "SAME_UPPER", "valid": "VALID"}[call.padding]
    else:
        more["pads"] = _ints(call.padding, count) * 2
    if kind == "ConvTranspose":
        more["output_padding"] = _ints(call.output_padding, count)
    stride, dilation = _ints(call.stride, count), _ints(call.dilation, count)
    return graph.node(kind, *inputs, strides=stride, dilations=dilation, group=call.groups, **more)


def _pool(count: int, kind: str, graph: Graph, call: Call) -> Any:
    kernel = _ints(call.kernel_size, count)
    stride = kernel if call.stride is None else _ints(call.stride, count)
    more: dict[str, Any] = {"pads": _ints(call.padding, count) * 2, "ceil_mode": int(call.ceil_mode)}
    if kind == "MaxPool":
        if call.return_indices:
            raise NotExportable("it returns indices")
        more["dilations"] = _ints(call.dilation, count)
    else:
        if call.given.get("divisor_override") is not None:
            raise NotExportable("it has a divisor_override")
        more["count_include_pad"] = int(call.count_include_pad)
    return graph.node(kind, _batched(count, graph, call.input), kernel_shape=kernel, strides=stride, **more)


def _adaptive(count: int, graph: Graph, call: Call) -> Any:
    size, target = call.input.shape[2:], call.out.shape[2:]
    if any(length % wanted for length, wanted in zip(size, target)):
        raise NotExportable(f"windows of {target} in {size} have several sizes")
    kernel = [length // wanted for length, wanted in zip(size, target)]
    return graph.node("AveragePool", _batched(count, graph, call.input), kernel_shape=kernel, strides=kernel)


def _batch_norm(graph: Graph, call: Call) -> Any:
    if call.training or call.running_mean is None:
        raise NotExportable("it is training; call eval() on the module")
    channels, dtype = call.input.shape[1], call.out.dtype
    weight = np.ones(channels, dtype) if call.weight is None else call.weight
    bias = np.zeros(channels, dtype) if call.bias is None else call.bias
    return graph.node(
        "BatchNormalization", call.input, weight, bias, call.running_mean, call.running_var, epsilon=call.eps
    )


def _layer_norm(graph: Graph, call: Call) -> Any:
    shape = tuple(call.normalized_shape)
    weight = np.ones(shape, call.out.dtype) if call.weight is None else call.weight
    inputs = [call.input, weight] + [call.bias] * (call.bias is not None)
    return graph.node("LayerNormalization", *inputs, axis=-len(shape), epsilon=call.eps)


def _group_norm(graph: Graph, call: Call) -> Any:
    channels, dtype = call.input.shape[1], call.out.dtype
    weight = np.ones(channels, dtype) if call.weight is None else call.weight
    bias = np.zeros(channels, dtype) if call.bias is None else call.bias
    return graph.node("GroupNormalization", call.input, weight, bias, num_groups=call.num_groups, epsilon=call.eps)


def _instance_norm(graph: Graph, call: Call) -> Any:
    if not call.use_input_stats:
        raise NotExportable("it uses running statistics")
    channels, dtype = call.input.shape[1], call.out.dtype
    weight = np.ones(channels, dtype) if call.weight is None else call.weight
    bias = np.zeros(channels, dtype) if call.bias is None else call.bias
    return graph.node("InstanceNormalization", call.input, weight, bias, epsilon=call.eps)


def _rms_norm(graph: Graph, call: Call) -> Any:
    dtype, count = call.out.dtype, len(tuple(call.normalized_shape))
    eps = np.finfo(dtype).eps if call.eps is None else call.eps
    axes = np.arange(-count, 0)
    mean = graph.node("ReduceMean", graph.node("Mul", call.input, call.input), axes, keepdims=1)
    root = graph.node("Sqrt", graph.node("Add", mean, np.asarray(eps, dtype)))
    result = graph.node("Div", call.input, root)
    return result if call.weight is None else graph.node("Mul", result, call.weight)


def _softmax(kind: str, graph: Graph, call: Call) -> Any:
    if call.dim is None:
        raise NotExportable("it has no dim")
    return graph.node(kind, graph.number(call.input, call.out.dtype), axis=call.dim)


def _scaled(graph: Graph, call: Call) -> Any:
    if call.is_causal or call.enable_gqa or call.dropout_p:
        raise NotExportable("it is causal, drops elements or has groups of heads")
    scale = call.query.shape[-1] ** -0.5 if call.scale is None else call.scale
    return _weighed(graph, call, call.attn_mask, scale)[0]


def _attention(graph: Graph, call: Call) -> Any:
    if call.dropout_p:
        raise NotExportable("it drops elements; call eval() on the module")
    return _weighed(graph, call, call.mask, call.scale)


def _weighed(graph: Graph, call: Call, mask: Any, scale: float) -> list[Any]:
    """Return the results of attention, and its weights."""
    query, key, dtype = call.query, call.key, call.out.dtype
    perm = [*range(len(key.shape) - 2), len(key.shape) - 1, len(key.shape) - 2]
    scores = graph.node("MatMul", query, graph.node("Transpose", key, perm=perm))
    scores = graph.node("Mul", scores, np.asarray(scale, dtype))
    if mask is not None and mask.dtype == bool:
        scores = graph.node("Where", mask, scores, np.asarray(-np.inf, dtype))
    elif mask is not None:
        scores = graph.node("Add", scores, mask)
    weights = graph.node("Softmax", scores, axis=-1)
    return [graph.node("MatMul", weights, call.value), weights]


def _recurrent(kind: str, order: list[int], graph: Graph, call: Call) -> Any:
    """Return the outputs and last states of a layer; ``order`` are the gates in ONNX's order."""
    steps, weights, shape = call.steps, call.weights, call.x.shape
    if call.given.get("project") is not None or set(steps.counts) != {shape[1]}:
        raise NotExportable("it has a projection, or sequences of several lengths")
    matrices = [graph.array(each) for each in weights]
    if matrices[0] is None or matrices[1] is None:
        raise NotExportable("its weights are computed")
    size = matrices[1].shape[1]

    def ordered(array: Any) -> Any:
        parts = np.zeros(len(order) * size, call.out.dtype) if array is None else array
        return np.concatenate([parts[gate * size : (gate + 1) * size] for gate in order])

    one, two, *biases = [ordered(each) for each in matrices]
    bias = np.concatenate(biases)[None]
    states = [graph.shaped(call.given[name], (1, shape[1], size)) for name in ("h", "c") if name in call.given]
    more: dict[str, Any] = {"direction": "reverse" if steps.reverse else "forward", "hidden_size": size}
    if kind == "GRU":
        more["linear_before_reset"] = 1
    if kind == "RNN":
        more["activations"] = [call.nonlinearity.capitalize()]
    found = graph.node(kind, call.x, one[None], two[None], bias, "", *states, outputs=len(states) + 1, **more)
    return [graph.shaped(name, ref.shape) for name, ref in zip(found, call.outputs)]


def _attributes(kind: str, names: dict[str, str], graph: Graph, call: Call) -> Any:
    attributes: dict[str, Any] = {name: float(call.given[ours]) for name, ours in names.items()}
    return graph.node(kind, call.input, **attributes)


def _gelu(graph: Graph, call: Call) -> Any:
    return graph.node("Gelu", call.input, approximate=call.approximate)


def _softplus(graph: Graph, call: Call) -> Any:
    if call.beta != 1:
        raise NotExportable("its beta is not 1")
    return graph.node("Softplus", call.input)


def _silu(graph: Graph, call: Call) -> Any:
    return graph.node("Mul", call.input, graph.node("Sigmoid", call.input))


def _log_sigmoid(graph: Graph, call: Call) -> Any:
    return graph.node("Neg", graph.node("Softplus", graph.node("Neg", call.input)))


def _prelu(graph: Graph, call: Call) -> Any:
    shape = (-1, *[1] * (len(call.input.shape) - 2))
    return graph.node("PRelu", call.input, graph.shaped(call.weight, shape))


def _unchanged(graph: Graph, call: Call) -> Any:
    return graph.node("Identity", call.input)  # where it draws, its step has a problem


for _count in (1, 2, 3):
    LAYERS[f"conv{_count}d"] = partial(_convolution, _count, "Conv")
    LAYERS[f"conv_transpose{_count}d"] = partial(_convolution, _count, "ConvTranspose")
    LAYERS[f"max_pool{_count}d"] = partial(_pool, _count, "MaxPool")
    LAYERS[f"avg_pool{_count}d"] = partial(_pool, _count, "AveragePool")
    LAYERS[f"adaptive_avg_pool{_count}d"] = partial(_adaptive, _count)
LAYERS.update(dict.fromkeys(_DROPOUT.split(), _unchanged))
LAYERS.update(
    {
        "linear": _linear,
        "batch_norm": _batch_norm,
        "layer_norm": _layer_norm,
        "group_norm": _group_norm,
        "instance_norm": _instance_norm,
        "rms_norm": _rms_norm,
        "softmax": partial(_softmax, "Softmax"),
        "log_softmax": partial(_softmax, "LogSoftmax"),
        "scaled_dot_product_attention": _scaled,
        "attention": _attention,
        "lstm_layer": partial(_recurrent, "LSTM", [0, 3, 1, 2]),
        "gru_layer": partial(_recurrent, "GRU", [1, 0, 2]),
        "rnn_layer": partial(_recurrent, "RNN", [0]),
        "embedding": lambda graph, call: graph.node("Gather", call.weight, call.rows, axis=0),
        "leaky_relu": partial(_attributes, "LeakyRelu", {"alpha": "negative_slope"}),
        "elu": partial(_attributes, "Elu", {"alpha": "alpha"}),
        "celu": partial(_attributes, "Celu", {"alpha": "alpha"}),
        "selu": partial(_attributes, "Selu", {}),
        "hardsigmoid": lambda graph, call: graph.node("HardSigmoid", call.input, alpha=1 / 6),
        "gelu": _gelu,
        "silu": _silu,
        "softplus": _softplus,
        "logsigmoid": _log_sigmoid,
        "prelu": _prelu,
    }
)

CONVERTERS = {**ELEMENTS, **LAYERS}

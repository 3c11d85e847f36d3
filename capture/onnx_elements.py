"""Element-wise operations, reductions and moves of elements as nodes of ONNX."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np

from ..core.extend import Tensor
from .onnx_graph import Call, Converter, Graph, NotExportable
from .steps import Ref
from .trees import tensors_of
from .values import mapped

ELEMENTS: dict[str, Converter] = {}
_SAME = (
    "abs Abs, neg Neg, exp Exp, log Log, sqrt Sqrt, tanh Tanh, sigmoid Sigmoid, relu Relu, sin Sin, cos Cos, tan Tan, "
    "asin Asin, acos Acos, atan Atan, sinh Sinh, cosh Cosh, asinh Asinh, acosh Acosh, atanh Atanh, erf Erf, floor Floor, "
    "ceil Ceil, round Round, sign Sign, reciprocal Reciprocal, softsign Softsign, isnan IsNaN, logical_not Not, "
    "hardswish HardSwish, mish Mish, positive Identity, clone Identity, contiguous Identity, "
    "detach Identity, alias_copy Identity"
)
_BINARY = "mul Mul, maximum Max, minimum Min, matmul MatMul, mm MatMul, bmm MatMul, mv MatMul, dot MatMul"
_COMPARISONS = "eq Equal, gt Greater, ge GreaterOrEqual, lt Less, le LessOrEqual"
_LOGICAL = "logical_and And, logical_or Or, logical_xor Xor"
_REDUCTIONS = (
    "sum ReduceSum, mean ReduceMean, amax ReduceMax, amin ReduceMin, prod ReduceProd, logsumexp ReduceLogSumExp"
)
_SHAPES = "reshape view flatten squeeze unsqueeze ravel unflatten reshape_as view_as view_copy"
_MAKERS = "zeros ones full zeros_like ones_like full_like arange eye"
_PERMUTATIONS = "transpose permute t movedim swapaxes matrix_transpose reversed_dims mT adjoint"
_MOVES = (
    "getitem select narrow chunk split split_with_sizes unbind flip fliplr flipud roll repeat tile diagonal unfold "
    "tensor_split pixel_shuffle pixel_unshuffle channel_shuffle rot90 expand_copy index_select"
)


def _pairs(text: str) -> list[list[str]]:
    return [each.split() for each in text.split(", ")]


def _element(kind: str, graph: Graph, call: Call) -> Any:
    return graph.node(kind, graph.number(call.input, call.out.dtype if call.out.dtype != bool else call.input.dtype))


def _operands(graph: Graph, call: Call, dtype: Any = None) -> list[Any]:
    given = list(call.given.values())[:2]
    if dtype is None:
        dtype = np.result_type(*[each.dtype if isinstance(each, Ref) else each for each in given])
    return [graph.number(each, dtype) for each in given]


def _binary(kind: str, graph: Graph, call: Call) -> Any:
    return graph.node(kind, *_operands(graph, call, call.out.dtype))


def _added(kind: str, graph: Graph, call: Call) -> Any:
    one, other = _operands(graph, call, call.out.dtype)
    if call.alpha != 1:
        other = graph.node("Mul", other, np.asarray(call.alpha, call.out.dtype))
    return graph.node(kind, one, other)


def _bitwise(kind: str, graph: Graph, call: Call) -> Any:
    if call.out.dtype != bool:
        raise NotExportable("it is of integers")
    return _compared(kind, graph, call)


def _compared(kind: str, graph: Graph, call: Call) -> Any:
    return graph.node(kind, *_operands(graph, call))


def _divided(graph: Graph, call: Call) -> Any:
    if call.rounding_mode is not None:
        raise NotExportable("it has a rounding mode")
    return _binary("Div", graph, call)


def _reduced(kind: str, graph: Graph, call: Call) -> Any:
    shape, dim = call.input.shape, call.given.get("dim")
    dims = range(len(shape)) if dim is None else [dim] if isinstance(dim, int) else dim
    given = graph.number(call.input, call.out.dtype)
    if not shape:
        return graph.node("Identity", given)
    axes = np.array([each % len(shape) for each in dims], np.int64)
    return graph.shaped(graph.node(kind, given, axes, keepdims=1), call.out.shape)


def _extreme(kind: str, graph: Graph, call: Call) -> Any:
    if len(call.outputs) > 1 or isinstance(call.dim, Ref) or call.other is not None:
        raise NotExportable("it returns indices, or compares two tensors; use amax() and argmax(), or maximum()")
    return _reduced(kind, graph, call)


def _position(kind: str, graph: Graph, call: Call) -> Any:
    given = call.input if call.dim is not None else graph.shaped(call.input, (-1,))
    return graph.shaped(graph.node(kind, given, axis=call.dim or 0, keepdims=1), call.out.shape)


def _same_order(graph: Graph, call: Call) -> Any:
    return graph.shaped(call.step.args[0], call.out.shape)


def _permuted(graph: Graph, call: Call) -> Any:
    ndim = len(call.step.args[0].shape)
    example = Tensor(np.empty(range(2, 2 + ndim), np.int8))  # each length tells its dimension
    shape = call.step.function(example, *call.step.args[1:], **call.step.kwargs).shape
    return graph.node("Transpose", call.step.args[0], perm=[length - 2 for length in shape])


def _expanded(graph: Graph, call: Call) -> Any:
    return graph.node("Expand", call.step.args[0], np.array(call.out.shape, np.int64))


def _moved(graph: Graph, call: Call) -> Any:
    """Return an operation that only moves elements as ``Gather``, by what it does with the numbers of elements."""
    given, step = call.step.args[0], call.step
    if any(isinstance(each, Ref) and graph.array(each) is None for each in _refs((step.args[1:], step.kwargs))):
        return _picked(graph, call)
    numbers = Tensor(np.arange(prod(given.shape)).reshape(given.shape))
    args, kwargs = mapped((step.args[1:], step.kwargs), lambda each: _known(graph, each))
    found = tensors_of(step.function(numbers, *args, **kwargs))
    flat = graph.shaped(given, (-1,))
    return [graph.node("Gather", flat, np.asarray(each._array, np.int64), axis=0) for each in found]


def _known(graph: Graph, each: Any) -> Any:
    return Tensor(graph.array(each)) if isinstance(each, Ref) else each


def _refs(tree: Any) -> list[Ref]:
    found: list[Ref] = []
    mapped(tree, lambda each: found.append(each) if isinstance(each, Ref) else None)
    return found


def _picked(graph: Graph, call: Call) -> Any:
    index = call.given.get("index")
    if not isinstance(index, Ref) or index.dtype.kind not in "iu":
        raise NotExportable("its index is computed, and not one tensor of integers")
    return graph.node("Gather", call.input, index, axis=call.given.get("dim", 0))


def _clamped(graph: Graph, call: Call) -> Any:
    low, high = (call.given[name] for name in ("min", "max"))
    result = graph.number(call.input, call.out.dtype)
    if low is not None:
        result = graph.node("Max", result, graph.number(low, call.out.dtype))
    return result if high is None else graph.node("Min", result, graph.number(high, call.out.dtype))


def _between(low: float, high: float, graph: Graph, call: Call) -> Any:
    low, high = call.given.get("min_val", low), call.given.get("max_val", high)
    dtype = call.out.dtype
    return graph.node("Clip", call.input, np.asarray(low, dtype), np.asarray(high, dtype))


def _where(graph: Graph, call: Call) -> Any:
    dtype = call.out.dtype
    return graph.node("Where", call.condition, graph.number(call.input, dtype), graph.number(call.other, dtype))


def _filled(graph: Graph, call: Call) -> Any:
    return graph.node("Where", call.mask, graph.number(call.value, call.out.dtype), call.input)


def _joined(graph: Graph, call: Call) -> Any:
    parts = [graph.number(each, call.out.dtype) for each in call.tensors]
    return graph.node("Concat", *parts, axis=call.dim)


def _stacked(graph: Graph, call: Call) -> Any:
    dim = call.dim % len(call.out.shape)
    shape = (*call.out.shape[:dim], 1, *call.out.shape[dim + 1 :])
    parts = [graph.shaped(graph.number(each, call.out.dtype), shape) for each in call.tensors]
    return graph.node("Concat", *parts, axis=dim)


def _constant(graph: Graph, call: Call) -> Any:
    if _refs((call.step.args, call.step.kwargs)) and not call.step.name.endswith("_like"):
        raise NotExportable("it is made of tensors")
    args, kwargs = mapped((call.step.args, call.step.kwargs), _empty)
    result: Tensor = call.step.function(*args, **kwargs)
    return graph.value(result._array)


def _empty(each: Any) -> Any:
    return Tensor(np.empty(each.shape, each.dtype)) if isinstance(each, Ref) else each


def _cast(graph: Graph, call: Call) -> Any:
    return graph.cast(call.input, call.out.dtype)


def _of_tensor(kind: str, name: str, number: float, graph: Graph, call: Call) -> Any:
    """Return an operation on a tensor and a number, which is a tensor in ONNX: log1p as the logarithm of 1 + x, say."""
    return graph.node(name, graph.node(kind, call.input, np.asarray(number, call.out.dtype)))


def _rsub(graph: Graph, call: Call) -> Any:
    one, other = _operands(graph, call, call.out.dtype)
    return graph.node("Sub", other, one)


for _name, _kind in _pairs(_SAME):
    ELEMENTS[_name] = partial(_element, _kind)
for _name, _kind in _pairs(_BINARY):
    ELEMENTS[_name] = partial(_binary, _kind)
for _name, _kind in _pairs(_COMPARISONS + ", " + _LOGICAL):
    ELEMENTS[_name] = partial(_compared, _kind)
for _name, _kind in _pairs(_REDUCTIONS):
    ELEMENTS[_name] = partial(_reduced, _kind)
ELEMENTS.update(dict.fromkeys(_SHAPES.split(), _same_order))
ELEMENTS.update(dict.fromkeys(_PERMUTATIONS.split(), _permuted))
ELEMENTS.update(dict.fromkeys(_MOVES.split(), _moved))
ELEMENTS.update(dict.fromkeys(("expand", "broadcast_to", "expand_as"), _expanded))
ELEMENTS.update(dict.fromkeys(_MAKERS.split(), _constant))
ELEMENTS.update(
    {
        "bitwise_and": partial(_bitwise, "And"),
        "bitwise_or": partial(_bitwise, "Or"),
        "bitwise_xor": partial(_bitwise, "Xor"),
        "add": partial(_added, "Add"),
        "sub": partial(_added, "Sub"),
        "rsub": _rsub,
        "div": _divided,
        "pow": partial(_binary, "Pow"),
        "ne": lambda graph, call: graph.node("Not", _compared("Equal", graph, call)),
        "square": lambda graph, call: graph.node("Mul", call.input, call.input),
        "rsqrt": lambda graph, call: graph.node("Reciprocal", graph.node("Sqrt", call.input)),
        "log1p": partial(_of_tensor, "Add", "Log", 1),
        "max": partial(_extreme, "ReduceMax"),
        "min": partial(_extreme, "ReduceMin"),
        "argmax": partial(_position, "ArgMax"),
        "argmin": partial(_position, "ArgMin"),
        "clamp": _clamped,
        "hardtanh": partial(_between, -1, 1),
        "relu6": partial(_between, 0, 6),
        "where": _where,
        "masked_fill": _filled,
        "cat": _joined,
        "stack": _stacked,
        "to": _cast,
        "gather": lambda graph, call: graph.node("GatherElements", call.input, call.index, axis=call.dim),
        "expm1": lambda graph, call: graph.node("Sub", graph.node("Exp", call.input), np.asarray(1, call.out.dtype)),
    }
)

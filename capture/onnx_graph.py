"""``export``: a recorded forward pass as a model of ONNX, one operation after the other.

Tables in ``onnx_elements.py`` and ``onnx_layers.py`` have a function for each operation, which adds nodes. Shapes are those of
the recording.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base.errors import ArgumentTypeError
from ..core.extend import OPERATIONS, Array, Tensor
from .steps import Ref, Step

OPSET = 21


class Exported(NamedTuple):
    """Parts of a plan that an export needs.

    Attributes:
        steps: the operations.
        inputs: the tensors among the arguments.
        found: the other tensors from outside, with their elements.
        results: structure of the results.
    """

    steps: Sequence[Step]
    inputs: Sequence[Ref]
    found: Sequence[tuple[Ref, Tensor]]
    results: Any


class Call:
    """An operation to export: its arguments are attributes, by their names, tensors as ``Ref``.

    Args:
        step: the operation.
    """

    def __init__(self, step: Step) -> None:
        plain = OPERATIONS.get(step.name.rstrip("_"), step.function)  # add() of add_(), which has its parameters
        bound = inspect.signature(plain).bind(*step.args, **step.kwargs)
        bound.apply_defaults()
        self.given: dict[str, Any] = dict(bound.arguments)
        self.step, self.outputs, self.out = step, step.outputs, step.outputs[0]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.given[name]
        except KeyError:
            raise AttributeError(name) from None


class NotExportable(Exception):
    """Raised where an operation has no form in ONNX; its text is the reason."""


class Graph:
    """Nodes of a model, and its constants.

    Args:
        helper: the module ``onnx.helper``.
        found: elements of tensors from outside, by the numbers of their references.
    """

    def __init__(self, onnx: Any, found: dict[int, Array]) -> None:
        self._onnx, self._found = onnx, found
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._names: dict[int, str] = {}
        self._count = 0

    def node(self, kind: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node, and return the name of its result, or of its results if there are several.

        Args:
            kind: its operator.
            inputs: names, references or arrays; "" where one is left out.
            outputs: how many results it has.
            attributes: its attributes.
        """
        names = [self.value(each) for each in inputs]
        made = [self._fresh() for _ in range(outputs)]
        self.nodes.append(self._onnx.helper.make_node(kind, names, made, **attributes))
        return made[0] if outputs == 1 else made

    def value(self, given: Any) -> str:
        """Return the name of a tensor: of a name itself, of a reference, or of a new constant."""
        if isinstance(given, str):
            return given
        if isinstance(given, Ref):
            if given.number not in self._names:
                if given.number not in self._found:
                    raise NotExportable("it uses a tensor that was made in a way that is not recorded")
                self._names[given.number] = self.value(self._found[given.number])
            return self._names[given.number]
        name = self._fresh()
        self.constants.append(
            self._onnx.numpy_helper.from_array(np.ascontiguousarray(given).reshape(np.shape(given)), name)
        )
        return name

    def array(self, given: Any) -> Array | None:
        """Return the elements of a tensor that is a parameter; ``None`` if they are not known."""
        return self._found.get(given.number) if isinstance(given, Ref) else None

    def number(self, given: Any, dtype: Any) -> Any:
        """Return a number as a constant of a dtype; a reference, cast if it has another dtype."""
        if not isinstance(given, Ref):
            return np.asarray(given, dtype)
        return given if given.dtype == dtype else self.cast(given, dtype)

    def cast(self, given: Any, dtype: Any) -> str:
        """Return a tensor in another dtype."""
        return str(self.node("Cast", given, to=self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))))

    def shaped(self, given: Any, shape: Sequence[int]) -> str:
        """Return the elements of a tensor in another shape."""
        return str(self.node("Reshape", given, np.array(shape, np.int64)))

    def name(self, ref: Ref, name: str) -> None:
        """Give a reference the name of its tensor in the model."""
        self._names[ref.number] = name

    def _fresh(self) -> str:
        self._count += 1
        return f"v{self._count}"


Converter = Callable[[Graph, Call], Any]


def export(plan: Exported, converters: dict[str, Converter], name: str) -> Any:
    """Return a model of ONNX.

    Args:
        plan: the recorded operations.
        converters: functions by the names of operations.
        name: of the model.

    Raises:
        ArgumentTypeError: an operation cannot be exported; the message names it.
        ImportError: the package ``onnx`` is not installed.
    """
    try:
        import onnx
        import onnx.helper
    except ImportError:
        raise ImportError("to_onnx() needs the package onnx; pip install onnx onnxruntime") from None

    graph = Graph(onnx, {ref.number: tensor._array for ref, tensor in plan.found})
    for place, ref in enumerate(plan.inputs):
        graph.name(ref, f"input{place}")
    for step in plan.steps:
        _convert(graph, step, converters)
    results = _flat(plan.results)
    outputs = [graph.node("Identity", ref) for ref in results]
    described = onnx.helper.make_graph(
        graph.nodes,
        name,
        [_described(onnx, f"input{place}", ref) for place, ref in enumerate(plan.inputs)],
        [_described(onnx, output, ref) for output, ref in zip(outputs, results)],
        graph.constants,
    )
    opsets = [onnx.helper.make_opsetid("", OPSET)]
    model = onnx.helper.make_model(described, opset_imports=opsets, ir_version=10, producer_name="telegrad")
    onnx.checker.check_model(model, full_check=True)
    return model


def _convert(graph: Graph, step: Step, converters: dict[str, Converter]) -> None:
    try:
        if step.problem is not None:
            raise NotExportable(step.problem)
        if step.name.rstrip("_") not in converters:
            raise NotExportable("it has no form there")
        results = converters[step.name.rstrip("_")](graph, Call(step))
    except (NotExportable, TypeError, AttributeError) as error:
        raise ArgumentTypeError(f"{step.name}() cannot be exported to ONNX: {error}") from error
    for ref, result in zip(step.outputs, [results] if isinstance(results, str) else results):
        if result is not None:
            graph.name(ref, result)


def _described(onnx: Any, name: str, ref: Ref) -> Any:
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(ref.dtype))
    return onnx.helper.make_tensor_value_info(name, kind, ref.shape)


def _flat(tree: Any) -> list[Ref]:
    if isinstance(tree, Ref):
        return [tree]
    if isinstance(tree, (tuple, list)):
        return [ref for each in tree for ref in _flat(each)]
    return _flat(list(tree.values())) if isinstance(tree, dict) else []

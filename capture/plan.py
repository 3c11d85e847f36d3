"""``Plan``: a recorded program that can be replayed, and the conditions under which that is right."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, BinaryIO

from ..base.errors import ArgumentTypeError
from ..core.extend import Generator, Tensor
from ..core.serialization import save
from .crossings import RemotePart
from .differentiable import Lease, ReplayNode
from .errors import GivenUp
from .found import Found
from .frames import Frames
from .gradients import kind_of
from .layouts import Layouts
from .looks import Look
from .onnx_graph import Exported, export
from .onnx_layers import CONVERTERS
from .parts import Part
from .recorded import Input
from .saved import saved
from .source import PENDING, Source
from .state import State
from .trees import tensors_of
from .values import Outer


class Plan:
    """A program, and what must be as it was recorded.

    Args:
        source: the program.
        found: tensors that it uses and that are no arguments of the call.
        state: Python objects that the function read.
        label: a name for readers.
        pure: whether a replay changes nothing outside.
        repeatable: whether it changes nothing but the states of generators.
        whole: names of the operations that run as a whole, with the reasons.
        inputs: descriptions of the tensors among the arguments.
    """

    def __init__(
        self,
        source: Source,
        found: Sequence[Tensor],
        state: State,
        label: str,
        whole: Sequence[tuple[str, str]],
        inputs: Sequence[Input],
    ) -> None:
        self.inputs = inputs
        self.source, self.label, self.state, self.whole = source, label, state, whole
        self._layouts = Layouts(source)
        self.replays = 0
        self.exported: Exported | None = None  # by a recording
        self.gradients: Sequence[tuple[Outer, Any]] = ()  # that the program reads, and of what kind they are before
        # A backward half sends gradients to other workers.
        changes = [each for each in source.recorded.statements[: source.recorded.half] if each.changes]
        self.pure, self.repeatable = not changes, all(each.draws for each in changes)
        self.parts: Sequence[Part] = ()  # of a plan that looks at elements; the source is that of the last one
        self.looks: Sequence[Look] = ()
        self.generators: Sequence[Generator] = ()  # whose states are put back in replays that are given up
        self.leaves = [each for each in found if each._requires_grad]
        self.sums: Sequence[Tensor] = ()  # those whose gradients it adds up in a backward pass
        self.remote: Sequence[RemotePart] = ()  # parts that other workers replay
        self.used = 0  # when it was used last
        self._backward: tuple[str, Sequence[Outer], Sequence[Outer], Sequence[int]] | None = None
        self._found = Found(found)
        self._condition = eval(source.condition, dict(source.constants))  # a line of the program itself
        self._frames = Frames(source, label)

    def differentiable(self, name: str, inputs: Sequence[Outer], read: Sequence[Outer], slots: Sequence[int]) -> None:
        """Let replays return backward passes beside the results, and make them the node of the results.

        Args:
            name: of the function.
            inputs: the tensors whose gradients they return.
            read: those whose elements they need.
            slots: for each result that requires grad, in order, its place among the gradients of the node.
        """
        self._backward = name, inputs, read, slots

    def save(self, f: str | os.PathLike[str] | BinaryIO) -> None:
        """Write the plan to a file, with the tensors that it uses. ``load_plan`` reads it where the function's source is not.

        Args:
            f: a path, or an open binary file.

        Raises:
            ArgumentTypeError: it does something that is no data: a step of an optimizer, a call of another worker, ...
        """
        if self.looks:
            raise ArgumentTypeError(
                "the plan cannot be saved: it is for some values of elements that Python has looked at"
            )
        save(saved(self.source.recorded, self.inputs, self._found.tensors, self.label, self._backward), f)

    def to_onnx(self, f: str | os.PathLike[str] | BinaryIO) -> None:
        """Write the forward pass as a model of ONNX, for the shapes of the recording.

        Its inputs are the tensors among the arguments, ``input0``, ``input1`` and so on; its outputs are those of the result,
        in order. Its numbers are those of the runtime that runs it: near those of the function, not the same bits.

        Args:
            f: a path, or an open binary file.

        Raises:
            ArgumentTypeError: an operation has no form in ONNX, or the plan changes tensors; the message names it.
            ImportError: the package ``onnx`` is not installed.
        """
        if self.looks:
            raise ArgumentTypeError(
                "the plan cannot be exported to ONNX: it is for some values of elements that Python has looked at"
            )
        if not self.pure or self.exported is None:
            raise ArgumentTypeError(
                "the plan cannot be exported to ONNX: it changes tensors from outside, as a backward pass, a step and "
                "batch_norm() in training do; export the forward pass of a module in eval() mode"
            )
        model = export(self.exported, CONVERTERS, self.label).SerializeToString()
        if isinstance(f, (str, os.PathLike)):
            with open(f, "wb") as file:
                file.write(model)
        else:
            f.write(model)

    def fits(self, tensors: Sequence[Tensor]) -> bool:
        """Return whether the tensors and objects that it uses are as they were, and its conditions are satisfied.

        Args:
            tensors: those of the call, which have the kinds of the recording.
        """
        if not (self.state.fits(tensors) and self.finds(tensors)):
            return False
        for part in self.remote:  # noqa: SIM110  # a generator costs more than all the rest
            if not part.fits():
                return False
        return True

    def finds(self, tensors: Sequence[Tensor], former: Mapping[int, Any] = MappingProxyType({})) -> bool:
        """Return the same as ``fits`` where it is known that the objects are as they were.

        Args:
            tensors: those of the call.
            former: gradients that earlier parts have replaced, by the ids of leaves.
        """
        return self._found.same() and self._finds_gradients(tensors, former) and self.holds(tensors)

    def _finds_gradients(self, tensors: Sequence[Tensor], former: Mapping[int, Any]) -> bool:
        for outer, kind in self.gradients:
            leaf = self._outside(outer, tensors)
            if kind_of(former.get(id(leaf), leaf._grad)) != kind:
                return False
        return True

    def _outside(self, outer: Outer, tensors: Sequence[Tensor]) -> Tensor:
        return self._found.tensors[outer.place] if outer.found else tensors[outer.place]

    def holds(self, tensors: Sequence[Tensor]) -> bool:
        """Return whether the elements that the program depends on satisfy its conditions: all that a loaded plan asks.

        Args:
            tensors: those of the call.
        """
        return bool(self._condition(*tensors))

    def replay(self, tensors: Sequence[Tensor], *live: Any) -> Any:
        """Run the program on the tensors of a call, and return its result.

        Args:
            tensors: those of the call.
            *live: what the parts before it have made, if there are some.

        Raises:
            GivenUp: another worker could not take part; nothing has happened.
        """
        states = [each.get_state() for each in self.generators] if self.remote else []
        frame = self._frames.take()
        try:
            result = frame(*tensors, *live)
        except GivenUp:
            for generator, state in zip(self.generators, states):
                generator.set_state(state)
            raise
        self.replays += 1
        free = self._frames.free
        if self._backward is None:
            free.append(frame)  # after an error it is left to be freed
            return result
        if self.source.halves:
            result, backward = result
            return self._recorded(result, backward, tensors, Lease(free, frame))
        free.append(frame)
        return self._recorded(result, {}, tensors, None)

    def _recorded(self, result: Any, backward: Any, tensors: Sequence[Tensor], lease: Lease | None) -> Any:
        assert self._backward is not None
        name, inputs, read, slots = self._backward

        found = self._found.tensors

        def outside(outers: Sequence[Outer]) -> list[Tensor]:
            return [found[outer.place] if outer.found else tensors[outer.place] for outer in outers]

        node = ReplayNode(name, backward, max(slots) + 1, outside(inputs), outside(read), lease, self._layouts.choose)
        for tensor, slot in zip([each for each in tensors_of(result) if each._edge is PENDING], slots):
            tensor._edge = (node, slot)
        return result

    @property
    def sources(self) -> list[Source]:
        """The parts of the program, in order."""
        return [*(part.code.source for part in self.parts[:-1] if part.code is not None), self.source]

    @property
    def memory(self) -> int:
        """Bytes of one set of memory that stays between replays."""
        return sum(sum(source.sizes) for source in self.sources)

    def prepare(self) -> None:
        """Make the memory of the first replay.

        Raises:
            ValueError: an array does not fit its memory.
        """
        self._frames.free.append(self._frames.make())

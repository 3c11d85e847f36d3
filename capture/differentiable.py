"""``ReplayNode``: the node of a replayed call whose result requires grad. Its backward is the second half of the program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.errors import AutogradError
from ..core.extend import Node, Tensor, gradient_edge


class Lease:
    """Memory of a replay, until its backward has run or no code can run it any more; then it is free for another replay.

    Args:
        frames: the free ones.
        frame: the one that is in use.
    """

    __slots__ = ("_frame", "_frames")

    def __init__(self, frames: list[Any], frame: Any) -> None:
        self._frames, self._frame = frames, frame

    def __del__(self) -> None:
        self._frames.append(self._frame)  # one step for the interpreter, so it takes no lock


class ReplayNode(Node):
    """Computes the gradients of the tensors that a replayed call used.

    Args:
        name: of the function.
        backward: from the gradient of the result to those of ``inputs``; ``None`` if that was freed inside.
        inputs: tensors from outside whose gradients it computes.
        read: tensors whose elements it needs as they are now.
        lease: its memory, if it has some.
    """

    __slots__ = ("_backward", "_lease", "_name", "_read")

    def __init__(
        self,
        name: str,
        backward: Callable[[Any], Any] | None,
        inputs: Sequence[Tensor],
        read: Sequence[Tensor],
        lease: Lease | None,
    ) -> None:
        super().__init__(tuple([gradient_edge(tensor) for tensor in inputs]), 1)
        self._name, self._lease = name, lease
        self._backward = backward
        self._read = [(tensor._counter, tensor._counter[0]) for tensor in read]

    def apply(self, grads: tuple[Any, ...]) -> Sequence[Any]:
        """Return the gradients of the inputs.

        Raises:
            AutogradError: they were computed before, or a tensor was changed in place.
        """
        if grads[0] is None:
            return (None,) * len(self.next_edges)
        if self._backward is None:
            raise AutogradError(
                f"{self.name()} needs values that an earlier backward pass freed; to run backward through a graph twice, "
                "pass retain_graph=True to the first backward() or grad()"
            )
        if any(counter[0] != version for counter, version in self._read):
            raise AutogradError(
                f"{self.name()} needs a tensor as it was in the call, but it was modified in place; run backward before, "
                "or clone() it"
            )
        results: Sequence[Any] = self._backward(grads[0])
        return results

    def apply_graph(self, grads: tuple[Any, ...]) -> Sequence[Any]:
        """Raise: the gradients of a replay cannot be differentiated.

        Raises:
            AutogradError: always.
        """
        raise AutogradError(
            f"the gradients of {self._name}() cannot be differentiated, because it was compiled; call the function itself "
            "(the __wrapped__ of the compiled one) where you need create_graph=True"
        )

    def release(self) -> None:
        self._backward = self._lease = None

    def name(self) -> str:
        return f"Replay({self._name})"

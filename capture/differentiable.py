"""``ReplayNode``: the node of a replayed call whose results require grad. Its backward is the second half of the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..base.errors import AutogradError
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
        backwards: by which results get a gradient, functions from these to the gradients of ``inputs``; none if values were
            freed inside, or changed in place.
        results: how many results require grad.
        inputs: tensors from outside whose gradients it computes.
        read: tensors whose elements it needs as they are now.
        lease: its memory, if it has some.
        choose: returns the pass for gradients of some layout, as ``Layouts.choose``.
    """

    __slots__ = ("_backwards", "_choose", "_freed", "_lease", "_name", "_read", "_used")

    def __init__(
        self,
        name: str,
        backwards: Mapping[tuple[bool, ...], Callable[..., Any]],
        results: int,
        inputs: Sequence[Tensor],
        read: Sequence[Tensor],
        lease: Lease | None,
        choose: Callable[..., Callable[..., Any]],
    ) -> None:
        super().__init__(tuple([gradient_edge(tensor) for tensor in inputs]), results)
        self._name, self._lease = name, lease
        self._backwards, self._choose = backwards, choose
        self._used: frozenset[int] = frozenset()  # results that the last pass started from
        self._freed: frozenset[int] = frozenset()  # results that no pass can start from any more
        self._read = [(tensor._counter, tensor._counter[0]) for tensor in read]

    def apply(self, grads: tuple[Any, ...]) -> Sequence[Any]:
        """Return the gradients of the inputs.

        Raises:
            AutogradError: they were computed before, or a tensor was changed in place.
        """
        mask = tuple([grad is not None for grad in grads])
        if not any(mask):
            return (None,) * len(self.next_edges)
        self._used = frozenset([place for place, given in enumerate(mask) if given])
        if mask not in self._backwards or not self._freed.isdisjoint(self._used):
            raise AutogradError(
                f"{self.name()} needs values that an earlier backward pass freed, or that the call modified in place after "
                "it used them; to run backward through a graph twice, pass retain_graph=True to the first backward() or "
                "grad(), and clone() what is changed"
            )
        if any(counter[0] != version for counter, version in self._read):
            raise AutogradError(
                f"{self.name()} needs a tensor as it was in the call, but it was modified in place; run backward before, "
                "or clone() it"
            )
        given = [grad for grad in grads if grad is not None]
        results: Sequence[Any] = self._choose(mask, self._backwards[mask], given)(*given)
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
        # Eager results have nodes of their own: a pass from one of them frees what it has used.
        self._freed |= self._used
        if len(self._freed) == self.num_inputs:
            self._backwards, self._lease = {}, None

    def name(self) -> str:
        return f"Replay({self._name})"

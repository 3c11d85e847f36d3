"""``saved_tensors_hooks``: keep the tensors that operations save for the backward pass in another form until then.

It watches operations, and replaces the tensors that their new nodes saved by packed values. Programs that do not use it pay
nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from ...base.errors import AutogradError
from ..interception import Watcher
from ..tensors import Tensor
from .edges import gradient_edge
from .node import Node
from .packed import PACKED, Pack, Packed, Unpack, alias_at

# The hooks in effect, innermost last; and the error to raise for new ones, if they are disabled.
_hooks: ContextVar[tuple[saved_tensors_hooks, ...]] = ContextVar("telegrad_saved_tensors_hooks", default=())
_forbidden: ContextVar[str | None] = ContextVar("telegrad_saved_tensors_hooks_forbidden", default=None)


class saved_tensors_hooks(Watcher):  # noqa: N801 - PyTorch's name
    """A ``with`` block in which ``pack_hook(tensor)`` is kept in place of each saved tensor; the backward pass calls
    ``unpack_hook`` with it (``torch.autograd.graph.saved_tensors_hooks``). Of nested blocks only the innermost has effect.

    Tensors that custom functions save are packed too. Operations that are one node with several results inside (layers of
    recurrent networks, attention) then keep only their inputs, and compute the rest again.

    Args:
        pack_hook: called with a tensor; may return anything.
        unpack_hook: called with that; must return a tensor of the same shape and dtype.

    Raises:
        AutogradError: on entering it, inside ``disable_saved_tensors_hooks``.
    """

    def __init__(self, pack_hook: Pack, unpack_hook: Unpack) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> Any:
        message = _forbidden.get()
        if message is not None:
            raise AutogradError(message)
        _hooks.set((*_hooks.get(), self))
        return super().__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        super().__exit__(kind, error, tb)
        _hooks.set(_hooks.get()[:-1])

    def watch(
        self, run: Callable[[], Any], func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run the operation, and pack the tensors that its nodes saved.

        Args:
            run: calls the operation.
            func: the operation.
            args: its positional arguments.
            kwargs: its keyword arguments.
        """
        if _hooks.get()[-1] is not self:
            return run()
        known = set(_nodes_before((args, tuple(kwargs.values()))))
        result = run()
        stack = list(new_nodes(result))
        while stack:
            node = stack.pop()
            if node not in known:
                known.add(node)
                node.pack_saved(self._packed)
                stack += [edge[0] for edge in node.next_edges if edge is not None]
        return result

    def _packed(self, entry: Any, slot: int | None) -> Any:
        """Return the packed form of a node's saved entry; ``slot`` is its number if it is an output of the node."""
        if entry is None or entry[1] is entry[0] or entry[2] is PACKED:
            return entry  # not needed, a plain number, or packed already
        array, tensor, *_ = entry
        edge = None if tensor is None or slot is not None else gradient_edge(tensor)
        given = Tensor(array) if tensor is None or tensor._array is not array else alias_at(tensor, None)
        return (Packed(given, edge, slot, self.pack_hook, self.unpack_hook), None, PACKED, 0)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Return a ``with`` block in which entering ``saved_tensors_hooks`` raises an error with the text ``error_message``.

    Raises:
        AutogradError: hooks are in effect already; its text is ``error_message``.
    """
    if _hooks.get():
        raise AutogradError(error_message)
    token = _forbidden.set(error_message)
    try:
        yield
    finally:
        _forbidden.reset(token)


def new_nodes(result: Any) -> list[Node]:
    """Return the nodes of the tensors that an operation returned."""
    return [tensor._edge[0] for tensor in tensors_in(result) if tensor._edge is not None]


def _nodes_before(given: Any) -> Iterator[Node]:
    """Yield the nodes of an operation's arguments and of their bases: older than the operation."""
    for tensor in tensors_in(given):
        for each in (tensor, tensor._base):
            if each is not None and each._edge is not None:
                yield each._edge[0]


def tensors_in(values: Any) -> Iterator[Tensor]:
    """Yield the tensors in nested tuples and lists."""
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, (tuple, list)):
        for value in values:
            yield from tensors_in(value)

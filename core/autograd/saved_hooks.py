"""``saved_tensors_hooks``: what operations save for the backward pass, kept in another form until then.

It watches operations run, takes what their new nodes saved out, and leaves packed values in its place. So nobody pays for it
who does not use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from ..errors import AutogradError
from ..interception import Watcher
from ..tensors import Tensor
from .edges import gradient_edge
from .node import Node
from .packed import PACKED, Pack, Packed, Unpack, alias_at

# The hooks in force, innermost last, and why there may be none.
_hooks: ContextVar[tuple[saved_tensors_hooks, ...]] = ContextVar("telegrad_saved_tensors_hooks", default=())
_forbidden: ContextVar[str | None] = ContextVar("telegrad_saved_tensors_hooks_forbidden", default=None)


class saved_tensors_hooks(Watcher):  # noqa: N801 - PyTorch's name
    """While it is entered, ``pack_hook(tensor)`` is kept in place of each saved tensor, and ``unpack_hook`` of that is what
    the backward pass uses. Of several the innermost counts.

    ``unpack_hook`` must give a tensor of the same shape and dtype (``torch.autograd.graph.saved_tensors_hooks``). What custom
    functions give to ``save_for_backward`` is packed too. Operations that are one node with passes of their own (layers of
    recurrent networks, attention) then keep only what they were given, and compute the rest again.

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
        """Run the operation, and pack what its nodes saved."""
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
        """For an entry as in ``ops/table.py``, the packed one; ``slot``: which result of the node it is, if it is one."""
        if entry is None or entry[1] is entry[0] or entry[2] is PACKED:
            return entry  # not needed, a plain number, or done
        array, tensor, *_ = entry
        edge = None if tensor is None or slot is not None else gradient_edge(tensor)
        given = Tensor(array) if tensor is None or tensor._array is not array else alias_at(tensor, None)
        return (Packed(given, edge, slot, self.pack_hook, self.unpack_hook), None, PACKED, 0)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """While it is entered, there can be no ``saved_tensors_hooks``: they raise ``error_message``.

    Raises:
        AutogradError: some are in force already; its text is ``error_message``.
    """
    if _hooks.get():
        raise AutogradError(error_message)
    token = _forbidden.set(error_message)
    try:
        yield
    finally:
        _forbidden.reset(token)


def new_nodes(result: Any) -> list[Node]:
    """The nodes of the tensors that an operation returned."""
    return [tensor._edge[0] for tensor in tensors_in(result) if tensor._edge is not None]


def _nodes_before(given: Any) -> Iterator[Node]:
    """Where what an operation makes ends: the nodes of what it was given, and of what that is a view of."""
    for tensor in tensors_in(given):
        for each in (tensor, tensor._base):
            if each is not None and each._edge is not None:
                yield each._edge[0]


def tensors_in(values: Any) -> Iterator[Tensor]:
    """The tensors in nested tuples and lists."""
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, (tuple, list)):
        for value in values:
            yield from tensors_in(value)

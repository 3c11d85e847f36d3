"""``Outcome``: attributes of tensors and lists that were there before, which a call leaves to its caller beside elements.

A replay makes its results anew: other lists, and tensors without attributes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from ..core.extend import Tensor
from .errors import Unrecordable
from .state import State
from .trees import tensors_of


class Outcome:
    """Attributes of the arguments of a call, as they are before it.

    Args:
        tensors: those among its arguments.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._given = [(each, dict(vars(each))) for each in tensors]

    def check(self, result: Any, state: State, outside: Collection[int]) -> None:
        """Raise if a replay would leave something else.

        Args:
            result: of the call.
            state: what the call has read.
            outside: ids of the tensors that there were before the call.

        Raises:
            Unrecordable: it would.
        """
        for each, before in self._given:
            _check_attributes(each, before)
            if state.reads(each):
                raise Unrecordable("it reads an attribute of an argument, which may be another one in the next call")
        for each in tensors_of(result):
            if id(each) not in outside:
                _check_attributes(each, {})
        seen = set[int]()
        for each in _containers(result):
            if state.has(each) or id(each) in seen or getattr(each, "__dict__", None):
                raise Unrecordable(
                    f"it returns a {type(each).__name__} that is not only in this place, or has attributes; return a copy"
                )
            seen.add(id(each))


def _check_attributes(tensor: Tensor, before: dict[str, Any]) -> None:
    now = vars(tensor)
    changed = [name for name in {**before, **now} if name not in before or now.get(name) is not before[name]]
    if changed:
        raise Unrecordable(f"it changes the attribute {changed[0]} of a tensor")


def _containers(tree: Any) -> Iterator[Any]:
    """Yield the lists and dictionaries of a result, which a replay makes anew."""
    if isinstance(tree, (list, dict)):
        yield tree
    if isinstance(tree, (tuple, list, dict)):
        for each in tree.values() if isinstance(tree, dict) else tree:
            yield from _containers(each)

"""``key_of``: what two calls have in common if one can be the replay of the other, as far as the arguments say."""

from __future__ import annotations

from typing import Any

from ..core import get_default_dtype
from ..core.extend import Tensor, is_grad_enabled
from .errors import Unrecordable
from .trees import form, tensors_of


def key_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Tensor]]:
    """Return a hashable key of a call, and the tensors among its arguments, each once.

    Of tensors it has the shapes, dtypes, strides and ``requires_grad``, and which of them are the same; of numbers and texts
    the values, of other objects the identities. The grad mode and the default dtype are in it.

    Args:
        args: the arguments of the call.
        kwargs: its named arguments.

    Raises:
        Unrecordable: a NumPy array is among them.
    """
    tensors: list[Tensor] = []
    places: dict[int, int] = {}

    def name(tensor: Tensor) -> Any:
        if type(tensor)._takes_over or tensor.is_sparse:
            raise Unrecordable(f"tensors of the class {type(tensor).__name__} are not recorded")
        place = places.get(id(tensor))
        if place is None:
            place = places[id(tensor)] = len(tensors)
            tensors.append(tensor)
        array = tensor._array
        leaf, hooked = tensor._edge is None, tensor._hooks is not None
        return place, type(tensor), array.shape, array.dtype, array.strides, tensor._requires_grad, leaf, hooked

    given = form((args, kwargs) if kwargs else args, name)
    return (given, is_grad_enabled(), get_default_dtype()), tensors


__all__ = ["key_of", "tensors_of"]

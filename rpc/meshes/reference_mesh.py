"""``ReferenceMesh``: one object on each worker of a mesh, whose methods are called together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...base.errors import ArgumentKindError
from ..options import UNSET_RPC_TIMEOUT
from .scattering import scattered
from .shapes import find_place

if TYPE_CHECKING:
    from ..links.worker_info import WorkerInfo
    from .mesh import Mesh


class ReferenceMesh:
    """References to one object on each worker of a mesh; ``Mesh.remote`` makes it.

    Iteration gives the references in the order of the mesh, and an index is as for ``ValueMesh``. The objects live as long as
    this object, or references that were taken out of it. As an argument or a result of a call it has the same references.

    Args:
        mesh: the workers.
        references: the references, in the order of the mesh.

    Attributes:
        mesh: the workers.

    Example:
        >>> from collections import Counter
        >>> from telegrad import rpc
        >>> from telegrad.testing import cluster
        >>> with cluster(3):
        ...     counters = rpc.mesh().remote(Counter)
        ...     updated = counters.call("update", (["a", "b", "a"],))
        ...     print(counters.call("get", ("a",), reduce="sum"))
        6
    """

    def __init__(self, mesh: Mesh, references: Iterable[Any]) -> None:
        self.mesh = mesh
        self._references = tuple(references)

    def __len__(self) -> int:
        return len(self.mesh)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._references)

    def __getitem__(self, worker: int | str | WorkerInfo | tuple[int, ...]) -> Any:
        """Return the reference to the object of a worker.

        Args:
            worker: as for ``ValueMesh``.
        """
        return self._references[find_place(self.mesh.workers, self.mesh.shape, worker)]

    def call(
        self,
        method: str | Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        timeout: float = UNSET_RPC_TIMEOUT,
        reduce: str | None = None,
    ) -> Any:
        """Call a method of every object, and return the results, as ``Mesh.call`` does.

        Args:
            method: its name, or a function whose first argument is the object.
            args, kwargs, timeout, reduce: as for ``Mesh.call``.
        """
        return self.call_async(method, args, kwargs, timeout, reduce).wait()

    def call_async(
        self,
        method: str | Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        timeout: float = UNSET_RPC_TIMEOUT,
        reduce: str | None = None,
    ) -> Any:
        """Do what ``call`` does, and return at once, as ``Mesh.call_async`` does.

        Args:
            method, args, kwargs, timeout, reduce: as for ``call``.

        Raises:
            ArgumentKindError: ``method`` is neither a name nor something to call.
        """
        if not isinstance(method, str) and not callable(method):
            raise ArgumentKindError(f"method is a name, or a function of the object; you gave {method!r}")
        if not isinstance(args, (tuple, list)):
            raise ArgumentKindError(f"args must be a tuple; you gave {args!r}. For one argument write args=(x,)")
        return self.mesh.call_async(call_method, (scattered(self), method, *args), kwargs, timeout, reduce)

    def __reduce__(self) -> Any:
        return ReferenceMesh, (self.mesh, self._references)

    def __repr__(self) -> str:
        return f"<ReferenceMesh of {self.mesh!r}>"


def make_object(reference_type: type, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return a reference to what a function returns on this worker. Other workers call this."""
    return reference_type(function(*args, **kwargs))


def call_method(reference: Any, method: str | Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a method of an object of this worker. Other workers call this."""
    value = reference.local_value()
    return getattr(value, method)(*args, **kwargs) if isinstance(method, str) else method(value, *args, **kwargs)

"""``Mesh``: workers that are called together; ``rpc.mesh`` makes it."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ...base.errors import ArgumentKindError, ArgumentValueError
from ..current import current_agent
from ..functions.calling import label_parts, name_of, request_body, resolve_timeout
from ..links.worker_info import WorkerInfo
from ..options import STREAM_AHEAD, UNSET_RPC_TIMEOUT
from .mesh_calls import MeshCalls
from .mesh_stream import MeshStream, open_generator
from .reduced_value import ReducedValue
from .reducing import check_reduction
from .reference_mesh import ReferenceMesh, make_object
from .scattering import take_parts
from .shapes import check_shape, places
from .tree import plant
from .value_mesh import ValueMesh

if TYPE_CHECKING:
    from ..agent import Agent
    from ..links.peer import Peer
    from ..wire.bundle import Content

T = TypeVar("T")
DIGITS = "0123456789"


def mesh(
    workers: Iterable[str | int | WorkerInfo] | None = None,
    *,
    role: str | None = None,
    shape: Mapping[str, int] | None = None,
) -> Mesh:
    """Return a mesh: workers that are called together, over a tree of them.

    Args:
        workers: names, ranks or ``WorkerInfo``s, in the order of the mesh; by default all that have not left and are not
            lost, this one included, by rank.
        role: only workers whose names are the role and a number: ``"trainer"`` is ``trainer0``, ``trainer1``, …
        shape: dimensions by name, the last one changes fastest; by default one, ``"worker"``.

    Raises:
        UnknownWorkerError: there is no such worker.
        ArgumentValueError: there are no workers, a worker is named twice, or ``shape`` has another number of places.
        ArgumentKindError: ``workers`` is a single name, or no list.

    Example:
        >>> from telegrad import rpc
        >>> from telegrad.testing import cluster
        >>> with cluster(4):
        ...     mesh = rpc.mesh(shape={"host": 2, "rank": 2})
        ...     print(mesh.at(host=1), mesh.at(host=1).call(abs, (-1,)).values())
        mesh(rank=['worker2', 'worker3']) [1, 1]
    """
    agent = current_agent()
    if workers is None:
        live = sorted(agent.peers.live(), key=lambda info: info.id)
        # A worker that is being replaced is there twice for a moment.
        peers = list(dict.fromkeys(agent.peers.find(info) for info in live))
    elif isinstance(workers, (str, WorkerInfo)) or not isinstance(workers, Iterable):
        raise ArgumentKindError(f"workers is a list; write [{workers!r}]")
    else:
        peers = [agent.peers.find(worker) for worker in workers]
    if role is not None:
        peers = [peer for peer in peers if peer.info.name.rstrip(DIGITS) == role or peer.info.name == role]
    if not peers:
        told = "" if role is None else f" of role {role!r}"
        raise ArgumentValueError(f"a mesh has at least one worker; there are none{told}")
    ((number, times),) = Counter(peer.number for peer in peers).most_common(1)
    if times > 1:
        raise ArgumentValueError(f"worker {agent.peers.name(number)!r} is in the mesh twice; name each worker once")
    return Mesh(agent, peers, {"worker": len(peers)} if shape is None else check_shape(shape, len(peers)))


class Mesh:
    """Workers that are called together. ``rpc.mesh`` makes one; ``len``, ``in`` and iteration give its workers.

    As an argument or a result of a call it is a mesh of the same workers, of that worker's own.

    Args:
        agent: the agent that calls.
        peers: the workers.
        shape: their dimensions.

    Attributes:
        shape: length of each dimension by its name.
        workers: the workers, in the order of the mesh.
    """

    def __init__(self, agent: Agent, peers: Sequence[Peer], shape: dict[str, int]) -> None:
        self._agent = agent
        self._peers = tuple(peers)
        self.shape = shape
        self.workers = tuple(peer.info for peer in peers)
        at = agent.peers.at(agent.number).host
        self._subtrees = plant([peer.number for peer in peers], [peer.host for peer in peers], agent.number, at)

    def __len__(self) -> int:
        return len(self._peers)

    def __iter__(self) -> Iterator[WorkerInfo]:
        return iter(self.workers)

    def __contains__(self, worker: object) -> bool:
        return any(worker in (info, info.name) for info in self.workers)

    def __reduce__(self) -> Any:
        return partial(mesh, shape=self.shape), (self.workers,)

    def __repr__(self) -> str:
        names = [info.name for info in self.workers]
        shown = repr(names) if len(names) <= 8 else f"[{names[0]!r}, ..., {names[-1]!r}]"
        return f"mesh({'*'.join(self.shape) if len(self.shape) < 2 else self.shape}={shown})"

    def at(self, **coordinates: int | slice) -> Mesh:
        """Return the mesh of the workers with these coordinates.

        Args:
            coordinates: for a dimension a place, which leaves the dimension out, or a slice: ``at(host=0, rank=slice(2))``.

        Raises:
            ArgumentValueError: there is no such dimension, or no worker is left.
            ArgumentIndexError: a place is not in the mesh.
        """
        found, left = places(self.shape, coordinates)
        return Mesh(self._agent, [self._peers[place] for place in found], left or {"worker": 1})

    def choose(self) -> WorkerInfo:
        """Return one of the workers that are not lost, at random, for a call that any of them can answer.

        Raises:
            WorkerLostError: all are lost.
        """
        live = [peer for peer in self._peers if not peer.gone]
        if not live:
            raise self._peers[0].lost_error()
        return secrets.choice(live).info

    def call(
        self,
        func: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        timeout: float = UNSET_RPC_TIMEOUT,
        reduce: str | None = None,
    ) -> Any:
        """Run ``func(*args, **kwargs)`` on every worker, and return the results when all are there.

        Arguments are pickled once, and at most four messages with them leave this worker; the others are sent by workers of
        the mesh. The loss of one costs its own result only.

        Args:
            func: as for ``rpc_async``.
            args: positional arguments; each worker gets the same, or its part of one that ``rpc.scattered`` or
                ``rpc.sharded`` made.
            kwargs: keyword arguments, likewise.
            timeout: seconds; the default is the agent's ``rpc_timeout``, 0 is for ever. A worker that has not answered then
                has an ``RpcTimeoutError`` in the place of its result; results that came in time are kept.
            reduce: ``"sum"``, ``"mean"`` or ``"cat"``: return one value instead of a ``ValueMesh``. Sums of tensors, arrays
                and numbers, or of lists, tuples and dictionaries of them, are added up on the way, always in the same order:
                the same workers give the same bits. ``"cat"`` concatenates tensors and arrays along their first dimension,
                or lists. All are differentiable. If a worker fails, its error is raised.

        Raises:
            SerializationError: an argument cannot be sent; the message names it. Nothing was sent.
            ArgumentValueError: a scattered argument has not as many parts as the mesh has workers.
        """
        return self.call_async(func, args, kwargs, timeout, reduce).wait()

    def call_async(
        self,
        func: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        timeout: float = UNSET_RPC_TIMEOUT,
        reduce: str | None = None,
    ) -> Any:
        """Do what ``call`` does, and return at once: each use of the ``ValueMesh`` waits for the results that it needs.

        With ``reduce`` this returns a ``Future`` of the one value.

        Args:
            func, args, kwargs, timeout, reduce: as for ``call``.
        """
        fold = check_reduction(reduce)
        agent, peers = self._agent, self._peers
        # The function travels by name only if every worker can find it, and by value only if every worker can read that.
        strict = next((peer for peer in peers if not peer.same_main), peers[0])
        (function, given, named), name = request_body(strict, func, args, kwargs)
        given, named, rows = take_parts(given, named, len(peers))
        seconds = resolve_timeout(agent, timeout)
        versions = next((peer.versions for peer in peers if peer.versions), "")
        codec, same = agent.codec, strict.same_main
        content = codec.pack_content((function, given, named), same, versions, label_parts)
        parts = {
            place: codec.pack_content(row, same, versions, partial(_label_parts, peers[place].info.name))
            for place, row in enumerate(rows)
        }
        if not fold:
            return self.begin_packed(content, seconds, name, parts)
        reduced = ReducedValue(fold, len(peers), codec, agent.threads.run_later)
        agent.part(MeshCalls).begin(self._subtrees, content, parts, seconds, name, reduced, reduced.folds)
        return reduced.future

    def begin_packed(
        self, content: Content, seconds: float, name: str, parts: dict[int, Content] | None = None
    ) -> ValueMesh[Any]:
        """Send a call that is packed already, and return its results.

        Args:
            content: the function, its arguments and keyword arguments, from ``Codec.pack_content``.
            seconds: its time-out; 0 for none.
            name: of the function, for people.
            parts: of scattered arguments, packed, by the place in the mesh.
        """
        agent = self._agent
        values: ValueMesh[Any] = ValueMesh(self.workers, self.shape, agent.codec, agent.caller.call_back)
        agent.part(MeshCalls).begin(self._subtrees, content, parts or {}, seconds, name, values)
        return values

    def remote(
        self,
        func: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        timeout: float = UNSET_RPC_TIMEOUT,
    ) -> ReferenceMesh:
        """Make one object on each worker, with ``func(*args, **kwargs)``, and return references to them.

        It waits until all are made.

        Args:
            func: a class or function; not one that returns a future or is ``async def``.
            args, kwargs, timeout: as for ``call``.

        Raises:
            Exception: the first error in the order of the mesh; then no object is kept.
        """
        references = self._objects((), func, args, kwargs, timeout).wait()
        try:
            return ReferenceMesh(self, references.values())
        finally:
            del references  # an error has this frame, and is in them

    def stream(
        self,
        func: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        timeout: float = UNSET_RPC_TIMEOUT,
        *,
        ahead: int = STREAM_AHEAD,
    ) -> MeshStream[Any]:
        """Run the generator ``func(*args, **kwargs)`` on every worker, and return an iterator of the items, as they come.

        Each item is a pair ``(worker, item)``. Arguments travel as with ``call``. Generators begin when all workers have them,
        and each is at most ``ahead`` items ahead of the consumer. A worker that fails or is lost has its error in the
        ``errors`` of the iterator, by its name; the others go on, and the first error is raised after their last items.

        Args:
            func: as for ``rpc.stream``.
            args, kwargs: as for ``call``.
            timeout: seconds until all workers have the arguments, and for the next item of each worker; the default is the
                agent's ``rpc_timeout``, 0 is for ever.
            ahead: how many items of each worker may be made before they are taken.

        Raises:
            SerializationError: an argument cannot be sent; the message names it.
            ArgumentValueError: ``ahead`` is negative, or no whole number.

        Example:
            >>> from telegrad import rpc
            >>> from telegrad.testing import cluster
            >>> with cluster(3):
            ...     items = rpc.mesh().stream(range, (rpc.scattered([1, 2, 0]),))
            ...     print(sorted((worker.name, item) for worker, item in items))
            [('worker0', 0), ('worker1', 0), ('worker1', 1)]
        """
        if not isinstance(ahead, int) or ahead < 0:
            raise ArgumentValueError(f"ahead must be a whole number, 0 or more; you gave {ahead!r}")
        functions = self._objects((partial,), func, args, kwargs, timeout)
        return MeshStream(self.workers, functions, partial(open_generator, self._agent, name_of(func), timeout, ahead))

    def _objects(self, makes: tuple[Any, ...], func: Any, args: Any, kwargs: Any, timeout: float) -> ValueMesh[Any]:
        """Return references to what ``func`` makes on each worker, or a function in ``makes`` of it and them."""
        if not callable(func):
            raise ArgumentKindError(f"func must be something to call; you gave {func!r}")
        if not isinstance(args, (tuple, list)):
            raise ArgumentKindError(f"args must be a tuple; you gave {args!r}. For one argument write args=(x,)")
        reference_type = self._agent.codec.reference_types[0]
        made: ValueMesh[Any] = self.call_async(make_object, (reference_type, *makes, func, *args), kwargs, timeout)
        return made


def _label_parts(name: str, row: Sequence[Any]) -> list[tuple[str, Any]]:
    return [(f"the part of worker {name!r} of a scattered argument", value) for value in row]

"""``_server_process_global_profile``: a profile of everything that a worker runs for others."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from ..core.profiler import FunctionEvent, profile
from ..rpc.extend import Agent, current_agent


class _server_process_global_profile(profile):  # noqa: N801 - PyTorch's name
    """Records the operations of all requests that this worker begins to serve between ``__enter__`` and ``__exit__``.

    It has the parameters and results of ``profile``, and can be entered and left in different calls, for example through a
    reference: ``rref.rpc_sync().__enter__()``. Several can be entered at a time.

    Attributes:
        process_global_function_events: the events of each thread.

    Example:
        >>> import telegrad as tg
        >>> from telegrad.testing import in_process_cluster
        >>> with in_process_cluster("server", "trainer") as (server, trainer):
        ...     with server.use(), tg.rpc._server_process_global_profile() as profiled:
        ...         with trainer.use():
        ...             tg.rpc.rpc_sync("server", tg.add, (tg.ones(2), 1))
        tensor([2., 2.])
        >>> [event.name for event in profiled.function_events]
        ['aten::add']
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._agent: Agent | None = None

    def __enter__(self) -> _server_process_global_profile:
        if self.enabled and self._agent is None:
            self._agent = current_agent()
            self.at_worker(self._agent.number, self._agent.name)
            super().__enter__()
            self._agent.threads.prepare_contexts(self._watch_context)
        return self

    def watch_here(self) -> None:
        """Do not watch what the thread that enters it does."""

    def _watch_context(self) -> None:
        super().watch_here()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._agent is not None:
            self._agent.threads.unprepare_contexts(self._watch_context)
            self._agent = None
            super().__exit__(kind, error, tb)

    @property
    def process_global_function_events(self) -> list[list[FunctionEvent]]:
        """The events of each thread that served requests."""
        threads: dict[int, list[FunctionEvent]] = {}
        for event in self.function_events:
            threads.setdefault(event.thread, []).append(event)
        return list(threads.values())

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_agent": None}

"""``local_cluster``: worker processes for this process to call, from a notebook's cell, a console or a script."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import time
from dataclasses import replace
from types import TracebackType

from ..agents import init_rpc
from ..base.errors import RpcError
from ..base.multiprocessing_children import GUARD
from ..rpc.extend import Agent, GrpcRpcBackendOptions, WorkerInfo, current_agent, shut_down
from .errors import ProcessException
from .exit_words import describe_exit
from .spawn import ProcessContext, check_number, spawn
from .spawned_process import PassedDescriptor

logger = logging.getLogger("telegrad.launcher")
WORKERS_END_SECONDS = 10.0
BEGUN_SECONDS = 0.01  # between two looks whether the processes have begun


class LocalCluster:
    """Worker processes on this machine, and this process as one more worker; ``local_cluster`` starts one.

    Args:
        context: the processes.
        agent: this process's agent.

    Attributes:
        workers: the workers in the processes, in order of rank.
        pids: their process ids, by name.
    """

    def __init__(self, context: ProcessContext, agent: Agent) -> None:
        others = [worker for worker in agent.peers.live() if worker.id != agent.rank]
        self.workers: list[WorkerInfo] = sorted(others, key=lambda worker: worker.id)
        self.pids = {worker.name: pid for worker, pid in zip(self.workers, context.pids(), strict=True)}
        self._processes = dict(zip(self.pids, context.processes, strict=True))
        self._context = context
        self._agent = agent
        self._open = True
        atexit.register(self.close)  # before multiprocessing waits for the processes

    def kill(self, worker: str) -> None:
        """End a worker's process at once (SIGKILL), to see what a program makes of that.

        Raises:
            KeyError: there is no such worker.
        """
        if self._open:
            os.kill(self.pids[worker], signal.SIGKILL)

    @property
    def died(self) -> dict[str, str]:
        """Names of the workers whose processes have ended while the cluster is open, and how each ended."""
        codes = {name: process.exitcode for name, process in self._processes.items()} if self._open else {}
        return {name: describe_exit(code) for name, code in codes.items() if code is not None}

    def close(self, timeout: float = WORKERS_END_SECONDS) -> None:
        """End the workers: gracefully, as ``rpc.shutdown``, or by force after a while. Closing again does nothing.

        Args:
            timeout: seconds that the work under way has to end.
        """
        if not self._open:
            return
        self._open = False
        atexit.unregister(self.close)
        until = time.monotonic() + timeout
        try:
            if not self._agent.closed:
                shut_down(self._agent, True, timeout)
        except RpcError as error:
            logger.warning("the cluster ends by force: %s", error)
        finally:
            self._end_processes(until)

    def _end_processes(self, until: float) -> None:
        try:
            if not self._context.join(max(until - time.monotonic(), 1.0)):
                self._context.kill()
        except ProcessException as error:
            logger.warning("a worker of the cluster had failed: %s", error)

    def __enter__(self) -> LocalCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None or issubclass(kind, Exception):
            self.close()
        else:
            self._kill_all()  # Ctrl-C: the user does not want to wait for the calls under way

    def _kill_all(self) -> None:
        if self._open:
            self._open = False
            atexit.unregister(self.close)
            self._agent.close()  # first, or it would tell of lost workers
            self._context.kill()

    def __len__(self) -> int:
        return len(self.workers)

    def __repr__(self) -> str:
        died = self.died
        names = ", ".join(f"{name} ({died[name].partition(':')[0]})" if name in died else name for name in self.pids)
        return f"<LocalCluster: {names if self._open else 'closed'}>"


def local_cluster(
    workers: int, name: str = "main", rpc_backend_options: GrpcRpcBackendOptions | None = None
) -> LocalCluster:
    """Start worker processes that this one can call: ``worker0``, ``worker1``, ... and this one, which has the last rank.

    For notebooks and consoles: functions and classes that are defined in a cell travel by value. References and calls work as
    in any job. The processes end with ``close``, with the ``with`` block, and with this process, however it ends.
    If Ctrl-C ends the block, the workers are killed at once.

    Args:
        workers: how many processes to start.
        name: this process's name as a worker.
        rpc_backend_options: of every worker.

    Raises:
        RuntimeError: this process is a worker already; or a worker's process ended before it could begin: the program starts
            the cluster as it is imported, which each worker does.
        ProcessException: a worker ended before all had joined, because the others took longer than ``init_timeout``, say.
        TypeError, ValueError: ``workers`` is no number of processes.

    Example::

        cluster = local_cluster(4)                      # in one cell
        rpc.rpc_sync("worker0", lambda: os.getpid())    # in another
        cluster.close()
    """
    check_number(workers, "`workers`")
    options = rpc_backend_options or GrpcRpcBackendOptions()
    begun = os.memfd_create("telegrad-begun")
    try:
        context = spawn(_serve, (workers, options, PassedDescriptor(begun)), workers, join=False)
        assert context is not None, "it was not joined"
        _wait_until_begun(context, begun, workers)
    finally:
        os.close(begun)
    try:
        init_rpc(
            name,
            rank=workers,
            world_size=workers + 1,
            rpc_backend_options=replace(options, init_method=context.init_method),
        )
        return LocalCluster(context, current_agent())
    except BaseException:
        context.kill()
        raise


def _wait_until_begun(context: ProcessContext, begun: int, workers: int) -> None:
    """Wait until the processes have imported this program, which fails in all of them if it has no main guard."""
    try:
        while os.pread(begun, workers, 0).count(b".") < workers:
            for rank, process in enumerate(context.processes):
                if process.exitcode is not None:
                    _raise_early_end(context, begun, rank, process.exitcode)
            time.sleep(BEGUN_SECONDS)
    except BaseException:
        context.kill()
        raise


def _raise_early_end(context: ProcessContext, begun: int, rank: int, code: int) -> None:
    if os.pread(begun, 1, rank) == b".":
        context.join()  # it waited for the others, and raises why it gave up
    raise RuntimeError(
        f"{context.processes[rank].name} {describe_exit(code)} before it had begun, its own messages say why; "
        f"if this is a script, {GUARD}"
    )


def _serve(rank: int, workers: int, options: GrpcRpcBackendOptions, begun: PassedDescriptor) -> None:
    """Run one worker until all shut down. First it writes a byte at its place in the file ``begun``."""
    os.pwrite(begun.number, b".", rank)
    os.close(begun.number)
    address = f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    init_rpc(
        f"worker{rank}", rank=rank, world_size=workers + 1, rpc_backend_options=replace(options, init_method=address)
    )
    shut_down(current_agent(), True, 0.0, tells=False)  # that it waits for the program which started it is no news

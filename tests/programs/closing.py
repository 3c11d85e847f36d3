"""Closes agents while their workers call each other, and counts what is written: ``closing.py --rounds 200``.

Workers are forked from this process, which has imported everything and used nothing, and end as programs do.
"""

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, closing

from telegrad import rpc
from telegrad.base.errors import RpcError
from telegrad.launcher.environment import job_environment, reserve_port
from telegrad.rpc.extend import register_lane
from telegrad.rpc.lanes.grpc import GrpcLane

HOWS = ("exit", "shutdown", "interrupt")
SIZE = 3
SECONDS = 60


class InterruptedLane(GrpcLane):
    """Lane whose user presses Ctrl-C while it closes."""

    async def _close(self):
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0.3)
        await super()._close()


def answer(data):
    return data


def keep_calling(to, calls, lost):
    try:
        while True:
            rpc.rpc_sync(to, answer, (b"small",))
            rpc.rpc_sync(to, answer, (b"large" * 50_000,))
            calls.release()
    except RpcError:
        lost.set()


def work(rank, how):
    """Call all others and be called by them; the last worker closes its agent after a few calls, then the others do."""
    if how == "interrupt":
        register_lane("grpc", InterruptedLane)
    rpc.init_rpc(f"w{rank}", rank=rank, rpc_backend_options=rpc.GrpcRpcBackendOptions(rpc_timeout=SECONDS))
    calls, lost = threading.Semaphore(0), threading.Event()
    for other in range(SIZE):
        if other != rank:
            threading.Thread(target=keep_calling, args=(f"w{other}", calls, lost), daemon=True).start()
    if rank < SIZE - 1:
        assert lost.wait(SECONDS), "the others go on"
    for _ in range(3):
        assert rank < SIZE - 1 or calls.acquire(timeout=SECONDS), "no call was answered"
    if how != "exit":
        try:
            rpc.shutdown(graceful=False)
        except KeyboardInterrupt:
            assert how == "interrupt"


def start(rank, how, environment, log):
    """Fork a worker that writes to ``log``; return its process id."""
    pid = os.fork()
    if pid == 0:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        os.environ.update(environment, RANK=str(rank))
        work(rank, how)
        sys.exit()
    return pid


def run(how):
    """One round; returns what its workers wrote, and those that failed."""
    with closing(reserve_port()) as reserved, ExitStack() as stack:
        environment = job_environment(SIZE, reserved.getsockname()[1])
        logs = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(SIZE)]
        workers = [start(rank, how, environment, log) for rank, log in enumerate(logs)]
        codes = [os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]) for worker in workers]
        texts = [log.read() for log in logs if log.seek(0) == 0]
    ends = enumerate(zip(codes, texts, strict=True))
    return [f"{how}: worker {rank} exits with {code}: {text}" for rank, (code, text) in ends if code or text]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--hows", nargs="+", choices=HOWS, default=HOWS)
    given = parser.parse_args()
    wrong = 0
    for how in given.hows:
        began, found = time.monotonic(), [fault for _ in range(given.rounds) for fault in run(how)]
        seconds = (time.monotonic() - began) / given.rounds
        wrong += len(found)
        print(f"{how:9} {given.rounds} rounds of {SIZE} workers, {len(found)} wrong, {seconds:.1f} s each")
        print("\n".join(found[:5]), flush=True)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()

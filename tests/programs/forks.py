"""w0 forks children while it calls w1; each of them must end normally. Arguments: how (os, preexec, process), how many."""

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import time

from telegrad import rpc
from telegrad.base.errors import AgentClosedError, RpcError

how, count = sys.argv[1], int(sys.argv[2])
stop = threading.Event()


def wait_here(answer):
    stop.wait(0.001)
    return answer


def call():
    made = 0
    while not stop.is_set():
        assert rpc.rpc_sync("w1", wait_here, (made,)) == made
        made += 1
    print("calls", made, flush=True)


def look_around():
    try:
        rpc.rpc_sync("w1", abs, (-1,))
    except AgentClosedError:
        gc.collect()
        begin_a_job()
        return
    raise AssertionError("a forked child made a call")


def begin_a_job():
    try:
        rpc.init_rpc("child", rank=0, world_size=1)
    except RpcError as error:
        assert "spawn" in str(error), error
        return
    raise AssertionError("a forked child began a job")


def by_os(number):
    child = os.fork()
    if child == 0:
        look_around()
        if number % 2:
            os._exit(0)
        sys.exit(0)  # through the interpreter's own end
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def by_preexec(number):
    return subprocess.run(["true"], preexec_fn=gc.collect).returncode


def by_process(number, target=look_around):
    process = multiprocessing.get_context("fork").Process(target=target)
    process.start()
    process.join()
    return process.exitcode


def main():
    rank = int(os.environ["RANK"])
    rpc.init_rpc(f"w{rank}", rank=rank, world_size=2)
    if rank == 0:
        assert rpc.rpc_sync("w1", abs, (-3,)) == 3
        caller = threading.Thread(target=call)
        caller.start()
        fork = {"os": by_os, "preexec": by_preexec, "process": by_process}[how]
        began = time.monotonic()
        codes = [fork(number) for number in range(count)]
        stop.set()
        caller.join()
        failed = [code for code in codes if code]
        print(
            f"{how}: {len(failed)} of {count} children failed, codes {sorted(set(failed))}, {time.monotonic() - began:.1f} s"
        )
        assert not failed
    rpc.shutdown(timeout=900)
    if rank == 0:
        assert by_process(0, begin_a_job) == 0, "after the end of its parent's job"
    print("over", flush=True)


main()

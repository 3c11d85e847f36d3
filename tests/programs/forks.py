"""w0 forks children while it calls w1; each of them must end normally. Arguments: how (os, preexec, process), how many."""

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import time

from telegrad import rpc
from telegrad.core.errors import AgentClosedError

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
        return
    raise AssertionError("a forked child made a call")


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


def by_process(number):
    process = multiprocessing.get_context("fork").Process(target=look_around)
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
    print("over", flush=True)


main()

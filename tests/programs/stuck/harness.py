"""Run the stuck jobs one after another, on three workers, and print for each how ``rpc.why`` explains it, as a line of JSON."""

import faulthandler
import json
import os
import sys
import time
import traceback

import jobs
from telegrad import rpc
from telegrad.launcher import spawn

SECONDS = 60.0  # that an explanation has to come


def serve(rank):
    """Run a worker; its main thread calls the functions that come, until it is killed."""
    options = rpc.GrpcRpcBackendOptions(init_method=f"tcp://127.0.0.1:{os.environ['MASTER_PORT']}")
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=4, rpc_backend_options=options)
    while True:
        function, args = jobs.MAIN.get()
        function(*args)


def explained(stuck):
    """Return the explanation that has the cause, and the cause; or the latest one without it, after some time."""
    deadline = time.monotonic() + SECONDS
    while True:
        began = time.monotonic()
        why = rpc.why(timeout=1.0)
        seconds = time.monotonic() - began
        cause = next(
            (
                each
                for each in why.causes
                if (each.kind, each.worker) == (stuck.kind, stuck.worker) and place_of(each, stuck)
            ),
            None,
        )
        if (cause is not None and stuck.text in why.text()) or time.monotonic() > deadline:
            return why, cause, seconds
        time.sleep(0.1)


def place_of(cause, stuck):
    """Return whether a cause, or a step of a deadlock, is at the line that it must name."""
    places = [cause.at, *[step.at for step in cause.chain if cause.kind == "deadlock"]]
    return stuck.place is None or any(at is not None and MARKS.get(at.line) == stuck.place for at in places)


def marks():
    with open(jobs.__file__) as source:
        lines = [line.rpartition("# stuck: ") for line in source]
    return {number: name.strip() for number, (_, mark, name) in enumerate(lines, 1) if mark}


MARKS = marks()


def run(name, stuck):
    silent = stuck.kind in ("stopped", "interpreter")
    rpc.rpc_sync(jobs.A, jobs.begin), rpc.rpc_sync(jobs.B, jobs.begin), rpc.rpc_sync(jobs.C, jobs.begin)
    stuck.start()
    why, cause, seconds = explained(stuck)
    contexts = [[seen.worker, each.creator] for seen in rpc.observe([jobs.A, jobs.B]) for each in seen.contexts]
    found = {
        "name": name,
        "found": cause is not None,
        "text": why.text(),
        "json": why.json(),
        "seconds": seconds,
        "contexts": contexts,
    }
    print(json.dumps(found), flush=True)
    if stuck.more is not None:
        stuck.more()
    if stuck.kind != "interpreter":
        for worker in (jobs.A, jobs.B, jobs.C):
            rpc.rpc_sync(worker, jobs.end, timeout=60)
    if silent:
        jobs.STARTED.clear()


def main(names):
    faulthandler.dump_traceback_later(240, exit=True)
    context = spawn(serve, nprocs=3, join=False)
    code = 1
    try:
        options = rpc.GrpcRpcBackendOptions(init_method=context.init_method)
        rpc.init_rpc("main", rank=3, world_size=4, rpc_backend_options=options)
        for name in names or jobs.STUCK:
            run(name, jobs.STUCK[name])
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        context.kill()
        sys.stdout.flush()
        os._exit(code)  # calls that are stuck have no end


if __name__ == "__main__":
    main(sys.argv[1:])

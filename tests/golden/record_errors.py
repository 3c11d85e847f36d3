"""Records the types of PyTorch's errors, for tests/rpc/test_error_types.py."""

import builtins
import logging
import os
import socket
import sys
import threading
import warnings

os.environ["ERROR_ROWS_OF"] = "torch"


def caught_as(error):
    """Return the name of the first built-in class of an error's, which ``except`` clauses name."""
    return next(kind.__name__ for kind in type(error).__mro__ if getattr(builtins, kind.__name__, None) is kind)


def outcome(row):
    """Return what a row raises; None for nothing."""
    try:
        row()
    except Exception as error:
        return caught_as(error)
    return None


def work(rank, port, results):
    """Run the rows on worker0; worker1 serves."""
    import torch

    logging.disable()
    warnings.simplefilter("ignore")
    rpc = torch.distributed.rpc
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"tcp://127.0.0.1:{port}", rpc_timeout=20)
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=2, rpc_backend_options=options)
    from error_rows import ROWS

    if rank == 0:
        for name, row in ROWS.items():
            print(name, end=" ", flush=True, file=sys.stderr)
            results[name] = outcome(row)
            print(results[name], file=sys.stderr)
        os._exit(0)
    threading.Event().wait()  # it serves until it is killed


def recorded():
    """The outcome of each row."""
    import multiprocessing

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        results = manager.dict()
        workers = [context.Process(target=work, args=(rank, port, results)) for rank in range(2)]
        for worker in workers:
            worker.start()
        workers[0].join(300)
        for worker in workers:
            worker.kill()
            worker.join()
        return {"errors": dict(results)}

"""What a worker finds in its environment, and the port at which its job meets."""

import os
import secrets
import socket

LOOPBACK = "127.0.0.1"


def reserve_port() -> socket.socket:
    """Binds a free port of the loopback without listening on it; the port is the job's until the socket is closed.

    Nobody else is given the port meanwhile, and rank 0 can still listen on it: Linux lets a second socket bind where
    the first does not listen and both set SO_REUSEADDR, which gRPC and ``socket.create_server`` do.
    """
    reserved = socket.socket()
    try:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind((LOOPBACK, 0))
    except BaseException:
        reserved.close()
        raise
    return reserved


def job_environment(world_size: int, port: int) -> dict[str, str]:
    """What all workers of a job share: its size, where they meet, and the secret by which they know one another."""
    return {
        "WORLD_SIZE": str(world_size),
        "MASTER_ADDR": LOOPBACK,
        "MASTER_PORT": str(port),
        "TELEGRAD_SECRET": secrets.token_hex(32),
    }


def rank_environment(rank: int, name: str) -> dict[str, str]:
    """What tells a worker from the others."""
    return {"RANK": str(rank), "LOCAL_RANK": str(rank), "TELEGRAD_WORKER": name}


def helpful_defaults(world_size: int) -> dict[str, str]:
    """What a worker gets unless the user has set it: a stack on a crash, and a fair share of the cores for BLAS."""
    threads = max(1, len(os.sched_getaffinity(0)) // world_size)
    return {"PYTHONFAULTHANDLER": "1", "OMP_NUM_THREADS": str(threads)}

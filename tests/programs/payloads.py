"""w0 and w1 exchange large arrays; w1 is killed in the end.

Arguments: lane, or ``tls`` for TCP under TLS; what the system refuses, or ``nothing``; a folder with a folder of certificate
files for each worker, if there is TLS.
"""

import gc
import os
import resource
import signal
import sys
import time
from pathlib import Path

import numpy as np
import telegrad as tg
from telegrad import rpc
from telegrad.base.errors import RpcError, RpcTimeoutError, WorkerLostError

MIB = 1 << 20
lane, refused, folder = sys.argv[1:]


def refuse():
    """Let the system refuse what segments need."""
    if refused == "memfd":

        def memfd_create(*_):
            raise PermissionError("not here")

        os.memfd_create = memfd_create
    elif refused == "memory":
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def mapped():
    """Return how many segments this process maps or has descriptors of."""
    with open("/proc/self/maps") as maps:
        lines = sum("memfd:telegrad" in line for line in maps)
    names = []
    for number in os.listdir("/proc/self/fd"):
        try:
            names.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            pass  # that of the listing
    return lines + sum("memfd:telegrad" in name for name in names)


def echo(value):
    return value


def ramp(size, seed):
    return np.arange(seed, seed + size, dtype=np.int64)


def change(array):
    array += 1
    return array.sum()


def wait_and_echo(value, seconds):
    time.sleep(seconds)
    return value


def kill_with(value):
    os.kill(os.getpid(), signal.SIGKILL)


def again(function, value):
    """Call until the session holds: an interrupted thread may have broken it, and calls on it fail with it."""
    while True:
        try:
            return rpc.rpc_sync("w1", function, (value,))
        except RpcTimeoutError:
            raise
        except RpcError:
            time.sleep(0.01)


def unmapped():
    """Wait until this process has no segment any more."""
    deadline = time.monotonic() + 60
    while mapped() and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    assert not mapped()


def sent_again():
    for seed in range(12):
        array = np.arange(seed, seed + MIB // 2, dtype=np.int64)
        answer = rpc.rpc_sync("w1", echo, (array,))
        np.testing.assert_array_equal(answer, array)
        assert answer.flags.writeable and answer.flags.aligned
        array[:] = -1
        answer[:] = -2
    assert rpc.rpc_sync("w1", change, (np.ones(MIB),)) == 2 * MIB
    if lane == "unix" and refused == "nothing":
        assert mapped() and rpc.rpc_sync("w1", mapped)
    else:
        assert not mapped() and not rpc.rpc_sync("w1", mapped)


def odd_shapes():
    base = np.arange(MIB, dtype=np.float32).reshape(1024, 1024)
    fixed = base.copy()
    fixed.flags.writeable = False
    arrays = {
        "read-only": fixed,
        "zero-size": np.zeros((0, 1 << 20)),
        "0-d": np.array(3.5),
        "strided": base[::2, ::3],
        "transposed": base.T,
        "column-major": np.asfortranarray(base),
        "reversed": base[::-1],
        "broadcast": np.broadcast_to(np.float64(2), (300, 300)),
        "complex": base.astype(np.complex128),
        "big-endian": base.astype(">f8"),
        "objects": np.array([base, "text", None], dtype=object),
        "records": np.zeros(100_000, dtype=[("a", np.int32), ("b", np.float64)]),
        "tensor": tg.tensor(base),
        "bytes": bytes(3 * MIB),
        "bytearray": bytearray(b"x" * 3 * MIB),
    }
    for _ in range(3):
        answer = rpc.rpc_sync("w1", echo, (arrays,))
        for name, array in arrays.items():
            found = answer[name]
            assert type(found) is type(array), name
            if name == "objects":
                np.testing.assert_array_equal(found[0], array[0])
                assert list(found[1:]) == list(array[1:])
            elif name in ("bytes", "bytearray"):
                assert found == array
            else:
                found, array = np.asarray(found), np.asarray(array)
                assert found.dtype == array.dtype and found.shape == array.shape, name
                np.testing.assert_array_equal(found, array)
        changed = answer["tensor"].numpy()
        changed[:] = 0
        answer["read-only"][:] = 0


def thousands():
    tensors = [tg.full((size,), float(number)) for number, size in enumerate([3, 2000, 20_000] * 700)]
    for _ in range(3):
        answers = rpc.rpc_sync("w1", echo, (tensors,))
        assert len(answers) == len(tensors)
        assert all((answer == tensor).all() for answer, tensor in zip(answers, tensors))


def one_of_many_is_kept():
    kept = [rpc.rpc_sync("w1", echo, ([ramp(MIB, 0), ramp(MIB, number)],))[1] for number in range(10)]
    assert [array[0] for array in kept] == list(range(10))


def interrupted_and_late():
    array = ramp(4 * MIB, 5)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    for seconds in (0.002, 0.01, 0.05, 0.2):
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            rpc.rpc_sync("w1", wait_and_echo, (array, 0.3))
            raise AssertionError("it was not interrupted")
        except KeyboardInterrupt:
            pass
        assert again(echo, 7) == 7
    for seconds in (0.001, 0.1):
        try:
            rpc.rpc_sync("w1", wait_and_echo, (array, 0.5), timeout=seconds)
            raise AssertionError("it was in time")
        except RpcTimeoutError:
            pass
        np.testing.assert_array_equal(rpc.rpc_sync("w1", echo, (array,)), array)


def killed():
    kept = [rpc.rpc_sync("w1", ramp, (MIB, seed)) for seed in range(8)]
    try:
        rpc.rpc_sync("w1", kill_with, (ramp(MIB, 1),))
        raise AssertionError("it lives")
    except WorkerLostError:
        pass
    for seed, array in enumerate(kept):
        assert array[0] == seed and array[-1] == seed + MIB - 1 and array.sum() == MIB * seed + MIB * (MIB - 1) // 2
        array += 1
        assert array[0] == seed + 1
    if lane == "unix" and refused == "nothing":
        assert mapped()
    del array, kept
    unmapped()


PARTS = (sent_again, odd_shapes, thousands, one_of_many_is_kept, interrupted_and_late, killed)

if __name__ == "__main__":
    refuse()
    rank = int(os.environ["RANK"])
    options = rpc.GrpcRpcBackendOptions(lanes=["tcp" if lane == "tls" else lane])
    if lane == "tls":
        files = [Path(folder) / f"w{rank}" / name for name in ("certificate", "key", "ca")]
        options.tls = rpc.TlsFiles(*files, rank0_name="job.test")
    rpc.init_rpc(f"w{rank}", rpc_backend_options=options)
    if rank == 0:
        for part in PARTS:
            part()
            print("done", part.__name__, flush=True)
    rpc.shutdown()
    unmapped()
    print("over", flush=True)

"""Bad input that is not an argument of a call: options, marks, what a result or a process does. Calls: ``test_calls.py``."""

import threading

import pytest
from telegrad import rpc
from telegrad.base.errors import SerializationError
from telegrad.rpc.extend import PROTOCOL, GrpcRpcBackendOptions


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"num_worker_threads": "4"}, "num_worker_threads must be a whole number, at least 1; you gave '4'"),
        ({"num_worker_threads": 0}, "num_worker_threads must be"),
        ({"num_worker_threads": 1.5}, "num_worker_threads must be"),
        ({"rpc_timeout": "1"}, "rpc_timeout must be a number of seconds, 0 for none; you gave '1'"),
        ({"rpc_timeout": -1}, "rpc_timeout must be"),
        ({"init_method": 5}, "init_method must be a text like tcp://host:port; you gave 5"),
        ({"init_timeout": -1}, "init_timeout must be a number of seconds above 0; you gave -1"),
        ({"keepalive": 0}, "keepalive must be"),
        ({"reconnect_timeout": None}, "reconnect_timeout must be"),
        ({"lanes": "grpc"}, r"lanes must be a list of names; write lanes=\['grpc'\]"),
        ({"window_bytes": 0}, "window_bytes must be a whole number above 0; you gave 0"),
        ({"window_messages": 2.5}, "window_messages must be"),
        ({"max_message_bytes": "1"}, "max_message_bytes must be"),
        ({"tls": 5}, r"tls must be TlsFiles\(certificate, key, ca\); you gave 5"),
    ],
)
def test_options(options, error):
    with pytest.raises((TypeError, ValueError), match=error):
        GrpcRpcBackendOptions(**options)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"name": 5}, "name is 1 to 128 letters"),
        ({"name": "a b"}, "name is 1 to 128 letters"),
        ({"rank": "0"}, "rank must be a whole number; you gave '0'"),
        ({"world_size": "1"}, "world_size must be a whole number; you gave '1'"),
        ({"rank": 2}, "rank=2 with world_size=1 is impossible"),
        ({"rpc_backend_options": 4}, "rpc_backend_options must be GrpcRpcBackendOptions; you gave int"),
        ({"backend": "x"}, "backend must be one of"),
    ],
)
def test_init_rpc(arguments, error):
    with pytest.raises((TypeError, ValueError, RuntimeError), match=error):
        rpc.init_rpc(**{"name": "a", "rank": 0, "world_size": 1, **arguments})


@pytest.mark.parametrize("seconds", ["1", -2, None, float("nan")])
def test_timeouts_of_references_and_of_the_agent(workers, seconds):
    mine, theirs = rpc.RRef(5), rpc.remote("b", int)
    for use in (
        lambda: mine.to_here(seconds),
        lambda: theirs.to_here(seconds),
        lambda: theirs.rpc_sync(seconds).bit_length(),
        lambda: theirs.rpc_async(seconds).bit_length(),
        lambda: theirs.remote(seconds).bit_length(),
        lambda: theirs._get_type(seconds),
        lambda: rpc._set_rpc_timeout(seconds),
        lambda: rpc.shutdown(timeout=seconds),
    ):
        with pytest.raises(ValueError, match="timeout must be a number of seconds, 0 for none; you gave"):
            use()


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (lambda: rpc.functions.async_execution(5), "async_execution marks a function; you gave 5"),
        (lambda: rpc.map(5, abs, [1]), r"workers must be a list; write \[5\]"),
        (lambda: rpc.map("b", abs, [1]), r"workers must be a list; write \['b'\]"),
        (lambda: rpc.map(["b"], abs, 5), "items must be a list or another iterable; you gave 5"),
        (lambda: list(rpc.map(["b"], 5, [1])), "func must be something to call; you gave 5"),
        (lambda: rpc._barrier(5), r"worker_names must be a list of names; write worker_names=\[5\]"),
        (lambda: rpc._all_gather(1, "ab"), r"worker_names must be a list of names; write worker_names=\['ab'\]"),
    ],
)
def test_types_of_other_functions(workers, use, error):
    with pytest.raises(TypeError, match=error):
        use()


def lock_inside():
    return {"good": 1, "bad": [threading.Lock()]}


def test_a_generator_is_streamed(workers):
    with pytest.raises(SerializationError, match=r"the result \(builtins.generator\) .* with rpc.stream\(\)"):
        rpc.rpc_sync("b", lambda: (item for item in range(3)))


@pytest.mark.parametrize("how", ["call", "reference"])
def test_results_that_cannot_be_pickled(workers, how):
    with pytest.raises(SerializationError, match=r"the result\['bad'\]\[0\] \(_thread.lock\) cannot be sent"):
        if how == "call":
            rpc.rpc_sync("b", lock_inside)
        else:
            rpc.remote("b", lock_inside).to_here()
    assert rpc.rpc_sync("b", abs, (-1,)) == 1


class Refusing:
    """Object that says itself that it does not travel; its lock has no part in that."""

    def __init__(self):
        self.lock = threading.Lock()

    def __getstate__(self):
        raise ValueError("it stays at home")


def test_an_object_that_refuses_to_be_pickled_is_named_itself(workers):
    with pytest.raises(
        SerializationError, match=r"argument 0\[1\] \(.*Refusing\) cannot .*: ValueError: it stays at home"
    ):
        rpc.rpc_sync("b", len, ([1, Refusing()],))


@pytest.mark.processes
@pytest.mark.slow
def test_functions_that_end_their_process(forked_job):
    running = forked_job("bad_endings", 2, ("exits",))
    running.wait(codes=[0, 3])
    lines = running.output(0).splitlines()
    assert "SystemExit on worker 'w1': 3" in lines[0] and "KeyboardInterrupt on worker 'w1'" in lines[1]
    assert "lost w1: worker 'w1' (rank 1) is gone" in running.output(0)


@pytest.mark.processes
@pytest.mark.slow
def test_workers_of_two_versions_both_say_so(forked_job):
    running = forked_job("bad_endings", 2, ("versions",))
    running.wait(codes=[9, 9])
    assert "it speaks another protocol than this worker; use one version of telegrad" in running.output(0)
    assert f"speaks protocol {PROTOCOL}, this worker {PROTOCOL + 1}; use one version of telegrad" in running.output(1)

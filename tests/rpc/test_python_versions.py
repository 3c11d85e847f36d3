"""Workers of different Python versions in one job: code travels by name only."""

import itertools
import operator
import os
import subprocess
import sys
from pathlib import Path

import pytest
from telegrad import rpc
from telegrad.base.errors import RemoteError, SerializationError
from telegrad.rpc import agent as agents
from telegrad.rpc.wire.python_versions import difference, own_version
from telegrad.testing.cluster import in_process_cluster

REFUSED = r"worker '{}' runs Python {} and worker '{}' Python {}; define it at module level"


@pytest.fixture
def mixed(monkeypatch):
    """Agents ``a`` of Python 3.11 and ``b`` of 3.12, as they pretend."""
    versions = itertools.chain(("3.11", "3.12"), itertools.repeat("3.11"))
    monkeypatch.setattr(agents, "own_version", lambda: next(versions))
    with in_process_cluster("a", "b") as (a, b), a.use():
        yield a, b


def apply(function, *args):
    return function(*args)


def make_local(kind):
    return {"function": lambda: 1, "class": type("Local", (), {"method": lambda self: 1}), "object": _local()()}[kind]


def _local():
    class Local:
        pass

    return Local


class Apart(Exception):
    """Error of a name that both workers find."""


def fail(by_value):
    class Own(Exception):
        pass

    raise (Own if by_value else Apart)("it failed")


@pytest.mark.parametrize("kind", ["function", "class", "object"])
def test_code_by_value_is_refused_in_both_directions(mixed, kind):
    with pytest.raises(SerializationError, match=r"argument 1.*" + REFUSED.format("a", "3.11", "b", "3.12")) as caught:
        rpc.rpc_sync("b", operator.eq, (1, make_local(kind)))
    assert ("<lambda>" if kind == "function" else "Local") in str(caught.value)
    with pytest.raises(SerializationError, match=REFUSED.format("b", "3.12", "a", "3.11")):
        rpc.rpc_sync("b", make_local, (kind,))


def test_a_lambda_is_refused_as_the_function_itself_and_deep_in_an_argument(mixed):
    with pytest.raises(SerializationError, match=r"the function '.*<lambda>'.*Python 3.12"):
        rpc.rpc_sync("b", lambda: 1)
    with pytest.raises(SerializationError, match=r"argument 0\['deep'\]\[0\].*Python 3.12"):
        rpc.rpc_sync("b", len, ({"deep": [lambda: 1]},))
    with pytest.raises(SerializationError, match=r"Python 3.12"):
        rpc.rpc_sync("b", len, ((lambda: 1).__code__,))


def test_names_values_and_errors_travel_between_versions(mixed):
    assert rpc.rpc_sync("b", apply, (operator.add, 1, 2)) == 3
    assert rpc.rpc_sync("b", apply, (isinstance, None, type(None)))
    assert rpc.rpc_sync("a", lambda: 7) == 7, "to itself"
    with pytest.raises(Apart, match="it failed"):
        rpc.rpc_sync("b", fail, (False,))
    with pytest.raises(RemoteError, match="Own on worker 'b': it failed"):
        rpc.rpc_sync("b", fail, (True,))


def test_equal_and_unknown_versions_do_not_differ():
    assert own_version().endswith(f"{sys.version_info.major}.{sys.version_info.minor}")
    assert (
        difference("a", "3.11", "b", "3.11")
        == difference("a", "3.11", "b", "")
        == difference("a", "", "b", "3.9")
        == ""
    )
    assert difference("a", "3.11", "b", "pypy 3.11") == "worker 'a' runs Python 3.11 and worker 'b' Python pypy 3.11"


PROGRAM = """
import operator, sys
from telegrad import rpc
from telegrad.base.errors import SerializationError

rank = int(sys.argv[1])
rpc.init_rpc(f"worker{rank}", rank=rank, world_size=2, rpc_backend_options=rpc.GrpcRpcBackendOptions(init_method=sys.argv[2]))
if rank == 1:
    assert rpc.rpc_sync("worker0", operator.add, (1, 2)) == 3
    try:
        rpc.rpc_sync("worker0", lambda: 7)
    except SerializationError as error:
        print(error)
rpc.shutdown()
"""


@pytest.mark.slow
@pytest.mark.processes
def test_two_interpreters_share_a_job(tmp_path):
    if (other := os.environ.get("TELEGRAD_OTHER_PYTHON")) is None:
        pytest.skip("TELEGRAD_OTHER_PYTHON names no interpreter of another minor version that has the same packages")
    script, place = tmp_path / "mixed.py", f"file://{tmp_path}/rendezvous"
    script.write_text(PROGRAM)
    path = tmp_path / "path"
    path.mkdir()
    (path / "telegrad").symlink_to(Path(rpc.__file__).parents[1])
    workers = [
        subprocess.Popen(
            [python, script, str(rank), place],
            env=os.environ | {"PYTHONPATH": str(path)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank, python in enumerate((sys.executable, other))
    ]
    try:
        texts = [worker.communicate(timeout=60)[0] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    assert [worker.returncode for worker in workers] == [0, 0]
    assert "worker 'worker1' runs Python" in texts[1]

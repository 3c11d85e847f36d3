"""`import telegrad` is quick: packages come when they are asked for, and only tensors bring NumPy."""

import pytest
import telegrad as tg

# An idle worker would only pay for these: they are imported when they are used.
UNUSED_BY_WORKERS = [
    *(
        f"telegrad.{name}"
        for name in ("nn", "optim", "data", "distributions", "launcher", "testing", "core.serialization")
    ),
    *(f"telegrad.{name}" for name in ("autograd_dist.contexts", "collective.registry", "profiler_dist.interceptor")),
    *(
        f"telegrad.rpc.{name}"
        for name in ("buffers", "meshes", "retries", "debugging.debugger", "exactly_once.sending")
    ),
    *(
        f"telegrad.rpc.{name}"
        for name in ("functions.producing", "observing.records", "rendezvous.file", "rendezvous.mpi")
    ),
    *(f"telegrad.core.{name}" for name in ("autograd.drawing", "profiler.recorder", "recording")),
    "telegrad.base.thread_frames",
    *("bdb", "google.protobuf.json_format"),
    *("typer", "rich", "safetensors", "matplotlib", "pytest"),
    *("numpy.random", "numpy.polynomial", "html", "tempfile", "importlib.resources", "bz2", "lzma", "http", "unittest"),
]
HEAVY = ["grpc", "google.protobuf", "asyncio", "multiprocessing", "safetensors", "cryptography", "rich", "typer"]


@pytest.fixture
def run(run_python):
    """Return the words that a program prints in a fresh interpreter."""
    return lambda program: run_python("-c", program).split()


def test_importing_imports_nothing_heavy(run):
    loaded = run("import sys, telegrad; print(*sys.modules)")
    assert "numpy" not in loaded and not set(HEAVY) & set(loaded)


def test_tensors_import_nothing_heavy_but_numpy(run):
    loaded = run("import sys, telegrad as tg; tg.ones(1); print(*sys.modules)")
    assert "numpy" in loaded and not set(HEAVY) & set(loaded)


def test_fft_is_a_module_also_if_it_is_the_first_name_that_is_used(run):
    assert run("import telegrad as tg; print(tg.fft.__name__)") == ["telegrad.core.fft"]


def test_what_trains_locally_needs_no_network(run):
    assert "grpc" not in run("import sys, telegrad as tg; tg.nn, tg.optim, tg.data; print(*sys.modules)")


UNUSED_BY_LAUNCHERS = [
    *HEAVY[:2],
    "numpy",
    "telegrad.core",
    "cryptography",
    "ssl",
    "email",
    "telegrad.rpc",
    "telegrad.launcher.nodes.host",
]


def test_a_launcher_of_one_machine_imports_nothing_for_several(run):
    loaded = run(
        "import sys, telegrad.launcher.cli; from telegrad.launcher.watching import kill, logs, ps; print(*sys.modules)"
    )
    assert "typer" in loaded and not set(UNUSED_BY_LAUNCHERS) & set(loaded)


WAYS_IN = [
    "import telegrad; telegrad.rpc.init_rpc",
    "import telegrad.rpc; telegrad.rpc.init_rpc",
    "from telegrad import rpc; rpc.init_rpc",
    "import telegrad.autograd_dist as dist; dist.backward",
    "import telegrad.rref as rref; from telegrad.rpc import RRef; assert RRef is rref.RRef",
    "from telegrad.rpc import *; remote",
    "from telegrad.nn import functional; functional.relu",
    "from telegrad import DistributedOptimizer, RRef, errors, futures, load, save",
    "from telegrad import *; Tensor",
    "from telegrad import cosine_similarity, layer_norm; import telegrad as tg; tg.prelu",
    "import telegrad as tg, sys; tg.ones(1); assert 'telegrad.nn' not in sys.modules",
    "from telegrad.launcher import LocalCluster, local_cluster, spawn; local_cluster(2)",
]
ALONE = """
import os, sys, traceback
import cryptography.x509, google.protobuf, grpc, multiprocessing, numpy  # heavy, and not what is tested

for program in sys.argv[1:]:
    if not os.fork():
        code = 1
        try:
            exec(program)
            code = 0
        except BaseException:
            traceback.print_exc()
            print("this was:", program, file=sys.stderr, flush=True)
        os._exit(code)
    assert os.wait()[1] == 0
assert not any(name.startswith("telegrad") for name in sys.modules)
"""


@pytest.mark.processes
def test_every_way_in_works_alone(run_python):
    """Each in a process that has imported no other part."""
    run_python("-c", ALONE, *WAYS_IN)


def test_a_launcher_needs_no_network(run):
    assert "grpc" not in run("import sys, telegrad.launcher.cli; print(*sys.modules)")


@pytest.mark.parametrize("low, high", [("rpc", "rref"), ("rref", "autograd_dist"), ("autograd_dist", "agents")])
def test_a_layer_imports_none_above_it(run, low, high):
    assert f"telegrad.{high}" not in run(f"import sys, telegrad.{low}; print(*sys.modules)")


MOST_MODULES = 440  # of this package in a worker: if there are more, let some be imported when they are used


def test_init_rpc_brings_what_each_worker_needs_and_no_more(run):
    loaded = set(run("import sys, telegrad.rpc; telegrad.rpc.init_rpc; print(*sys.modules)"))
    assert {"telegrad.autograd_dist", "telegrad.rref", "grpc"} <= loaded
    assert not loaded & set(UNUSED_BY_WORKERS)
    assert sum(name.startswith("telegrad") for name in loaded) <= MOST_MODULES


def test_what_comes_later_is_listed_and_stays():
    assert {"nn", "rpc", "save", "Tensor", "add"} <= set(dir(tg))
    assert tg.nn is tg.nn and tg.save is tg.save


PACKAGES_WITH_LATE_NAMES = [tg, tg.autograd, tg.collective, tg.launcher, tg.nn, tg.rpc, tg.rref]


@pytest.mark.parametrize("package", PACKAGES_WITH_LATE_NAMES, ids=lambda package: package.__name__)
def test_a_name_that_is_not_there_is_an_attribute_error(package):
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'nowhere'"):
        package.nowhere  # noqa: B018

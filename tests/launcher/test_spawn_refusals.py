"""``spawn``: functions, arguments, options and surroundings that it refuses before it starts a process."""

import sys
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
from telegrad.launcher import local_cluster, spawn


@pytest.mark.parametrize(
    "fn, args, said",
    [
        (
            lambda i: None,
            (),
            r"`fn` <function <lambda> at .*> cannot be sent to a new process: .*top level of a module",
        ),
        (print, (lambda: None,), r"`args` cannot be sent to a new process: .*"),
        (print, (sys,), r"`args` cannot be sent to a new process: .*module"),
        (3, (), "`fn` must be a function that takes a process's number first, you gave 3"),
        (print, [1], r"`args` must be a tuple, you gave \[1\]: write args=\(x,\)"),
    ],
)
def test_what_cannot_be_called_or_sent_is_refused(fn, args, said, monkeypatch):
    # As in a script. The main program of a parallel run is none, and what a main program of no file defines is sent by value.
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", find_spec("pytest"))
    with pytest.raises(TypeError, match=said):
        spawn(fn, args, nprocs=2)


@pytest.mark.parametrize(
    "options, said",
    [
        ({"nprocs": 0}, "`nprocs` must be at least 1, you gave 0"),
        ({"nprocs": 10**12}, "`nprocs` 1000000000000 is too many: a job on one machine has at most 4096 workers"),
        ({"start_method": "thread"}, "one of spawn, fork, fork"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        spawn(print, **options)


@pytest.mark.parametrize(
    "workers, said", [(0, "`workers` must be at least 1, you gave 0"), (1.5, "`workers` must be a whole number")]
)
def test_a_local_cluster_has_a_number_of_workers(workers, said):
    with pytest.raises((TypeError, ValueError), match=said):
        local_cluster(workers)


@pytest.mark.parametrize("nprocs", [2.0, True, "2"])
def test_a_number_of_processes_is_a_whole_number(nprocs):
    with pytest.raises(TypeError, match=r"`nprocs` must be a whole number of processes, you gave"):
        spawn(print, nprocs=nprocs)


def test_a_worker_that_a_launcher_started_spawns_no_job_and_is_told_what_to_do(monkeypatch):
    monkeypatch.setenv("TELEGRAD_WORKER", "worker0")
    with pytest.raises(RuntimeError, match=r"this process is 'worker0', a worker that a launcher started, .*`python`"):
        spawn(print)


def test_a_master_port_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("MASTER_PORT", "x")
    with pytest.raises(ValueError, match="MASTER_PORT must be a port's number, you set 'x'"):
        spawn(print)


@pytest.mark.processes
def test_a_script_whose_work_its_processes_would_begin_again(run_python, tmp_path):
    (tmp_path / "script.py").write_text("from telegrad.launcher import spawn\nspawn(print, nprocs=1)\n")
    said = run_python(tmp_path / "script.py", code=1)
    assert (
        "came to spawn while it imported the script that has started it: put the work of the script under `if __name__"
        in said
    )


USED = {
    "torch": ("CUDA with PyTorch", SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: True))),
    "jax._src.xla_bridge": ("JAX", SimpleNamespace(backends_are_initialized=lambda: True)),
}


@pytest.mark.parametrize("module", USED)
def test_no_process_is_forked_from_one_that_has_used_a_gpu_or_jax(monkeypatch, module):
    name, library = USED[module]
    monkeypatch.setitem(sys.modules, module, library)
    with pytest.raises(ValueError, match=rf'has used .*{name}.*, and a process .* pass start_method="spawn"'):
        spawn(print, nprocs=1, start_method="fork")

"""Ends of loaders with worker processes: errors, deaths, time-outs, interrupts; no process and no memory stays."""

import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback

import loading
import pytest
import telegrad as tg
from helpers.programs import is_running, worker_ids
from telegrad.base.errors import TelegradError
from telegrad.data import DataLoader, DataLoaderError, DataLoaderTimeoutError

# Tests fork, whatever threads other tests have left in this process.
pytestmark = [
    pytest.mark.processes,
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

LIMIT = 60


@pytest.fixture(autouse=True)
def programs():
    """The datasets that workers import by name."""
    yield loading
    gc.collect()


@pytest.fixture(params=["spawn", "fork"])
def context(request):
    return request.param


def failing(programs, how, context="fork", **options):
    return DataLoader(programs.Failing(8, how), None, num_workers=2, multiprocessing_context=context, **options)


# -- errors


def test_an_error_arrives_as_its_own_type(context, programs):
    with pytest.raises(KeyError, match="no such sample") as caught:
        list(failing(programs, "key", context))
    text = "".join(traceback.format_exception(caught.type, caught.value, caught.tb))
    assert "in DataLoader worker 1 (process " in text and 'raise KeyError("no such sample")' in text


@pytest.mark.parametrize(
    "how, message", [("odd", "OddError in .*worker 1.*: 1 and 2"), ("stop", "StopIteration in .*enough")]
)
def test_an_error_that_cannot_be_had_here(programs, how, message):
    with pytest.raises(DataLoaderError, match=message) as caught:
        list(failing(programs, how))
    assert isinstance(caught.value, TelegradError) and isinstance(caught.value, RuntimeError)
    assert "Traceback" in str(caught.value.__cause__)


def test_a_pass_goes_on_after_an_error(programs):
    batches, found = iter(failing(programs, "key")), []
    while True:
        try:
            found.append(next(batches))
        except KeyError:
            found.append("error")
        except StopIteration:
            break
    assert found == [0, 1, 2, "error", 4, 5, 6, 7]


def test_an_error_ends_the_loop_and_the_workers_with_it(programs):
    loader = failing(programs, "key")
    processes = []
    try:
        for _ in loader:
            processes = worker_ids()
    except KeyError as error:
        assert len(processes) == 2 and not any(map(is_running, processes)), "though the traceback is still at hand"
        assert error.__traceback__ is not None


def test_what_a_worker_cannot_send(programs):
    with pytest.raises(tg.errors.AutogradError, match=r"use detach\(\) in the dataset"):
        list(DataLoader(programs.Graph(2), None, num_workers=1, multiprocessing_context="fork"))
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        list(
            DataLoader(
                programs.Squares(2), num_workers=1, multiprocessing_context="fork", collate_fn=lambda s: lambda: s
            )
        )


def test_a_dataset_that_cannot_be_pickled(programs):
    with pytest.raises(pickle.PicklingError, match=r"cannot be pickled: .*lambda.*multiprocessing_context=\"fork\""):
        iter(DataLoader(programs.Squares(2), num_workers=1, collate_fn=lambda samples: samples))


def test_a_worker_that_cannot_start(context, programs):
    loader = DataLoader(
        programs.Squares(2), num_workers=2, worker_init_fn=programs.fail_start, multiprocessing_context=context
    )
    with pytest.raises(ValueError, match=r"worker . cannot start") as caught:
        list(loader)
    assert "in DataLoader worker" in str(caught.value.__cause__)


def test_a_sampler_that_fails(programs):
    def order():
        yield from range(5)
        raise ValueError("no more numbers")

    loader = DataLoader(
        programs.Failing(9, "none"), None, sampler=order(), num_workers=1, multiprocessing_context="fork"
    )
    with pytest.raises(ValueError, match="no more numbers"):
        list(loader)


# -- deaths


@pytest.mark.parametrize(
    "how, message",
    [
        ("kill", r"worker 1 \(process \d+\) was killed by SIGKILL; the machine may be out of memory; exit code -9"),
        ("exit", r"worker 1 \(process \d+\) ended on its own, with exit code 7"),
        ("sys.exit", r"worker 1 \(process \d+\) ended on its own, with exit code 5"),
    ],
)
def test_a_worker_that_dies_is_named(programs, how, message):
    with pytest.raises(DataLoaderError, match=message):
        list(failing(programs, how, prefetch_factor=1))


def test_a_death_is_noticed_at_once(programs):
    loader = failing(programs, "hang")
    batches = iter(loader)
    assert [next(batches) for _ in range(3)] == [0, 1, 2]
    hanging = worker_ids()[1]
    threading.Timer(0.1, os.kill, (hanging, signal.SIGKILL)).start()
    start = time.monotonic()
    with pytest.raises(DataLoaderError, match=r"worker 1 .* was killed by SIGKILL"):
        next(batches)
    assert time.monotonic() - start < 10, "it does not wait for a time-out"


def test_after_a_death_persistent_workers_are_started_anew(programs):
    loader = failing(programs, "none", persistent_workers=True)
    batches = iter(loader)
    os.kill(worker_ids()[0], signal.SIGKILL)
    with pytest.raises(DataLoaderError, match=r"worker 0 .* was killed"):
        list(batches)
    assert list(loader) == list(range(8))


def test_a_script_without_a_guard_is_told(tmp_path, run_python):
    script = tmp_path / "script.py"
    script.write_text(
        "from telegrad.data import DataLoader\n"
        "class Numbers(list): pass\n"
        "list(DataLoader(Numbers([1, 2]), num_workers=1))\n"
    )
    output = run_python(script, code=1)
    assert "ended before its first answer, with exit code 1" in output and '"__main__"' in output


# -- leaving


def test_a_break_ends_the_workers(context, programs):
    loader = DataLoader(programs.Where(100), 2, num_workers=2, multiprocessing_context=context)
    for batch in loader:
        processes = batch[1].tolist()
        break
    assert not any(map(is_running, processes))


def test_a_break_does_not_wait_for_a_slow_sample(programs):
    batches = iter(failing(programs, "hang"))
    assert next(batches) == 0
    processes = worker_ids()
    start = time.monotonic()
    del batches
    assert not any(map(is_running, processes)) and time.monotonic() - start < 20


def test_a_timeout(programs):
    loader = failing(programs, "hang", timeout=0.5)
    with pytest.raises(DataLoaderTimeoutError, match=r"no batch came within 0.5 s; .*DataLoader worker 1") as caught:
        list(loader)
    assert isinstance(caught.value, TimeoutError)


def test_persistent_workers_end_with_the_loader(context, programs):
    loader = DataLoader(programs.Where(4), 2, num_workers=2, persistent_workers=True, multiprocessing_context=context)
    processes = {pid for batch in loader for pid in batch[1].tolist()}
    assert all(map(is_running, processes))
    del loader
    assert not any(map(is_running, processes))


def start(context, how):
    process = subprocess.Popen(
        [sys.executable, loading.__file__, context, how],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    return process, [int(word) for word in process.stdout.readline().split()[1:]]


@pytest.mark.parametrize("how, code", [("end", 0), ("exit", 3), ("raise", 1)])
def test_a_program_that_ends_in_a_pass(context, how, code):
    process, workers = start(context, how)
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == code and len(workers) == 2 and not any(map(is_running, workers))
    assert errors == "" if how != "raise" else errors.endswith("ValueError: the user's\n")


@pytest.mark.parametrize("how", ["wait", "hang"])
def test_ctrl_c(context, how):
    process, workers = start(context, how)
    assert process.stdout.readline() == "waiting\n"
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == -signal.SIGINT and not any(map(is_running, workers))
    assert errors.count("KeyboardInterrupt") == errors.count("Traceback") == 1, errors


@pytest.mark.parametrize("how", ["wait", "hang"])
def test_workers_end_with_a_killed_parent(context, how, until):
    process, workers = start(context, how)
    assert process.stdout.readline() == "waiting\n" and len(workers) == 2
    process.kill()
    process.communicate(timeout=LIMIT)
    until(lambda: not any(map(is_running, workers)))

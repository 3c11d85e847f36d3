"""``save_async`` writes the states of the moment of its call, while training goes on."""

import threading

import numpy as np
import pytest
import telegrad as tg
from telegrad.checkpoint import Checkpointer, CheckpointError
from telegrad.checkpoint import snapshot as snapshots
from telegrad.checkpoint.lock import WriterLock


@pytest.fixture
def training():
    model = tg.nn.Linear(300, 300)  # its weight is large enough to be copied beside training
    optimizer = tg.optim.Adam(model.parameters(), lr=0.1)

    def step():
        optimizer.zero_grad()
        model(tg.ones(1, 300)).sum().backward()
        optimizer.step()

    step()
    return model, optimizer, step


@pytest.fixture
def held(monkeypatch):
    """Holds the writing thread before it copies anything, until it is let go."""
    go = threading.Event()
    finish = snapshots.Snapshot.finish

    def wait_first(self):
        if threading.current_thread() is not threading.main_thread():
            assert go.wait(60)
        finish(self)

    monkeypatch.setattr(snapshots.Snapshot, "finish", wait_first)
    yield go
    go.set()


def arrays(model, optimizer):
    states = [*model.state_dict().values(), *(v for s in optimizer.state.values() for v in s.values())]
    return [np.array(value.numpy() if isinstance(value, tg.Tensor) else value) for value in states]


def test_steps_that_follow_are_not_in_the_checkpoint(tmp_path, training, held):
    model, optimizer, step = training
    checkpoints = Checkpointer(tmp_path, model=model, optimizer=optimizer)
    for number in range(3):
        before = arrays(model, optimizer)
        future = checkpoints.save_async(number)
        step()
        after = arrays(model, optimizer)
        held.set()
        step()
        future.wait(60)
        held.clear()
        assert not np.array_equal(before[0], after[0])
        checkpoints.restore(number)
        assert all(map(np.array_equal, arrays(model, optimizer), before))
    held.set()
    checkpoints.close()


def test_a_change_by_other_code_is_an_error_not_a_mixture(tmp_path, training, held):
    model, optimizer, step = training
    checkpoints = Checkpointer(tmp_path, model=model, optimizer=optimizer)
    checkpoints.save_async(1)
    with tg.no_grad():
        model.weight.mul_(2)
    held.set()
    with pytest.raises(CheckpointError, match="1 parameters were changed after save_async"):
        checkpoints.wait(60)
    assert checkpoints.steps() == []
    step()
    checkpoints.save(2)
    assert checkpoints.steps() == [2]


def test_one_is_written_after_the_other_and_memory_is_used_again(tmp_path, training):
    model, optimizer, step = training
    values = {"losses": [1.0]}
    with Checkpointer(tmp_path, keep=2, model=model, optimizer=optimizer, values=values) as checkpoints:
        for number in range(5):
            checkpoints.save_async(number)
            step()
            values["losses"].append(2.0)
        checkpoints.wait(60)
        assert len(checkpoints._buffers._free) == 3
        assert checkpoints.steps() == [3, 4] and checkpoints.restore() == 4
        assert values["losses"] == [1.0, 2.0, 2.0, 2.0, 2.0]


def test_close_waits_for_a_save_in_another_thread(tmp_path):
    begun, go = threading.Event(), threading.Event()

    class Slow(dict):
        def state_dict(self):
            begun.set()
            assert go.wait(60)
            return {"x": 1}

        def load_state_dict(self, state):
            self.update(state)

    checkpoints = Checkpointer(tmp_path, slow=Slow())
    saving = tg.futures.in_thread(checkpoints.save, 1)
    assert begun.wait(60)
    closing = tg.futures.in_thread(checkpoints.close)
    with pytest.raises(TimeoutError):
        closing.wait(0.05)
    go.set()
    tg.futures.wait_all([saving, closing])
    WriterLock(str(tmp_path)).close()
    assert checkpoints.steps() == [1]


def test_tied_parameters_stay_tied(tmp_path, training):
    weight = tg.nn.Parameter(tg.ones(300, 300))
    optimizer = tg.optim.SGD([weight])
    with Checkpointer(tmp_path, tied={"a": weight, "b": weight}, optimizer=optimizer) as checkpoints:
        checkpoints.save_async(1)
    tied = {}
    Checkpointer(tmp_path, tied=tied, rng=False).restore()
    assert tied["a"] is tied["b"] and tied["a"].requires_grad


PROGRAM = """
import sys, numpy as np
from telegrad.checkpoint import Checkpointer

checkpoints = Checkpointer(sys.argv[1], values={"x": np.ones(3_000_000)})
checkpoints.save_async(7)
"""


@pytest.mark.processes
def test_the_end_of_the_program_waits_for_it(tmp_path, run_python):
    run_python("-c", PROGRAM, tmp_path)
    assert Checkpointer(tmp_path, rng=False).restore() == 7


FORKED = """
import os, sys, threading
from telegrad.checkpoint import Checkpointer, folder

go, commit = threading.Event(), folder.Folder.commit
folder.Folder.commit = lambda *arguments: (go.wait(60), commit(*arguments))
checkpoints = Checkpointer(sys.argv[1], values={"x": 1})
checkpoints.save_async(7)
if child := os.fork():
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    go.set()
"""


@pytest.mark.processes
def test_a_forked_child_ends_without_waiting_for_it(tmp_path, run_python):
    assert run_python("-c", FORKED, tmp_path) == "0\n"
    assert Checkpointer(tmp_path, rng=False).restore() == 7


ENDING = """
import sys, threading, weakref
from telegrad.checkpoint import Checkpointer, CheckpointError, folder
from telegrad.checkpoint.lock import WriterLock

checkpoints = Checkpointer(sys.argv[1], values={"x": 1})
checkpoints.save(1)
ending, commit = threading.Event(), folder.Folder.commit

def commit_at_the_end(*arguments):
    assert ending.wait(60)
    try:
        WriterLock(sys.argv[1])
    except CheckpointError:
        print("held", flush=True)
    commit(*arguments)

folder.Folder.commit = commit_at_the_end
checkpoints.save_async(2)
last = weakref.finalize(checkpoints, ending.set)  # the first to be called
"""


@pytest.mark.processes
def test_the_folder_is_locked_until_the_last_one_is_written(tmp_path, run_python):
    assert run_python("-c", ENDING, tmp_path) == "held\n"
    assert Checkpointer(tmp_path, rng=False).restore() == 2

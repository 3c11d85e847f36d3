"""A checkpoint that is damaged, cut off or half written is found, and the one before is used."""

import os
import random
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import telegrad as tg
from telegrad.checkpoint import Checkpointer, CheckpointError, CheckpointWarning, verify
from telegrad.checkpoint.folder import Folder
from telegrad.checkpoint.lock import WriterLock


@pytest.fixture
def model():
    return tg.nn.Linear(2, 1)


@pytest.fixture
def saved(tmp_path, model):
    """Two checkpoints; returns the folder of the second."""
    with Checkpointer(tmp_path, model=model, rng=False) as checkpoints:
        checkpoints.save(1)
        checkpoints.save(2)
    return tmp_path / "00000002-step-2"


def files(folder):
    return sorted(folder.iterdir())


def test_a_damaged_byte_is_found_1000_times(saved, tmp_path):
    source = random.Random(7)
    for _ in range(1000):
        path = source.choice(files(saved))
        whole = path.read_bytes()
        place = source.randrange(len(whole))
        changed = whole[place] ^ source.randrange(1, 256)
        path.write_bytes(whole[:place] + bytes([changed]) + whole[place + 1 :])
        problem = verify(tmp_path, 2)[saved.name]
        path.write_bytes(whole)
        assert problem is not None, (path.name, place, whole[place], changed)
    assert verify(tmp_path) == {"00000001-step-1": None, "00000002-step-2": None}


def test_a_file_that_is_cut_off_at_any_byte_is_found(saved, tmp_path):
    for path in files(saved):
        whole = path.read_bytes()
        for length in range(len(whole)):
            path.write_bytes(whole[:length])
            assert verify(tmp_path, 2)[saved.name] is not None, (path.name, length)
        path.write_bytes(whole)
    assert verify(tmp_path, 2)[saved.name] is None


@pytest.mark.parametrize("harm", ["cut", "gone", "exchanged", "index"])
def test_the_one_before_is_used(saved, tmp_path, model, harm):
    shard = saved / "worker0.safetensors"
    if harm == "cut":
        shard.write_bytes(shard.read_bytes()[:-1])
    elif harm == "gone":
        shard.unlink()
    elif harm == "exchanged":  # by a whole file of the same size, of another model
        tg.save({"model": tg.nn.Linear(2, 1).state_dict()}, shard)
    else:
        (saved / "index.json").write_text("{}")
    with pytest.warns(CheckpointWarning, match=r"00000002-step-2 in .* (is damaged|cannot be read)"):
        assert Checkpointer(tmp_path, model=model, rng=False).restore() == 1


def test_when_all_are_damaged_the_training_does_not_begin_anew(saved, tmp_path, model):
    for path in tmp_path.glob("*/worker0.safetensors"):
        path.write_bytes(b"")
    with (
        pytest.warns(CheckpointWarning),
        pytest.raises(CheckpointError, match=r"none of the 2 checkpoints .* can be used"),
    ):
        Checkpointer(tmp_path, model=model, rng=False).restore()


def test_without_an_index_a_checkpoint_does_not_count_and_is_removed(saved, tmp_path, model):
    (saved / "index.json").unlink()
    checkpoints = Checkpointer(tmp_path, model=model, rng=False)
    assert checkpoints.latest() == 1 and checkpoints.restore() == 1
    checkpoints.save(2)
    assert verify(tmp_path) == {"00000001-step-1": None, "00000002-step-2": None}


def test_two_writers_are_refused_and_a_lock_ends_with_its_holder(tmp_path, model):
    first, second = Checkpointer(tmp_path, model=model), Checkpointer(tmp_path, model=model)
    first.save(1)
    with pytest.raises(CheckpointError, match=f"are written by process {os.getpid()} on .*folder of its own"):
        second.save(2)
    assert second.restore() == 1  # reading needs no lock
    first.close()
    second.save(2)
    del second
    first.save(3)
    assert first.steps() == [1, 2, 3]


def test_a_forked_child_does_not_hold_its_parents_lock(tmp_path):
    lock = WriterLock(str(tmp_path))
    (told, tell), (ended, end) = os.pipe(), os.pipe()
    if not (child := os.fork()):
        os.close(end)
        os.write(tell, b"x")
        os.read(ended, 1)  # until the parent has closed its end
        os._exit(0)
    try:
        os.read(told, 1)
        lock.close()
        WriterLock(str(tmp_path)).close()
    finally:
        for descriptor in (told, tell, ended, end):
            os.close(descriptor)
        os.waitpid(child, 0)


def test_a_reader_goes_on_with_a_newer_one_where_the_writer_removed_the_listed_one(tmp_path, monkeypatch):
    writer = Checkpointer(tmp_path, values={"x": 2}, keep=1)
    writer.save(1)
    entries, listed = Folder.entries, []

    def list_then_save(self, **options):
        found = entries(self, **options)
        if not listed:
            listed.append(found)
            writer.save(2)
        return found

    monkeypatch.setattr(Folder, "entries", list_then_save)
    values = {}
    with pytest.warns(CheckpointWarning, match="00000001-step-1.*cannot be read"):
        assert Checkpointer(tmp_path, values=values).restore() == 2
    assert values == {"x": 2}


def test_a_forked_child_does_not_save_with_its_parents_checkpointer(tmp_path):
    with Checkpointer(tmp_path, values={}) as checkpoints:
        checkpoints.save(1)
        if not (child := os.fork()):
            try:
                checkpoints.save(2)
            except CheckpointError as error:
                os._exit(7 if "was forked from" in str(error) else 1)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert checkpoints.steps() == [1]


LIMITED = """
    import resource, sys, numpy as np, telegrad as tg
    from telegrad.checkpoint import Checkpointer, CheckpointError

    values = {"x": np.zeros(10)}
    checkpoints = Checkpointer(sys.argv[1], values=values, rng=False)
    checkpoints.save(1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    values["x"] = np.zeros(100_000)
    try:
        checkpoints.save(2)
    except CheckpointError as error:
        print(error)
    values["x"] = np.ones(10)
    checkpoints.save(3)
    print(checkpoints.steps())
"""


@pytest.mark.processes
def test_a_file_that_cannot_be_written_leaves_the_others_whole(tmp_path, run_python):
    said = run_python("-c", textwrap.dedent(LIMITED), str(tmp_path))
    assert "the checkpoint of step 2 cannot be written to" in said and "earlier ones are whole" in said
    assert said.endswith("[1, 3]\n")
    assert verify(tmp_path) == {"00000001-step-1": None, "00000002-step-3": None}


ENDLESS = """
    import sys, itertools, numpy as np
    from telegrad.checkpoint import Checkpointer

    values = {}
    checkpoints = Checkpointer(sys.argv[1], values=values, rng=False)
    for step in itertools.count(checkpoints.restore() + 1):
        values["x"] = np.full(50_000, step)
        checkpoints.save(step)
        print(step, flush=True)
"""


@pytest.mark.processes
@pytest.mark.slow
def test_a_writer_that_is_killed_at_any_time_leaves_a_whole_one(tmp_path):
    source, values, told = random.Random(3), {}, 0
    for _ in range(6):
        command = [sys.executable, "-c", textwrap.dedent(ENDLESS), str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            for _ in range(source.randrange(1, 12)):
                told = int(writer.stdout.readline())
            writer.send_signal(signal.SIGKILL)
            told = max([told, *map(int, writer.stdout.read().split())])
        step = Checkpointer(tmp_path, values=values, rng=False).restore()
        assert step >= told and np.array_equal(values["x"], np.full(50_000, step))
        assert [problem for problem in verify(tmp_path).values() if problem and "no index" not in problem] == []

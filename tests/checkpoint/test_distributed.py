"""Workers save together, each its own file; another number of them reads back the same bits."""

import json

import pytest
import telegrad as tg
from telegrad.checkpoint import Checkpointer, CheckpointError, verify
from telegrad.checkpoint.job import Job

pytestmark = pytest.mark.processes


@pytest.fixture
def train(job, tmp_path):
    """Trains with a number of workers, and returns the step that they began at and the digest of what they have."""

    def run(workers, folder, last, every=5):
        started = job("checkpoint_job", workers, [tmp_path / folder, last, every])
        started.wait()
        line = next(line for line in started.output(0).splitlines() if line.startswith("begun"))
        started.log(0).unlink()
        _, begun, _, digest, tensors = line.split()
        assert int(tensors) == 8 * 3
        return int(begun), digest

    return run


@pytest.mark.slow
def test_another_number_of_workers_reads_the_same_bits(train, tmp_path):
    begun, whole = train(3, "parts", 10)
    assert begun == 0
    (entry,) = [path for path in (tmp_path / "parts").iterdir() if path.name.endswith("step-10")]
    files = json.loads((entry / "index.json").read_text())["checkpoint"]["files"]
    assert [file["name"] for file in files] == [f"worker{rank}.safetensors" for rank in range(3)]
    assert [sorted(file["parts"]) for file in files] == [["model", "optimizer", "rng"], *[["optimizer", "rng"]] * 2]
    assert train(2, "parts", 10) == (10, whole)
    assert train(1, "parts", 15)[0] == 10  # saves with one worker
    assert train(2, "parts", 17) == (15, train(2, "undisturbed", 17)[1])
    assert set(verify(tmp_path / "parts").values()) == {None}


def test_what_one_worker_cannot_do_fails_on_all():
    job = Job()
    job._group, job.size = "a group", 2
    job._gather = lambda values, value, _: values.__setitem__(slice(None), [value, "the disk is full"])
    with pytest.raises(CheckpointError, match="worker 1: the disk is full"):
        job.all_do(lambda: 3)


@pytest.mark.parametrize("how", ["save", "save_async"])
def test_a_part_that_fails_on_one_worker_is_told_to_the_others(tmp_path, how):
    class Part:
        def state_dict(self):
            raise KeyError("weight")

        def load_state_dict(self, state):
            raise NotImplementedError

    told = []
    checkpoints = Checkpointer(tmp_path, part=Part())
    job = checkpoints._job
    job._group, job.size = "a group", 2
    job._gather = lambda values, value, _: (told.append(value), values.__setitem__(slice(None), [value, None]))
    with pytest.raises((CheckpointError, KeyError), match="weight"):
        getattr(checkpoints, how)(1)
    if how == "save_async":
        with pytest.raises(CheckpointError, match="worker 0: KeyError: 'weight'"):
            checkpoints.wait(60)
    assert told == ["KeyError: 'weight'"] and checkpoints.steps() == []


def test_inside_an_epoch_another_number_of_workers_is_refused(tmp_path):
    loader = tg.data.DataLoader(tg.data.TensorDataset(tg.arange(10)), 2)
    checkpoints = Checkpointer(tmp_path, loader=loader)
    next(iter(loader))
    state = {"loader": loader.state_dict()}
    entry = checkpoints._folder.begin(3)
    with pytest.raises(CheckpointError, match="saved by 4 workers inside an epoch, and 1 workers cannot go on"):
        checkpoints._load_of_others("loader", 4, {0: state}, f"checkpoint {entry.name}")
    list(loader)
    checkpoints._load_of_others("loader", 4, {0: {"loader": loader.state_dict()}}, "")
    assert len(list(loader)) == 5

"""A training that is saved and brought back goes on as if it had not been interrupted."""

import os
import random

import numpy as np
import pytest
import telegrad as tg
from telegrad.checkpoint import Checkpointer, CheckpointError


class Training:
    """A small training whose every source of randomness and state is a part."""

    def __init__(self, folder, **options):
        tg.manual_seed(5)
        random.seed(5)
        self.model = tg.nn.Sequential(tg.nn.Linear(4, 8), tg.nn.BatchNorm1d(8), tg.nn.Dropout(0.2), tg.nn.Linear(8, 1))
        self.optimizer = tg.optim.AdamW(self.model.parameters(), lr=0.01)
        self.scheduler = tg.optim.lr_scheduler.StepLR(self.optimizer, 5)
        dataset = tg.data.TensorDataset(tg.arange(88.0).reshape(22, 4) / 88, tg.arange(22))
        self.loader = tg.data.DataLoader(dataset, batch_size=4, shuffle=True)
        self.noise = np.random.default_rng(5)
        self.log = {"losses": [], "samples": []}
        self.checkpoints = Checkpointer(
            folder,
            model=self.model,
            optimizer=self.optimizer,
            scheduler=self.scheduler,
            loader=self.loader,
            noise=self.noise,
            log=self.log,
            **options,
        )

    def run(self, steps, every=1):
        done = self.checkpoints.restore()
        while done < steps:
            for inputs, numbers in self.loader:
                self.step(inputs, numbers)
                done += 1
                if done % every == 0:
                    self.checkpoints.save(done)
                if done == steps:
                    break
        self.checkpoints.close()
        return self

    def step(self, inputs, numbers):
        self.optimizer.zero_grad()
        factor = float(self.noise.uniform(0.9, 1.1)) * random.uniform(0.9, 1.1)
        loss = ((self.model(inputs) * factor - inputs.sum(1, keepdim=True)) ** 2).mean()
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        self.log["losses"].append(loss.item())
        self.log["samples"] += numbers.tolist()


def test_every_step_can_be_the_last_of_a_process(tmp_path):
    """After each step a new object goes on; all is equal to the undisturbed run, to the bit."""
    whole = Training(tmp_path / "whole").run(16)
    for steps in range(1, 17):
        parts = Training(tmp_path / "parts").run(steps)
    assert parts.log == whole.log
    assert len({*whole.log["samples"][:22]}) == 22
    for name, tensor in whole.model.state_dict().items():
        assert np.array_equal(tensor.numpy(), parts.model.state_dict()[name].numpy()), name


@pytest.fixture
def model():
    return tg.nn.Linear(2, 2)


def test_an_empty_folder_begins_at_step_0(tmp_path, model):
    checkpoints = Checkpointer(tmp_path / "none", model=model)
    assert checkpoints.restore() == 0 and checkpoints.latest() is None and checkpoints.best() is None
    assert not (tmp_path / "none").exists()
    with pytest.raises(CheckpointError, match="no checkpoint of step 3"):
        checkpoints.restore(3)


def test_the_last_and_the_best_are_kept(tmp_path, model):
    checkpoints = Checkpointer(tmp_path, model=model, keep=2, keep_best=2, mode="max")
    for step, metric in enumerate([0.1, 0.9, float("nan"), 0.5, 0.8, 0.2, 0.3, None]):
        checkpoints.save(step, metric=metric)
    assert checkpoints.steps() == [1, 4, 6, 7]
    assert (checkpoints.best(), checkpoints.latest()) == (1, 7)
    assert len([name for name in os.listdir(tmp_path) if name != ".lock"]) == 4


def test_all_are_kept(tmp_path, model):
    checkpoints = Checkpointer(tmp_path, model=model, keep=None)
    for step in range(5):
        checkpoints.save(step)
    assert checkpoints.steps() == [0, 1, 2, 3, 4]


def test_a_training_that_went_back_has_its_new_checkpoints_as_the_latest(tmp_path, model):
    checkpoints = Checkpointer(tmp_path, model=model)
    for step in (10, 20, 30):
        checkpoints.save(step)
    assert checkpoints.restore(10) == 10
    checkpoints.save(11)
    assert checkpoints.latest() == 11 and checkpoints.restore() == 11
    checkpoints.save(20)
    assert checkpoints.restore(20) == 20 and checkpoints.steps() == [30, 11, 20]


def test_neither_clock_nor_times_of_files_decide(tmp_path, model):
    checkpoints = Checkpointer(tmp_path, model=model)
    for step in (1, 2, 3):
        checkpoints.save(step)
        for place, _, files in os.walk(tmp_path):
            for name in files:
                os.utime(os.path.join(place, name), (4e9 - step * 1e8,) * 2)
    assert checkpoints.restore() == 3


def test_parts_that_are_not_asked_for_are_left_alone(tmp_path, model):
    optimizer = tg.optim.SGD(model.parameters())
    Checkpointer(tmp_path, model=model, optimizer=optimizer).save(4)
    again = tg.nn.Linear(2, 2)
    assert Checkpointer(tmp_path, model=again, rng=False, optimizer=None).restore() == 4
    assert np.array_equal(again.weight.detach().numpy(), model.weight.detach().numpy())


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (
            {"model": tg.nn.Linear(2, 3)},
            r"does not fit model:.*\n.*'weight' has shape .*3, 2.* in the module and .*2, 2",
        ),
        (
            {"model": tg.nn.Sequential(tg.nn.Linear(2, 2))},
            r"missing keys: '0.weight', '0.bias'\n.*unexpected keys: 'weight'",
        ),
        ({"net": tg.nn.Linear(2, 2)}, "has no part named net; it has model, rng"),
    ],
)
def test_a_checkpoint_of_another_model_is_named(tmp_path, model, other, words):
    Checkpointer(tmp_path, model=model).save(1)
    with pytest.raises(CheckpointError, match=words):
        Checkpointer(tmp_path, **other).restore()


def test_bad_arguments(tmp_path, model):
    with pytest.raises(TypeError, match="model is a int, which cannot be a part"):
        Checkpointer(tmp_path, model=3)
    for options, words in [
        ({"keep": 0}, "keep must"),
        ({"keep_best": -1}, "keep_best must"),
        ({"mode": "best"}, "mode must"),
        ({"rng": np.random.default_rng(0)}, "rng is True or False.*another name"),
    ]:
        with pytest.raises(ValueError, match=words):
            Checkpointer(tmp_path, **options)
    for step in (-1, 1.5, True, None):
        with pytest.raises(ValueError, match="step must"):
            Checkpointer(tmp_path, model=model).save(step)
    with pytest.raises(TypeError, match=r"log.*of class object"):
        Checkpointer(tmp_path, log={"x": object()}).save(1)
    assert Checkpointer(tmp_path).steps() == []


def test_random_generators_go_on(tmp_path):
    ours, python = tg.Generator().manual_seed(3), random.Random(3)
    sources = {"ours": ours, "python": python, "numpys": np.random.default_rng(3)}
    checkpoints = Checkpointer(tmp_path, **sources)

    def draw():
        own = [tg.rand(2, generator=ours).tolist(), python.random(), sources["numpys"].random()]
        return [*own, tg.rand(2).tolist(), random.random(), np.random.random()]

    draw()
    checkpoints.save(1)
    expected = draw()
    assert draw() != expected
    checkpoints.restore()
    assert draw() == expected


def test_steps_may_be_integers_of_numpy(tmp_path):
    with Checkpointer(tmp_path, values={"a": 1}, rng=False) as checkpoints:
        checkpoints.save(np.int64(3))
        checkpoints.save_async(np.uint8(4)).wait()
        assert checkpoints.steps() == [3, 4]
        for wrong in (np.int64(-1), np.float64(1.0), np.bool_(True), np.ones(2, int)):
            with pytest.raises((ValueError, TypeError), match=r"step|index|scalar"):
                checkpoints.save(wrong)

"""Checkpoints on a file system of fsspec."""

import json

import numpy as np
import pytest
from telegrad.checkpoint import Checkpointer, CheckpointError, CheckpointWarning, summaries, verify
from telegrad.launcher.cli import app
from typer.testing import CliRunner

fsspec = pytest.importorskip("fsspec", reason="needs the extra fsspec")


@pytest.fixture
def address(tmp_path):
    place = f"memory://{tmp_path.name}/run"
    yield place
    fsspec.filesystem("memory").rm(f"/{tmp_path.name}", recursive=True)


def test_save_keep_and_restore(address):
    values = {"x": np.arange(5)}
    with Checkpointer(address, values=values, keep=2, keep_best=1) as checkpoints:
        assert checkpoints.restore() == 0 and checkpoints.latest() is None
        for step, metric in [(1, 0.1), (2, 0.7), (3, 0.6), (4, 0.5)]:
            values["x"] = np.arange(5) * step
            (checkpoints.save if step % 2 else checkpoints.save_async)(step, metric=metric)
        checkpoints.wait()
        assert checkpoints.steps() == [1, 3, 4] and checkpoints.best() == 1
    assert set(verify(address).values()) == {None}
    assert Checkpointer(address, values=values).restore(3) == 3 and values["x"].tolist() == [0, 3, 6, 9, 12]
    said = CliRunner().invoke(app, ["checkpoint", "list", address, "--json"])
    assert [row["step"] for row in json.loads(said.output)["checkpoints"]] == [1, 3, 4]


def test_a_damaged_one_is_passed_over(address):
    values = {"x": 1}
    checkpoints = Checkpointer(address, values=values)
    checkpoints.save(1)
    values["x"] = 2
    checkpoints.save(2)
    files = fsspec.filesystem("memory")
    (path,) = files.glob(f"{address}/*-step-2/worker0.safetensors")
    whole = files.cat_file(path)
    for contents in (whole[:-1], whole[:-1] + b"?", b""):
        files.pipe_file(path, contents)
        with pytest.warns(CheckpointWarning):
            assert checkpoints.restore() == 1 and values == {"x": 1}
    files.rm_file(path.replace("worker0.safetensors", "index.json"))
    assert checkpoints.restore() == 1
    assert "no index" in summaries(address)[1]["problem"]


def test_a_second_writer_is_noticed(address):
    first, second = Checkpointer(address), Checkpointer(address)
    first.save(1)
    second.save(2)
    with pytest.raises(CheckpointError, match="another writer saves in memory://"):
        first.save(3)
    assert second.steps() == [1, 2]


def test_an_unknown_protocol(tmp_path):
    with pytest.raises(ValueError, match="nonsense"):
        Checkpointer("nonsense://here")

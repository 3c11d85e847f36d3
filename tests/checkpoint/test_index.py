"""An index made to do harm, with a right checksum, is refused before any file that it names is opened."""

import json
import os
import random

import pytest
from telegrad.checkpoint import Checkpointer, CheckpointError, CheckpointWarning, describe, summaries, verify
from telegrad.checkpoint import index as indexes


@pytest.fixture
def change(tmp_path):
    """Changes the body of the second index, and gives it the checksum of its new contents."""
    with Checkpointer(tmp_path, values={"x": 1}) as checkpoints:
        checkpoints.save(1)
        checkpoints.save(2)

    def rewrite(do):
        path = tmp_path / "00000002-step-2" / "index.json"
        body = json.loads(path.read_text())["checkpoint"]
        do(body)
        path.write_text(indexes._text(indexes._digest(body), body))

    return rewrite


def of_file(key, value):
    return lambda body: body["files"][0].__setitem__(key, value)


HARMS = {
    "absolute": of_file("name", "/etc/passwd"),
    "outside": of_file("name", "../00000001-step-1/worker0.safetensors"),
    "another": of_file("name", "worker1.safetensors"),
    "no text": of_file("name", 3),
    "size": of_file("size", "3"),
    "empty file": of_file("size", 0),
    "checksum": of_file("sha256", None),
    "more": of_file("more", 3),
    "less": lambda body: body["files"][0].pop("size"),
    "twice": lambda body: body["files"].append(body["files"][0]),
    "no files": lambda body: body["files"].clear(),
    "files": lambda body: body.update(files=3),
    "step": lambda body: body.pop("step"),
    "metric": lambda body: body.update(metric="low"),
    "format": lambda body: body.pop("format"),
    "time": lambda body: body.update(saved_at=3),
}


@pytest.mark.parametrize("harm", HARMS)
def test_it_counts_as_damaged(tmp_path, change, harm):
    change(HARMS[harm])
    checkpoints = Checkpointer(tmp_path, values={}, mode="max", keep=1)
    with pytest.warns(CheckpointWarning, match="its index"):
        assert checkpoints.restore() == 1
    assert "its index" in verify(tmp_path)["00000002-step-2"] and "its index" in summaries(tmp_path)[1]["problem"]
    with pytest.raises(CheckpointError, match="its index"):
        describe(tmp_path, 2)
    assert checkpoints.best() is None
    checkpoints.save(3)
    assert checkpoints.steps() == [3]


def test_a_huge_index_is_not_read(tmp_path, change):
    os.truncate(tmp_path / "00000002-step-2" / "index.json", 1 << 40)
    with pytest.warns(CheckpointWarning, match="its index has 1,099,511,627,776 bytes"):
        assert Checkpointer(tmp_path, values={}).restore() == 1


def test_a_link_to_a_checkpoint_elsewhere_is_removed_without_it(tmp_path, change):
    kept, link = tmp_path / "kept", tmp_path / "00000001-step-1"
    link.rename(kept)
    link.symlink_to(kept)
    with Checkpointer(tmp_path, values={}, keep=1) as checkpoints:
        checkpoints.save(3)
        assert checkpoints.steps() == [3] and not link.is_symlink()
    assert sorted(path.name for path in kept.iterdir()) == ["index.json", "worker0.safetensors"]


def test_a_file_with_the_name_of_a_checkpoint_is_passed_over(tmp_path):
    (tmp_path / "00000004-step-7").write_text("mine")
    with Checkpointer(tmp_path, values={}) as checkpoints:
        checkpoints.save(3)
        assert checkpoints.steps() == [3]
    assert (tmp_path / "00000004-step-7").read_text() == "mine"


def test_a_dict_keeps_its_values_where_another_part_was_saved(tmp_path):
    Checkpointer(tmp_path, values=random.Random(3)).save(1)
    values = {"mine": 1}
    with pytest.raises(CheckpointError, match="is a dict here, and was a tuple"):
        Checkpointer(tmp_path, values=values).restore()
    assert values == {"mine": 1}

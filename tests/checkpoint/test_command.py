"""``telegrad checkpoint`` lists, verifies and shows."""

import json

import pytest
import telegrad as tg
from telegrad.checkpoint import Checkpointer
from telegrad.launcher.cli import app
from typer.testing import CliRunner


@pytest.fixture
def folder(tmp_path):
    with Checkpointer(tmp_path, model=tg.nn.Linear(3, 2)) as checkpoints:
        checkpoints.save(100, metric=0.25)
        checkpoints.save(200)
    return tmp_path


def run(*arguments, code=0):
    result = CliRunner().invoke(app, ["checkpoint", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.output


def test_list(folder):
    (folder / "00000003-step-300").mkdir()
    _, first, second, third = run("list", folder).splitlines()
    assert first.split()[:2] == ["100", "0.25"] and first.endswith("00000001-step-100")
    assert second.split()[:2] == ["200", "-"] and "has no index" in third
    rows = json.loads(run("list", folder, "--json"))["checkpoints"]
    assert [(row["step"], row.get("metric")) for row in rows] == [(100, 0.25), (200, None), (300, None)]


def test_verify(folder):
    assert run("verify", folder).splitlines() == ["00000001-step-100: whole", "00000002-step-200: whole"]
    path = folder / "00000002-step-200" / "worker0.safetensors"
    path.write_bytes(path.read_bytes()[:-5] + b"wrong")
    assert "worker0.safetensors is damaged" in run("verify", folder, code=1)
    found = json.loads(run("verify", folder, "--json", "--step", 100))["problems"]
    assert found == {"00000001-step-100": None}


def test_show(folder):
    said = run("show", folder, "--step", 100)
    assert said.startswith("00000001-step-100: step 100, metric 0.25") and "weight  float32 (2, 3)" in said
    assert json.loads(run("show", folder, "--json"))["files"][0]["parts"]["model"]["bias"] == "float32 (2,)"


def test_bad_input(folder, tmp_path):
    run("list", tmp_path / "nowhere", code=2)
    run("show", folder, "--step", 7, code=2)
    run("verify", folder, "--step", 7, code=2)

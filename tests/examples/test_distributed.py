"""Examples that train on several workers: they learn in few steps, draw a picture, and leave nothing on any worker."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import telegrad as tg
import telegrad.examples
from helpers.launched import MPIEXEC, NEEDS_MPI

pytestmark = [pytest.mark.processes, pytest.mark.slow]
FOLDER = Path(telegrad.examples.__file__).parent
LAUNCHER = ["-c", "from telegrad.launcher.cli import main; main()", "run", "-n"]
TIDY = "tidy: 0 pending calls, 0 references, 0 contexts"


@pytest.fixture
def run(tmp_path, run_python):
    """Run an example for some steps; return the number that it prints after some words."""

    def run_example(workers, name, steps, words):
        command = [*LAUNCHER, str(workers), str(FOLDER / f"{name}.py"), "--steps", str(steps), "--out", "here"]
        output = run_python(*command, cwd=tmp_path)
        assert output.count(TIDY) == workers, output
        assert (tmp_path / "here" / "training.png").read_bytes().startswith(b"\x89PNG")
        found = re.search(words + r" ([\d.]+)", output)
        assert found, output
        return float(found[1])

    return run_example


def test_split_learning(run):
    assert run(3, "split_learning", 60, "accuracy on the held-out fifth:") > 60.0


def test_hogwild(run):
    assert run(3, "hogwild", 80, "accuracy on the held-out fifth:") > 60.0


def test_embedding_server(run):
    assert run(3, "embedding_server", 60, "accuracy on held-out paragraphs:") > 40.0


def test_distributed_rnn(run):
    assert run(2, "distributed_rnn", 30, "bits per character on held-out text:") < 4.8


@pytest.mark.parametrize(("workers", "name", "steps"), [(3, "cartpole", 20), (4, "actor_critic", 40)])
def test_learning_from_a_game(run, workers, name, steps):
    pytest.importorskip("gymnasium", reason="the example's game is an extra: pip install gymnasium")
    assert run(workers, name, steps, "last 30 episodes:") > 30.0


def test_hybrid_embeddings(run):
    assert (
        run(3, "hybrid_embeddings", 60, "equal networks everywhere: True[^%]*accuracy on held-out paragraphs:") > 40.0
    )


def test_pipeline_cnn(run, tmp_path):
    assert run(3, "pipeline_cnn", 25, "accuracy on the held-out fifth:") > 60.0
    assert all((tmp_path / "here" / f"{name}.svg").read_text().count("<rect") == 33 for name in ("gpipe", "1f1b"))


@pytest.mark.parametrize(
    "name, steps, over",
    [
        ("data_parallel_cnn", 40, "rpc"),
        pytest.param("data_parallel_cnn", 40, "mpi", marks=NEEDS_MPI),
        ("local_sgd", 60, "rpc"),
    ],
)
def test_processes_that_learn_together(tmp_path, run_python, name, steps, over):
    program = [str(FOLDER / f"{name}.py"), "--steps", str(steps), "--out", "here"]
    if over == "rpc":
        output = run_python(*LAUNCHER, "2", *program, cwd=tmp_path)
    else:
        command = [MPIEXEC, "-n", "2", sys.executable, *program]
        output = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, cwd=tmp_path).stdout
    found = re.findall(r"accuracy on the held-out fifth: ([\d.]+)", output)
    assert found and all(float(each) > 60.0 for each in found), output
    assert "equal parameters everywhere: False" not in output
    assert (tmp_path / "here" / "training.png").read_bytes().startswith(b"\x89PNG")


def test_a_training_that_goes_on_ends_with_the_same_bits(tmp_path, run_python):
    program = [*LAUNCHER, "2", str(FOLDER / "data_parallel_cnn.py"), "--quiet"]
    run_python(*program, "--steps", "20", "--out", "parts", cwd=tmp_path)
    run_python(*program, "--steps", "40", "--out", "parts", "--resume", cwd=tmp_path)
    run_python(*program, "--steps", "40", "--out", "whole", cwd=tmp_path)
    (parts,), (whole,) = ([*(tmp_path / name / "checkpoints").glob("*-step-40")] for name in ("parts", "whole"))
    for rank in range(2):
        found, expected = (tg.load(folder / f"worker{rank}.safetensors") for folder in (parts, whole))
        assert found["history"] == expected["history"] and len(found["history"]["losses"]) == 40
    found, expected = (tg.load(folder / "worker0.safetensors")["model"] for folder in (parts, whole))
    assert all(np.array_equal(value.numpy(), found[name].numpy()) for name, value in expected.items())


def test_an_elastic_training(tmp_path, run_python):
    options = ("3", "--elastic", FOLDER / "elastic_digits.py", "--steps", "40")
    output = run_python(*LAUNCHER, *options, cwd=tmp_path)
    assert output.count("40 steps in") == 3 and "step 0: worker" in output


def test_the_overlap_of_a_backward(tmp_path, run_python):
    output = run_python(*LAUNCHER, "2", FOLDER / "overlap.py", "--steps", "1", "--out", "here", cwd=tmp_path)
    backward, step = map(float, re.search(r"backward ([\d.]+) ms, with means ([\d.]+) ms", output).groups())
    assert 0 < backward <= step and "8 buckets travelled" in output
    assert "all_reduce of a bucket" in (tmp_path / "here" / "overlap.svg").read_text()

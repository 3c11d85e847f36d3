"""Examples under ``telegrad run --restart`` whose workers are killed: they go on, from checkpoints of what was learned."""

import re
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "programs" / "killed_example.py"
RUN = ["-c", "from telegrad.launcher.cli import main; main()", "run"]
pytestmark = [pytest.mark.processes, pytest.mark.slow]


@pytest.mark.parametrize(
    ("workers", "restart", "example", "kills", "steps", "words"),
    [
        (
            3,
            "one",
            "embedding_server",
            ["2:embedding_server.Paragraphs:1", "0:embedding_server.Table.means:70"],
            60,
            "accuracy on held-out paragraphs:",
        ),
        pytest.param(
            4,
            "one",
            "actor_critic",
            ["3:actor_critic.Player.step:5", "1:actor_critic.NetworkOwner.forward:50"],
            30,
            "last 30 episodes:",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            2,
            "all",
            "local_sgd",
            ["1:local_sgd.distance:130"],
            80,
            "accuracy on the held-out fifth:",
            marks=pytest.mark.soak,
        ),
    ],
)
def test_an_example_goes_on_though_workers_die(tmp_path, run_python, workers, restart, example, kills, steps, words):
    if example == "actor_critic":
        pytest.importorskip("gymnasium", reason="the example's game is an extra: pip install gymnasium")
    command = [
        *RUN,
        "-n",
        workers,
        "--restart",
        restart,
        "--log-dir",
        "logs",
        PROGRAM,
        example,
        *kills,
        "--steps",
        steps,
        "--resume",
    ]
    output = run_python(*map(str, [*command, "--out", "here"]), cwd=tmp_path)
    for kill in kills:
        assert f"restart 1 of worker{kill[0]}" in (tmp_path / "logs" / f"worker{kill[0]}.log").read_text()
    results = [float(each) for each in re.findall(words + r" ([\d.]+)", output)]
    assert results and min(results) > 30.0, output
    assert (tmp_path / "here" / "training.png").exists()

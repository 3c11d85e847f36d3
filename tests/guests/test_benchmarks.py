"""The benchmark beside PyTorch's RPC measures and compares losses, and the page has the table of its file."""

import json

import pytest
from telegrad.benchmarks.guests import compare_losses, main
from telegrad.benchmarks.publish import BEGIN, END
from telegrad.benchmarks.publish_guests import COPY, PAGE, guests_table
from telegrad.benchmarks.results import Results, Source, read


def measured(*losses_of):
    """Results of one case: for each contender the losses of its rounds."""
    results = Results(contenders=[Source("telegrad"), Source("torch")])
    for source, rounds in zip(results.contenders, losses_of):
        results.record("case", source.name).rounds += [
            {"p50": 1.0, **{f"loss {i}": loss for i, loss in enumerate(losses)}} for losses in rounds
        ]
    compare_losses(results)
    return results.find("case", "telegrad").error


def test_losses_are_compared_with_those_of_each_round():
    assert measured([[1.0, 0.5], [1.0, 0.5 + 1e-14]], [[1.0, 0.5]]) == ""
    assert measured([[1.0, 0.5]], [[1.0, 0.5], [1.0, 0.5 + 1e-11]]) == "its losses are not those of torch"
    assert measured([[1.0], [1.1]], [[1.0]]) and measured([[1.0]], [[1.0, 0.5]])


def test_the_page_has_the_figures_of_the_file():
    table = PAGE.read_text().partition(BEGIN)[2].partition(END)[0].splitlines()
    assert table == list(guests_table(read(COPY))), "make bench-guests"


@pytest.mark.processes
@pytest.mark.slow
def test_a_program_is_measured(tmp_path, capsys):
    pytest.importorskip("torch.nn", reason="PyTorch is not in this environment; `make guests` makes one")
    file = tmp_path / "figures.json"
    arguments = ["--ours-only", "--rounds", "1", "--seconds", "0.01", "--scripts", "0", "--only", "rnn.py"]
    assert main([*arguments, "--json", str(file)]) == 0
    (found,) = json.loads(file.read_text())["measurements"]
    (figures,) = found["rounds"]
    assert figures["p50"] > 0 and figures["loss 19"] < figures["loss 0"]
    assert "rnn.py" in capsys.readouterr().out

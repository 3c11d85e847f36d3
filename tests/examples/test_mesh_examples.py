"""Examples of meshes, on agents in this process: they learn, find and count, and leave nothing."""

import re
from collections import Counter

import numpy as np
import pytest
from telegrad.examples import evolution, hyperparameter_search, mesh_server, word_count
from telegrad.examples.local_options import Options
from telegrad.examples.tidy import show_all_tidy
from telegrad.testing import in_process_cluster


@pytest.fixture
def names():
    """Names of workers that the current agent can call."""
    found = [f"trainer{index}" for index in range(6)]
    with in_process_cluster("server", *found) as agents, agents[0].use():
        yield found


@pytest.mark.parametrize(
    ("module", "learn", "steps", "rate", "least"),
    [
        (mesh_server, "learn", 60, 0.3, 80.0),
        (evolution, "learn", 60, 0.3, 75.0),
        (hyperparameter_search, "search", 2, 0, 60.0),
    ],
)
def test_they_learn(names, tmp_path, monkeypatch, capsys, module, learn, steps, rate, least):
    drawn = []
    monkeypatch.setattr(module, "curves", lambda path, title, lines, *_: drawn.append(lines))
    getattr(module, learn)(names, Options(steps, rate, seed=0, quiet=True, out=tmp_path))
    output = capsys.readouterr().out
    accuracy = re.search(r"accuracy on the held-out fifth: ([\d.]+)%", output)
    assert accuracy and float(accuracy[1]) > least, output
    assert all(np.isfinite(values).all() and len(values) for values in drawn[0].values())
    show_all_tidy(names, quiet=True)  # raises if a worker keeps references


def test_words_are_counted(names):
    pages = ["one two two", "three three three and", "Two"] * 5
    expected = Counter(word for page in pages for word in page.lower().split())
    assert {word: count for count, word in word_count.count_words(names, pages, 10)} == expected
    assert word_count.count_words(names, pages, 2) == [(15, "two"), (15, "three")]

"""Cost of a loss in the simulator: as much for each worker among many as among few."""

import pytest
from telegrad.testing.counts import lines_run
from telegrad.tools.losses import lose, main, stopped


def lines_of_a_loss(workers, ranks):
    with lines_run() as count:
        return lose(workers, ranks, meter=count)


@pytest.mark.parametrize("ranks", [[7], [0]])
def test_a_loss_costs_a_worker_as_much_among_many_as_among_few(ranks):
    few, many = (lines_of_a_loss(workers, ranks) for workers in (30, 120))
    assert many.messages < 6 * many.workers and many.dials < 4 * many.workers
    assert many.spent / many.workers < 1.5 * few.spent / few.workers, (few, many)


def test_a_silent_worker_costs_a_few_messages_more():
    cost = lose(40, [7], stopped)
    assert cost.messages < 12 * 40 and 20 < cost.seconds < 100


def test_the_command_prints_a_line_for_each_loss(capsys):
    main(["10"])
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["workers", "lost", "messages", "dials", "events", "CPU", "s", "known", "s"]
    assert [line[9:23].strip() for line in lines] == [
        "one killed", "rank 0 killed", "6 killed", "one silent", "rank 0 silent",
    ]  # fmt: skip

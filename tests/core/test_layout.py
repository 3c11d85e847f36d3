"""Layouts of graphs: boxes do not overlap, and edges pass between them."""

import random

import pytest
from telegrad.core.autograd.layout import GAP_X, HEIGHT, PASSAGE, WIDTH, Layout


def random_graph(rng):
    count = rng.randint(1, 14)
    edges = [(one, other) for one in range(count) for other in range(one + 1, count) if rng.random() < 0.25]
    return range(count), edges + edges[:1], {node: rng.randrange(3) for node in range(count)}


@pytest.mark.parametrize("seed", range(20))
def test_nothing_overlaps(seed):
    nodes, edges, frames = random_graph(random.Random(seed))
    layout = Layout(nodes, edges, frames.__getitem__, (10, 20), 30, range(3))
    places = {node: layout.place(node) for node in nodes}
    for one in nodes:
        left, width = layout.frames[frames[one]]
        assert left <= places[one][0] and places[one][0] + WIDTH <= left + width, "it is in its frame"
        assert 20 <= places[one][1] <= layout.bottom - HEIGHT
        for other in nodes:
            if other != one and layout.rows[one] == layout.rows[other]:
                assert abs(places[one][0] - places[other][0]) >= WIDTH + GAP_X
    ends = [10 - 30] + [left + width for left, width in layout.frames.values()]
    assert [left for left, _ in layout.frames.values()] == [end + 30 for end in ends[:-1]]
    for edge in edges:
        assert not [node for node in nodes if passes_through(layout.way(*edge), places[node])]


def passes_through(way, place):
    """Return whether the upright parts of a way go through a box."""
    return any(
        top == place[1] and bottom == top + HEIGHT and place[0] <= x <= place[0] + WIDTH
        for (x, top), (_, bottom) in zip(way.points[1::2], way.points[2::2])
    )


def test_an_edge_bends_between_rows_only():
    layout = Layout("abc", [("a", "b"), ("b", "c"), ("a", "c")])
    rows = [layout.place(node)[1] for node in "abc"]
    points, arrives = layout.way("a", "c")
    assert arrives and [y for _, y in points] == [rows[0] + HEIGHT, rows[1], rows[1] + HEIGHT, rows[2]]
    assert rows == sorted(rows)


def test_an_empty_picture_has_the_room_of_a_box():
    assert Layout([], [], frames=["alone"]).frames == {"alone": (0, WIDTH)}


def test_edges_to_one_node_share_their_passages():
    """As those to the weights of a recurrent network, which every step uses."""
    steps = range(1, 40)
    layout = Layout(range(41), [*zip(range(40), steps), (39, 40), *((step, 40) for step in steps[:-1])])
    first, second = layout.way(1, 40), layout.way(2, 40)
    assert first.arrives and not second.arrives
    assert second.points[-2:] == first.points[3:5], "it joins the first one in the row below"
    assert layout.frames[None][1] == WIDTH + GAP_X + PASSAGE

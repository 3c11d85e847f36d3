"""Pictures of contexts: every worker a box, with its operations and leaves, and messages as edges between them."""

from xml.etree import ElementTree

import pytest
import telegrad as tg
from helpers.remote import weights
from telegrad import autograd_dist, rpc
from telegrad.autograd_dist.drawing import edges_of
from telegrad.autograd_dist.graph_parts import GraphPart, PartNode
from telegrad.base.errors import RpcError, WorkerLostError
from telegrad.core.autograd.layout import rows_of

pytestmark = pytest.mark.usefixtures("contexts_end")
SVG = "{http://www.w3.org/2000/svg}"


class Layer:
    def __init__(self):
        self.weight = weights(1, 3, 3)

    def forward(self, x):
        return tg.tanh(x @ self.weight)

    def weight_rref(self):
        return tg.RRef(self.weight)


def texts(picture):
    return [element.text for element in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def across(picture):
    """The number of edges between workers: each is a curve and its tip."""
    paths = [element.get("fill") for element in ElementTree.fromstring(picture).iter(f"{SVG}path")]
    return paths.count("#C0504D")


def test_a_graph_on_three_workers(workers, tmp_path):
    x = weights(0, 2, 3)
    with rpc.remote("b", Layer) as first, rpc.remote("c", Layer) as second, autograd_dist.context() as context:
        loss = second.rpc_sync().forward(first.rpc_sync().forward(x)).sum()
        params = {"x <in>": x, "first": first.rpc_sync().weight_rref()}
        picture = autograd_dist.draw(context, tmp_path / "graph.svg", params, [loss])
        assert autograd_dist.draw(context, params=params, roots=[loss]) == picture, "drawing is not recorded"
        autograd_dist.backward(context, [loss])
    assert (tmp_path / "graph.svg").read_text() == picture
    found = texts(picture)
    assert {"a", "b", "c", "x <in>", "first", "leaf", "Sum"} <= {*found}
    assert found.count("Tanh") == 2 and found.count("send") == found.count("receive") == across(picture) == 4
    assert found.count("to b") == found.count("from a") - 1 == 1


def test_a_context_that_stays_at_home(workers):
    with autograd_dist.context() as context:
        assert texts(autograd_dist.draw(context)) == ["a"]
        assert "Sum" in texts(autograd_dist.draw(context, roots=[weights(1, 2).sum()]))


def test_rows_go_down_along_every_edge():
    parts = {
        0: GraphPart(
            "a",
            [
                PartNode("operation", ("op", ""), [1]),
                PartNode("receive", ("receive", ""), [], 7),
                PartNode("send", ("send", ""), [], 8),
            ],
        ),
        1: GraphPart("b", [PartNode("send", ("send", ""), [1], 7), PartNode("receive", ("receive", ""), [], 8)]),
    }
    edges = edges_of(parts)
    assert len(edges) == 4
    rows = rows_of([(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)], edges)
    assert rows[0, 0] < rows[0, 1] < rows[1, 0] < rows[1, 1] < rows[0, 2]


def test_what_cannot_be_drawn(workers):
    with autograd_dist.context() as context:
        pass
    with pytest.raises(RpcError, match="there is no autograd context"):
        autograd_dist.draw(context)
    with (
        autograd_dist.context() as context,
        pytest.raises(TypeError, match=r"params\['x'\] must be a tensor or an RRef"),
    ):
        autograd_dist.draw(context, params={"x": 3})


def test_a_lost_worker_is_named(cluster, until):
    with cluster("x", "y") as agents, agents[0].use(), autograd_dist.context() as context:
        rpc.rpc_sync("y", tg.mul, (weights(1, 2), 2.0))
        agents[1].close("it leaves early")
        until(lambda: agents[0].peers.find("y").gone)
        with pytest.raises(WorkerLostError, match="'y'"):
            autograd_dist.draw(context)

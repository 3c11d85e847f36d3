"""Explanations of compiled steps that call other workers: one text and one picture of the plans of all of them."""

from xml.etree import ElementTree

import pytest
import telegrad as tg
from telegrad import autograd_dist, optim, rpc
from telegrad.autograd_dist.numbers import GradientMethod
from telegrad.capture.description import Description, DrawnPart
from telegrad.rpc.calls.caller import Caller
from telegrad.testing import in_process_cluster


@pytest.fixture
def workers():
    with in_process_cluster("a", "b") as agents, agents[0].use():
        yield agents


class Owner:
    def __init__(self):
        self.weight = tg.ones(3, requires_grad=True)
        self.calls = 0

    def forward(self, x):
        return (x * self.weight).tanh()

    def counted(self, x):
        self.calls += 1
        return x * self.weight

    def parameters(self):
        return [tg.RRef(self.weight)]


def trained(method):
    """Return a compiled step after some calls."""
    remote = rpc.remote("b", Owner)
    optimizer = autograd_dist.DistributedOptimizer(optim.SGD, remote.rpc_sync().parameters(), lr=0.1)

    @tg.compile
    def step(x):
        with autograd_dist.context() as context:
            loss = (getattr(remote.rpc_sync(), method)(x) * 2).sum()
            autograd_dist.backward(context, [loss])
            optimizer.step(context)
        return loss.detach()

    for _ in range(3):
        step(tg.ones(2, 3))
    return step


def test_the_picture_shows_the_plans_of_all_workers(workers, tmp_path, monkeypatch):
    step = trained("forward")
    asked, begin = [], Caller.begin
    monkeypatch.setattr(Caller, "begin", lambda self, *args: (asked.append(args[1]), begin(self, *args))[1])
    step.explain(tmp_path / "plan.svg")
    text = step.explain()
    assert asked == [GradientMethod.DESCRIBE]
    texts = [each.text for each in ElementTree.parse(tmp_path / "plan.svg").iter("{http://www.w3.org/2000/svg}text")]
    hop = next(place for place, each in enumerate(texts) if each.startswith("hop to 'b': "))
    assert texts[0] == "distributed step: 2 round trips; the optimizer steps at 'b' with"  # it goes on in the next line
    assert texts[2] == "calls" and texts[3].startswith("buffers: ")
    here = ["send 'b'", "multiply  (2, 3)", "add.reduce  ()", "take 'b'", "step"]
    assert texts[4:hop] == ["begin", "send 'b'", "take 'b'", *here]
    there = texts.index("calls", hop)
    assert "24 bytes of results" in " ".join(texts[hop:there])
    assert texts[there + 1].startswith("buffers: ")
    backward = ["multiply  (2, 3)", "multiply  (2, 3)", "subtract  (2, 3)", "multiply  (2, 3)", "add.reduce  (3,)"]
    assert texts[there + 2 :] == ["multiply  (2, 3)", "tanh  (2, 3)", *backward]
    lines = text.splitlines()
    place = next(place for place, each in enumerate(lines) if "hop to 'b'" in each)
    assert lines[place + 1].strip().startswith("forward, 2 operations: ")


def test_what_a_callee_cannot_record_is_told(workers, tmp_path):
    with pytest.warns(UserWarning, match="worker 'b'"):
        step = trained("counted")
    assert "worker 'b': the call changes what it reads" in step.explain()
    step.explain(tmp_path / "plan.svg")
    assert "eager: worker &#x27;b&#x27;: the call changes what it reads" in (tmp_path / "plan.svg").read_text()


def test_a_lost_callee_is_not_asked(workers):
    step = trained("forward")
    workers[1].close("lost by the test")
    assert "not known: " in step.explain()


def test_descriptions_travel_as_json():
    one = Description(["run: 3 calls"], [DrawnPart("calls", "buffers: 8 bytes", [("add", "chain")], [(0, 0, 1, True)])])
    assert Description.of_json(one.as_json()) == one
    with pytest.raises(ValueError):
        Description.of_json('[["a"], [["title"]], 3]')

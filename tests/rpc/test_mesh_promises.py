"""Promises, references and tensors with gradients as arguments of calls on meshes."""

import pytest
import telegrad as tg
from helpers.gates import GATE, hold
from helpers.mesh_workers import NAMES
from telegrad import rpc


def test_references_travel_through_the_tree(mesh_workers):
    reference = rpc.RRef(41)
    assert rpc.mesh().call(rpc.RRef.to_here, (reference,)).values() == [41] * len(NAMES)
    references = rpc.mesh().call(rpc.RRef, (rpc.scattered(range(len(NAMES))),)).values()
    assert [each.owner_name() for each in references] == NAMES
    assert [each.to_here() for each in references] == list(range(len(NAMES)))


def tripled_when_told(tensor):
    hold()
    return tensor * 3.0


def doubled(inside):
    return inside["value"] * 2.0


@pytest.mark.parametrize("kind", ["future", "reference"])
def test_every_worker_gets_a_value_that_another_makes_meanwhile(mesh_workers, closed_gate, kind):
    """Before, a future that was not done failed at the leaves of the tree: they got its value where a reference should be."""
    weight = tg.tensor([1.0], requires_grad=True)
    with tg.autograd_dist.context() as context:
        made = (rpc.rpc_async if kind == "future" else rpc.remote)("w9", tripled_when_told, (weight,))
        inside = {"value": made if kind == "future" else rpc.value(made)}
        called = rpc.mesh(NAMES[:12]).call_async(doubled, (inside,))
        GATE.set()
        assert [value.item() for value in called.values()] == [6.0] * 12
        tg.autograd_dist.backward(context, [sum(called).sum()])
        assert tg.autograd_dist.get_gradients(context)[weight].tolist() == [72.0]


def test_a_value_that_cannot_be_made_fails_on_every_worker(mesh_workers):
    for value in rpc.mesh(NAMES[:8]).call(str, (rpc.value(rpc.remote("w5", int, ("x",))),)):
        assert isinstance(value, ValueError) and "is the value of" in str(value.__notes__)


def test_gradients_are_added_up_on_the_way_back(mesh_workers):
    weight = tg.ones(3, requires_grad=True)
    with tg.autograd_dist.context() as context:
        losses = rpc.mesh().call(tg.mul, (weight, rpc.scattered([float(number) for number in range(23)]))).values()
        tg.autograd_dist.backward(context, [sum(loss.sum() for loss in losses)])
        assert tg.autograd_dist.get_gradients(context)[weight].tolist() == [253.0] * 3

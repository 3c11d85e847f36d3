"""Device maps: a table of names, maps and errors; and arrays of a device that is simulated, between agents in this process."""

import re
from pathlib import Path

import numpy as np
import pytest
import telegrad as tg
from helpers.remote import same
from telegrad import rpc
from telegrad.base.errors import ArgumentKindError, ArgumentValueError, SerializationError
from telegrad.proto.rpc_pb2 import WorkerRecord
from telegrad.rpc import device_maps
from telegrad.rpc.extend import ArrayLibrary, GrpcRpcBackendOptions, MissingDeviceError, PackedArray, register_arrays
from telegrad.rpc.wire.libraries import registry
from telegrad.rpc.wire.libraries.array_edges import ArrayEdges
from telegrad.testing import in_process_cluster

NAMES = {
    0: "cuda:0",
    3: "cuda:3",
    "cuda": "cuda:0",
    "cuda:01": "cuda:1",
    "cpu": "cpu",
    "cpu:1": "cpu:1",
    "xpu:2": "xpu:2",
}


@pytest.mark.parametrize("given", NAMES)
def test_names(given):
    assert device_maps.device_name(given) == NAMES[given]


@pytest.mark.parametrize("given", [-1, "cuda:x", "", ":1", "cuda:", None, True])
def test_what_is_no_device(given):
    with pytest.raises((ArgumentKindError, ArgumentValueError), match="a device is a name such as 'cuda:0'"):
        device_maps.device_name(given)


def record(name, maps):
    made = {}
    for to, given in maps.items():
        device_maps.add_to_map(made, to, given)
    return WorkerRecord(name=name, device_maps=device_maps.encode_maps(made))


@pytest.mark.parametrize(
    ("mine", "theirs", "requests", "replies"),
    [
        ({}, {}, {}, {}),
        ({"b": {0: 1}}, {}, {"cuda:0": "cuda:1"}, {}),
        ({}, {"a": {0: 1}}, {}, {"cuda:1": "cuda:0"}),
        ({"b": {0: 1, 1: 0}}, {"a": {0: 2}}, {"cuda:0": "cuda:1", "cuda:1": "cuda:0"}, {"cuda:2": "cuda:0"}),
        ({"c": {0: 1}}, {"c": {0: 1}}, {}, {}),
    ],
)
def test_a_reply_takes_the_map_backwards(mine, theirs, requests, replies):
    assert device_maps.between(record("a", mine), record("b", theirs)) == (requests, replies)


def test_maps_that_are_refused():
    with pytest.raises(ArgumentValueError, match=r"device_maps\['b'\] maps both 'cuda:0' and 'cuda:1' to 'cuda:0'"):
        GrpcRpcBackendOptions(device_maps={"b": {0: 0, 1: 0}})
    options = GrpcRpcBackendOptions(device_maps={"b": {0: 0}})
    with pytest.raises(ArgumentValueError, match="maps both"):
        options.set_device_map("b", {"cuda:1": "cuda:0"})
    assert options.device_maps == {"b": {"cuda:0": "cuda:0"}}  # what was refused changed nothing
    options.set_device_map("c", {"cuda": 1})
    assert options.device_maps["c"] == {"cuda:0": "cuda:1"}
    with pytest.raises(ArgumentKindError, match="by name of a worker"):
        GrpcRpcBackendOptions(device_maps={0: {0: 0}})
    with pytest.raises(ArgumentValueError, match=r"'a' has device_maps for \['z'\].*its workers are \['a', 'b'\]"):
        device_maps.check_workers({"b": {}, "z": {}}, "a", {"a", "b"})


def test_the_options_on_the_page():
    page = (Path(tg.__file__).parent / "docs" / "guests.md").read_text()
    (program,) = re.findall(r"<!-- run by tests/rpc/test_device_maps.py -->\n```python\n(.*?)```", page, re.DOTALL)
    names = {}
    exec(program, names)
    assert names["options"].device_maps["helper"] == {"cuda:0": "cuda:0", "cuda:1": "cuda:1"}


class OnDevice:
    """Array on a device that is simulated; this module is its library."""

    __slots__ = ("__weakref__", "device", "elements")

    def __init__(self, elements, device=""):
        self.elements = elements
        self.device = device


class Simulated(ArrayLibrary):
    name = __name__.partition(".")[0]

    def __init__(self):
        self.edges = ArrayEdges()

    def pack(self, value):
        if not isinstance(value, OnDevice):
            return None
        return PackedArray(value.elements.copy(), (), self.edges.find(value) is not None, value.device)

    def unpack(self, array, details, requires_grad):
        return OnDevice(array)

    def connect(self, array, details, edge):
        made = OnDevice(array)
        self.edges.set(made, edge)
        return made

    def to_device(self, value, device):
        if device not in ("cuda:0", "cuda:1"):
            raise MissingDeviceError(f"device_maps place it on {device!r}, but there are 2 devices there")
        moved, edge = OnDevice(value.elements.copy(), device), self.edges.find(value)
        if edge is not None:
            self.edges.set(moved, edge)
        return moved

    def edge(self, value):
        return self.edges.find(value)


@pytest.fixture
def simulated(monkeypatch):
    monkeypatch.setattr(registry, "_libraries", dict(registry._libraries))
    library = Simulated()
    register_arrays(library)
    return library


@pytest.fixture
def mapped(simulated):
    options = GrpcRpcBackendOptions(rpc_timeout=30, device_maps={"b": {0: 1, 1: 9}})
    with in_process_cluster("a", "b", options=options) as agents, agents[0].use():
        yield simulated


def device_of(value):
    return value.device


def test_arrays_arrive_on_the_mapped_device_and_replies_come_back(mapped):
    array = OnDevice(np.arange(3.0), "cuda:0")
    assert rpc.rpc_sync("b", device_of, (array,)) == "cuda:1"
    there_and_back = rpc.rpc_sync("b", same, ([array],))[0]
    assert there_and_back.device == "cuda:0" and there_and_back.elements.tolist() == [0, 1, 2]
    assert rpc.rpc_sync("b", device_of, (OnDevice(np.ones(1), "cuda:5"),)) == ""  # no entry: host memory
    assert rpc.rpc_sync("b", device_of, (OnDevice(np.ones(1)),)) == ""


def test_a_device_that_is_not_there(mapped):
    with pytest.raises(
        SerializationError, match="at worker 'b', and device_maps place it on 'cuda:9', but there are 2"
    ):
        rpc.rpc_sync("b", same, (OnDevice(np.ones(1), "cuda:1"),))


def test_gradients_cross_devices(mapped):
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    with tg.autograd_dist.context() as context:
        doubled = x * 2.0
        sent = OnDevice(doubled.detach().numpy(), "cuda:0")
        mapped.edges.set(sent, (doubled.grad_fn, 0))
        back = rpc.rpc_sync("b", same, (sent,))
        assert back.device == "cuda:0"
        node, slot = mapped.edges.find(back)
        loss = tg.core.extend.Tensor(back.elements)
        loss._edge, loss._requires_grad = (node, slot), True
        tg.autograd_dist.backward(context, [(loss * 3.0).sum()])
        assert tg.autograd_dist.get_gradients(context)[x].tolist() == [6.0, 6.0]

"""Bodies without a pickle of ours: what is bare, what is not, and that both open to the same."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import telegrad as tg
from telegrad import rpc
from telegrad.base.errors import SerializationError
from telegrad.rpc.calls.codec import Codec
from telegrad.rpc.device_maps import NO_DEVICES
from telegrad.rpc.wire.frames import decode, encode
from telegrad.rpc.wire.header import Flag
from telegrad.rpc.wire.messages import Incoming, Outgoing

LIMIT = 100_000
PEER = SimpleNamespace(same_main=True, versions="", devices=NO_DEVICES)


class Marked(tg.Tensor):
    pass


class Text(str):
    __slots__ = ()


def packed(body, limit=LIMIT):
    message = Outgoing(1, 1, 0.0, 0)
    Codec(limit, "a").pack(message, body, PEER, lambda body: [("the body", body)])
    return message


def there_and_back(message):
    arrived = decode(bytearray(b"".join(encode(message))), True, Incoming())
    return Codec(LIMIT, "b").open(arrived)


def marked_tensor():
    tensor = tg.ones(2)
    tensor.label = "kept"
    return tensor


BARE = {
    "a call without arguments": ("module:name", (), {}),
    "a call with tensors": ("module:name", (tg.ones(2), tg.zeros(0), tg.tensor(3.5)), {}),
    "nothing": None,
    "a tensor": tg.arange(5),
    "a tensor with a gradient": tg.ones(2, requires_grad=True),
    "a transposed tensor": tg.arange(6).reshape(2, 3).T,
}
PLAIN = {
    "a number": 3,
    "a text": "ü\ud800",
    "bytes": b"x" * 4096,
    "a call with numbers": ("module:name", (1, 2.5, None, True, "x"), {}),
    "a call with a list": ("module:name", ([1, 2],), {"x": 1}),
    "a name that is no ASCII": ("module:näme", (), {}),
    "a list": [1, 2],
    "a pair": (1, 2),
    "three numbers, as many parts as a call has": (1, 2, 3),
    "a complex number": 1 + 2j,
}
BOTH = {
    "a number behind a tensor": ("module:name", (tg.ones(2), 1), {}),
    "a number before a tensor": ("module:name", (1, tg.ones(2)), {}),
    "lists": ("module:name", ([], tg.ones(2), None, tg.zeros(3), [1, "x"], (2.5,)), {}),
    "a parameter by name": ("module:name", (tg.ones(2),), {"x": 1}),
    "a name that is no ASCII": ("module:näme", (tg.ones(2),), {}),
}
NEITHER = {
    "one tensor twice": ("module:name", (BARE["a tensor"], BARE["a tensor"], 1), {}),
    "a list of tensors": ("module:name", (tg.ones(2), [tg.ones(2)]), {}),
    "a list of lists": ("module:name", (tg.ones(2), [[1]]), {}),
    "a long list": ("module:name", (tg.ones(2), [1] * 65), {}),
    "a tensor by name": ("module:name", (), {"x": tg.ones(2)}),
    "a function by value": (len, (), {}),
    "no name": ("", (tg.ones(1), [[]]), {}),
    "a subclass": tg.ones(2).as_subclass(Marked),
    "a tensor with attributes": marked_tensor(),
    "an array": np.ones(3),
    "a text of its own class": Text("x"),
    "a long text": "x" * 5000,
}


def same(left, right):
    if isinstance(left, (tg.Tensor, np.ndarray)):
        return type(left) is type(right) and np.array_equal(np.asarray(left.tolist()), np.asarray(right.tolist()))
    if isinstance(left, (tuple, list)):
        return type(right) is type(left) and len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return type(right) is dict and same(tuple(left.items()), tuple(right.items()))
    return type(left) is type(right) and left == right


@pytest.mark.parametrize("body", BARE.values(), ids=BARE)
def test_tensors_and_calls_with_tensors_have_no_pickle(body, monkeypatch):
    monkeypatch.setattr(pickle, "loads", None)
    message = packed(body)
    assert message.flags & Flag.BARE and message.flags & Flag.PLAIN
    assert same(body, there_and_back(message))


@pytest.mark.parametrize("body", PLAIN.values(), ids=PLAIN)
def test_plain_values_are_one_pickle(body):
    message = packed(body)
    assert not message.flags & Flag.BARE and message.flags & Flag.PLAIN and len(message.pickled) == 1
    assert same(body, there_and_back(message))


@pytest.mark.parametrize("body", BOTH.values(), ids=BOTH)
def test_calls_with_tensors_and_plain_values_have_a_pickle_of_the_latter(body):
    message = packed(body)
    assert message.flags & Flag.BARE and message.flags & Flag.PLAIN and len(message.pickled) == 1
    assert same(body, there_and_back(message))


@pytest.mark.parametrize("body", NEITHER.values(), ids=NEITHER)
def test_everything_else_takes_the_usual_way(body):
    message = packed(body)
    assert not message.flags & Flag.BARE
    assert same(body, there_and_back(message))


def test_gradients_are_asked_for_there_if_they_are_here():
    assert there_and_back(packed(BARE["a tensor with a gradient"])).requires_grad
    assert not there_and_back(packed(BARE["a tensor"])).requires_grad


def test_attributes_and_classes_arrive():
    assert there_and_back(packed(marked_tensor())).label == "kept"
    assert type(there_and_back(packed(NEITHER["a subclass"]))) is Marked


@pytest.mark.parametrize("body", [tg.ones(100), "x" * 200, ("m:f", (tg.ones(60), tg.ones(60)), {})])
def test_what_is_too_large_is_refused_as_ever(body):
    with pytest.raises(SerializationError, match=r"cannot be sent: the limit is 100 bytes"):
        packed(body, limit=100)


def test_a_tensor_of_a_type_without_a_name_is_refused():
    with pytest.raises(SerializationError, match="cannot be sent"):
        encode(packed(tg.Tensor(np.array([(1, 2)], [("a", "i4"), ("b", "O")]))))


def second(left, right):
    return right


def nothing():
    return None


def test_calls_of_each_kind_give_the_same(workers):
    ones, twos = tg.ones(3), tg.ones(3) * 2
    assert rpc.rpc_sync("b", nothing) is None
    assert rpc.rpc_sync("b", second, (ones, twos)).tolist() == [2, 2, 2]
    assert rpc.rpc_sync("b", second, (1, "x")) == "x"
    assert rpc.rpc_sync("b", second, (ones,), {"right": twos}).tolist() == [2, 2, 2]
    assert rpc.rpc_sync("b", second, (ones, [twos, 1]))[1] == 1

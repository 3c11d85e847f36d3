"""Layout of arrays in messages: strides arrive, memory that arrays share is sent once and still shared, dtypes, subclasses."""

from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
import telegrad as tg
from telegrad import nn, rpc
from telegrad.rpc.calls.codec import Codec
from telegrad.rpc.device_maps import NO_DEVICES
from telegrad.rpc.wire.frames import decode, encode
from telegrad.rpc.wire.messages import Incoming, Outgoing
from telegrad.testing import in_process_cluster, replayable, seeds

CODEC = Codec(1 << 30, "b")
PEER = SimpleNamespace(same_main=True, versions="", devices=NO_DEVICES)


def travel(body):
    """Return what arrives of a body, and the size of its frame."""
    message = Outgoing(1, 1, 0.0, 1)
    CODEC.pack(message, body, PEER, lambda body: [("it", body)])
    frame = bytearray().join(map(bytes, encode(message)))
    arrived = decode(frame, True, Incoming())
    return CODEC.open(arrived), len(frame)


def arrives(body):
    return travel(body)[0]


def matrix():
    return tg.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("tensor", "stride"),
    [
        (matrix(), (3, 1)),
        (matrix().t(), (1, 3)),
        (tg.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1), (1, 12, 4)),
        (tg.arange(8.0)[::2], (2,)),
        (tg.arange(8.0)[::4], (4,)),
        (tg.arange(60.0).reshape(5, 4, 3)[:, :, 0].t(), (3, 12)),
        (tg.arange(8000.0)[::4], (1,)),  # large, and more gaps than elements: copied
        (tg.ones(50, 40, 8)[..., 0].t(), (1, 40)),
        (tg.ones(50, 40, 8)[..., :2].permute(2, 0, 1), (1, 80, 2)),
        (matrix()[:, 1:], (3, 1)),
        (tg.ones(3, 1).expand(3, 4), (1, 0)),
        (tg.ones(0, 3).t(), None),
        (tg.tensor(5.0), ()),
    ],
)
def test_strides_arrive(tensor, stride):
    got = arrives(tensor)
    assert got.shape == tensor.shape and got.tolist() == tensor.tolist() and got.dtype == tensor.dtype
    assert stride is None or got.stride() == stride
    assert arrives([tensor])[0].stride() == got.stride()


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize(
    ("array", "elements"),
    [
        (np.ones((8, 8)), 64),
        (np.ones((8, 8)).T, 64),
        (np.broadcast_to(np.float64(2.0), (8, 8)), 1),
        (np.broadcast_to(np.ones(8), (8, 8)), 8),
        (np.ones((0, 8)), 0),
    ],
)
def test_an_array_of_several_tensors_travels_once(array, elements, times):
    """As the gradient of a sum, which all that was added up has."""
    got, size = travel([tg.core.extend.Tensor(array) for _ in range(times)])
    assert all(each.tolist() == array.tolist() for each in got)
    assert all(each.numpy().strides == array.strides for each in got if elements)
    assert all(np.may_share_memory(each.numpy(), got[0].numpy()) for each in got if elements)
    assert size < 8 * elements + 250 + 60 * times


def test_arrays_of_numpy_keep_their_order():
    array = np.arange(6.0).reshape(2, 3)
    assert arrives(array.T).strides == array.T.strides
    assert arrives(array[::-1]).strides == (-24, 8) and arrives(array[::-1]).tolist() == array[::-1].tolist()
    spread = arrives(np.broadcast_to(np.ones(3), (2, 3)))
    assert spread.flags.writeable and spread.strides == (24, 8)


def test_what_is_spread_travels_once_and_is_read_only():
    tensor = tg.ones(1, 1).expand(1000, 1000)
    got, size = travel(tensor)
    assert size < 500 and got.stride() == (0, 0) and not got.numpy().flags.writeable


def test_shared_memory_travels_once_and_is_shared():
    base = tg.zeros(10_000)
    got, size = travel([base, base[10:20], {"view": base.reshape(100, 100).t()}, base.detach()])
    assert size < 45_000
    got[1][0] = 7.0
    assert got[0][10] == got[2]["view"][10, 0] == got[3][10] == 7.0
    assert got[2]["view"].stride() == (1, 100)


def test_arrays_of_other_types_over_one_memory():
    array = np.zeros(8, np.int32)
    whole, parts = arrives([array, array[2:].view(np.float32)])
    parts[0] = 1.0
    assert whole[2] == np.float32(1.0).view(np.int32)


def test_parts_that_do_not_overlap_travel_without_the_rest():
    base = tg.zeros(1_000_000)
    got, size = travel([base[:10], base[-10:]])
    assert size < 1000 and [len(part) for part in got] == [10, 10]


def test_one_object_arrives_as_one():
    x = matrix()
    first, second = arrives(["f", x, x])[1:]
    assert first is second
    _name, (first, second), _ = arrives(("module:f", (x, x), {}))
    assert first is second
    layer = nn.Linear(2, 2)
    weight, same = arrives([layer.weight, layer])
    assert weight is same.weight and isinstance(weight, nn.Parameter) and weight.requires_grad


def test_what_was_shared_once_is_shared_again():
    first = arrives(arrives([tg.arange(6.0), 1])[0].reshape(2, 3))
    base = arrives([first, first[0]])
    again = arrives(base)
    again[1][0] = 9.0
    assert again[0][0, 0] == 9.0


@pytest.mark.parametrize("seed", seeds(60))
def test_random_views_arrive_as_they_were(seed):
    random = Random(seed)
    with replayable(seed):
        bases = [np.arange(random.randint(1, 60), dtype=kind) for kind in random.sample(["i1", "f4", "f8", "c16"], 2)]
        views = [_view(random, random.choice(bases)) for _ in range(random.randint(1, 6))]
        got = arrives([tg.tensor(0), *views])[1:]
        for before, after in zip(views, got):
            assert before.dtype == after.dtype and before.tolist() == after.tolist() and after.flags.aligned
        for one, first in enumerate(views):
            for other in range(one):
                if np.shares_memory(got[one], got[other]):
                    assert np.shares_memory(first, views[other])
                elif np.array_equal(first, views[other]) and first.strides == views[other].strides and first.size:
                    assert not np.shares_memory(first, views[other])


def _view(random, base):
    array = base
    if random.random() < 0.5 and len(base) % 2 == 0:
        array = array.reshape(2, -1)
        array = array.T if random.random() < 0.5 else array
    begin = random.randint(0, len(array) - 1)
    return array[begin :: random.choice([1, 1, 2, 3])]


DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype(name):
    tensor = tg.ones(2, 3).to(getattr(tg, name)).t()
    got = arrives(tensor)
    assert (got.dtype, got.tolist(), got.stride()) == (tensor.dtype, tensor.tolist(), (1, 3))


@pytest.mark.parametrize("name", ["M8[ns]", "m8[s]", "U5", "S3", ">f4", "V3", [("a", "i4"), ("b", "f8")], object])
def test_every_dtype_of_numpy(name):
    array = np.zeros((2, 3), dtype=name).T
    got = arrives(array)
    assert got.dtype == array.dtype and got.tolist() == array.tolist()


class Tagged(tg.Tensor):
    pass


def test_subclasses_sparse_tensors_modules_and_generators():
    tagged = matrix().t().as_subclass(Tagged)
    tagged.note = "kept"
    got = arrives(tagged)
    assert type(got) is Tagged and got.note == "kept" and got.stride() == (1, 3)
    sparse = tg.sparse_coo_tensor(tg.tensor([[0, 2]]), tg.tensor([1.0, 2.0]), (3,))
    assert arrives(sparse).is_sparse and arrives(sparse).to_dense().tolist() == [1.0, 0.0, 2.0]
    tied = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    tied[1].weight = tied[0].weight
    assert len(list(arrives(tied).parameters())) == 3
    generator = tg.Generator().manual_seed(3)
    tg.rand(5, generator=generator)
    copy = arrives(generator)
    assert tg.rand(3, generator=copy).tolist() == tg.rand(3, generator=generator).tolist()
    numbers = np.random.default_rng(3)
    assert arrives(numbers).random() == numbers.random()


def test_a_place_outside_its_memory_is_refused():
    message = Outgoing(1, 1, 0.0, 1)
    CODEC.pack(message, matrix().t(), PEER, lambda body: [])
    frame = bytearray().join(map(bytes, encode(message)))
    at = frame.index(np.array([4, 12], "<i8").tobytes())
    frame[at : at + 8] = np.array([4000], "<i8").tobytes()
    with pytest.raises((ValueError, TypeError)):
        decode(frame, True, Incoming())


def test_sums_of_two_numbers_are_tensors():
    with in_process_cluster("a", "b") as (a, _), a.use():
        for function, result in ((tg.add, 3), (tg.sub, -1), (tg.mul, 2), (tg.div, 0.5), (tg.floor_divide, 0)):
            got = rpc.rpc_sync("b", function, (1, 2))
            assert isinstance(got, tg.Tensor) and got.item() == result
        assert rpc.rpc_sync("b", tg.add, (1, 2)).dtype == tg.int64
        assert rpc.rpc_sync("b", tg.add, (1, 2.5)).dtype == tg.float32
        assert rpc.rpc_sync("b", tg.add, (1, 2), {"alpha": 3}).item() == 7


def test_gradients_of_views_that_travel():
    with in_process_cluster("a", "b") as (a, _), a.use(), tg.autograd_dist.context() as context:
        x = matrix().requires_grad_()
        product = rpc.rpc_sync("b", tg.mul, (x.t(), x.t()[:, :1].expand(3, 2)))
        tg.autograd_dist.backward(context, [product.sum()])
        gradient = tg.autograd_dist.get_gradients(context)[x]
    y = matrix().requires_grad_()
    (y.t() * y.t()[:, :1].expand(3, 2)).sum().backward()
    assert gradient.tolist() == y.grad.tolist()

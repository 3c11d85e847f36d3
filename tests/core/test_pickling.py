"""Pickling, copy.copy and copy.deepcopy: of tensors, parameters, modules and generators; what shares memory still does."""

import copy
import os
import pickle
import weakref

import numpy as np
import pytest
import telegrad as tg
from telegrad import nn
from telegrad.base.errors import AutogradError

# Tests fork, whatever threads other tests have left in this process.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def pickled(obj, protocol=None):
    return pickle.loads(pickle.dumps(obj, protocol))


DUPLICATES = pytest.mark.parametrize("duplicate", [pickled, copy.deepcopy], ids=["pickle", "deepcopy"])


class Named(tg.Tensor):
    pass


class Strict(tg.Tensor):
    def __init__(self, rows, columns):
        super().__init__(np.zeros((rows, columns)))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", [tg.Tensor, Named, nn.Parameter])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
def test_what_a_pickle_keeps(protocol, kind, shape):
    tensor = kind(np.arange(np.prod(shape, dtype=int)).reshape(shape).astype("float32"))
    tensor.requires_grad_()
    tensor.tag = {"list": [1]}
    tensor.me = tensor
    made = pickled(tensor, protocol)
    assert type(made) is kind and made.requires_grad and made.is_leaf and made.shape == shape
    assert made.tolist() == tensor.tolist() and made.tag == tensor.tag and made.me is made
    made.detach().fill_(5)
    assert tensor.sum().item() != 5 * tensor.numel() or not tensor.numel()
    del tensor.me, made.me


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float64", "complex128"])
def test_dtypes(dtype):
    tensor = tg.from_numpy(np.array([0, 1, 1]).astype(dtype))
    assert pickled(tensor).dtype == tensor.dtype and pickled(tensor).tolist() == tensor.tolist()


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    tensor = tg.Tensor(np.array([1.5, -2], ml_dtypes.bfloat16))
    for made in (pickled(tensor), copy.deepcopy(tensor), tensor.clone().share_memory_(), pickled(tensor[1:])):
        assert made.dtype == ml_dtypes.bfloat16 and float(made.numpy()[-1]) == -2


@DUPLICATES
def test_what_shares_memory_still_does(duplicate):
    whole = tg.arange(12.0).reshape(3, 4)
    parts = [whole[1:, ::2], whole.t(), whole.detach(), whole[2], whole.reshape(-1)[3:3]]
    made = duplicate([*parts, whole])
    assert [part.tolist() for part in made] == [part.tolist() for part in [*parts, whole]]
    assert [part.stride() for part in made[:3]] == [part.stride() for part in parts[:3]]
    made[-1].fill_(7)
    assert all((part == 7).all() for part in made) and whole[0, 1].item() == 1


@DUPLICATES
def test_one_tensor_twice_is_one(duplicate):
    tensor = tg.ones(2)
    first, second, third = duplicate((tensor, tensor, tg.ones(2)))
    assert first is second and third is not first


@DUPLICATES
@pytest.mark.parametrize(
    "array",
    [
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.asfortranarray(np.arange(6.0).reshape(2, 3))[:, 1:],
        np.broadcast_to(np.float32(2), (3, 2)),
        np.arange(6)[::-1],
        np.frombuffer(b"\x01\x02\x03\x04", np.uint8)[1:],
        np.arange(24.0).reshape(2, 3, 4).transpose(1, 0, 2),
        np.arange(8, dtype="float32").view("int32")[2:],
    ],
    ids=range(7),
)
def test_arrays_of_every_layout(duplicate, array):
    made = duplicate(tg.Tensor(array))
    np.testing.assert_array_equal(made.numpy(), array)
    assert made.dtype == array.dtype and made.numpy().flags.writeable
    assert not np.shares_memory(made.numpy(), array)


def test_a_whole_memory_is_pickled_once():
    whole = tg.zeros(10_000)
    assert len(pickle.dumps([whole, whole[1:], whole[:5000]])) < 41_000


@DUPLICATES
def test_classes_with_another_constructor(duplicate):
    made = duplicate(Strict(2, 3))
    assert type(made) is Strict and made.shape == (2, 3)


def test_copy_shares_memory():
    tensor = nn.Parameter(tg.ones(2))
    tensor.note = ["x"]
    made = copy.copy(tensor)
    assert type(made) is nn.Parameter and made is not tensor and made.requires_grad and made.note is tensor.note
    with tg.no_grad():
        made.add_(1)
    assert tensor.tolist() == [2, 2] and tensor._version == made._version


def test_deep_copies():
    tensor = tg.ones(2, requires_grad=True)
    tensor.grad = tg.ones(2)
    made = copy.deepcopy(tensor)
    assert made.grad.tolist() == [1, 1] and made.grad is not tensor.grad and made.requires_grad
    assert pickled(tensor).grad is None, "as in PyTorch"
    with pytest.raises(AutogradError, match=r"only leaves can be deep-copied"):
        copy.deepcopy([tensor * 2])
    assert pickled(tensor * 2).tolist() == [2, 2]


def test_nothing_keeps_what_was_copied():
    tensor = tg.ones(2)
    reference = weakref.ref(tensor)
    copies = copy.copy(tensor), copy.deepcopy(tensor), pickled(tensor)
    del tensor
    assert reference() is None and len(copies) == 3


@DUPLICATES
def test_modules(duplicate):
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    net.register_buffer("part", net[0].bias.detach()[:1])
    made = duplicate(net)
    assert made[0].weight is made[1].weight and made[0].weight is not net[0].weight
    assert [name for name, _ in made.named_parameters()] == [name for name, _ in net.named_parameters()]
    with tg.no_grad():
        made[0].bias.fill_(3)
    assert made.part.tolist() == [3] and made(tg.ones(1, 2)).requires_grad and type(made[0].bias) is nn.Parameter


# -- generators


def draws(generator):
    return [*tg.rand(3, generator=generator).tolist(), *tg.randint(100, (3,), generator=generator).tolist()]


def advanced(seed=-3):
    generator = tg.Generator().manual_seed(seed)
    tg.rand(3, generator=generator)
    generator.draw("integers", 10, dtype=np.int32)  # leaves half a number
    return generator


@pytest.mark.parametrize("duplicate", [pickled, copy.deepcopy, copy.copy, tg.Generator.clone_state])
def test_copied_generators_go_on_alike(duplicate):
    generator = advanced()
    made = duplicate(generator)
    assert made is not generator and made.initial_seed() == -3 and draws(made) == draws(generator)
    draws(made)
    assert draws(made) != draws(generator)


def test_states():
    generator = advanced()
    state = generator.get_state()
    assert state.dtype == tg.uint8 and state.tolist() == generator.get_state().tolist()
    first = draws(generator)
    assert generator.get_state().tolist() != state.tolist()
    other = tg.Generator()
    assert other.set_state(state.clone()) is other and draws(other) == first and other.device == "cpu"
    for wrong in (None, {"seed": 1}, tg.zeros(3), state[1:]):
        with pytest.raises(TypeError, match=r"set_state\(\) takes"):
            generator.set_state(wrong)


def test_the_default_generator():
    tg.manual_seed(4)
    state = tg.get_rng_state()
    first = tg.rand(2).tolist()
    tg.set_rng_state(state)
    assert tg.rand(2).tolist() == first and tg.initial_seed() == 4
    with tg.fork_rng():
        inside = tg.rand(2).tolist()
    assert tg.rand(2).tolist() == inside
    with tg.fork_rng(enabled=False):
        inside = tg.rand(2).tolist()
    assert tg.rand(2).tolist() != inside
    assert tg.seed() == tg.initial_seed() != 4


def test_a_forked_child_draws_what_its_parent_draws():
    read, write = os.pipe()
    with tg.default_generator._lock:  # as if another thread drew just now
        child = os.fork()
        if not child:
            os.write(write, repr(tg.rand(3).tolist()).encode())
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 1000).decode() == repr(tg.rand(3).tolist())
    os.close(read)
    os.close(write)

"""Arrays of other libraries arrive as what they were, at any depth, without a copy more than ours."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import telegrad as tg
from helpers.remote import pair, same
from telegrad import rpc
from telegrad.base.errors import SerializationError
from telegrad.interop import convert
from telegrad.rpc.calls.codec import Codec
from telegrad.rpc.extend import ArrayLibrary, MissingDeviceError, PackedArray, register_arrays
from telegrad.rpc.wire.frames import decode, encode
from telegrad.rpc.wire.libraries import forks, registry
from telegrad.rpc.wire.messages import Incoming, Outgoing
from telegrad.rpc.wire.payload import pack_pickled
from telegrad.tools.array_values import copies, lanes
from telegrad.tools.array_values.compare import Comparison

pytest.importorskip("torch.nn", reason="PyTorch is not in this environment; `make guests` makes one")
import torch


def first(one, *others):
    return one


FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128)
WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.int64)
NARROW = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
LAYOUTS = {
    "0-d": lambda t: t[0, 0],
    "matrix": lambda t: t,
    "transposed": lambda t: t.t(),
    "strided": lambda t: t[:, ::2],
    "expanded": lambda t: t[:1].expand(5, t.shape[1]),
    "empty": lambda t: t[:0],
    "one row": lambda t: t[2],
    "channels last": lambda t: t.reshape(1, 2, 3, 4).contiguous(memory_format=torch.channels_last),
    "large": lambda t: t.repeat(60, 50),
}


def send(value):
    return rpc.rpc_sync("b", same, (value,))


def bits(tensor):
    return tensor.detach().contiguous().view(-1).view(torch.uint8) if tensor.numel() else tensor.view(-1)


def equal(got, wanted):
    assert type(got) is type(wanted)
    assert (got.dtype, got.shape, got.requires_grad) == (wanted.dtype, wanted.shape, wanted.requires_grad)
    assert torch.equal(bits(got), bits(wanted)) or not wanted.numel()


def numbers(dtype, seed=0):
    values = torch.from_numpy(np.random.default_rng(seed).integers(0, 100, (6, 4)))
    return values.to(dtype)


# -- PyTorch


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_type_in_every_layout(workers, layout):
    for dtype in FLOATS + WHOLE + NARROW:
        tensor = LAYOUTS[layout](numbers(dtype))
        equal(send(tensor), tensor)


def test_a_tensor_that_arrived_is_the_receivers_own(workers):
    tensor = torch.ones(3)
    got = send(tensor)
    got += 1
    assert got.tolist() == [2, 2, 2] and tensor.tolist() == [1, 1, 1]


def test_a_dimension_order_is_kept(workers):
    image = LAYOUTS["channels last"](numbers(torch.float32))
    assert send(image).is_contiguous(memory_format=torch.channels_last)


def test_conjugates_and_negatives_arrive_as_numbers(workers):
    number = torch.tensor([1 + 2j])
    assert send(number.conj()).tolist() == [1 - 2j] and send(number.conj().imag).tolist() == [-2]


def test_flags_and_classes(workers):
    leaf = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        equal(send(leaf), leaf)
    parameter = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    equal(send(parameter), parameter)


class Marked(torch.Tensor):
    pass


def test_attributes_and_subclasses(workers):
    tensor = torch.ones(2).as_subclass(Marked)
    tensor.note = ["a note"]
    got = send({"deep": (tensor, tensor)})["deep"]
    assert got[0] is got[1] and type(got[0]) is Marked and got[0].note == ["a note"]


def test_a_module_and_its_state(workers):
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2), torch.nn.LazyLinear(4))
    got = send(model)
    assert repr(got) == repr(model) and all(type(each) is torch.nn.Parameter for each in got[:2].parameters())
    for name, value in send(model[:2].state_dict()).items():
        equal(value, model[:2].state_dict()[name])


def test_what_is_no_tensor_travels_by_pickle(workers):
    value = (torch.Size([2]), torch.float32, torch.device("cpu"), torch.relu, torch.nn.ReLU)
    assert send(value) == value


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("first", [0, 20, 40])
def test_random_nested_objects_of_all_libraries(first):
    assert lanes.check("inproc", range(first, first + 20)) == {}


def test_views_of_one_memory_arrive_as_such(workers):
    base = torch.zeros(4, 6)
    got = send({"all": [base, base[1], base.t(), base[:, ::2], base.detach(), base.numpy()]})["all"]
    got[0][1, 4] = 7
    assert [got[1][4], got[2][4, 1], got[3][1, 2], got[4][1, 4], got[5][1, 4]] == [7] * 5
    assert got[3].stride() == (6, 2)


def test_what_another_library_cannot_see_changed_has_memory_of_its_own(workers):
    leaf = torch.zeros(3, requires_grad=True)
    got = send([leaf, leaf.detach()])
    got[1][0] = 7  # PyTorch could not tell a backward that its first tensor has changed, too
    assert got[0].tolist() == [0, 0, 0]


def test_nothing_is_copied_more_often_than_ours():
    assert copies.check() == []


def test_no_copy_is_made_on_either_side():
    tensor = torch.arange(1_000_000)
    message = Outgoing(1, 1, 0.0, 1)
    pack_pickled(message, [tensor], (), True, lambda body: [("it", body)], 1 << 30)
    assert message.attached.tensors[0]._array.ctypes.data == tensor.data_ptr()
    parts = encode(message)
    assert np.frombuffer(parts[-1], np.uint8).ctypes.data == tensor.data_ptr()
    frame = bytearray(b"".join(parts))
    (got,) = Codec(1 << 30, "w").open(decode(frame, True, Incoming()))
    start = np.frombuffer(frame, np.uint8).ctypes.data
    assert start < got.data_ptr() <= start + len(frame) - tensor.nbytes and torch.equal(got, tensor)


def sparse():
    whole = torch.tensor([[1.0, 0, 2, 0], [0, 3, 0, 0]])
    twice = torch.sparse_coo_tensor(torch.tensor([[0, 0]]), torch.ones(2, 3), (2, 3), check_invariants=True)
    kinds = whole.to_sparse_csr(), whole.to_sparse_csc(), whole.to_sparse_bsr((1, 2)), whole.to_sparse_bsc((1, 2))
    return {
        **dict(zip(SPARSE, (whole.to_sparse(), *kinds))),
        "narrow": whole.to_sparse().bfloat16(),
        "no place": torch.sparse_coo_tensor((2, 0, 3), dtype=torch.int8, check_invariants=True),
        "0-d": torch.ones(()).to_sparse(),
        "places there twice": twice,
        "leaf": whole.to_sparse().requires_grad_(),
        "compressed leaf": whole.to_sparse_csr().requires_grad_(),
        "parameter": torch.nn.Parameter(whole.to_sparse()),
        "frozen": torch.nn.Parameter(whole.to_sparse(), requires_grad=False),
    }


SPARSE = [
    "coo", "csr", "csc", "bsr", "bsc", "narrow", "no place", "0-d", "places there twice", "leaf", "compressed leaf",
    "parameter", "frozen",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("name", SPARSE)
def test_sparse_tensors(workers, name):
    tensor = sparse()[name]
    tensor.note = "kept"
    with torch.no_grad() if name == "leaf" else torch.enable_grad():
        got = send(tensor)
        again, deep = send([tensor, {"deep": tensor}])
    kept = rpc.remote("b", same, (tensor,)).to_here()
    assert again is deep["deep"] and got.note == "kept" and type(got) is type(tensor)
    for each in (got, again, kept):
        equal(each.to_dense().detach(), tensor.to_dense().detach())
        assert each.layout is tensor.layout and each.is_leaf and each.requires_grad == tensor.requires_grad
        if tensor.layout is torch.sparse_coo:
            assert each.is_coalesced() == tensor.is_coalesced() and each._nnz() == tensor._nnz()


def refused():
    return {
        "of oneDNN": (lambda: torch.ones(3).to_mkldnn(), r"laid out for one library .torch\._mkldnn"),
        "sparse meta": (lambda: torch.sparse_coo_tensor((2, 3), device="meta", check_invariants=True), "a meta tensor"),
        "meta": (lambda: torch.ones(3, device="meta"), "a meta tensor"),
        "nested": (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "a nested tensor"),
        "wrapper": (Wrapper, "Wrapper is no tensor with memory"),
    }


class Wrapper(torch.Tensor):
    """Tensor without elements, as PyTorch's fake and distributed tensors are."""

    @staticmethod
    def __new__(cls):
        return torch.Tensor._make_wrapper_subclass(cls, (3,))

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return NotImplemented

    def __repr__(self):
        return "wrapper"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", refused())
def test_what_has_no_memory_of_its_own_is_refused_by_name(workers, kind):
    make, text = refused()[kind]
    with pytest.raises(SerializationError, match=f"argument 0.value .*{text}"):
        send(Holder(make()))


class Holder:
    def __init__(self, value):
        self.value = value


@pytest.mark.filterwarnings("ignore")
def test_a_quantized_tensor_is_refused(workers):
    with pytest.raises(SerializationError, match="a quantized tensor"):
        send(torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8))


def test_a_tensor_inside_a_transform_is_refused(workers):
    with pytest.raises(SerializationError, match=r"inside a transform of torch\.func"):
        torch.func.vmap(send)(torch.ones(3, 2))


def test_a_type_that_the_receiver_does_not_have(workers, monkeypatch):
    tensor = torch.ones(2, dtype=torch.bfloat16)
    library = registry.library_of(tensor)
    array, (kind, _), *_ = library.pack(tensor)
    monkeypatch.setattr(library, "pack", lambda value: PackedArray(array, (kind, "float5_new")))
    with pytest.raises(TypeError, match=r"torch\.float5_new arrived, and PyTorch .* here does not have that type"):
        send(tensor)


def test_a_receiver_without_the_library(workers, monkeypatch):
    library = registry.library_of(torch.ones(1))
    monkeypatch.setattr(registry, "_libraries", {})
    monkeypatch.setitem(registry._ADAPTERS, "torch", ("torch", "torch_is_not_here"))
    monkeypatch.setattr("telegrad.rpc.wire.payload.library_of", lambda value: library)
    with pytest.raises(SerializationError, match=r"worker 'b', and it cannot import torch .*; install torch there"):
        send(torch.ones(1))


@pytest.mark.parametrize("wrap", [lambda tensor: tensor, lambda tensor: {"in": tensor}], ids=["bare", "pickled"])
def test_a_message_can_name_no_other_module(wrap, workers, monkeypatch):
    library = type("Renamed", (type(registry.library_of(torch.ones(1))),), {"name": "antigravity"})()
    monkeypatch.setattr("telegrad.rpc.wire.payload.library_of", lambda value: library)
    monkeypatch.setitem(registry.usual_libraries, torch.Tensor, library)
    with pytest.raises(SerializationError, match="worker 'b', and it has no adapter for arrays of 'antigravity'"):
        send(wrap(torch.ones(1)))
    assert "antigravity" not in sys.modules


def test_calls_with_usual_tensors_have_no_pickle(workers, monkeypatch):
    monkeypatch.setattr("telegrad.rpc.calls.codec.pack_pickled", None)  # to call it would raise an error
    x = torch.arange(4.0, requires_grad=True)
    equal(send(x), x)
    equal(rpc.rpc_sync("b", same, (), {"value": 3.0}) * x, 3 * x)
    equal(rpc.rpc_sync("b", first, (x, 2.5, x * 2)), x)


def test_what_needs_a_pickle_beside_usual_tensors(workers):
    x = torch.ones(2)
    marked = torch.ones(2)
    marked.label = "a"
    for values in ((x, x), (x, marked), (x, tg.ones(2)), (x, x.bfloat16()), (x, torch.nn.Parameter(x))):
        one, other = rpc.rpc_sync("b", pair, values)
        assert (type(one), type(other)) == (type(values[0]), type(values[1])) and other.dtype == values[1].dtype
        assert (one is other) == (values[0] is values[1])
        assert getattr(other, "label", "") == getattr(values[1], "label", "")


WITHOUT_GUESTS = """
import math, sys
import telegrad as tg
from telegrad import autograd_dist, rpc
from telegrad.testing import in_process_cluster

with in_process_cluster("a", "b") as (a, _), a.use(), autograd_dist.context() as context:
    leaf = tg.ones(2, requires_grad=True)
    optimizer = tg.DistributedOptimizer(tg.optim.SGD, [tg.RRef(leaf)], lr=0.1)
    autograd_dist.backward(context, [rpc.rpc_sync("b", tg.sum, (leaf * rpc.rpc_sync("b", math.sqrt, (4,)),))])
    optimizer.step(context)
"""


@pytest.mark.parametrize(
    "program", ["import sys, telegrad.nn, telegrad.agents\n", WITHOUT_GUESTS], ids=["import", "worker"]
)
def test_without_arrays_of_a_library_it_is_not_imported(program):
    names = "sorted({'torch', 'jax', 'cupy'} & {name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}print({names})"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


# -- JAX, and libraries without an adapter


def test_arrays_of_jax(workers):
    jax = pytest.importorskip("jax")
    for dtype in ("float32", "bfloat16", "float8_e4m3fn", "int32", "int4", "uint8", "bool", "complex64"):
        for shape in ((2, 3), (), (0, 2)):
            wanted = jax.device_put(np.ones(shape, jax.numpy.dtype(dtype)))
            got = send({"deep": [wanted]})["deep"][0]
            assert type(got) is type(wanted) and got.dtype == wanted.dtype and got.shape == wanted.shape
            assert np.array_equal(np.asarray(got), np.asarray(wanted))
    key = jax.random.key(5)
    assert jax.numpy.array_equal(jax.random.bits(send(key)), jax.random.bits(key))


def test_a_weak_type_of_jax_gives_way_to_another(workers):
    jnp = pytest.importorskip("jax.numpy")
    weak, narrow = jnp.asarray(3.0), jnp.ones(2, "bfloat16")
    for got in (send(weak), send({"deep": weak})["deep"]):
        assert got.weak_type and got == 3 and (got * narrow).dtype == (weak * narrow).dtype == "bfloat16"
    assert not send(jnp.ones(2)).weak_type


def test_arrays_of_jax_that_are_refused(workers):
    jax = pytest.importorskip("jax")
    with pytest.raises(SerializationError, match="a tracer of JAX"):
        jax.jit(send)(jax.numpy.ones(3))
    gone = jax.numpy.ones(3)
    gone.delete()
    with pytest.raises(SerializationError, match="donated or deleted"):
        send([gone])
    with jax.enable_x64(True):
        wide = jax.numpy.ones(3, "float64")
    with pytest.raises(TypeError, match="types of 32 bits only"):
        send(wide)


def test_a_process_that_was_forked_from_one_that_used_the_library(workers, monkeypatch):
    monkeypatch.setattr(forks, "_lost", frozenset(("JAX", "CUDA with PyTorch")))
    with pytest.raises(
        MissingDeviceError, match=r"process \d+ there was forked from one that had used CUDA with PyTorch"
    ):
        registry.library_of(torch.ones(1)).to_device(torch.ones(2), "cuda:0")
    jax = pytest.importorskip("jax")
    with pytest.raises(SerializationError, match=r"at worker 'b', and process \d+ there was forked from .* used JAX"):
        send([jax.numpy.ones(2)])


def test_arrays_of_the_standard_and_views_of_buffers(workers):
    strict = pytest.importorskip("array_api_strict")
    wanted = strict.asarray([[1.0, 2.0]])
    got = send([wanted])[0]
    assert type(got) is type(wanted) and np.array_equal(np.from_dlpack(got), np.from_dlpack(wanted))
    view = send(memoryview(np.arange(6.0).reshape(2, 3)))
    assert (view.shape, view.format, view.tolist()) == ((2, 3), "d", [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    assert send(memoryview(b"abcdef")[::2]).tobytes() == b"ace" and send(memoryview(b"")).tobytes() == b""


def test_a_jax_array_does_not_change_with_an_array_that_shared_its_memory(workers):
    jax = pytest.importorskip("jax")
    array = jax.numpy.zeros(100_000)
    got, view = send([array, np.asarray(array)])
    view[:] = 1
    assert not got.any()


# -- the comparison of the tool


def both(make):
    return Comparison().run(make(1), make(2))


def test_the_comparison_finds_differences():
    shared = torch.zeros(2)
    assert both(lambda number: [torch.zeros(2), {"a": (1, "b")}]) == []
    assert "it[0] is (" in both(lambda number: [torch.zeros(number)])[0]
    assert "it.a" in both(lambda number: [SimpleNamespace(a=number)])[0].replace("[0]", "")
    assert "is one no more" in Comparison().run([shared, shared], [torch.zeros(2), torch.zeros(2)])[0]
    assert "and was not" in Comparison().run([torch.zeros(2), torch.zeros(2)], [shared, shared])[0]
    assert "share memory no more" in Comparison().run([shared, shared[:1]], [torch.zeros(2), torch.zeros(1)])[0]
    fixed = np.zeros(2)
    fixed.flags.writeable = False
    assert Comparison().run([np.zeros(2)], [fixed]) == ["it[0] cannot be written to"]


# -- adapters of users


class Grid:
    """An array of a library that has an adapter of a user: this module is the library."""

    def __init__(self, cells):
        self.cells = cells


class Grids(ArrayLibrary):
    name = __name__.partition(".")[0]

    def pack(self, value):
        return PackedArray(value.cells, ("grid",)) if isinstance(value, Grid) else None

    def unpack(self, array, details, requires_grad):
        assert details == ("grid",)
        return Grid(array)


def test_an_adapter_of_a_user(workers, monkeypatch):
    monkeypatch.setattr(registry, "_libraries", dict(registry._libraries))
    register_arrays(Grids())
    assert np.array_equal(send([Grid(np.eye(3))])[0].cells, np.eye(3))
    with pytest.raises(ValueError, match="already"):
        register_arrays(Grids())


def test_adapters_that_cannot_be_registered():
    with pytest.raises(TypeError, match="must be an ArrayLibrary; you gave type"):
        register_arrays(Grids)
    with pytest.raises(ValueError, match="root of module names"):
        register_arrays(ArrayLibrary())


def test_a_conversion_to_a_library_that_is_not_here(monkeypatch):
    monkeypatch.setattr(registry, "_libraries", {})
    monkeypatch.setitem(registry._ADAPTERS, "jax", ("jax", "jax_is_not_here"))
    with pytest.raises(ImportError, match=r"it cannot import jax .*; install jax there"):
        convert(np.ones(2), "jax")

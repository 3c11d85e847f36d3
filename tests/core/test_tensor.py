"""The tensor itself: creation, attributes, conversion, copying, printing, and its questions to NumPy."""

from __future__ import annotations

import copy
import pickle
import weakref

import numpy as np
import pytest
import telegrad.core as tg
from telegrad.base.errors import AutogradError
from telegrad.core.ops.table.registry import METHODS
from telegrad.core.ops.table.rows import ARRAYS, TENSORS
from telegrad.core.signatures import write
from telegrad.core.tensors import Tensor


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1, tg.int64), (1.5, tg.float32), (True, tg.bool_), ([1, 2.5], tg.float32), ([[1], [2]], tg.int64),
        ([], tg.float32), (np.ones(2), tg.float64), (np.float64(2), tg.float64), (tg.ones(2), tg.float32),
        ([tg.ones(2), tg.ones(2)], tg.float32),
    ],
)  # fmt: skip
def test_tensor_infers_the_dtype(data, dtype):
    assert tg.tensor(data).dtype == dtype
    assert tg.tensor(data, dtype=tg.float64).dtype == tg.float64


def test_tensor_copies_and_from_numpy_shares():
    array = np.ones(3, np.float32)
    copied, shared, also = tg.tensor(array), tg.from_numpy(array), tg.as_tensor(array)
    array[0] = 5
    assert copied[0].item() == 1 and shared[0].item() == 5 and also[0].item() == 5
    assert shared.numpy() is array and tg.as_tensor(shared) is shared and tg.as_tensor([1]).dtype == tg.int64


def test_creation():
    assert tg.zeros(2, 3).shape == tg.zeros((2, 3)).shape == tg.ones([2, 3]).shape == tg.empty(2, 3).shape == (2, 3)
    assert tg.zeros(()).shape == tg.zeros(()).sum().shape == () and tg.empty(0, 3).numel() == 0
    assert tg.full((2,), 7).dtype == tg.int64 and tg.full((2,), 7.0).dtype == tg.float32
    assert tg.arange(3).tolist() == [0, 1, 2] and tg.arange(1, 2, 0.25).tolist() == [1, 1.25, 1.5, 1.75]
    assert tg.arange(5, 0, -2).tolist() == [5, 3, 1] and tg.arange(0).shape == (0,)
    assert tg.linspace(0, 1, 5).tolist() == [0, 0.25, 0.5, 0.75, 1] and tg.eye(2, 3).sum().item() == 2
    like = tg.ones(2, dtype=tg.float64)
    for made in (
        tg.zeros_like(like),
        tg.ones_like(like),
        tg.empty_like(like),
        tg.full_like(like, 3),
        tg.rand_like(like),
    ):
        assert (made.shape, made.dtype) == ((2,), tg.float64)
    assert tg.ones(2, requires_grad=True).requires_grad


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tg.zeros(-1), ValueError, "negative lengths"),
        (lambda: tg.zeros(1.5), TypeError, "consists of integers"),
        (lambda: tg.arange(0, 1, -1), ValueError, "steps of -1"),
        (lambda: tg.tensor("text"), TypeError, "numbers and booleans"),
        (lambda: tg.from_numpy([1]), TypeError, "takes a NumPy array"),
        (lambda: tg.ones(2, dtype=tg.int64, requires_grad=True), AutogradError, "only floating-point"),
        (lambda: tg.randint(3, 3, (2,)), ValueError, "low < high"),
        (lambda: tg.ones(2).item(), ValueError, "one element"),
        (lambda: bool(tg.ones(2)), ValueError, "ambiguous"),
        (lambda: len(tg.tensor(1)), TypeError, "no length"),
        (lambda: tg.ones(2, requires_grad=True).numpy(), AutogradError, "detach"),
        (lambda: tg.ones(2, 3) @ tg.ones(2, 3), ValueError, r"matmul\(\) cannot multiply shapes \(2, 3\) and \(2, 3\)"),
        (lambda: tg.ones(2, 2) @ tg.ones(2, 2, dtype=tg.float64), TypeError, "one dtype"),
        (lambda: tg.ones(2) + "a", TypeError, "takes tensors and numbers, not str"),
        (lambda: tg.pow(1, 2), TypeError, "two numbers"),
        (lambda: tg.exp([1.0]), TypeError, "takes a tensor, not list"),
        (lambda: tg.ones(2, 3).sum(2), IndexError, "dim 2 is out of range"),
        (lambda: tg.ones(2, 3).sum((0, -2)), ValueError, "twice"),
        (lambda: tg.ones(2, 0).max(), ValueError, "needs elements"),
        (lambda: tg.ones(2, 3).reshape(4, 2), ValueError, r"\(2, 3\) cannot be reshaped to \(4, 2\)"),
        (lambda: tg.ones(2, 3).expand(2, 4), ValueError, "cannot be expanded"),
        (lambda: tg.ones(2, 3).permute(0, 0), ValueError, "each of the 2 dimensions once"),
        (lambda: tg.cat([]), ValueError, "at least one"),
        (lambda: tg.cat([tg.ones(2, 3), tg.ones(3, 2)]), ValueError, "cannot join shapes"),
        (lambda: tg.stack([tg.ones(2), tg.ones(3)]), ValueError, "one shape"),
        (lambda: tg.ones(4).split([1, 2]), ValueError, "do not add up to 4"),
        (lambda: tg.ones(3)[tg.ones(1)], IndexError, "integers or booleans"),
        (lambda: tg.ones(3)[5], IndexError, "5"),
        (lambda: tg.embedding(tg.ones(3, 2), tg.tensor([3])), IndexError, "outside 0..2"),
        (lambda: tg.cross_entropy(tg.ones(2, 3), tg.tensor([0, 3])), IndexError, "target 3 is not a class"),
        (lambda: tg.cross_entropy(tg.ones(2, 3), tg.tensor([0, 1, 2])), ValueError, "does not fit targets"),
        (lambda: tg.mse_loss(tg.ones(2), tg.ones(3)), ValueError, "one shape"),
        (lambda: tg.mse_loss(tg.ones(2), tg.ones(2), "avg"), ValueError, '"mean", "sum" or "none"'),
        (lambda: tg.dropout(tg.ones(2), 1.5), ValueError, "between 0 and 1"),
        (lambda: tg.linear(tg.ones(2), tg.ones(3, 4)), ValueError, r"\(3, 4\) \(out, in\)"),
        (lambda: tg.ones(2).to("cuda"), ValueError, "no device"),
        (lambda: -tg.tensor(True), TypeError, "use ~"),
    ],
)  # fmt: skip
def test_misuse_says_what_was_wrong(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (2, 3), (2, 1, 4)], ids=str)
def test_attributes_agree_with_numpy(shape):
    array = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    t = tg.from_numpy(array)
    assert (t.shape, t.size(), t.ndim, t.dim(), t.numel()) == (shape, shape, len(shape), len(shape), array.size)
    assert (t.dtype, t.itemsize, t.element_size(), t.nbytes) == (array.dtype, 4, 4, array.nbytes)
    assert t.is_contiguous() and t.is_floating_point() and t.device == "cpu" and t.data_ptr() == array.ctypes.data
    assert t.tolist() == array.tolist() and np.array_equal(np.asarray(t), array)
    assert t.T.stride() == tuple(step // 4 for step in array.T.strides)


def test_conversions():
    one = tg.tensor([3])
    assert (int(one), float(one), bool(one), [10, 11, 12, 13][one], f"{tg.tensor(2.5):.2f}") == (
        3,
        3.0,
        True,
        13,
        "2.50",
    )
    assert [row.tolist() for row in tg.eye(2)] == [[1, 0], [0, 1]] and 3 in one and 4 not in one
    assert isinstance(tg.ones(2).sum().numpy(), np.ndarray)
    t = tg.ones(2)
    assert [m.dtype for m in (t.double(), t.half(), t.long(), t.int(), t.short(), t.char(), t.byte(), t.bool())] == [
        tg.float64, tg.float16, tg.int64, tg.int32, tg.int16, tg.int8, tg.uint8, tg.bool_
    ]  # fmt: skip
    assert t.to(tg.float32) is t is t.float() is t.to("cpu") and t.to(tg.ones(1, dtype=tg.float64)).dtype == tg.float64
    with pytest.raises(TypeError, match="integer tensor"):
        [1, 2][tg.tensor(1.0)]


def test_dlpack_goes_both_ways_without_a_copy():
    t = tg.arange(3.0)
    array = np.from_dlpack(t)
    back = tg.from_dlpack(t.numpy())
    t[0] = 9
    assert array[0] == 9 and back[0].item() == 9
    with pytest.raises(AutogradError):
        np.from_dlpack(t.requires_grad_())


def test_storage_offset_of_views():
    a = tg.zeros(4, 5)
    assert [v.storage_offset() for v in (a, a[1], a[1:, 2], a.T[3], a[2][1:].view(2, 2))] == [0, 5, 7, 3, 11]


def test_numpy_leaves_the_operator_to_the_tensor():
    array, t = np.ones(2, np.float32), tg.ones(2, requires_grad=True)
    for result in (array * t, t * array, array + t, np.float64(2) * t, array @ t.detach().numpy() * t):
        assert isinstance(result, Tensor) and result.requires_grad and result.dtype == tg.float32


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (tg.ones(2), tg.ones(2, dtype=tg.int64), tg.float32),
        (tg.ones(2), tg.tensor(1.0, dtype=tg.float64), tg.float32),
        (tg.ones(2), tg.ones(1, dtype=tg.float64), tg.float64),
        (tg.ones(2, dtype=tg.float16), tg.tensor(5), tg.float16),
        (tg.ones(2, dtype=tg.int64), 1.5, tg.float32),
        (tg.ones(2, dtype=tg.int64), tg.tensor(1.0, dtype=tg.float64), tg.float64),
        (tg.ones(2, dtype=tg.int32), 3, tg.int32),
        (tg.ones(2, dtype=tg.uint8), tg.ones(2, dtype=tg.int8), tg.int16),
        (tg.tensor(True), 2, tg.int64),
        (tg.tensor(True), tg.ones(2), tg.float32),
        (tg.ones(2, dtype=tg.float16), 2.5, tg.float16),
        (tg.ones(2), np.float64(2.5), tg.float32),
    ],
)
def test_promotion(a, b, expected):
    assert (a * b).dtype == expected and (b * a).dtype == expected and tg.result_type(a, b) == expected


def test_integers_divide_in_floating_point_and_average_when_told_to():
    a = tg.tensor([1, 2])
    assert (a / 2).dtype == a.mean(dtype=tg.float32).dtype == tg.exp(a).dtype == (1 / a).dtype == tg.float32
    assert a.sum().dtype == tg.tensor([True, True]).sum().dtype == tg.int64
    assert (a // 2).tolist() == [0, 1] and (a % 2).tolist() == [1, 0]
    tg.set_default_dtype(tg.float64)
    try:
        assert (a / 2).dtype == tg.tensor(1.5).dtype == tg.zeros(1).dtype == tg.float64
    finally:
        tg.set_default_dtype(tg.float32)
    with pytest.raises(TypeError, match="floating-point type"):
        tg.set_default_dtype(tg.int64)


def test_equality_is_elementwise_and_hashing_by_identity():
    a, b = tg.ones(2), tg.ones(2)
    assert (a == b).tolist() == [True, True] and len({a, b}) == 2 and {a: 1}[a] == 1
    assert (a != 1).tolist() == [False, False] and (a < 2).all() and not (a >= 2).any()


def test_attributes_and_weak_references():
    a = tg.ones(2)
    a.name = "weights"
    reference = weakref.ref(a)
    assert reference() is a and a.name == "weights"
    del a
    assert reference() is None


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
def test_pickling_and_copying(shape):
    a = tg.rand(*shape, requires_grad=True) if shape else tg.tensor(1.5, requires_grad=True)
    a.tag = ["x"]
    a.grad = tg.ones_like(a)
    for made in (pickle.loads(pickle.dumps(a)), copy.deepcopy(a)):
        assert made.requires_grad and made.is_leaf and made.tag == ["x"] and made.tag is not a.tag
        assert np.array_equal(made.numpy(force=True), a.numpy(force=True)) and made.shape == shape
    assert copy.deepcopy(a).grad.shape == shape and copy.deepcopy([a, a])[0] is not a
    first, second = copy.deepcopy([a, a])
    assert first is second
    with pytest.raises(AutogradError, match="only leaves"):
        copy.deepcopy(a * 2)
    assert pickle.loads(pickle.dumps((a * 2).T)).is_leaf


def test_printing():
    assert repr(tg.tensor([1.0, 2.5])) == "tensor([1.0000, 2.5000])"
    assert repr(tg.tensor([1, 2])) == "tensor([1, 2])"
    assert repr(tg.ones(1, dtype=tg.float64)) == "tensor([1.], dtype=float64)"
    assert repr(tg.ones(1, requires_grad=True)) == "tensor([1.], requires_grad=True)"
    assert repr(tg.ones(1, requires_grad=True) * 2) == "tensor([2.], grad_fn=<MulBackward>)"
    assert repr(tg.zeros(0, 3)) == "tensor([], size=(0, 3))"


def test_leaves_and_requires_grad():
    a = tg.ones(2)
    assert a.is_leaf and not a.requires_grad and a.requires_grad_() is a
    y = a * 2
    assert not y.is_leaf and y.output_nr == 0 and y.detach().is_leaf and y.detach().data_ptr() == y.data_ptr()
    with pytest.raises(AutogradError, match="use detach"):
        y.requires_grad_(False)
    y.detach_()
    assert y.is_leaf and not y.requires_grad
    with pytest.raises(AutogradError, match="does not fit"):
        a.grad = tg.ones(3)
    with pytest.raises(TypeError, match="tensor or None"):
        a.grad = 3


def test_random_numbers_follow_the_seed():
    def draw():
        return [
            tg.rand(2, 3), tg.randn(4), tg.randint(10, (5,)), tg.randint(3, 9, (5,)), tg.randperm(6),
            tg.empty(3).uniform_(2, 5), tg.empty(3).normal_(1, 2), tg.randn_like(tg.ones(2, dtype=tg.float64)),
        ]  # fmt: skip

    tg.manual_seed(5)
    first = draw()
    tg.manual_seed(5)
    assert all(np.array_equal(a.numpy(), b.numpy()) for a, b in zip(first, draw())) and tg.initial_seed() == 5
    generator = tg.Generator().manual_seed(-1)
    state = generator.get_state()
    once = tg.rand(3, generator=generator)
    generator.set_state(state)
    assert np.array_equal(once.numpy(), tg.rand(3, generator=generator).numpy())
    assert sorted(tg.randperm(6).tolist()) == list(range(6)) and first[0].dtype == tg.float32
    assert (first[5] >= 2).all() and (first[5] < 5).all()


def test_softmax_and_losses_survive_extremes():
    a = tg.tensor([[1e4, 0.0], [-np.inf, 0.0]])
    assert a.softmax(1).tolist() == [[1, 0], [0, 1]] and a.log_softmax(1).tolist() == [[0, -10000], [-np.inf, 0]]
    assert a.logsumexp(1).tolist() == [10000, 0] and tg.tensor([-np.inf]).logsumexp(0).item() == -np.inf
    assert tg.cross_entropy(a, tg.tensor([0, 1])).item() == 0
    assert tg.sigmoid(tg.tensor([-1000.0, 1000.0])).tolist() == [0, 1]
    assert np.isnan(tg.zeros(0).mean().item()) and np.isnan(tg.ones(1).var().item())


def test_rules_find_the_same_names_in_both_namespaces():
    assert vars(ARRAYS).keys() == vars(TENSORS).keys()


def test_declared_methods_are_the_real_ones():
    for path, text in write.stubs().items():
        assert path.read_text() == text
    for name, method in METHODS.items():
        found = vars(Tensor)[name]
        assert (found.fget if method.kind == "property" else found) is method.value


@pytest.mark.parametrize(
    "make",
    [
        lambda device: tg.tensor([1.0], device=device),
        lambda device: tg.as_tensor([1.0], device=device),
        lambda device: tg.ones(2, device=device),
        lambda device: tg.randn(2, device=device),
        lambda device: tg.randperm(2, device=device),
        lambda device: tg.ones(2).to(device),
    ],
)
def test_there_is_no_device_but_the_cpu(make):
    assert make("cpu").device == "cpu"
    with pytest.raises(ValueError, match="no device 'cuda:0'"):
        make("cuda:0")

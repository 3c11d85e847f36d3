"""Errors of wrong calls beside operations: helpers of modules, optimizers, data, distributions, files."""

import math
import pickle

import pytest
import telegrad as tg
from telegrad import data, distributions, nn, optim
from telegrad.base.errors import ArgumentError


def parameters():
    return [nn.Parameter(tg.ones(2))]


@pytest.mark.parametrize(
    ("act", "kind", "message"),
    [
        (lambda: tg.ones(2).size(3), IndexError, "dim 3 is out of range: this tensor has 1 dimensions"),
        (lambda: tg.ones(2).stride(-2), IndexError, "dim -2 is out of range"),
        (lambda: tg.eye(-1), ValueError, r"eye\(\) needs lengths that are not negative, and you gave -1"),
        (lambda: tg.arange(math.inf), ValueError, r"arange\(\) cannot go from 0 to inf"),
        (lambda: tg.randperm(-1), ValueError, r"randperm\(\) .* you gave -1"),
        (lambda: tg.ones(2, dtype=object), TypeError, "tensors hold numbers and booleans, not object"),
        (lambda: tg.hstack([]), ValueError, r"hstack\(\): cat\(\) needs at least one tensor"),
        (lambda: tg.exp(tg.ones(2), out=[1]), TypeError, r"exp\(\): out must be a tensor, not list"),
        (lambda: tg.einsum(3), TypeError, r"einsum\(\): 'int' object is not iterable; you called einsum\(3\)"),
        (lambda: parameters()[0].backward(1.0), TypeError, "a gradient must be a tensor or None, not float"),
        (lambda: nn.utils.clip_grad_norm_([1], 1.0), TypeError, r"parameters\[0\] must be a tensor, not int"),
        (lambda: nn.LayerNorm(4)(tg.ones(2, 3)), ValueError, r"last dimensions must be normalized_shape \(4,\)"),
        (lambda: optim.SGD(nn.Linear(2, 2), 0.1), TypeError, r"you gave a Linear: pass its parameters\(\)"),
        (lambda: optim.Adam([{"lr": 1}]), ValueError, r"""a parameter group needs "params", and you gave \['lr'\]"""),
        (lambda: optim.Adam(parameters()).load_state_dict({"a": 1}), ValueError, 'holds "state" and "param_groups"'),
        (lambda: optim.lr_scheduler.MultiStepLR(optim.SGD(parameters(), 0.1), 3), TypeError, "milestones must be"),
        (lambda: optim.lr_scheduler.SequentialLR(optim.SGD(parameters(), 0.1), [], []), ValueError, "at least one"),
        (lambda: data.default_collate([{"a": 1}, {"b": 2}]), ValueError, "different keys .* 'a' is missing in one"),
        (lambda: distributions.Normal(tg.ones(2), tg.ones(3)), ValueError, r"the shapes \(2,\), \(3,\) cannot be"),
        (lambda: distributions.Normal(0.0, 1.0).sample(3), TypeError, r"sample_shape is a tuple of lengths, .* gave 3"),
    ],
)
def test_what_is_said(act, kind, message):
    with pytest.raises(kind, match=message):
        act()


def test_out_of_another_dtype():
    with pytest.raises(ArgumentError, match=r"add\(\) cannot write"):
        tg.add(tg.ones(2), 0.5, out=tg.zeros(2, dtype=tg.int64))


def test_gradients_of_an_iterator_of_inputs():
    a = tg.ones(2, requires_grad=True)
    assert tg.autograd.grad((a * 2).sum(), iter([a]))[0].tolist() == [2, 2]


def test_a_file_with_a_broken_header_is_named(tmp_path):
    path = tmp_path / "weights.safetensors"
    tg.save({"a": tg.ones(3)}, path)
    path.write_bytes(path.read_bytes().replace(b'{"__meta', b"?{__meta"))
    with pytest.raises(Exception, match=r"weights.safetensors .*not JSON"):
        tg.load(path)


@pytest.mark.parametrize("start", [pickle.dumps({"weight": [1.0] * 9}, version) for version in (2, 3, 4, 5)])
def test_pickles_are_told_by_name(tmp_path, start):
    path = tmp_path / "model.pt"
    path.write_bytes(start + b"archive" * 30)
    with pytest.raises(Exception, match=r"model.pt .*torch.save.*safetensors"):
        tg.load(path)


def test_headers_of_any_length_are_read(tmp_path):
    # 640 bytes of header begin as a pickle does.
    path = tmp_path / "weights.safetensors"
    for count in range(1, 60):
        tg.save({"n" * count * 8: tg.ones(1)}, path)
        assert tg.load(path)["n" * count * 8].tolist() == [1]

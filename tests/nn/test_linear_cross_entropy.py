"""``LinearCrossEntropyLoss``: a linear layer and the cross entropy of its outputs, at once or in chunks of samples."""

import numpy as np
import pytest
import telegrad as tg
from telegrad import nn
from telegrad.nn import functional as F

CLASSES = tg.tensor([0, 2, 1, -100, 1, 2, 0])
WEIGHT = tg.tensor([0.5, 2.0, 1.25], dtype=tg.float64)


def made(seed=0):
    rng = np.random.default_rng(seed)
    shapes = (len(CLASSES), 5), (3, 5), (3,)
    return [tg.tensor(rng.normal(size=shape)).requires_grad_() for shape in shapes]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("size", [1, 3, 100, None])
def test_chunks_give_the_same_losses_and_gradients(size, weight, reduction):
    x, rows, bias = made()
    options = nn.LinearCrossEntropyOptions(batch_chunk_size=size)
    found, expected = (
        F.linear_cross_entropy(x, rows, CLASSES, linear_bias=bias, weight=weight, reduction=reduction, options=each)
        for each in (options, None)
    )
    plain = F.cross_entropy(F.linear(x, rows, bias), CLASSES, weight, reduction=reduction)
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-12)
    np.testing.assert_array_equal(expected.detach().numpy(), plain.detach().numpy())
    grads = [tg.autograd.grad(loss.sum(), (x, rows, bias)) for loss in (found, expected)]
    for ours, theirs in zip(*grads):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-10, atol=1e-14)


def test_chunks_of_one_sample_and_of_none():
    x, rows, _ = made()
    options = nn.LinearCrossEntropyOptions(batch_chunk_size=2)
    one, whole = (F.linear_cross_entropy(x[0], rows, tg.tensor(2), options=each) for each in (options, None))
    assert one.shape == () and one.item() == pytest.approx(whole.item())
    assert F.linear_cross_entropy(x[:0], rows, CLASSES[:0], reduction="sum", options=options).item() == 0
    assert F.linear_cross_entropy(x[:0], rows, CLASSES[:0], reduction="none", options=options).shape == (0,)


def test_only_one_chunk_of_logits_is_kept():
    x, rows, _ = made()
    kept = []
    with tg.autograd.graph.saved_tensors_hooks(lambda saved: kept.append(saved.shape) or saved, lambda saved: saved):
        F.linear_cross_entropy(x, rows, CLASSES).backward()
        assert (len(CLASSES), 3) in kept
        kept.clear()
        F.linear_cross_entropy(x, rows, CLASSES, options=nn.LinearCrossEntropyOptions(batch_chunk_size=2))
    assert (2, 3) not in kept and (len(CLASSES), 3) not in kept


def test_options_are_ignored_with_a_warning_where_they_do_not_fit():
    x, rows, _ = made()
    with pytest.warns(UserWarning, match="ignores its options"):
        F.linear_cross_entropy(x, rows, CLASSES, label_smoothing=0.1, options=nn.LinearCrossEntropyOptions())


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x, rows: F.linear_cross_entropy(x[None], rows, CLASSES), "the input must have shape"),
        (lambda x, rows: F.linear_cross_entropy(x, rows[:, 1:], CLASSES), "the input must have shape"),
        (lambda x, rows: F.linear_cross_entropy(x, rows, CLASSES, linear_bias=x[0]), "linear_bias must have shape"),
        (lambda x, rows: F.linear_cross_entropy(x[0], rows[:, None], CLASSES[:1]), "takes an input"),
        (lambda x, rows: F.linear_cross_entropy(x, rows, x[:, :3], ignore_index=1), "take no ignore_index"),
        (lambda x, rows: nn.LinearCrossEntropyOptions(batch_chunk_size=0), "must be positive"),
        (lambda x, rows: nn.LinearCrossEntropyLoss(5, 3, weight=tg.ones(2)), "one for each class"),
        (lambda x, rows: nn.LinearCrossEntropyLoss(5, 3, label_smoothing=2), "between 0 and 1"),
    ],
)
def test_errors(call, text):
    with pytest.raises(ValueError, match=text):
        call(*made()[:2])


def test_the_layer_shows_its_settings():
    layer = nn.LinearCrossEntropyLoss(5, 3, out_features=(2,), bias=True)
    assert [(name, tuple(value.shape)) for name, value in layer.named_parameters()] == [
        ("linear.weight", (6, 5)),
        ("linear.bias", (6,)),
    ]
    assert "in_features=5, num_classes=3, out_features=(2,), bias=True, reduction=mean" in repr(layer)

"""`saved_tensors_hooks`: all that operations save, custom functions and fused layers included, goes through them."""

from __future__ import annotations

import threading
import weakref

import numpy as np
import pytest
import telegrad as tg
from telegrad import nn
from telegrad.base.errors import AutogradError
from telegrad.core.autograd.packed import PACKED
from telegrad.testing.ops import Make
from telegrad.tools.ops.catalogue import CHECKS

graph = tg.autograd.graph


def leaf(*values):
    return tg.tensor(values, dtype=tg.float64, requires_grad=True)


def copying():
    """Hooks that keep copies elsewhere: an entry that is not packed, or not unpacked, would be noticed."""
    return graph.saved_tensors_hooks(lambda tensor: tensor.numpy().copy(), tg.from_numpy)


class SavesAll(tg.Function):
    """Saves its input, nothing, and both outputs."""

    @staticmethod
    def forward(ctx, x):
        y, z = x.exp(), x * x
        ctx.save_for_backward(x, None, y, z)
        return y, z

    @staticmethod
    def backward(ctx, by_y, by_z):
        x, nothing, y, _ = ctx.saved_tensors
        assert nothing is None
        return by_y * y + by_z * 2 * x


def nodes_below(tensors):
    found, stack = set(), [tensor.grad_fn for tensor in tensors]
    while stack:
        node = stack.pop()
        if node is not None and node not in found:
            found.add(node)
            stack += [each for each, _ in node.next_functions]
    return found


def recorded(result):
    results = result if isinstance(result, (tuple, list)) else (result,)
    return [each for each in results if isinstance(each, tg.Tensor) and each.requires_grad]


def left_unpacked(node):
    entries = getattr(node, "saved", None) or getattr(node, "_saved", None) or ()
    return [entry for entry in entries if entry is not None and entry[1] is not entry[0] and entry[2] is not PACKED]


@pytest.mark.parametrize("check", [check for check in CHECKS if check.orders], ids=lambda check: check.name)
def test_no_operation_keeps_anything_beside_the_hooks(check):
    for sample in map(tuple, check.samples(Make(check.name))):
        inputs = [each for each in sample if isinstance(each, tg.Tensor) and each.requires_grad]
        if not inputs:
            continue
        with copying():
            results = recorded(check.function(*sample))
        assert not [node.name() for node in nodes_below(results) if left_unpacked(node)]
        plain = recorded(check.function(*sample))
        gradients = [
            tg.autograd.grad([each.sum() for each in outputs], inputs, materialize_grads=True)
            for outputs in (results, plain)
        ]
        for one, other in zip(*gradients):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-12, atol=1e-12)


def test_custom_functions():
    packed, unpacked = [], []

    def pack(tensor):
        packed.append(tensor.tolist())
        return len(packed) - 1

    def unpack(number):
        unpacked.append(number)
        return tg.tensor(packed[number], dtype=tg.float64)

    a = leaf(1.0, 2.0)
    with graph.saved_tensors_hooks(pack, unpack):
        y, z = SavesAll.apply(a)
    np.testing.assert_allclose(packed, [[1, 2], np.exp([1, 2]), [1, 4]])
    assert not unpacked
    (y + z).sum().backward(retain_graph=True)
    np.testing.assert_allclose(a.grad.numpy(), np.exp([1, 2]) + np.array([2, 4]))
    assert unpacked == [0, 1, 2]
    (slope,) = tg.autograd.grad((y + z).sum(), a, create_graph=True)
    np.testing.assert_allclose(tg.autograd.grad(slope.sum(), a, retain_graph=True)[0].numpy(), np.exp([1, 2]) + 2)
    (y + z).sum().backward()
    with pytest.raises(AutogradError, match="freed its saved tensors"):
        (y + z).sum().backward()


def test_what_is_unpacked_for_a_custom_function_has_its_place_in_the_graph():
    seen = []

    class Keeps(tg.Function):
        @staticmethod
        def forward(ctx, x, constant):
            y = x * constant
            ctx.save_for_backward(x, constant, y)
            return y

        @staticmethod
        def backward(ctx, gradient):
            seen.append(ctx.saved_tensors)
            return gradient * ctx.saved_tensors[1], None

    a = leaf(2.0)
    with copying():
        y, z = Keeps.apply(a * 1, leaf(3.0).detach()), Keeps.apply(a, leaf(3.0).detach())
    z.backward()
    y.backward()
    (direct, *_), (x, constant, output) = seen
    assert direct is not a and direct.is_leaf and direct.requires_grad
    assert direct.exp().grad_fn.next_functions == z.grad_fn.next_functions[:1]
    assert x.requires_grad and x.grad_fn is y.grad_fn.next_functions[0][0] and not constant.requires_grad
    assert output.requires_grad and output.grad_fn is y.grad_fn


def test_a_subclass_comes_back_with_its_attributes():
    class Measured(tg.Tensor):
        unit = ""

        @classmethod
        def __tensor_function__(cls, func, types, args, kwargs):
            result = super().__tensor_function__(func, types, args, kwargs)
            if isinstance(result, cls) and not result.unit:
                result.unit = args[0].unit
            return result

    seen = []

    class Keeps(tg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            seen.append(ctx.saved_tensors[0])
            return gradient * 2

    x = Measured(np.ones(2), True)
    x.unit = "m"
    with graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
        y = Keeps.apply(x)
    y.sum().backward()
    assert type(seen[0]) is Measured and seen[0].unit == y.unit == "m" and x.grad.tolist() == [2, 2]


LAYERS = {
    "LSTM": lambda: nn.LSTM(3, 4, num_layers=2),
    "GRU": lambda: nn.GRU(3, 4),
    "RNN": lambda: nn.RNN(3, 4),
    "attention": lambda: nn.TransformerEncoderLayer(3, 1, 4, dropout=0.25),
}


@pytest.mark.parametrize("name", LAYERS)
def test_fused_layers_keep_only_what_they_were_given(name):
    tg.manual_seed(1)
    layer = LAYERS[name]().to(tg.float64)
    x = tg.randn(5, 2, 3, dtype=tg.float64, requires_grad=True)

    def run():
        tg.manual_seed(2)
        result = layer(x)
        return result[0] if isinstance(result, tuple) else result

    plain, expected = run(), None
    expected = tg.autograd.grad(plain.square().sum(), [x, *layer.parameters()])
    with copying():
        y = run()
    fused = [node for node in nodes_below([y]) if hasattr(node, "computed")]
    assert fused and all(not node.computed and not left_unpacked(node) for node in fused)
    loss = y.square().sum()
    for keep in (True, False):
        found = tg.autograd.grad(loss, [x, *layer.parameters()], retain_graph=keep)
        for one, other in zip(found, expected):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-9, atol=1e-12)
    with pytest.raises(AutogradError, match="freed"):
        loss.backward()
    checkpointed = tg.autograd.checkpoint(run)
    for one, other in zip(tg.autograd.grad(checkpointed.square().sum(), [x, *layer.parameters()]), expected):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-9, atol=1e-12)


def test_the_innermost_hooks_count():
    names = []

    def hooks(name):
        return graph.saved_tensors_hooks(lambda tensor: names.append(name) or tensor, lambda tensor: tensor)

    a = leaf(1.0)
    with hooks("outer"):
        first = a.exp()
        with hooks("inner"):
            second = a.exp()
        third = a.exp()
    a.exp()
    (first + second + third).backward()
    assert names == ["outer", "inner", "outer"]


def test_what_was_saved_outside_stays_as_it_is():
    a = leaf(1.0, 2.0)
    y = a.exp()
    with graph.saved_tensors_hooks(lambda tensor: 1 / 0, lambda tensor: tensor):
        same = tg.nn.functional.dropout(y, training=False)
        assert same is y and y.contiguous() is y and (y + 1).requires_grad
        y[0].add_(1)  # a view, whose history goes on in that of y
    with pytest.raises(AutogradError, match="modified in place"):
        y.sum().backward()


def test_a_hook_that_fails_leaves_everything_in_order():
    a = leaf(1.0)
    with pytest.raises(ZeroDivisionError), graph.saved_tensors_hooks(lambda tensor: 1 / 0, lambda tensor: tensor):
        a.exp()
    assert tg.core.interception.active == [] or not any(
        isinstance(each, graph.saved_tensors_hooks) for each in tg.core.interception.active
    )
    with graph.saved_tensors_hooks(lambda tensor: tensor, lambda kept: 1 / 0):
        y = a.exp()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            y.backward()


def test_an_unpack_hook_must_give_a_tensor():
    for wrong, words in ((3, "gave int"), (np.zeros(1), r"a ndarray of shape \(1,\)"), (tg.zeros(3), r"\(3,\)")):
        with graph.saved_tensors_hooks(lambda tensor: tensor, lambda kept, wrong=wrong: wrong):
            outputs = leaf(2.0).exp(), SavesAll.apply(leaf(2.0))[0]
        for y in outputs:
            with pytest.raises(AutogradError, match=rf"must give a tensor of shape \(1,\).*{words}"):
                y.sum().backward()


def test_packed_graphs_die_without_the_collector(no_collector):
    with copying():
        y, z = SavesAll.apply(leaf(1.0, 2.0))
        outputs = [y, z, leaf(1.0).exp(), leaf(3.0, 1.0).sort().values, nn.GRU(3, 4)(tg.ones(2, 1, 3))[0]]
    nodes = [weakref.ref(output.grad_fn) for output in outputs]
    for output in outputs[2:]:
        output.sum().backward()
    del y, z, outputs, output
    assert [node() for node in nodes] == [None] * 5


def test_packed_graphs_are_run_by_many_threads_at_once():
    a = leaf(*range(20))
    with copying():
        y = (a.exp() * a + SavesAll.apply(a)[1]).sum()
    (once,) = tg.autograd.grad(y, a, retain_graph=True)
    barrier, found = threading.Barrier(4), []

    def work():
        barrier.wait(10)
        found.extend(tg.autograd.grad(y, a, retain_graph=True)[0] for _ in range(25))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(found) == 100 and all(np.array_equal(each.numpy(), once.numpy()) for each in found)


def test_hooks_can_be_forbidden():
    a = leaf(1.0)
    with graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(AutogradError, match="not here"), copying():
            pass
        with (
            graph.disable_saved_tensors_hooks("nor there"),
            pytest.raises(RuntimeError, match="nor there"),
            graph.save_on_cpu(),
        ):
            pass
        with pytest.raises(AutogradError, match="not here"):
            tg.autograd.checkpoint(tg.exp, a)
        a.exp().backward()
    with copying():
        y = a.exp()
        with pytest.raises(AutogradError, match="too late"), graph.disable_saved_tensors_hooks("too late"):
            pass
    y.backward()
    assert a.grad.item() == pytest.approx(2 * np.e)

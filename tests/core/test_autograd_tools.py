"""Tools for graphs: saved-tensor hooks, anomaly mode, checkpointing, whole derivatives, pictures, modes."""

import asyncio
import threading
import weakref
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import telegrad as tg
from telegrad import autograd_dist, nn  # noqa: F401
from telegrad.base.errors import AutogradError
from telegrad.core import interception
from telegrad.core.autograd import anomaly

ag = tg.autograd


def leaf(*values):
    return tg.tensor(values, dtype=tg.float64, requires_grad=True)


# -- saved tensors


def test_what_is_saved_goes_through_the_hooks():
    packed, unpacked = [], []

    def pack(tensor):
        packed.append(tensor.tolist())
        return tensor.numpy() * 1

    def unpack(kept):
        unpacked.append(kept.tolist())
        return tg.from_numpy(kept)

    a, b = leaf(2.0), leaf(3.0)
    with ag.graph.saved_tensors_hooks(pack, unpack):
        y = a * b
    z = (y.exp() + 1).sum()  # outside
    assert packed == [[2.0], [3.0]] and not unpacked
    z.backward()
    assert unpacked == [[2.0], [3.0]]
    assert a.grad.item() == pytest.approx(3 * np.exp(6)) and b.grad.item() == pytest.approx(2 * np.exp(6))


def test_hooked_graphs_can_be_kept_freed_and_differentiated_twice():
    a = leaf(2.0)
    with ag.graph.saved_tensors_hooks(lambda t: t.numpy().copy(), tg.from_numpy):
        y = (a.exp() * a).sum()
    y.backward(retain_graph=True)
    first = a.grad.item()
    (slope,) = ag.grad(y, a, create_graph=True)
    assert slope.item() == pytest.approx(first)
    y.backward()
    with pytest.raises(AutogradError, match="freed"):
        y.backward()


def test_an_unpacked_tensor_must_be_like_the_packed_one():
    with ag.graph.saved_tensors_hooks(lambda t: t, lambda t: tg.zeros(3)):
        y = leaf(2.0).exp()
    with pytest.raises(AutogradError, match=r"must give a tensor of shape \(1,\)"):
        y.sum().backward()


def test_hooks_do_not_keep_a_graph_alive(no_collector):
    with ag.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = leaf(2.0).exp()
    node = weakref.ref(y.grad_fn)
    del y
    assert node() is None


# -- anomaly mode


def test_a_nan_shows_its_forward_line():
    a = leaf(0.0)
    with ag.detect_anomaly():
        y = (a * 0 / a).sum()  # 0 / 0
        with pytest.raises(AutogradError, match="made a nan") as caught:
            y.backward()
    assert "0 / a).sum()  # 0 / 0" in str(caught.value)


def test_a_failing_backward_shows_its_forward_line():
    a = leaf(1.0)
    with (
        pytest.raises(AutogradError, match="failed in the backward pass") as caught,
        ag.detect_anomaly(check_nan=False),
    ):
        b = a * 1
        y = b * b  # the line that is shown
        with tg.no_grad():
            b.add_(1)
        y.sum().backward()
    assert "the line that is shown" in str(caught.value) and "modified" in str(caught.value)


def test_anomaly_mode_can_be_switched():
    assert not ag.is_anomaly_enabled()
    with ag.set_detect_anomaly(True):
        assert ag.is_anomaly_enabled()
    ag.set_detect_anomaly(True)
    assert ag.is_anomaly_enabled()
    with ag.set_detect_anomaly(False):
        assert not ag.is_anomaly_enabled()
    assert ag.is_anomaly_enabled(), "the block ends, and the call before it is in effect again"
    ag.set_detect_anomaly(False)
    assert not ag.is_anomaly_enabled()


def test_calls_that_switch_anomaly_mode_are_not_kept():
    for mode in (True, False, True, True, False):
        ag.set_detect_anomaly(mode)
    assert len(anomaly._settings) <= 2 and not interception.entered


def on_another_thread(function):
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(function).result()


def test_anomaly_mode_is_on_in_all_threads():
    a = leaf(0.0)
    with ag.detect_anomaly():
        y = on_another_thread(lambda: (a * 0 / a).sum())  # 0 / 0 there
    assert not on_another_thread(ag.is_anomaly_enabled)
    with pytest.raises(AutogradError, match="0 / 0 there"):
        y.backward()


def test_anomaly_mode_lasts_until_the_last_of_two_blocks_that_overlap_ends():
    first, second = ag.detect_anomaly(), ag.detect_anomaly()
    with first:
        on_another_thread(second.__enter__)
    assert ag.is_anomaly_enabled()
    on_another_thread(lambda: second.__exit__(None, None, None))
    assert not ag.is_anomaly_enabled() and not interception.entered


def test_ordinary_passes_are_not_disturbed_by_it():
    a = leaf(1.0, 2.0)
    with ag.detect_anomaly():
        (a.exp() * a).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), np.exp([1, 2]) * [2, 3])


# -- checkpointing


def test_checkpointing_computes_again_and_gives_the_same_gradients():
    calls = []
    tg.manual_seed(0)
    layer = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    x = tg.randn(5, 3, requires_grad=True)

    def run(x):
        calls.append(1)
        return layer(x)

    layer(x).square().sum().backward()
    expected = [parameter.grad.numpy().copy() for parameter in (x, *layer.parameters())]
    layer.zero_grad()
    x.grad = None
    ag.checkpoint(run, x, use_reentrant=False).square().sum().backward()
    assert len(calls) == 2
    for parameter, wanted in zip((x, *layer.parameters()), expected):
        np.testing.assert_allclose(parameter.grad.numpy(), wanted, rtol=1e-6)


def test_the_second_run_draws_the_same_numbers():
    tg.manual_seed(3)
    x = tg.ones(1000, requires_grad=True)
    y = ag.checkpoint(lambda x: nn.functional.dropout(x.exp()), x)
    kept = y.detach() != 0
    state = tg.default_generator.get_state().tolist()
    y.sum().backward()
    assert bool(((x.grad != 0) == kept).all())
    assert tg.default_generator.get_state().tolist() == state


def test_checkpointing_in_segments():
    layers = [nn.Linear(3, 3) for _ in range(5)]
    x = tg.randn(2, 3, requires_grad=True)
    plain = x
    for layer in layers:
        plain = layer(plain)
    y = ag.checkpoint_sequential(layers, 2, x)
    np.testing.assert_allclose(y.detach().numpy(), plain.detach().numpy())
    np.testing.assert_allclose(*(ag.grad(each.sum(), x)[0].numpy() for each in (y, plain)), rtol=1e-6)
    with pytest.raises(ValueError, match="from 1 to 5"):
        ag.checkpoint_sequential(layers, 6, x)
    with pytest.raises(ValueError, match="use_reentrant=False"):
        ag.checkpoint(layers[0], x, use_reentrant=True)


def test_a_function_that_does_something_else_the_second_time_is_told():
    calls = []

    def fickle(x):
        calls.append(1)
        return x.exp().exp() if len(calls) == 1 else x * 1

    y = ag.checkpoint(fickle, leaf(0.1))
    with pytest.raises(AutogradError, match="it must do the same each time"):
        y.sum().backward()


# -- whole derivatives


def test_jacobian_and_hessian():
    x, w = leaf(1.0, 2.0), leaf(3.0)
    by_x, by_w = ag.functional.jacobian(lambda x, w: x**2 * w, (x, w))
    np.testing.assert_allclose(by_x.numpy(), np.diag([6.0, 12.0]))
    np.testing.assert_allclose(by_w.numpy(), [[1.0], [4.0]])
    (xx, xw), (wx, ww) = ag.functional.hessian(lambda x, w: (x**2 * w).sum(), (x, w))
    np.testing.assert_allclose(xx.numpy(), np.diag([6.0, 6.0]))
    np.testing.assert_allclose(xw.numpy()[:, 0], [2.0, 4.0])
    np.testing.assert_allclose(wx.numpy()[0], [2.0, 4.0])
    assert ww.tolist() == [[0.0]] and x.grad is None
    assert ag.functional.jacobian(lambda x: tg.zeros(2), x).tolist() == [[0, 0], [0, 0]]
    with pytest.raises(AutogradError, match="does not depend on input 0"):
        ag.functional.jacobian(lambda x: tg.zeros(2), x, strict=True)
    with pytest.raises(AutogradError, match="one number"):
        ag.functional.hessian(lambda x: x, x)


def test_products_with_vectors():
    matrix = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    x = leaf(0.5, -1.0)

    def function(x):
        return tg.tensor(matrix) @ x**2

    jacobian = ag.functional.jacobian(function, x).numpy()
    v, u = tg.tensor([1.0, -2.0], dtype=tg.float64), tg.tensor([1.0, 0.5, 2.0], dtype=tg.float64)
    np.testing.assert_allclose(ag.functional.jvp(function, x, v)[1].numpy(), jacobian @ v.numpy())
    np.testing.assert_allclose(ag.functional.vjp(function, x, u)[1].numpy(), u.numpy() @ jacobian)
    hessian = ag.functional.hessian(lambda x: (x**3).sum(), x).numpy()
    for product in (ag.functional.hvp, ag.functional.vhp):
        np.testing.assert_allclose(product(lambda x: (x**3).sum(), x, v)[1].numpy(), hessian @ v.numpy())
    with pytest.raises(AutogradError, match="v must have the shapes"):
        ag.functional.vjp(function, x, v)


def test_a_recorded_jacobian_can_be_differentiated():
    x = leaf(2.0)
    ag.functional.jacobian(lambda x: x**3, x, create_graph=True).sum().backward()
    assert x.grad.item() == pytest.approx(12.0)


# -- graphs


def test_a_hook_on_several_tensors_waits_for_all():
    seen, first = [], []
    a, b = leaf(1.0), leaf(2.0)
    with ag.graph.register_multi_grad_hook([a, b], lambda grads: seen.append([g.item() for g in grads])):
        any_handle = ag.graph.register_multi_grad_hook([a, b], lambda grad: first.append(grad.item()), mode="any")
        (a * b).sum().backward()
        (a * b).sum().backward()
    any_handle.remove()
    (a * b).sum().backward()
    assert seen == [[2.0, 1.0]] * 2 and len(first) == 2
    assert ag.graph.get_gradient_edge(a)[1] == 0
    with pytest.raises(AutogradError, match="goes nowhere"):
        ag.graph.get_gradient_edge(tg.ones(1))


def test_a_version_can_be_counted_by_hand():
    a = leaf(1.0)
    b = a * 1
    y = b.exp() * b
    ag.graph.increment_version(b)
    with pytest.raises(AutogradError, match="modified"):
        y.sum().backward()


def test_drawing(tmp_path):
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    loss = nn.functional.mse_loss(model(tg.ones(4, 2)), tg.zeros(4, 1))
    source = ag.graph.draw(loss, tmp_path / "graph.svg", params=dict(model.named_parameters()))
    assert source.startswith("digraph") and '"0.weight\\n(3, 2) float32"' in source and "Tanh" in source
    tree = ET.parse(tmp_path / "graph.svg")
    texts = [element.text for element in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert "2.bias" in texts and "Tanh" in texts
    ag.graph.draw([loss, loss * 2], tmp_path / "graph.dot")
    assert (tmp_path / "graph.dot").read_text().count("->") >= 8
    with pytest.raises(ValueError, match="no graph to draw"):
        ag.graph.draw(tg.ones(1))


# -- modes


def test_inference_mode():
    a = leaf(1.0)
    with tg.inference_mode():
        assert not (a * 2).requires_grad and ag.is_inference_mode_enabled()
        with tg.inference_mode(False):
            assert not ag.is_inference_mode_enabled()
    assert (a * 2).requires_grad and not ag.is_inference_mode_enabled()


def test_modes_decorate_generators_and_coroutines():
    seen = []

    @tg.no_grad()
    def numbers():
        got = yield tg.is_grad_enabled()
        seen.append((got, tg.is_grad_enabled()))
        yield tg.is_grad_enabled()

    generator = numbers()
    assert next(generator) is False and tg.is_grad_enabled()
    assert generator.send(5) is False and seen == [(5, False)]

    @tg.no_grad()
    async def later():
        await asyncio.sleep(0)
        return tg.is_grad_enabled()

    assert asyncio.run(later()) is False


def test_modes_are_of_their_thread():
    seen = []
    with tg.no_grad():
        thread = threading.Thread(target=lambda: seen.append(tg.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_modes_decorate_without_parentheses_too():
    @tg.no_grad
    def silent(x):
        return x * 2

    @tg.enable_grad
    def recorded(x):
        return x * 2

    x = tg.ones(2, requires_grad=True)
    assert not silent(x).requires_grad and silent.__name__ == "silent"
    with tg.no_grad():
        assert recorded(x).requires_grad

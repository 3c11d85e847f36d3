"""Scaling of losses: growth, backoff, steps that are left out, clipping, checkpoints."""

import numpy as np
import pytest
import telegrad as tg


def made(**options):
    weight = tg.ones(2, requires_grad=True)
    return weight, tg.optim.SGD([weight], 0.5), tg.amp.GradScaler("cpu", init_scale=1024.0, **options)


def test_a_step_is_that_of_the_unscaled_loss():
    weight, optimizer, scaler = made()
    scaler.scale((weight * tg.tensor([1.0, 2.0])).sum()).backward()
    assert weight.grad.tolist() == [1024, 2048]
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [0.5, 0] and scaler.get_scale() == 1024


def test_an_infinite_gradient_leaves_the_step_out():
    weight, optimizer, scaler = made(growth_interval=1)
    scaler.scale((weight * tg.tensor([1.0, float("inf")])).sum()).backward()
    assert scaler.step(optimizer) is None and weight.tolist() == [1, 1]
    scaler.update()
    assert scaler.get_scale() == 512


def test_the_scale_grows_after_its_interval():
    weight, optimizer, scaler = made(growth_interval=2, growth_factor=4.0)
    scales = []
    for _ in range(4):
        optimizer.zero_grad()
        scaler.scale(weight.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [1024, 4096, 4096, 16384]


def test_small_gradients_survive_in_half_precision():
    weight, optimizer, scaler = made()
    x = tg.full((2, 2), 1e-5)
    with tg.autocast("cpu", tg.float16):
        loss = (weight.reshape(1, 2) @ x).float().mean() * 1e-3
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    np.testing.assert_allclose(weight.grad.numpy(), 1e-8, rtol=2e-2)
    with tg.autocast("cpu", tg.float16):
        loss = (weight.reshape(1, 2) @ x).float().mean() * 1e-3
    weight.grad = None
    loss.backward()
    assert not weight.grad.numpy().any()  # without a scale they are 0


def test_gradients_are_clipped_between():
    weight, optimizer, scaler = made()
    scaler.scale((weight * 30).sum()).backward()
    scaler.unscale_(optimizer)
    tg.nn.utils.clip_grad_norm_([weight], 1.0)
    scaler.step(optimizer)
    np.testing.assert_allclose(weight.numpy(force=True), 1 - 0.5 / np.sqrt(2), rtol=1e-5)


def test_sparse_gradients_and_nested_outputs():
    table = tg.nn.Embedding(4, 2, sparse=True)
    optimizer, scaler = tg.optim.SGD(table.parameters(), 1.0), tg.amp.GradScaler("cpu", init_scale=8.0)
    before = table.weight.detach().clone()
    out = table(tg.tensor([1, 1]))
    losses = scaler.scale([out.sum(), (out.sum(),)])
    (losses[0] + losses[1][0]).backward()
    scaler.step(optimizer)
    moved = (before - table.weight.detach()).tolist()
    assert [round(row[0]) for row in moved] == [0, 4, 0, 0]
    assert [each.item() for each in scaler.scale(iter([tg.ones(())]))] == [8.0]
    with pytest.raises(TypeError, match="takes tensors"):
        scaler.scale(3)


def test_a_state_goes_to_another_scaler():
    scaler = made(growth_factor=3.0)[2]
    scaler.update(new_scale=7.0)
    other = tg.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict() and other.get_scale() == 7 and other.get_growth_factor() == 3
    with pytest.raises(RuntimeError, match="the state is empty"):
        other.load_state_dict(tg.amp.GradScaler("cpu", enabled=False).state_dict())


def test_a_scaler_that_is_not_enabled_does_nothing():
    weight, optimizer, _ = made()
    with pytest.warns(UserWarning, match="no device 'cuda'"):
        scaler = tg.amp.GradScaler()
    assert not scaler.is_enabled() and scaler.get_scale() == 1
    scaler.scale(weight.sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [0.5, 0.5]


def stepped(scaler, weight, optimizer):
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer)


@pytest.mark.parametrize(
    "act, error, message",
    [
        (lambda scaler, *made: scaler.update(), RuntimeError, "no optimizer has stepped"),
        (lambda scaler, *made: (stepped(scaler, *made), scaler.step(made[1])), RuntimeError, "already been called"),
        (lambda scaler, *made: (stepped(scaler, *made), scaler.unscale_(made[1])), RuntimeError, "after step"),
        (lambda scaler, *made: (scaler.unscale_(made[1]), scaler.unscale_(made[1])), RuntimeError, "already been"),
        (lambda scaler, *made: scaler.step(made[1], closure=lambda: 1), RuntimeError, "no closure"),
        (lambda *made: tg.amp.GradScaler("cpu", growth_factor=1.0), ValueError, "growth_factor > 1"),
    ],
)
def test_misuse_is_told(act, error, message):
    weight, optimizer, scaler = made()
    with pytest.raises(error, match=message):
        act(scaler, weight, optimizer)


def test_half_precision_gradients_are_refused():
    weight = tg.ones(2, dtype=tg.float16, requires_grad=True)
    optimizer, scaler = tg.optim.SGD([weight], 0.5), tg.amp.GradScaler("cpu", init_scale=2.0)
    scaler.scale(weight.sum()).backward()
    with pytest.raises(ValueError, match="float16 cannot be unscaled"):
        scaler.step(optimizer)

"""Modules that compute with other weights than they have: given ones, normed ones, those of the clusters they need."""

import numpy as np
import pytest
import telegrad as tg
from telegrad import nn
from telegrad.nn import utils


def test_spectral_norm_in_its_first_form():
    tg.manual_seed(0)
    layer = utils.spectral_norm(nn.Linear(4, 3).to(tg.float64), n_power_iterations=30)
    assert set(layer.state_dict()) == {"weight_orig", "bias", "weight_u", "weight_v"}
    x = tg.ones(2, 4, dtype=tg.float64)
    layer(x).sum().backward()
    assert layer.weight_orig.grad is not None
    np.testing.assert_allclose(np.linalg.svd(layer.weight.detach().numpy())[1][0], 1, rtol=1e-6)
    before = layer.eval()(x).detach().numpy()
    with pytest.raises(ValueError, match="has spectral_norm already"):
        utils.spectral_norm(layer)
    utils.remove_spectral_norm(layer)
    np.testing.assert_allclose(layer(x).detach().numpy(), before, rtol=1e-12)
    assert [name for name, _ in layer.named_parameters()] == ["bias", "weight"] and not list(layer.buffers())
    with pytest.raises(ValueError, match="has no spectral_norm"):
        utils.remove_spectral_norm(layer)
    with pytest.raises(ValueError, match="n_power_iterations must be positive"):
        utils.spectral_norm(layer, n_power_iterations=0)


def test_spectral_norm_of_transposed_convolutions_goes_by_their_outputs():
    layer = utils.spectral_norm(nn.ConvTranspose2d(2, 5, 3))
    assert layer.weight_u.shape == (5,) and layer.weight_v.shape == (18,)
    assert layer(tg.ones(1, 2, 3, 3)).shape == (1, 5, 5, 5)


def test_a_module_is_called_with_other_parameters():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    weight = tg.ones(2, 2, requires_grad=True)
    out = utils.functional_call(model, {"0.weight": weight, "0.bias": tg.zeros(2)}, tg.tensor([[1.0, 2.0], [3.0, 5.0]]))
    out[:, 0].square().sum().backward()
    assert weight.grad is not None and all(p.grad is None for n, p in model.named_parameters() if n.startswith("0."))
    assert (model[0].weight == kept["0.weight"]).all()
    own = dict(model.named_parameters())
    assert utils.functional_call(model, (own, dict(model.named_buffers())), (tg.ones(2, 2),), strict=True).shape == (
        2,
        2,
    )


def test_other_parameters_of_a_module_must_be_its_own():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(2, 2, bias=False)
            self.b = nn.Linear(2, 2, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x, *, scale=1.0):
            return self.b(self.a(x)) * scale

    model, x = Tied(), tg.ones(1, 2)
    two = 2 * tg.eye(2)
    assert utils.functional_call(model, {"a.weight": two}, x, {"scale": 3.0}).tolist() == [[12, 12]]
    assert utils.functional_call(model, {"a.weight": two, "b.weight": 3 * two}, x, tie_weights=False).tolist() == [
        [12, 12]
    ]
    for given, error, message in (
        ({"c.weight": two}, KeyError, "no parameter or buffer 'c.weight'"),
        ([{"a.weight": two}, {"a.weight": two}], ValueError, "'a.weight' twice"),
        ({"a.weight": two, "b.weight": 3 * two}, ValueError, "tied to another"),
    ):
        with pytest.raises(error, match=message):
            utils.functional_call(model, given, x)
    with pytest.raises(KeyError, match="which you did not give"):
        utils.functional_call(nn.Linear(1, 1), {}, x, strict=True)


def test_an_adaptive_softmax_is_a_distribution():
    layer = nn.AdaptiveLogSoftmaxWithLoss(4, 10, [2, 5], div_value=2.0)
    x = tg.randn(6, 4)
    whole = layer.log_prob(x)
    np.testing.assert_allclose(whole.exp().sum(1).detach().numpy(), np.ones(6), rtol=1e-5)
    targets = tg.tensor([0, 9, 3, 4, 1, 6])
    found = layer(x, targets)
    np.testing.assert_allclose(
        found.output.detach().numpy(), whole.detach().numpy()[range(6), targets.numpy()], rtol=1e-5
    )
    assert layer.predict(x).tolist() == whole.argmax(1).tolist()
    layer.reset_parameters()
    with pytest.raises(IndexError, match="target 10 is not a class"):
        layer(x, targets + 1)
    with pytest.raises(ValueError, match="does not fit targets"):
        layer(x, targets[:3])
    with pytest.raises(ValueError, match="cutoffs must rise from 1 to at most 9"):
        nn.AdaptiveLogSoftmaxWithLoss(4, 10, [5, 2])

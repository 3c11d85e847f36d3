"""vmap: batches in every dimension and form, derivatives of single examples, randomness, bad input."""

import numpy as np
import pytest
import telegrad as tg
from telegrad import func, nn


def test_dimensions():
    x, y = tg.arange(6.0).reshape(2, 3), tg.tensor([1.0, 10.0, 100.0])
    assert tg.vmap(tg.dot, in_dims=(0, None))(x, y).tolist() == [210, 543]
    assert func.vmap(lambda a: a * 2, in_dims=1, out_dims=-1)(x).tolist() == (x * 2).tolist()
    assert func.vmap(lambda a, b: (a + b, a), in_dims=(1, 0), out_dims=(0, None))(x, y)[1].tolist() == [0, 3]
    assert func.vmap(lambda a, *, b: a.sum() + b)(x, b=y[:2]).tolist() == [4, 22]


def test_trees():
    batch = {"x": tg.arange(4.0), "more": (tg.arange(4.0), tg.tensor(10.0))}
    dims = {"x": 0, "more": (0, None)}
    found = func.vmap(lambda tree: {"sum": tree["x"] + tree["more"][0] * tree["more"][1]}, in_dims=(dims,))(batch)
    assert found["sum"].tolist() == [0, 11, 22, 33]


def test_nested():
    x = tg.arange(6.0).reshape(2, 3)
    assert func.vmap(func.vmap(lambda a: a * 2))(x).tolist() == (x * 2).tolist()


def test_branches_on_values():
    assert func.vmap(lambda a: a if a > 0 else -a)(tg.tensor([-1.0, 2.0])).tolist() == [1, 2]


def test_gradients_of_single_examples():
    model = nn.Linear(3, 1, dtype=tg.float64)
    parameters = dict(model.named_parameters())
    images, labels = tg.randn(4, 3, dtype=tg.float64), tg.randn(4, 1, dtype=tg.float64)

    def loss(parameters, image, label):
        return nn.functional.mse_loss(func.functional_call(model, parameters, (image,)), label)

    each = func.vmap(func.grad(loss), in_dims=(None, 0, 0))(parameters, images, labels)
    assert each["weight"].shape == (4, 1, 3)
    whole = func.grad(loss)(parameters, images, labels)
    np.testing.assert_allclose(each["weight"].detach().mean(0), whole["weight"].detach())


def test_an_ensemble():
    models = [nn.Linear(2, 3) for _ in range(4)]
    parameters, buffers = func.stack_module_state(models)
    assert parameters["weight"].shape == (4, 3, 2) and parameters["weight"].requires_grad and buffers == {}
    x = tg.randn(5, 2)
    found = func.vmap(lambda own: func.functional_call(models[0], own, (x,)))(parameters)
    np.testing.assert_allclose(found[2].detach(), models[2](x).detach(), rtol=1e-6)
    with pytest.raises(RuntimeError, match="one class"):
        func.stack_module_state([nn.Linear(1, 1), nn.ReLU()])


def test_gradients_go_through():
    x = tg.arange(3.0, requires_grad=True)
    func.vmap(lambda a: a**2)(x).sum().backward()
    assert x.grad.tolist() == [0, 2, 4]


def test_randomness():
    x = tg.zeros(3)
    with pytest.raises(RuntimeError, match="randomness='different'"):
        func.vmap(lambda a: a + tg.rand(1))(x)
    assert len(set(func.vmap(lambda a: a + tg.rand(()), randomness="different")(x).tolist())) == 3
    assert len(set(func.vmap(lambda a: a + tg.rand(()), randomness="same")(x).tolist())) == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: func.vmap(tg.sin, randomness="none"), "randomness must be"),
        (lambda: func.vmap(tg.add)(tg.ones(2), tg.ones(3)), r"\[2, 3\]"),
        (lambda: func.vmap(tg.sin, in_dims=None)(tg.ones(2)), "none"),
        (lambda: func.vmap(tg.sin)(tg.ones(0)), r"at least one"),
        (lambda: func.vmap(tg.sin, in_dims=2)(tg.ones(2)), r"dimension 2 .*\(2,\)"),
        (lambda: func.vmap(tg.add, in_dims=(0,))(tg.ones(2), tg.ones(2)), "in_dims must be"),
        (lambda: func.vmap(lambda x: 3)(tg.ones(2)), "result of the function given to vmap"),
        (lambda: func.vmap(tg.sin, out_dims=(0, 0))(tg.ones(2)), "out_dims must be"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()

"""``RemoteModule``: called from here, trained there, sent on, and refused what is not here."""

import copy
import gc
import pickle

import numpy as np
import pytest
import telegrad as tg
from telegrad import autograd_dist, rpc
from telegrad.base.errors import UnknownWorkerError
from telegrad.rpc.extend import GrpcRpcBackendOptions
from telegrad.rref.remote_module import LOCAL_METHODS, parse_remote_device

pytestmark = pytest.mark.usefixtures("tables_end_empty")


@pytest.fixture
def workers(cluster):
    """Three agents ``a``, ``b`` and ``c``; the test's own code is ``a``."""
    with cluster("a", "b", "c", options=GrpcRpcBackendOptions(rpc_timeout=30)) as agents, agents[0].use():
        yield agents
        gc.collect()  # modules are in cycles with their hooks


class Scale(tg.nn.Module):
    """Module whose forward has every kind of parameter."""

    def __init__(self, factor=1.0, *, bias=0.0):
        super().__init__()
        self.weight = tg.nn.Parameter(tg.tensor([factor, factor], dtype=tg.float64))
        self.inner = tg.nn.Linear(2, 1).double()
        self.bias = bias

    def forward(self, x, power=1, *, word="word"):
        return (x * self.weight) ** power + self.bias, word, self.training


def make_scale(factor):
    return Scale(factor)


def make_number():
    return 3


def pair(x, y=0, *, z=0):
    return tg.tensor([x, y, z])


X = tg.tensor([1.0, 2.0], dtype=tg.float64)


@pytest.mark.parametrize("device", ["b", "b/cpu", "rank:1", "rank:1/cpu", "a"])
def test_forward_runs_at_the_owner(workers, device):
    module = tg.RemoteModule(device, Scale, (3.0,), {"bias": 1.0})
    assert isinstance(module, tg.nn.Module) and module.device == "cpu"
    assert module.get_module_rref() is module.module_rref
    assert module.module_rref.owner_name() == ("a" if device == "a" else "b")
    y, word, training = module(X)
    assert y.tolist() == [4.0, 7.0] and word == "word" and training
    y, word, _ = module.forward(X, 2, word="other")
    assert y.tolist() == [10.0, 37.0] and word == "other"
    assert module.forward_async(X, power=2).wait()[0].tolist() == [10.0, 37.0]


def test_a_function_may_make_the_module(workers):
    assert tg.RemoteModule("b", make_scale, (2.0,))(X)[0].tolist() == [2.0, 4.0]


def test_what_is_no_module_is_an_error_of_each_use(workers):
    for wrong in (make_number, lambda: 3):
        module = tg.RemoteModule("b", wrong)
        with pytest.raises(ValueError, match=r"module_cls must make an nn\.Module; .* made an object of int"):
            module.forward()


def test_a_module_in_the_place_of_its_class(workers):
    with pytest.raises(TypeError, match=r"you gave a Scale, an instance\. Write Scale, args=\(\.\.\.\)"):
        tg.RemoteModule("b", Scale(2.0))


def test_an_error_of_the_constructor_names_worker_and_line_once(workers):
    module = tg.RemoteModule("b", Scale, ("no number",))
    for use in (module.remote_parameters, lambda: module(X)):
        with pytest.raises(TypeError) as received:
            use()
        text = str(received.value.__cause__)
        del received  # its frames hold the module
        assert text.count("on worker 'b'") == text.count("Traceback (most") == 1
        assert "in __init__" in text


@pytest.mark.parametrize("device", ["", "/cpu", "cpu", "b/", "rank:/cpu", "rank:x/cpu", "rank:-1", 3, None])
def test_devices_of_another_form(device):
    with pytest.raises(ValueError, match=r"a remote device is written 'worker/cpu' or 'rank:0/cpu'.*you gave"):
        parse_remote_device(device)


def test_devices_that_are_not_there(workers):
    with pytest.raises(ValueError, match="there is no device 'cuda:0'"):
        tg.RemoteModule("b/cuda:0", Scale)
    with pytest.raises(UnknownWorkerError, match="nobody"):
        tg.RemoteModule("nobody/cpu", Scale)


def test_remote_parameters(workers):
    module = tg.RemoteModule("b", Scale, (3.0,))
    parameters = module.remote_parameters()
    assert [parameter.owner_name() for parameter in parameters] == ["b"] * 3
    assert parameters[0].to_here().tolist() == [3.0, 3.0]
    assert [type(parameter.to_here()) for parameter in parameters] == [tg.nn.Parameter] * 3
    assert len(module.remote_parameters(recurse=False)) == 1


def test_train_and_eval(workers):
    module = tg.RemoteModule("b", Scale)
    assert module.eval() is module and not module.training
    assert module(X)[2] is False
    assert module.train() is module and module.training
    assert module(X)[2] is True
    module.train(False)
    assert module(X)[2] is False
    with pytest.raises(TypeError, match=r"train\(\) takes a bool"):
        module.train("yes")


@pytest.mark.parametrize("name", [*LOCAL_METHODS, "named_modules", "state_dict"])
def test_what_is_refused(workers, name):
    module = tg.RemoteModule("b", Scale)
    with pytest.raises(ValueError, match=rf"method '{name}' is not supported for RemoteModule: .* lives on worker 'b'"):
        getattr(module, name)()


def test_it_travels(workers):
    module = tg.RemoteModule("b", Scale, (3.0,))
    assert rpc.rpc_sync("c", call_module, (module, X)).tolist() == [3.0, 6.0]
    back = rpc.rpc_sync("c", give_back, (module,))
    assert back.module_rref.owner_name() == "b" and (back.on, back.device) == ("b", "cpu")
    assert back(X)[0].tolist() == [3.0, 6.0]
    assert back.eval()(X)[2] is False
    assert module(X)[2] is False  # it is the same module


def call_module(module, x):
    return module(x)[0]


def give_back(module):
    return module


def test_another_one_of_the_same_module(workers):
    module = tg.RemoteModule("b", Scale, (3.0,))
    other = tg.RemoteModule.init_from_module_rref("b/cpu", module.get_module_rref())
    assert other(X)[0].tolist() == [3.0, 6.0]
    there = rpc.rpc_sync("c", other_there, (module.get_module_rref(), X))
    assert there.tolist() == [3.0, 6.0]


def other_there(reference, x):
    return tg.RemoteModule.init_from_module_rref("b", reference)(x)[0]


def test_attributes_that_are_added_stay_here(workers):
    module = tg.RemoteModule("b", Scale)
    module.note = "mine"
    with pytest.warns(UserWarning, match="the attribute 'note' was added to a RemoteModule and does not travel"):
        assert not rpc.rpc_sync("c", has_note, (module,))
    assert module.note == "mine"


def has_note(module):
    return hasattr(module, "note")


def test_only_in_messages(workers):
    module = tg.RemoteModule("b", Scale)
    for attempt in (pickle.dumps, copy.deepcopy):
        with pytest.raises(RuntimeError, match="in rpc arguments and results only"):
            attempt(module)


class Hybrid(tg.nn.Module):
    def __init__(self, device):
        super().__init__()
        self.remote = tg.RemoteModule(device, Scale, (3.0,))
        self.local = tg.nn.Linear(2, 1).double()

    def forward(self, x):
        return self.local(self.remote(x)[0])


def test_a_part_of_a_local_module(workers):
    model = Hybrid("b")
    assert len(list(model.parameters())) == 2 and "remote" in dict(model.named_children())
    assert sorted(model.state_dict()) == ["local.bias", "local.weight"]
    assert "RemoteModule(UserRRef(" in repr(model)
    model.eval()
    assert model.remote(X)[2] is False
    model.double().zero_grad()
    model.load_state_dict(model.state_dict())


def test_gradients_reach_the_parameters_there(workers):
    model = Hybrid("b")
    with autograd_dist.context() as context:
        autograd_dist.backward(context, [model(X).sum()])
        gradients = autograd_dist.get_gradients(context)
        assert set(gradients) == set(model.parameters())
        weight = model.remote.remote_parameters(recurse=False)[0]
        there = rpc.rpc_sync("b", gradient_there, (context, weight))
        expected = model.local.weight.detach().numpy()[0] * X.numpy()
        np.testing.assert_allclose(there.numpy(), expected)


def gradient_there(context, parameter):
    return autograd_dist.get_gradients(context)[parameter.local_value()]


def test_a_model_on_many_workers_trains_with_one_optimizer(workers):
    model = tg.nn.Sequential(
        tg.RemoteModule("b", tg.nn.Linear, (2, 4)), tg.RemoteModule("c", Nested), tg.nn.Linear(4, 1)
    )
    parameters = tg.rref.parameter_rrefs(model)
    assert [parameter.owner_name() for parameter in parameters] == ["a"] * 2 + ["b"] * 2 + ["c"] * 2 + ["b"] * 2
    optimizer = tg.DistributedOptimizer(tg.optim.SGD, parameters, lr=0.05)
    x = tg.tensor([[1.0, 2.0], [3.0, -1.0]])
    losses = []
    for _ in range(5):
        with autograd_dist.context() as context:
            loss = (model(x) ** 2).mean()
            autograd_dist.backward(context, [loss])
            optimizer.step(context)
            losses.append(loss.item())
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]


class Nested(tg.nn.Module):
    """A module on one worker, with a part on another."""

    def __init__(self):
        super().__init__()
        self.here = tg.nn.Linear(4, 4)
        self.there = tg.RemoteModule("b", tg.nn.Linear, (4, 4))

    def forward(self, x):
        return self.there(self.here(x))


def test_references_to_parameters_of_several_models(workers):
    linear = tg.nn.Linear(2, 1)
    remote = tg.RemoteModule("b", tg.nn.Linear, (2, 1))
    plain = rpc.remote("c", tg.nn.Linear, (2, 1))
    names = [each.owner_name() for each in tg.rref.parameter_rrefs(plain, linear, remote)]
    assert names == ["c", "c", "a", "a", "b", "b"]
    assert len(tg.rref.parameter_rrefs(tg.nn.Sequential(linear, remote), recurse=False)) == 0
    with pytest.raises(TypeError, match=r"a model must be an nn\.Module or an RRef to one; you gave int"):
        tg.rref.parameter_rrefs(3)

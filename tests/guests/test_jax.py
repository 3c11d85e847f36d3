"""Functions of JAX are nodes of distributed autograd, beside operations of PyTorch and of ours."""

import os
import re
import sys
import weakref
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import telegrad as tg
from helpers import remote
from telegrad import autograd_dist, rpc
from telegrad.autograd_dist import DistributedOptimizer, backward, get_gradients
from telegrad.base.errors import AutogradError, SerializationError
from telegrad.rref import RRef
from telegrad.testing import in_process_cluster

pytest.importorskip("jax.numpy", reason="JAX is not in this environment; `make guests` makes one")
pytest.importorskip("torch.nn", reason="PyTorch is not in this environment; `make guests` makes one")
import jax
import optax
import torch
from jax import numpy as jnp
from telegrad.interop import convert
from telegrad.interop.jax import Parameters, call

pytestmark = pytest.mark.usefixtures("wide_numbers")


@pytest.fixture
def cluster():
    """One lane is enough: ``test_values.py`` sends JAX's arrays over others."""
    return in_process_cluster


@pytest.fixture
def wide_numbers():
    jax.config.update("jax_enable_x64", True)
    kept.update({name: random_layer(seed) for seed, name in enumerate(("here", "there"))})
    yield
    kept.clear()
    jax.config.update("jax_enable_x64", False)


@pytest.fixture
def workers(workers, until):
    """No worker keeps a context of the test."""
    yield workers
    for agent in workers:
        until(lambda agent=agent: agent.debug_info()["contexts"] == 0)


kept = {}  # parameters that functions on all workers of this process use


def random_layer(seed):
    rng = np.random.default_rng(seed)
    return Parameters({"w": rng.standard_normal((3, 3)), "b": [rng.standard_normal(3)]})


def layer(tree, x):
    return jnp.tanh(x @ tree["w"] + tree["b"][0])


def halves(tree, x):
    y = layer(tree, x)
    return {"left": y * 2, "count": jnp.asarray(y.size), "right": (y[0], None)}


def add(x, y):
    return x * y + jnp.sin(x)


def total(x):
    return (x**2).sum()


# -- functions on other workers


def layer_there(x):
    return call(layer, kept["there"], x)


def halves_there(x):
    return call(halves, kept["there"], x)


def onwards(x, route):
    y = call(layer, kept["there"], x)
    return y if not route else call(add, rpc.rpc_sync(route[0], onwards, (y, route[1:])), x)


# -- programs, with a way to call JAX and a way to call another worker


def sent_and_used(call, there, here, x):
    h = call(layer, here, x)
    return call(total, call(add, there(layer_there, h), h))


def several_results(call, there, here, x):
    both = there(halves_there, call(layer, here, x))
    assert both["count"] == x.size and both["right"][1] is None
    return call(total, call(add, both["left"], both["right"][0]))


def unused_results(call, there, here, x):
    both = there(halves_there, call(layer, here, x))
    there(layer_there, both["left"])
    return call(total, both["left"])


def references(call, there, here, x):
    return call(total, there(layer_there, call(layer, here, x)))


def here_alone(call, there, here, x):
    return call(total, call(add, call(layer, here, x), call(layer, here, call(layer, here, x))))


PROGRAMS = [sent_and_used, several_results, unused_results, references, here_alone]


@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_are_those_of_one_process(workers, program):
    x = jnp.asarray(np.random.default_rng(5).standard_normal((4, 3)))

    def there(function, *args):
        if program is references:
            return rpc.remote("b", function, args).to_here()
        return rpc.rpc_sync("b", function, args)

    with autograd_dist.context() as context:
        loss = program(call, there, kept["here"], x)
        backward(context, [loss])
        found = [get_gradients(context).get(kept["here"]), rpc.rpc_sync("b", gradient_there, (context,))]

    def locally(here, there):
        def run(function, x):
            return (layer if function is layer_there else halves)(there, x)

        return program(lambda function, *args: function(*args), run, here, x)

    wanted = jax.grad(locally, (0, 1))(kept["here"].tree, kept["there"].tree)
    check_trees(found, [wanted[0], wanted[1] if program is not here_alone else None])


def gradient_there(context):
    return get_gradients(context).get(kept["there"])


def check_trees(found, wanted):
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12), found, wanted)


def test_a_route_over_three_workers_in_two_passes(workers):
    x = jnp.ones((2, 3))
    with autograd_dist.context() as context:
        loss = call(total, rpc.rpc_sync("b", onwards, (call(layer, kept["here"], x), ["c", "a"])))
        backward(context, [loss], retain_graph=True)
        backward(context, [loss])
        shares = [rpc.rpc_sync(to, gradient_there, (context,)) for to in ("a", "b", "c")]
        found = get_gradients(context)[kept["here"]], jax.tree.map(lambda *shares: sum(shares), *shares)
        with pytest.raises(AutogradError, match=r"JAX \(total\) was differentiated before"):
            backward(context, [loss])

    def locally(here, there):
        def on(x, left):
            y = layer(there, x)
            return y if not left else add(on(y, left - 1), x)

        return 2 * total(on(layer(here, x), 2))

    wanted = jax.grad(locally, (0, 1))(kept["here"].tree, kept["there"].tree)
    check_trees(found, wanted)


def test_a_function_is_compiled_once_for_its_shapes(workers):
    traced = []

    def counted(tree, x, scale, kind):
        traced.append(kind)
        return layer(tree, x) * scale

    for count in (1, 2, 3):
        with autograd_dist.context() as context:
            backward(context, [call(total, call(counted, kept["here"], jnp.ones((2, 3)), float(count), "same"))])
    assert traced == ["same"]
    call(counted, kept["here"], jnp.ones((4, 3)), 1.0, "outside of a context")
    assert traced == ["same", "outside of a context"]


def test_one_graph_of_three_libraries(workers):
    """JAX here, PyTorch on one worker, ours on another; narrow and wide use of each result."""
    with autograd_dist.context() as context:
        x = call(layer, kept["here"], jnp.ones((2, 3)))
        y = rpc.rpc_sync("b", in_torch, (x,))
        z = rpc.rpc_sync("c", in_ours, (y, x))
        backward(context, [call(total, call(add, z, x))])
        found = get_gradients(context)

    def locally(tree):
        x = layer(tree, jnp.ones((2, 3)))
        y = jnp.sin(x) * x[:1]
        return total(add((y - x) * y.sum(0), x))

    check_trees(found[kept["here"]], jax.grad(locally)(kept["here"].tree))


def in_torch(x):
    x = convert(x, "torch")
    return x.sin().mul_(x[:1])


def in_ours(y, x):
    y = convert(y, "telegrad")
    return (y - convert(x, "telegrad")) * y.sum(0)


def test_what_crosses_between_libraries_here(workers):
    """A tensor of PyTorch that is below what crossed twice, and past it."""
    leaf = torch.arange(1.0, 4.0, dtype=torch.float64, requires_grad=True)

    def program(leaf, ours, jaxs, back):
        x = leaf.sin()
        y = back(ours(x) * 2.0)
        return (back(jaxs(y * x)) * y + x * leaf).sum()

    with autograd_dist.context() as context:
        loss = program(
            leaf, lambda x: convert(x, "telegrad"), lambda x: call(jnp.tanh, x), lambda x: convert(x, "torch")
        )
        backward(context, [loss])
        found = get_gradients(context)[leaf]
    wanted = torch.autograd.grad(program(leaf, lambda x: x, torch.tanh, lambda x: x), leaf)[0]
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)
    assert convert(leaf, "torch") is leaf and not convert(leaf, "telegrad").requires_grad


def test_narrow_types_cross_with_their_gradients(workers):
    made = {
        "torch": torch.tensor([1.0, 3.0], dtype=torch.bfloat16, requires_grad=True),
        "telegrad": tg.tensor([1.0, 3.0], dtype=tg.bfloat16, requires_grad=True),
    }
    for library, leaf in made.items():
        with autograd_dist.context() as context:
            other = "telegrad" if library == "torch" else "torch"
            there = convert(leaf, other)
            assert there.tolist() == [1, 3] and str(there.dtype).endswith("bfloat16")
            back = convert(there * 2, library)
            backward(context, [call(weighted, convert(back, "jax"), leaf)])
            gradient = get_gradients(context)[leaf]
        assert gradient.dtype == leaf.dtype and gradient.tolist() == [4, 12]
    tiny = torch.tensor([0.5, 2.0]).to(torch.float8_e4m3fn)
    assert convert(convert(tiny, "jax"), "torch").float().tolist() == [0.5, 2.0]


def weighted(x, y):
    return (x * y).sum().astype(jnp.float32)


def test_optax_steps_at_the_owners(workers):
    optax = pytest.importorskip("optax", reason="Optax is not in this environment; `make guests` installs it")
    x, tree, states = jnp.ones((2, 3)), [kept["here"].tree, kept["there"].tree], None
    optimizer = DistributedOptimizer(optax.adam, [RRef(kept["here"]), rpc.remote("b", parameters_there)], 0.1)
    for _ in range(3):
        with autograd_dist.context() as context:
            backward(context, [call(total, rpc.rpc_sync("b", layer_there, (call(layer, kept["here"], x),)))])
            optimizer.step(context)

    local = optax.adam(0.1)
    states = local.init(tree)
    for _ in range(3):
        gradients = jax.grad(lambda tree: total(layer(tree[1], layer(tree[0], x))))(tree)
        changes, states = local.update(gradients, states)
        tree = optax.apply_updates(tree, changes)
    check_trees([kept["here"].tree, kept["there"].tree], tree)
    state = optimizer.state_dict()
    assert int(state["b"]["states"][0][0].count) == 3
    optimizer.load_state_dict(state)
    with pytest.raises(ValueError, match="of another optimizer"):
        optimizer.load_state_dict({**state, "b": {"states": []}})


def parameters_there():
    return kept["there"]


def test_the_program_of_the_page_learns(monkeypatch):
    pytest.importorskip("optax", reason="Optax is not in this environment; `make guests` installs it")
    page = (Path(tg.__file__).parent / "docs" / "guests_jax.md").read_text()
    (program,) = re.findall(r"<!-- run by tests/guests/test_jax.py -->\n```python\n(.*?)```", page, re.DOTALL)
    module = ModuleType("program_of_the_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # calls name its functions
    exec(program, vars(module))
    with in_process_cluster("server", "trainer") as (_, trainer), trainer.use():
        losses = module.train(jnp.ones((2, 3), jnp.float32), 10)
    assert losses[-1] < losses[0] / 2


def test_a_graph_is_freed_with_its_last_array(workers, no_collector):
    with autograd_dist.context():
        h = call(layer, kept["here"], jnp.ones((2, 3)))
        node = weakref.ref(tg.rpc.extend.library_of(h).edge(h)[0])
        y = rpc.rpc_sync("b", layer_there, (h,))
        del h
        assert node() is not None  # the context needs it
    del y
    assert node() is None


def test_what_a_program_may_not_do(workers):
    leaf = tg.ones(3, requires_grad=True)
    with autograd_dist.context() as context:
        y = call(layer, kept["here"], jnp.ones((2, 3)))
        with pytest.raises(AutogradError, match=r"root 0 must be a scalar"):
            backward(context, [y])
        with pytest.raises(AutogradError, match=r"root 0 does not require grad.* only interop\.jax\.call"):
            backward(context, [y.sum()])
        with pytest.raises(SerializationError, match=r"a tracer of JAX, .* let interop\.jax\.call"):
            jax.grad(lambda x: rpc.rpc_sync("b", remote.same, (x,)).sum())(jnp.ones(3))
        with pytest.raises(AutogradError, match=r"goes through a function of JAX; call autograd_dist\.backward"):
            convert(call(jnp.sum, leaf), "telegrad").backward()
        with pytest.raises(KeyError, match="no backward of this context reached these parameters"):
            get_gradients(context)[kept["here"]]
    with pytest.raises(TypeError, match="a set among the arguments of call"):
        call(layer, {1, 2}, "x")
    with pytest.raises(TypeError, match=r"tree\['step'\] must have floating or complex numbers; it is of int"):
        Parameters({"step": 3})
    with pytest.raises(TypeError, match=r"tree\[0\] must be an array; you gave str"):
        Parameters(["x"])
    with pytest.raises(TypeError, match=r"must make a gradient transformation, as optax\.sgd does"):
        DistributedOptimizer(dict, [RRef(kept["here"])])
    with pytest.raises(
        TypeError, match=r"refers to a jax\.Array, which gets no gradient; refer to interop\.jax\.Param"
    ):
        DistributedOptimizer(optax.sgd, [RRef(jnp.ones(2))], 0.1)
    with pytest.raises(TypeError, match="refers to trees of JAX and to tensors on worker 'a'"):
        DistributedOptimizer(tg.optim.SGD, [RRef(kept["here"]), RRef(leaf)], lr=0.1)
    with pytest.raises(ValueError, match=r"library must be one of \['telegrad', 'torch', 'jax'\]"):
        convert(leaf, "numpy")
    with pytest.raises(TypeError, match="an array of float8_e5m2 cannot be converted: telegrad has no such type"):
        convert(jnp.ones(2, "float8_e5m2"), "telegrad")
    with pytest.raises(TypeError, match="an array of int4 cannot be converted: torch has no such type"):
        convert(jnp.ones(2, "int4"), "torch")
    with pytest.raises(TypeError, match="value must be an array; you gave str"):
        convert("x", "torch")


DEVICES = """
import jax
import telegrad as tg
from jax import numpy as jnp
from telegrad import rpc
from telegrad.interop.jax import Parameters, call
from telegrad.rpc.extend import GrpcRpcBackendOptions
from telegrad.testing import in_process_cluster


def twice(x):
    assert [str(each.id) for each in x.devices()] == ["2"]
    return call(lambda value: value * 2, x)


def on(device, x):
    return jax.device_put(x, jax.devices()[device])


options = GrpcRpcBackendOptions(device_maps={"b": {"cpu:1": "cpu:2", "cpu:3": "cpu:9"}})
with in_process_cluster("a", "b", options=options) as agents, agents[0].use():
    weights = Parameters(on(1, jnp.ones(3)))
    with tg.autograd_dist.context() as context:
        back = rpc.rpc_sync("b", twice, (call(lambda w: w * 3, weights),))
        print([each.id for each in back.devices()])
        tg.autograd_dist.backward(context, [call(lambda value: value.sum(), back)])
        print(tg.autograd_dist.get_gradients(context)[weights].tolist())
    try:
        rpc.rpc_sync("b", twice, (on(3, jnp.ones(3)),))
    except tg.errors.SerializationError as error:
        print(error)
"""


def test_values_and_gradients_cross_devices(run_python):
    flags = "--xla_force_host_platform_device_count=4"
    done = run_python("-c", DEVICES, env={**os.environ, "XLA_FLAGS": flags})
    assert done.splitlines()[:2] == ["[1]", "[6.0, 6.0, 6.0]"]
    assert "worker 'b', and device_maps place it on 'cpu:9', but JAX there has the devices" in done

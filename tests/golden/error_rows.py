"""Rows of the table of errors: things that a program must not do, run with PyTorch and with Telegrad.

``ROWS`` maps the name of each to a function that does it. The variable ERROR_ROWS_OF names the library, ``torch`` when they are
recorded. Two workers, ``worker0`` and ``worker1``, are connected, and the rows run on the first.
"""

import importlib
import io
import os

LIBRARY = os.environ.get("ERROR_ROWS_OF", "telegrad.compat.torch")
torch = importlib.import_module(LIBRARY)
rpc, dist_autograd = (importlib.import_module(f"{LIBRARY}.distributed.{name}") for name in ("rpc", "autograd"))
DistributedOptimizer = importlib.import_module(f"{LIBRARY}.distributed.optim").DistributedOptimizer
futures = torch.futures


class OddError(Exception):
    """Error that takes two arguments, so that it cannot be made of its text alone."""

    def __init__(self, one, two):
        super().__init__(one)


class Box:
    """Value of a reference."""

    def __init__(self, value=1):
        self.value = value

    def get(self):
        """Return the value."""
        return self.value

    def fail(self):
        """Raise."""
        raise IndexError("no box")


def fail(kind=ValueError):
    """Raise an error of that type."""
    raise kind("failed")


def fail_oddly():
    """Raise an error that cannot be rebuilt."""
    raise OddError(1, 2)


def give(value=1):
    """Return the value."""
    return value


def give_what_cannot_be_sent():
    """Return a lock."""
    import threading

    return threading.Lock()


def sleep():
    """Sleep for longer than the time-out of the call."""
    import time

    time.sleep(1.0)


@rpc.functions.async_execution
def no_future():
    """Return no future, although it is marked."""
    return 1


@rpc.functions.async_execution
def failing_future():
    """Return a future that fails."""
    return rpc.rpc_async("worker0", fail)


def square(x):
    """Return ``x * x``."""
    return x * x


class Failing(torch.autograd.Function):
    """Function whose backward fails."""

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        raise ValueError("backward failed")


def through_failing(x):
    """Return the input, whose gradient cannot be computed."""
    return Failing.apply(x)


def completed(value=1):
    """Return a future that has completed."""
    future = futures.Future()
    future.set_result(value)
    return future


def failed(error):
    """Return a future that has failed."""
    future = futures.Future()
    future.set_exception(error)
    return future


def twice_completed():
    """Complete a future twice."""
    completed().set_result(2)


def raising_callback(future):
    """Raise."""
    raise KeyError("callback")


def in_context(action):
    """Run ``action(context id)`` in a context of distributed autograd."""
    with dist_autograd.context() as context_id:
        return action(context_id)


def remote_backward(function, **options):
    """Differentiate through a call."""

    def run(context_id):
        x = torch.ones(2, requires_grad=True)
        dist_autograd.backward(context_id, [rpc.rpc_sync("worker1", function, (x,)).sum()], **options)

    return in_context(run)


def backward_twice():
    """Differentiate twice without keeping the graph."""

    def run(context_id):
        loss = rpc.rpc_sync("worker1", square, (torch.ones(2, requires_grad=True),)).sum()
        dist_autograd.backward(context_id, [loss])
        dist_autograd.backward(context_id, [loss])

    return in_context(run)


def box_on(worker):
    """Return a reference to a box, which is there."""
    reference = rpc.remote(worker, Box)
    reference.to_here()
    return reference


def weight_on(worker):
    """Return a reference to a tensor."""
    return rpc.remote(worker, torch.ones, (2,), {"requires_grad": True})


def saved(value):
    """Save a value."""
    torch.save(value, io.BytesIO())


def freed_graph():
    """Differentiate twice a graph that was not kept."""
    loss = (torch.ones(2, requires_grad=True) ** 2).sum()
    loss.backward()
    loss.backward()


def changed_in_place():
    """Change a value that the backward needs."""
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y.add_(1)
    y.sum().backward()


def without_gradients(x):
    """Return an optimizer of it."""
    return torch.optim.SGD([x], lr=0.1)


X, LEAF = torch.ones(2, 3), torch.ones(2, requires_grad=True)

CALLS = {
    "rpc_sync to an unknown name": lambda: rpc.rpc_sync("nobody", give),
    "rpc_sync to an unknown rank": lambda: rpc.rpc_sync(99, give),
    "rpc_sync to=1.5": lambda: rpc.rpc_sync(1.5, give),
    "rpc_sync to=None": lambda: rpc.rpc_sync(None, give),
    "rpc_sync of no function": lambda: rpc.rpc_sync("worker1", 3),
    "rpc_sync args=3": lambda: rpc.rpc_sync("worker1", give, args=3),
    "rpc_sync too many arguments": lambda: rpc.rpc_sync("worker1", give, (1, 2, 3)),
    "rpc_sync unknown keyword": lambda: rpc.rpc_sync("worker1", give, kwargs={"no": 1}),
    "rpc_sync timeout is text": lambda: rpc.rpc_sync("worker1", give, timeout="soon"),
    "rpc_sync times out": lambda: rpc.rpc_sync("worker1", sleep, timeout=0.1),
    "rpc_async times out": lambda: rpc.rpc_async("worker1", sleep, timeout=0.1).wait(),
    "rpc_async to=1.5": lambda: rpc.rpc_async(1.5, give),
    "rpc_async to an unknown name": lambda: rpc.rpc_async("nobody", give),
    **{
        f"the function raises {kind.__name__}": lambda kind=kind: rpc.rpc_sync("worker1", fail, (kind,))
        for kind in (
            ValueError,
            RuntimeError,
            TypeError,
            IndexError,
            AssertionError,
            NotImplementedError,
            StopIteration,
            OSError,
        )
    },
    "the function raises KeyError": lambda: rpc.rpc_sync("worker1", {}.__getitem__, ("key",)),
    "the function raises what cannot be rebuilt": lambda: rpc.rpc_sync("worker1", fail_oddly),
    "rpc_async: the function raises": lambda: rpc.rpc_async("worker1", fail).wait(),
    "an argument cannot be sent": lambda: rpc.rpc_sync("worker1", give, (io.TextIOWrapper(io.BytesIO()),)),
    "a result cannot be sent": lambda: rpc.rpc_sync("worker1", give_what_cannot_be_sent),
    "async_execution returns no future": lambda: rpc.rpc_sync("worker1", no_future),
    "async_execution, rpc_async: returns no future": lambda: rpc.rpc_async("worker1", no_future).wait(),
    "async_execution: the future fails": lambda: rpc.rpc_sync("worker1", failing_future),
    "get_worker_info of nobody": lambda: rpc.get_worker_info("nobody"),
}

REFERENCES = {
    "remote to an unknown name": lambda: rpc.remote("nobody", give),
    "remote to=1.5": lambda: rpc.remote(1.5, give),
    "remote of no function": lambda: rpc.remote("worker1", 3),
    "remote, to_here: the function raises": lambda: rpc.remote("worker1", fail).to_here(),
    "remote, to_here: async_execution returns no future": lambda: rpc.remote("worker1", no_future).to_here(),
    "remote to oneself, to_here: the function raises": lambda: rpc.remote("worker0", fail).to_here(),
    "remote to oneself, local_value: the function raises": lambda: rpc.remote("worker0", fail).local_value(),
    "remote, to_here: too many arguments": lambda: rpc.remote("worker1", give, (1, 2, 3)).to_here(),
    "to_here times out": lambda: rpc.remote("worker1", sleep).to_here(timeout=0.1),
    "to_here timeout is text": lambda: box_on("worker1").to_here(timeout="soon"),
    "local_value elsewhere": lambda: box_on("worker1").local_value(),
    "rref.rpc_sync(): no such attribute": lambda: box_on("worker1").rpc_sync().missing(),
    "rref.rpc_async(): no such attribute": lambda: box_on("worker1").rpc_async().missing().wait(),
    "rref.remote(): no such attribute": lambda: box_on("worker1").remote().missing().to_here(),
    "rref.rpc_sync(): the method raises": lambda: box_on("worker1").rpc_sync().fail(),
    "rref.rpc_sync(): too many arguments": lambda: box_on("worker1").rpc_sync().get(1, 2),
    "rref.backward of no tensor": lambda: in_context(rpc.RRef(Box()).backward),
    "rref.backward of no scalar": lambda: in_context(rpc.RRef(torch.ones(2, requires_grad=True) * 2).backward),
    "rref.backward without gradient": lambda: in_context(rpc.RRef(torch.ones(())).backward),
    "rref.backward in no context": lambda: rpc.RRef(torch.ones((), requires_grad=True) * 2).backward(12345),
    "saving a reference": lambda: saved(rpc.RRef(1)),
    "pickling a reference": lambda: importlib.import_module("pickle").dumps(rpc.RRef(1)),
    "copying a reference": lambda: importlib.import_module("copy").deepcopy(rpc.RRef(1)),
    "RRef()": lambda: rpc.RRef(),
    "an attribute of a reference": lambda: rpc.RRef(1).missing,
}

OPTIONS = {
    'WorkerInfo("abc*", 0)': lambda: rpc.WorkerInfo("abc*", 0),
    'WorkerInfo("", 0)': lambda: rpc.WorkerInfo("", 0),
    "WorkerInfo of a long name": lambda: rpc.WorkerInfo("x" * 200, 0),
    "WorkerInfo(3, 0)": lambda: rpc.WorkerInfo(3, 0),
    'WorkerInfo("a", "b")': lambda: rpc.WorkerInfo("a", "b"),
    'WorkerInfo("a")': lambda: rpc.WorkerInfo("a"),
    "options: num_worker_threads=0": lambda: rpc.TensorPipeRpcBackendOptions(num_worker_threads=0),
    "options: num_worker_threads is text": lambda: rpc.TensorPipeRpcBackendOptions(num_worker_threads="4"),
    "options: rpc_timeout is text": lambda: rpc.TensorPipeRpcBackendOptions(rpc_timeout="soon"),
    "options: init_method=3": lambda: rpc.TensorPipeRpcBackendOptions(init_method=3),
    "options: positional": lambda: rpc.TensorPipeRpcBackendOptions(16),
    "options: an unknown one": lambda: rpc.TensorPipeRpcBackendOptions(no_such_option=1),
    "init_rpc: a backend of another type": lambda: rpc.init_rpc("w", backend="tensorpipe", rank=0, world_size=1),
    "init_rpc: options of another type": lambda: rpc.init_rpc("w", rank=0, world_size=1, rpc_backend_options=3),
}

FUTURES = {
    "then(None)": lambda: futures.Future().then(None),
    "then(3), completed": lambda: completed().then(3),
    "add_done_callback(None)": lambda: futures.Future().add_done_callback(None),
    "a callback of then raises": lambda: completed().then(raising_callback).wait(),
    "a callback of then takes nothing": lambda: completed().then(lambda: 1).wait(),
    "set_result twice": twice_completed,
    "set_exception of no exception": lambda: futures.Future().set_exception(3),
    "set_exception of a class": lambda: futures.Future().set_exception(ValueError),
    "set_exception, wait": lambda: failed(ValueError("x")).wait(),
    "set_exception, value": lambda: failed(KeyError("x")).value(),
    "value before the end": lambda: futures.Future().value(),
    "set_result without a value": lambda: futures.Future().set_result(),
    "wait_all with a failed one": lambda: futures.wait_all([completed(), failed(ValueError("x"))]),
    "wait_all of no futures": lambda: futures.wait_all([1, 2]),
    "wait_all(None)": lambda: futures.wait_all(None),
    "collect_all of no futures": lambda: futures.collect_all([1, 2]),
    "collect_all(None)": lambda: futures.collect_all(None),
    "collect_all with a failed one": lambda: [
        each.wait() for each in futures.collect_all([failed(OSError("x"))]).wait()
    ],
    "a future of no devices": lambda: futures.Future(devices=3),
}

DIST_AUTOGRAD = {
    "backward(context, None)": lambda: in_context(lambda context_id: dist_autograd.backward(context_id, None)),
    "backward(context, tensor)": lambda: in_context(lambda context_id: dist_autograd.backward(context_id, LEAF.sum())),
    "backward(context, [])": lambda: in_context(lambda context_id: dist_autograd.backward(context_id, [])),
    "backward(context, [3])": lambda: in_context(lambda context_id: dist_autograd.backward(context_id, [3])),
    "backward(None, roots)": lambda: dist_autograd.backward(None, [LEAF.sum()]),
    "backward(text, roots)": lambda: dist_autograd.backward("context", [LEAF.sum()]),
    "backward of an unknown context": lambda: dist_autograd.backward(12345, [LEAF.sum()]),
    "backward of no scalar": lambda: in_context(lambda context_id: dist_autograd.backward(context_id, [LEAF * 2])),
    "backward without gradient": lambda: in_context(lambda context_id: dist_autograd.backward(context_id, [X.sum()])),
    "a remote backward fails": lambda: remote_backward(through_failing),
    "backward of a result that is constant": lambda: remote_backward(torch.zeros_like),
    "backward twice": backward_twice,
    "backward retain_graph is text": lambda: in_context(
        lambda context_id: dist_autograd.backward(context_id, [LEAF.sum()], retain_graph="yes")
    ),
    "get_gradients of an unknown context": lambda: dist_autograd.get_gradients(12345),
    "get_gradients of text": lambda: dist_autograd.get_gradients("context"),
    "get_gradients()": lambda: dist_autograd.get_gradients(),
    "contexts in one another": lambda: in_context(lambda _: in_context(lambda _: None)),
    "DistributedOptimizer of no references": lambda: DistributedOptimizer(torch.optim.SGD, [LEAF], lr=0.1),
    "DistributedOptimizer of an unknown option": lambda: DistributedOptimizer(
        torch.optim.SGD, [weight_on("worker1")], no_such_option=1
    ),
    "DistributedOptimizer of a bad rate": lambda: DistributedOptimizer(
        torch.optim.SGD, [weight_on("worker1")], lr=-1.0
    ),
    "DistributedOptimizer of a reference to no tensor": lambda: DistributedOptimizer(
        torch.optim.SGD, [box_on("worker1")], lr=0.1
    ),
    "DistributedOptimizer.step in no context": lambda: DistributedOptimizer(
        torch.optim.SGD, [weight_on("worker1")], lr=0.1
    ).step(12345),
}

TENSORS = {
    "item() of several": lambda: X.item(),
    "bool() of several": lambda: bool(X),
    "bool() of none": lambda: bool(torch.ones(0)),
    "float() of several": lambda: float(X),
    "int() of several": lambda: int(X),
    "index by a float": lambda: X[1.5],
    "index out of range": lambda: X[5],
    "too many indices": lambda: X[0, 0, 0],
    "index by text": lambda: X["a"],
    "iterate over a scalar": lambda: list(torch.ones(())),
    "len() of a scalar": lambda: len(torch.ones(())),
    "shapes that do not fit": lambda: X + torch.ones(4),
    "matmul of shapes that do not fit": lambda: X @ X,
    "add text": lambda: X + "a",
    "add None": lambda: X + None,
    "view of another size": lambda: X.view(5),
    "reshape to another size": lambda: X.reshape(4),
    "dim out of range": lambda: X.sum(7),
    "cat of nothing": lambda: torch.cat([]),
    "cat of shapes that do not fit": lambda: torch.cat([X, torch.ones(2)]),
    "stack of shapes that do not fit": lambda: torch.stack([X, torch.ones(2)]),
    "tensor of ragged lists": lambda: torch.tensor([[1, 2], [3]]),
    "tensor of text": lambda: torch.tensor("a"),
    "tensor of objects": lambda: torch.tensor([object()]),
    "negative size": lambda: torch.zeros(-1),
    "size is text": lambda: torch.zeros("2"),
    "an unknown dtype": lambda: torch.zeros(2, dtype="float32"),
    "arange without a step": lambda: torch.arange(0, 3, 0),
    "numpy() of one that requires grad": lambda: LEAF.numpy(),
    "a leaf changed in place": lambda: LEAF.add_(1),
    "backward of no scalar, local": lambda: (LEAF * 2).backward(),
    "backward without gradient, local": lambda: X.sum().backward(),
    "backward with a gradient of another shape": lambda: (LEAF * 2).backward(torch.ones(3)),
    "backward of a freed graph": freed_graph,
    "backward after a change in place": changed_in_place,
    "grad of what was not used": lambda: torch.autograd.grad(LEAF.sum(), [torch.ones(1, requires_grad=True)]),
    "requires_grad of integers": lambda: torch.tensor([1]).requires_grad_(),
    "requires_grad_(False) of no leaf": lambda: setattr(LEAF * 2, "requires_grad", False),
    "a custom backward fails": lambda: Failing.apply(LEAF).sum().backward(),
    "load of no file": lambda: torch.load("/no/such/file"),
    "a missing name": lambda: torch.no_such_name,
    "a missing method": lambda: X.no_such_method(),
    "softmax over a dim out of range": lambda: torch.softmax(X, 5),
    "manual_seed of text": lambda: torch.manual_seed("a"),
}

TRAINING = {
    "Linear with another size": lambda: torch.nn.Linear(4, 2)(X),
    "Linear of integers": lambda: torch.nn.Linear(3, 2)(torch.ones(2, 3, dtype=torch.int64)),
    "Conv2d with other channels": lambda: torch.nn.Conv2d(3, 2, 1)(torch.ones(1, 4, 5, 5)),
    "Embedding out of range": lambda: torch.nn.Embedding(3, 2)(torch.tensor([7])),
    "Embedding by floats": lambda: torch.nn.Embedding(3, 2)(torch.ones(2)),
    "a module without forward": lambda: torch.nn.Module()(1),
    "a missing attribute of a module": lambda: torch.nn.Linear(1, 1).missing,
    "a parameter that is none": lambda: setattr(torch.nn.Linear(1, 1), "weight", X),
    "register_parameter of a tensor": lambda: torch.nn.Module().register_parameter("x", X),
    "load_state_dict with missing keys": lambda: torch.nn.Linear(2, 1).load_state_dict({}),
    "load_state_dict with another shape": lambda: torch.nn.Linear(2, 1).load_state_dict(
        torch.nn.Linear(3, 1).state_dict()
    ),
    "load_state_dict of no dict": lambda: torch.nn.Linear(2, 1).load_state_dict(3),
    "Sequential of no module": lambda: torch.nn.Sequential(3),
    "cross_entropy of other shapes": lambda: torch.nn.functional.cross_entropy(X, torch.tensor([0, 1, 2])),
    "cross_entropy of a class out of range": lambda: torch.nn.functional.cross_entropy(X, torch.tensor([0, 7])),
    "mse_loss of other shapes": lambda: torch.nn.functional.mse_loss(X, torch.ones(2, 4)),
    "SGD of nothing": lambda: torch.optim.SGD([], lr=0.1),
    "SGD of a bad rate": lambda: torch.optim.SGD([LEAF], lr=-1.0),
    "SGD of a tensor": lambda: torch.optim.SGD(LEAF, lr=0.1),
    "SGD of no tensors": lambda: torch.optim.SGD([1], lr=0.1),
    "SGD of no leaf": lambda: torch.optim.SGD([LEAF * 2], lr=0.1),
    "Adam of bad betas": lambda: torch.optim.Adam([LEAF], betas=(2.0, 0.9)),
    "StepLR of no optimizer": lambda: torch.optim.lr_scheduler.StepLR(3, 1),
    "DataLoader: a bad batch size": lambda: torch.utils.data.DataLoader([1, 2], batch_size=0),
    "DataLoader: shuffle and a sampler": lambda: torch.utils.data.DataLoader([1], shuffle=True, sampler=[0]),
    "DataLoader: negative workers": lambda: torch.utils.data.DataLoader([1], num_workers=-1),
    "Normal of a bad scale": lambda: torch.distributions.Normal(0.0, -1.0),
}

KEPT = "an error of the callee's function keeps its type"
DIFFERS = {
    **{
        f"the function raises {kind}": KEPT
        for kind in ("IndexError", "AssertionError", "StopIteration", "OSError", "KeyError")
    },
    "the function raises what cannot be rebuilt": KEPT,
    "async_execution: the future fails": KEPT,
    "rref.rpc_sync(): the method raises": KEPT,
    "DistributedOptimizer of an unknown option": KEPT,
    "DistributedOptimizer of a bad rate": KEPT,
    "DistributedOptimizer of a reference to no tensor": KEPT,
    "set_exception of no exception": "an assert there, which python -O leaves out",
    "set_exception of a class": "an assert there, which python -O leaves out",
    "DistributedOptimizer of no references": "there it is the first missing attribute",
    "index by text": "an IndexError, like every index that does not fit",
    "an unknown dtype": "dtypes may be named by a text",
}
"""Rows whose errors are of another type on purpose, or that are no errors, and why."""

ROWS = {**CALLS, **REFERENCES, **OPTIONS, **FUTURES, **DIST_AUTOGRAD, **TENSORS, **TRAINING}

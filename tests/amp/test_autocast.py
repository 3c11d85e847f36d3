"""Autocast: dtypes as PyTorch's (tests/golden/record_amp.py), nesting, decorators, custom functions, training."""

import asyncio
import threading
import warnings

import numpy as np
import pytest
import telegrad as tg
from helpers.golden import recorded
from telegrad.core import interception
from telegrad.core.interception import TensorFunctionMode, Watcher
from telegrad.nn import functional as F

SINGLE, BRAIN, HALF = tg.float32, tg.bfloat16, tg.float16
# Where another dtype is due, and why.
OTHERWISE = {
    "t.linalg.pinv(pd(3))": "PyTorch decomposes in float32 and multiplies in the lower precision; here it is one operation",
}
CASES = [case for case in recorded("amp")["cases"] if case["code"] not in OTHERWISE]


def evaluated(expression, dtype, wide):
    """Return the value of a recorded expression, by the formulas of its recorder."""

    def m(*shape):
        count = int(np.prod(shape))
        return tg.linspace(0.1, 0.9, count, dtype=SINGLE).reshape(shape).to(dtype)

    names = {
        "t": tg,
        "F": F,
        "dtype": dtype,
        "m": m,
        "q": lambda x: tg.tensor(x, dtype=dtype),
        "w": lambda *shape: m(*shape).to(wide),
        "i": lambda *shape: tg.zeros(shape, dtype=tg.int64),
        "pd": lambda n: (tg.eye(n) + 0.1).to(dtype),
    }
    return eval(expression, names)


@pytest.mark.parametrize("low", [BRAIN, HALF], ids=str)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["code"])
def test_dtypes(case, low):
    for name, expected in case[str(low)].items():
        if expected not in (None, "complex32"):
            dtype = np.dtype(low if name == str(low) else name)
            with tg.autocast("cpu", low), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = evaluated(case["code"], dtype, SINGLE if dtype == low else low)
            assert str(result.dtype) == expected, f"of {name}"


def product():
    return (tg.ones(2, 2) @ tg.ones(2, 2)).dtype


def test_blocks_nest():
    assert not tg.is_autocast_enabled("cpu")
    with tg.autocast("cpu"):
        assert tg.is_autocast_enabled("cpu") and tg.is_autocast_cpu_enabled() and not tg.is_autocast_enabled()
        with tg.autocast("cpu", HALF):
            assert product() == HALF and tg.get_autocast_dtype("cpu") == HALF
        with tg.autocast("cpu", enabled=False):
            assert product() == SINGLE
        with pytest.raises(ZeroDivisionError), tg.autocast("cpu", HALF):
            _ = 1 / 0
        assert product() == BRAIN
    assert product() == SINGLE and not interception.entered


def test_the_same_block_twice():
    block = tg.autocast("cpu")
    with block, block:
        assert product() == BRAIN
    assert product() == SINGLE and not interception.entered


def test_decorators():
    @tg.autocast("cpu")
    def plain():
        return product()

    @tg.autocast("cpu", HALF)
    async def later():
        await asyncio.sleep(0)
        return product()

    assert plain() == BRAIN and asyncio.run(later()) == HALF and product() == SINGLE
    with pytest.raises(TypeError, match="decorates functions"):
        tg.autocast("cpu")(3)


def test_other_threads_and_tasks_are_not_affected():
    found = []
    with tg.autocast("cpu"):
        thread = threading.Thread(target=lambda: found.append(product()))
        thread.start()
        thread.join(60)
    assert found == [SINGLE]

    async def cast():
        with tg.autocast("cpu"):
            await asyncio.sleep(0)
            return product()

    async def uncast():
        await asyncio.sleep(0)
        return product()

    async def both():
        return await asyncio.gather(cast(), uncast())

    assert asyncio.run(both()) == [BRAIN, SINGLE]


def test_the_state_can_be_set():
    try:
        tg.set_autocast_enabled("cpu", True)
        tg.set_autocast_dtype("cpu", HALF)
        tg.set_autocast_cache_enabled(False)
        assert product() == HALF and not tg.is_autocast_cache_enabled()
        assert tg.autocast_increment_nesting() == 1 and tg.autocast_decrement_nesting() == 0
    finally:
        tg.set_autocast_cpu_enabled(False)
        tg.set_autocast_cpu_dtype(BRAIN)
        tg.set_autocast_cache_enabled(True)
    assert product() == SINGLE and not interception.entered
    with pytest.raises(ValueError, match="autocast is for the cpu"):
        tg.set_autocast_enabled("cuda", True)


def test_what_cannot_be_is_disabled_with_a_warning():
    with pytest.warns(UserWarning, match="no device 'cuda'"), tg.autocast("cuda"):
        assert product() == SINGLE
    with pytest.warns(UserWarning, match="not float64"), tg.autocast("cpu", tg.float64):
        assert product() == SINGLE
    with pytest.raises(ValueError, match="a kind of device"):
        tg.autocast(3)
    assert tg.is_autocast_available("cpu") and not tg.is_autocast_available("cuda")


def test_out_and_in_place_forms_are_not_converted():
    x, out = tg.full((2, 2), 1.001), tg.zeros(2, 2)
    with tg.autocast("cpu"):
        tg.mm(x, x, out=out)
        changed = tg.zeros(2, 2).addmm_(x, x)
    exact = (x @ x).numpy()
    np.testing.assert_array_equal(out.numpy(), exact)
    np.testing.assert_array_equal(changed.numpy(), exact)


def test_classes_modes_and_watchers_see_operations_too():
    seen = []

    class Mode(TensorFunctionMode):
        def __tensor_function__(self, func, types, args, kwargs):
            seen.append(("mode", args[0].dtype))
            return func(*args, **kwargs)

    class Watching(Watcher):
        def watch(self, run, func, args, kwargs):
            seen.append(("watcher", args[0].dtype))
            return run()

    x = tg.ones(2, 2)
    with tg.autocast("cpu"), Mode(), Watching():
        assert tg.mm(x, x).dtype == BRAIN
    assert seen[0] == ("mode", SINGLE) and ("watcher", BRAIN) in seen


class Scaled(tg.Function):
    @staticmethod
    @tg.amp.custom_fwd(device_type="cpu", cast_inputs=SINGLE)
    def forward(ctx, x, factor):
        ctx.save_for_backward(x, factor)
        ctx.seen = product()
        return x * factor

    @staticmethod
    @tg.amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        assert ctx.seen == SINGLE and product() == SINGLE
        x, factor = ctx.saved_tensors
        return grad * factor, grad * x


class Product(tg.Function):
    @staticmethod
    @tg.amp.custom_fwd(device_type="cpu")
    def forward(ctx, x):
        ctx.seen = product()
        return x * 1

    @staticmethod
    @tg.amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        assert ctx.seen == product()
        return grad


def test_custom_functions():
    x = tg.ones(2, dtype=BRAIN, requires_grad=True)
    with tg.autocast("cpu"):
        result = Scaled.apply(x, tg.ones(2, dtype=tg.float64))
        same = Product.apply(x)
    assert result.dtype == tg.float64 and Scaled.apply(x, x).dtype == BRAIN
    (result.sum() + same.sum() + Product.apply(x).sum()).backward()
    assert x.grad.dtype == BRAIN


def trained(low):
    tg.manual_seed(0)
    model = tg.nn.Sequential(tg.nn.Linear(8, 16), tg.nn.GELU(), tg.nn.Linear(16, 3))
    inputs = tg.randn(64, 8)
    targets = inputs[:, :3].argmax(-1)
    optimizer, losses = tg.optim.Adam(model.parameters(), 0.02), []
    for _ in range(40):
        optimizer.zero_grad()
        with tg.autocast("cpu", low or BRAIN, enabled=low is not None):
            loss = F.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert all(each.dtype == each.grad.dtype == SINGLE for each in model.parameters()) and loss.dtype == SINGLE
    return losses


@pytest.mark.parametrize("low", [BRAIN, HALF], ids=str)
def test_training_gives_nearly_the_losses_of_single_precision(low):
    losses, exact = trained(low), trained(None)
    np.testing.assert_allclose(losses, exact, atol=0.05)
    assert losses != exact and losses[-1] < losses[0] / 3

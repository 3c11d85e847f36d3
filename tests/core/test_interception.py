"""Classes and modes that take operations over: `__tensor_function__` and `TensorFunctionMode`."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
import telegrad as tg
from telegrad import nn
from telegrad.core import interception
from telegrad.core.interception import TensorFunctionMode, Watcher


@pytest.fixture
def logged():
    class Logged(tg.Tensor):
        calls: list[str] = []  # noqa: RUF012

        @classmethod
        def __tensor_function__(cls, func, types, args, kwargs):
            cls.calls.append(func.__name__)
            return super().__tensor_function__(func, types, args, kwargs)

    return Logged


@pytest.fixture
def quantity():
    """Tensors with a unit: a product multiplies units, a sum needs equal ones, anything else needs none."""

    class Quantity(tg.Tensor):
        unit = ""

        @classmethod
        def __tensor_function__(cls, func, types, args, kwargs):
            units = [getattr(arg, "unit", "") for arg in args]
            result = super().__tensor_function__(func, types, args, kwargs)
            if func.__name__ == "mul":
                result.unit = " ".join(sorted(filter(None, units)))
            elif func.__name__ in ("add", "sub", "add_"):
                if len(set(units)) > 1:
                    raise ValueError(f"{func.__name__} of {units[0]} and {units[1]}")
                result.unit = units[0]
            elif func.__name__ in ("sum", "detach", "getitem", "clone"):
                result.unit = units[0]
            elif any(units):
                return NotImplemented
            return result

    def make(values, unit, requires_grad=False):
        result = Quantity(np.array(values, np.float32), requires_grad)
        result.unit = unit
        return result

    return make


def test_every_kind_of_operation_is_logged(logged):
    x = logged(np.ones((2, 3), np.float32))
    plain = tg.ones(2, 3)
    y = (x + 1) * plain
    z = plain / y.tanh().sum(1, keepdim=True)
    z[0:1].detach().add_(1)
    tg.cat([z, plain]).softmax(0)
    assert logged.calls == ["add", "mul", "tanh", "sum", "div", "getitem", "detach", "add_", "cat", "softmax"]
    assert type(y) is type(z) is logged and type(plain) is tg.Tensor


def test_gradients_flow_through_logged_operations(logged):
    x = logged(np.full(3, 2.0, np.float32), True)
    y = (x * x).exp().sum()
    y.backward()
    assert type(y) is logged and y.grad_fn.name() == "SumBackward" and logged.calls == ["mul", "exp", "sum"]
    assert np.allclose(x.grad.numpy(), 4 * np.exp(4.0))


def test_recorded_passes_log_their_own_operations(logged):
    x = logged(np.full(3, 2.0, np.float32), True)
    (gradient,) = tg.autograd.grad((x * x * x).sum(), x, create_graph=True)
    assert logged.calls.count("mul") > 2
    gradient.sum().backward()
    assert x.grad.tolist() == [12, 12, 12]


def test_in_place_changes_return_the_very_tensor(logged):
    x = logged(np.zeros(2, np.float32))
    same = x
    assert x.add_(1) is same
    x += 1
    x[0] = 5
    assert x is same and x.tolist() == [5, 2] and logged.calls == ["add_", "add_", "setitem"]


def test_what_an_operation_was_given_keeps_its_class(logged):
    x, out, plain = logged(np.ones(2, np.float32)), tg.zeros(2), tg.zeros(2)
    assert tg.add(x, x, out=out) is out and type(out) is tg.Tensor and out.tolist() == [2, 2]
    assert plain.add_(x) is plain and type(plain) is tg.Tensor


def test_attributes_and_history_of_results_are_the_results_own(logged):
    x = logged(np.ones((2, 2), np.float32), True)
    row = (x * 2)[0]
    row.note = "first"
    row.mul_(3)
    assert type(row) is logged and row.note == "first" and row.grad_fn is row.grad_fn
    row.sum().backward()
    assert x.grad.tolist() == [[6, 6], [0, 0]]


def test_units_travel_through_operations(quantity):
    force, way = quantity([2, 3], "N", True), quantity([4, 5], "m")
    work = (force * way).sum()
    assert work.unit == "N m" and work.item() == 23 and work.detach().unit == "N m"
    assert (way + way)[1].unit == "m"
    work.backward()
    assert force.grad.tolist() == [4, 5]


def test_units_that_do_not_fit_are_refused(quantity):
    way, time = quantity([4, 5], "m"), quantity([1, 2], "s")
    with pytest.raises(ValueError, match="add of m and s"):
        way + time
    with pytest.raises(ValueError, match="add_ of m and s"):
        way += time
    with pytest.raises(TypeError, match=r"exp\(\).*Quantity.*declined"):
        way.exp()


def test_the_more_special_class_is_asked_first(logged):
    class Special(logged):
        calls = []  # noqa: RUF012

        @classmethod
        def __tensor_function__(cls, func, types, args, kwargs):
            cls.calls.append([each.__name__ for each in types])
            return super().__tensor_function__(func, types, args, kwargs)

    result = logged(np.ones(1)) + Special(np.ones(1))
    assert Special.calls[0] == ["Special", "Logged"] and type(result) is Special


def test_a_class_that_overrides_nothing_is_not_asked_and_results_are_plain():
    class Tagged(tg.Tensor):
        pass

    assert type(Tagged(np.ones(1)) + 1) is tg.Tensor


def test_modes_see_every_operation_of_their_thread():
    class Count(TensorFunctionMode):
        names: list[str] = []  # noqa: RUF012

        def __tensor_function__(self, func, types, args, kwargs):
            self.names.append(func.__name__)
            return func(*args, **kwargs)

    x = tg.ones(2)
    with Count() as count:
        (x * 2).sum().detach()
    x * 2
    assert count.names == ["mul", "sum", "detach"] and count not in interception.active


class Cube(tg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 3 * x * x


def test_a_class_is_asked_about_custom_functions(logged):
    x = logged(np.full(2, 2.0, np.float32), True)
    y = Cube.apply(x)
    assert logged.calls == ["apply"] and type(y) is logged and y.grad_fn.name() == "CubeBackward"
    y.sum().backward()
    assert x.grad.tolist() == [12, 12] and "mul" in logged.calls, "the gradient is computed with the saved tensor"


def test_a_class_may_answer_for_a_custom_function():
    class Asks(tg.Tensor):
        @classmethod
        def __tensor_function__(cls, func, types, args, kwargs):
            return "cube" if getattr(func, "__self__", None) is Cube else NotImplemented

    assert Cube.apply(Asks(np.ones(2))) == "cube"


def test_modes_see_custom_functions_and_fused_layers():
    seen = []

    class Note(TensorFunctionMode):
        def __tensor_function__(self, func, types, args, kwargs):
            seen.append(getattr(func, "__self__", func).__name__)
            return func(*args, **kwargs)

    x = tg.ones(2, requires_grad=True)
    layers = [nn.LSTM(2, 3), nn.GRU(2, 3), nn.RNN(2, 3)]
    with Note():
        y = Cube.apply(x)
        for layer in layers:
            layer(tg.ones(1, 1, 2))
    y.sum().backward()
    assert seen[0] == "Cube" and {"lstm_layer", "gru_layer", "rnn_layer"} <= set(seen)
    assert x.grad.tolist() == [3, 3]


def test_watchers_see_what_operations_are_made_of():
    seen = []

    class Note(Watcher):
        def watch(self, run, func, args, kwargs):
            seen.append(getattr(func, "__self__", func).__name__)
            result = run()
            seen.append("end")
            return result

    x = tg.ones(2)
    with Note():
        Cube.apply(x)
        x.var()
    x * 2
    assert seen == ["Cube", "mul", "end", "mul", "end", "end", "var", "end"]
    seen.clear()
    with Note(), pytest.raises(ValueError, match="add"):
        x + x.new_ones(3)
    with Note():
        x + tg.rand(2)
    assert seen[-5:] == ["add", "rand", "end", "add", "end"], "what makes tensors is an operation too"


def test_a_watcher_does_not_see_what_was_taken_over_and_runs_beside_modes_and_classes(logged):
    seen = []

    class Note(Watcher):
        def watch(self, run, func, args, kwargs):
            seen.append(func.__name__)
            return run()

    class Answers(tg.Tensor):
        @classmethod
        def __tensor_function__(cls, func, types, args, kwargs):
            return 5

    class Count(TensorFunctionMode):
        names: list[str] = []  # noqa: RUF012

        def __tensor_function__(self, func, types, args, kwargs):
            self.names.append(func.__name__)
            return func(*args, **kwargs)

    with Note(), Count() as count:
        assert Answers(np.ones(1)) + 1 == 5
        assert type(logged(np.ones(1)).exp()) is logged
    assert seen == ["exp"] and count.names == ["add", "exp"] and logged.calls == ["exp"]


def test_watchers_and_modes_are_of_their_thread():
    seen = []

    class Note(Watcher):
        def watch(self, run, func, args, kwargs):
            seen.append(func.__name__)
            return run()

    with Note():
        thread = threading.Thread(target=lambda: tg.ones(2).exp())
        thread.start()
        thread.join()
    assert seen == []


def test_modes_may_be_left_in_another_order():
    class Note(Watcher):
        pass

    first, second = Note(), Note()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert interception.active[-1] is second and first not in interception.active
    second.__exit__(None, None, None)
    assert second not in interception.active


def test_a_class_that_nobody_has_any_more_is_not_asked():
    class Brief(tg.Tensor):
        @classmethod
        def __tensor_function__(cls, func, types, args, kwargs):
            return super().__tensor_function__(func, types, args, kwargs)

    gc.collect()
    count = len(interception.active)
    gone = weakref.ref(Brief)
    assert type(Brief(np.ones(1)) + 1) is Brief
    del Brief
    gc.collect()
    assert gone() is None and len(interception.active) == count - 1

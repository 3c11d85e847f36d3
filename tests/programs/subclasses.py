"""Tensor classes that take operations over, between two workers. Rank 0 asks, rank 1 computes."""

import os

import numpy as np
import telegrad as tg
from telegrad import rpc


class Logged(tg.Tensor):
    """Notes each operation on its instances, in whichever process it runs."""

    calls: list[str] = []  # noqa: RUF012

    @classmethod
    def __tensor_function__(cls, func, types, args, kwargs):
        cls.calls.append(func.__name__)
        return super().__tensor_function__(func, types, args, kwargs)


class Quantity(tg.Tensor):
    """Has a unit: products multiply them, sums need equal ones."""

    unit = ""

    @classmethod
    def __tensor_function__(cls, func, types, args, kwargs):
        units = [arg.unit for arg in args if isinstance(arg, cls)]
        if func.__name__ == "add" and len(set(units)) > 1:
            raise ValueError(f"add of {units[0]} and {units[1]}")
        result = super().__tensor_function__(func, types, args, kwargs)
        if isinstance(result, cls):
            result.unit = " ".join(sorted(units)) if func.__name__ == "mul" else units[0]
        return result


def quantity(values, unit, requires_grad=False):
    result = Quantity(np.array(values, np.float64), requires_grad)
    result.unit = unit
    return result


def product(one, other):
    return one * other


def total(one, other):
    return (one + other).sum()


def calls():
    return list(Logged.calls)


def described(value):
    return type(value).__name__, value.unit, value.requires_grad, value.tolist()


def units_travel():
    force, way = quantity([2, 3], "N"), quantity([4, 5], "m")
    work = rpc.rpc_sync("w1", product, (force, way))
    assert described(work) == ("Quantity", "N m", False, [8, 15])
    assert rpc.rpc_sync("w1", described, (quantity([1], "s", True),)) == ("Quantity", "s", True, [1])
    try:
        rpc.rpc_sync("w1", total, (force, way))
    except ValueError as error:
        assert "add of N and m" in str(error)
    else:
        raise AssertionError("forces and lengths were added")


def units_travel_in_references():
    with rpc.remote("w1", quantity, ([2, 3], "N")) as force, rpc.remote("w1", doubled, (force,)) as twice:
        assert described(twice.to_here()) == ("Quantity", "N", False, [4, 6])
        assert rpc.rpc_sync("w1", same_object, (force,))


def doubled(reference):
    return reference.local_value() * 2


def same_object(reference):
    """An owner's value is one object, with what hangs on it."""
    reference.local_value().note = "here"
    return reference.local_value() is reference.local_value() and reference.local_value().note == "here"


def gradients_go_through_units():
    force, way = quantity([2, 3], "N", True), quantity([4, 5], "m", True)
    with tg.autograd_dist.context() as context:
        work = rpc.rpc_sync("w1", product, (force, way))
        assert described(work) == ("Quantity", "N m", True, [8, 15]) and work.grad_fn is not None
        loss = (work * work).sum()
        assert loss.unit == "N m N m"
        tg.autograd_dist.backward(context, [loss])
        gradients = tg.autograd_dist.get_gradients(context)
        np.testing.assert_allclose(gradients[force].numpy(), [2 * 8 * 4, 2 * 15 * 5])
        np.testing.assert_allclose(gradients[way].numpy(), [2 * 8 * 2, 2 * 15 * 3])


def logs_are_kept_where_operations_run():
    x = Logged(np.ones(3), True)
    x.note = "kept"
    with tg.autograd_dist.context() as context:
        y = rpc.rpc_sync("w1", product, (x, x))
        assert type(y) is Logged and rpc.rpc_sync("w1", calls)[-1:] == ["mul"]
        tg.autograd_dist.backward(context, [y.sum()])
        assert tg.autograd_dist.get_gradients(context)[x].tolist() == [2, 2, 2]
    assert calls() == ["sum"], calls()
    assert rpc.rpc_sync("w1", getattr, (x, "note")) == "kept"


def plain_tensors_keep_their_attributes():
    x = tg.ones(2)
    x.note, x.twin = ["deep"], tg.zeros(1)
    x.itself = x
    back = rpc.rpc_sync("w1", lambda value: value, (x,))
    assert back.note == ["deep"] and back.twin.tolist() == [0] and back.itself is back


def main():
    rank = int(os.environ["RANK"])
    rpc.init_rpc(f"w{rank}", rpc_backend_options=rpc.GrpcRpcBackendOptions(rpc_timeout=30))
    if rank == 0:
        for part in (
            units_travel,
            units_travel_in_references,
            gradients_go_through_units,
            logs_are_kept_where_operations_run,
            plain_tensors_keep_their_attributes,
        ):
            part()
            print("done", part.__name__, flush=True)
    rpc.shutdown()
    print("over", flush=True)


if __name__ == "__main__":
    main()

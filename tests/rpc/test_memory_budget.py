"""Bound of the memory of arrays that a worker received or keeps: more lies in a file, or fails by name."""

import gc
import os

import numpy as np
import pytest
import telegrad as tg
from telegrad import rpc
from telegrad.base.errors import MemoryBudgetError
from telegrad.core.spill_file import SpillFile
from telegrad.core.tensors import Tensor
from telegrad.rpc.wire.memory_budget import COUNTED_BYTES, MemoryBudget
from telegrad.testing import in_process_cluster

SIZE = COUNTED_BYTES // 4  # elements of float32: the smallest array that is counted


def numbers(start=0, size=SIZE):
    return np.arange(start, start + size, dtype=np.float32)


def in_file(array):
    while isinstance(array.base, np.ndarray):
        array = array.base
    return type(array.base).__name__ == "_Block"


def budget_of_two(folder):
    return MemoryBudget(2 * COUNTED_BYTES, str(folder), "w")


def test_arrays_beyond_the_bound_lie_in_the_file_and_are_as_before(tmp_path):
    budget = budget_of_two(tmp_path)
    given = [numbers(i) for i in range(4)]
    arrays = [array.copy() for array in given]
    budget.place(arrays)
    assert [in_file(array) for array in arrays] == [False, False, True, True]
    assert all(map(np.array_equal, arrays, given))
    assert budget.counts() == {"in_memory": 2 * COUNTED_BYTES, "most": 2 * COUNTED_BYTES, "in_file": 2 * COUNTED_BYTES}
    arrays[3][:] += 1
    part = arrays[3][5:7]
    del arrays[3]
    assert part.tolist() == [9, 10], "a view keeps the memory"
    assert budget.counts()["in_file"] == 2 * COUNTED_BYTES
    del part, arrays
    assert budget.counts() == {"in_memory": 0, "most": 2 * COUNTED_BYTES, "in_file": 0}


def test_memory_that_is_free_again_is_used_first(tmp_path):
    budget = budget_of_two(tmp_path)
    first = [numbers(), numbers()]
    budget.place(first)
    first.clear()
    again = [numbers()]
    budget.place(again)
    assert not in_file(again[0])


def test_arrays_over_one_memory_stay_over_one_memory(tmp_path):
    budget = MemoryBudget(1, str(tmp_path), "w")
    memory = numbers(0, 2 * SIZE)
    given = [memory[:SIZE], memory[::2], memory.reshape(2, -1).T, numbers(5)[::-1]]
    arrays = list(given)
    budget.place(arrays)
    assert all(map(in_file, arrays)) and all(map(np.array_equal, arrays, given))
    assert [array.strides for array in arrays] == [array.strides for array in given]
    arrays[0][2] = -1
    assert (arrays[1][1], arrays[2][2, 0], arrays[3][2], memory[2]) == (-1, -1, given[3][2], 2)


def test_small_arrays_are_not_counted(tmp_path):
    budget = budget_of_two(tmp_path)
    arrays = [numbers(0, 100), np.empty(0)]
    budget.place(arrays)
    assert budget.counts()["in_memory"] == 0


def test_without_a_file_and_without_room_it_says_what_to_do(tmp_path, monkeypatch):
    with pytest.raises(
        MemoryBudgetError, match=r"worker 'w' has no room for 65,536 bytes: .* 100 bytes; .* spill_dir=,"
    ):
        MemoryBudget(100, None, "w").place([numbers()])
    with pytest.raises(MemoryBudgetError, match="worker 'w' cannot make a file in spill_dir='/nowhere'"):
        MemoryBudget(100, "/nowhere", "w")

    def full(*_):
        raise OSError(28, "No space left on device")

    budget = MemoryBudget(100, str(tmp_path), "w")
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full)
        arrays = [numbers()]
        with pytest.raises(MemoryBudgetError, match=r"its spill_dir, has none either: .* No space left on device"):
            budget.place(arrays)
        assert not in_file(arrays[0]) and budget.counts()["in_file"] == 0
    budget.place(arrays)
    assert in_file(arrays[0])


def test_values_that_the_program_holds_too_are_its_own(tmp_path):
    budget = MemoryBudget(1, str(tmp_path), "w")
    array = numbers()
    shared, view, alone, small = Tensor(array), tg.zeros(2 * SIZE)[:SIZE], tg.ones(SIZE), tg.ones(3)
    for kept in ([shared, alone], {"view": view}, small, "no tensor", tg.nn.Linear(1, 3)):
        budget.keep(kept)
    assert [in_file(tensor._array) for tensor in (shared, view, alone, small)] == [False, False, True, False]
    assert alone.sum().item() == SIZE
    layer = tg.nn.Linear(SIZE, 1)
    budget.keep(layer)
    assert in_file(layer.weight._array) and not in_file(layer.bias._array)
    layer(tg.ones(1, SIZE)).sum().backward()
    before = layer.weight.detach().clone()
    tg.optim.SGD(layer.parameters(), lr=0.5).step()
    assert in_file(layer.weight._array) and tg.equal(layer.weight, before - 0.5)


def test_disk_space_comes_back(tmp_path):
    file = SpillFile(str(tmp_path))
    kept = [file.store(np.full(1 << 20, each, np.uint8)) for each in range(4)]
    blocks = os.fstat(file._file.number).st_blocks
    del kept[1:]
    assert os.fstat(file._file.number).st_blocks <= blocks // 2
    assert kept[0].max() == kept[0].min() == 0 and os.listdir(tmp_path) == []
    del file
    kept[0][:] = 7
    assert kept[0].sum() == 7 << 20, "an array keeps the file"


def test_a_forked_child_and_its_parent_do_not_see_what_the_other_writes(tmp_path):
    file = SpillFile(str(tmp_path))
    mine, freed = file.store(np.zeros(5000, np.uint8)), file.store(np.ones(5000, np.uint8))
    (readable, told), (waits, goes_on) = os.pipe(), os.pipe()
    if (child := os.fork()) == 0:
        try:
            mine[1] = 8
            os.write(told, b".")
            os.read(waits, 1)
            os._exit(0 if (mine[:2].tolist(), freed.sum()) == ([0, 8], 5000) else 1)
        finally:
            os._exit(2)
    os.read(readable, 1)
    mine[0] = 9
    del freed
    os.write(goes_on, b".")
    _, status = os.waitpid(child, 0)
    assert status == 0 and mine[:2].tolist() == [9, 0]
    for each in (readable, told, waits, goes_on):
        os.close(each)


def echo(value):
    return value


def where(tensor):
    return in_file(tensor._array)


class Layer:
    def __init__(self, weight):
        self.weight = weight

    def total(self):
        return self.weight.sum()


def test_calls_and_references_use_it(tmp_path):
    given = rpc.GrpcRpcBackendOptions(memory_budget=2 * COUNTED_BYTES, spill_dir=tmp_path)
    with in_process_cluster("a", "b", options=given) as (a, b), a.use():
        x = tg.arange(SIZE, dtype=tg.float32)
        assert tg.equal(rpc.rpc_sync("b", echo, (x,)), x)
        kept = [rpc.remote("b", echo, (x + each,)) for each in range(4)]
        assert [ref.rpc_sync().sum().item() for ref in kept] == [(x + each).sum().item() for each in range(4)]
        assert [rpc.rpc_sync("b", where, (rpc.value(ref),)) for ref in kept] == [False, False, True, True]
        made = rpc.remote("b", tg.ones, (SIZE,))
        assert made.to_here().sum().item() == SIZE and rpc.rpc_sync("b", where, (rpc.value(made),))
        assert b.debug_info()["memory"]["in_file"] == 3 * COUNTED_BYTES
        del kept, made
        gc.collect()


def test_the_end_of_the_budget_fails_a_call_and_a_reference_by_name():
    given = rpc.GrpcRpcBackendOptions(memory_budget=100)
    with in_process_cluster("a", "b", options=given) as (a, _), a.use():
        with pytest.raises(MemoryBudgetError, match="worker 'b' has no room for 65,536 bytes"):
            rpc.rpc_sync("b", echo, (tg.ones(SIZE),))
        made = rpc.remote("b", tg.ones, (SIZE,))
        with pytest.raises(MemoryBudgetError, match="worker 'b' has no room for 65,536 bytes"):
            made.to_here()
        assert rpc.rpc_sync("b", abs, (-3,)) == 3


def test_arrays_that_a_mesh_call_maps_are_counted(tmp_path):
    names, given = ["a", "b", "c", "d"], rpc.GrpcRpcBackendOptions(memory_budget=COUNTED_BYTES, spill_dir=tmp_path)
    with in_process_cluster(*names, options=given) as agents, agents[0].use():
        x = tg.arange(SIZE, dtype=tg.float32)
        kept = rpc.mesh().remote(Layer, (x,))
        again = rpc.mesh().remote(Layer, (x + 1,))
        memory = {"in_memory": COUNTED_BYTES, "most": COUNTED_BYTES, "in_file": COUNTED_BYTES}
        assert [agent.debug_info()["memory"] for agent in agents] == [memory] * 4
        assert kept.call("total", reduce="sum").item() + 4 * SIZE == again.call("total", reduce="sum").item()
        del kept, again
        gc.collect()


def test_a_mesh_call_without_room_fails_by_name():
    names, given = ["a", "b", "c", "d"], rpc.GrpcRpcBackendOptions(memory_budget=COUNTED_BYTES)
    with in_process_cluster(*names, options=given) as agents, agents[0].use():
        kept = rpc.remote("c", echo, (tg.ones(SIZE),))
        kept.to_here()
        errors = rpc.mesh().call(where, (tg.ones(SIZE),)).errors()
        assert errors.keys() == {"c"} and "worker 'c' has no room for 65,536 bytes" in str(errors["c"])


def test_gradients_go_through_values_in_the_file(tmp_path):
    given = rpc.GrpcRpcBackendOptions(memory_budget=1, spill_dir=tmp_path)
    with in_process_cluster("a", "b", options=given) as (a, _), a.use():
        weight = rpc.remote("b", tg.ones, (SIZE,), {"requires_grad": True})
        layer = rpc.remote("b", Layer, (rpc.value(weight),))
        with tg.autograd_dist.context() as context:
            tg.autograd_dist.backward(context, [layer.rpc_sync().total()])
            found = rpc.rpc_sync("b", gradient_of, (context, weight))
        assert found.sum().item() == SIZE


def gradient_of(context, weight):
    return tg.autograd_dist.get_gradients(context)[weight.local_value()]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"memory_budget": 0}, "memory_budget must be a whole number above 0; you gave 0"),
        ({"memory_budget": "1GB"}, "memory_budget must be a whole number above 0; you gave '1GB'"),
        ({"spill_dir": "/tmp"}, "spill_dir is for arrays beyond memory_budget"),
        ({"memory_budget": 1, "spill_dir": 5}, "spill_dir must be a folder; you gave 5"),
        ({"memory_budget": 1, "spill_dir": ""}, "spill_dir must be a folder; you gave ''"),
    ],
)
def test_bad_options_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        rpc.GrpcRpcBackendOptions(**given)

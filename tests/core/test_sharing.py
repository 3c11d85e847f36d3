"""Shared tensors: what stays shared, within a process and on the way to another."""

import copy
import gc
import multiprocessing
import os
import pickle
import signal
import threading
from multiprocessing import forkserver
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest
import shared_tensors
import telegrad as tg
from helpers.programs import stop_fork_server
from telegrad import nn
from telegrad.base.errors import AutogradError
from telegrad.core.shared_memory import SharedMemoryError
from telegrad.core.shared_memory.registry import known_segment
from telegrad.core.shared_memory.transit import transit
from telegrad.core.tensors.shared_tensors import reduce_tensor

# Tests fork, whatever threads other tests have left in this process.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

LIMIT = 60


@pytest.fixture(scope="module", autouse=True)
def fork_server():
    """Python's own, which lives as long as the process: no test made it. It has imported what its children need."""
    stop_fork_server()
    multiprocessing.set_forkserver_preload(["telegrad.nn"])
    forkserver.ensure_running()
    yield
    stop_fork_server()
    multiprocessing.set_forkserver_preload([])


@pytest.fixture(autouse=True)
def programs():
    """The functions that processes run; in the end all that was sent has been received."""
    yield shared_tensors
    gc.collect()
    transit.collect()
    assert not transit.held, "something that was sent was never received"


@pytest.fixture(params=[pytest.param(kind, marks=pytest.mark.processes) for kind in ("spawn", "fork", "forkserver")])
def context(request):
    return multiprocessing.get_context(request.param)


@pytest.fixture
def start(context):
    """Starts processes, and ends those that a failed test leaves."""
    started = []

    def start(target, *args):
        process = context.Process(target=target, args=args, daemon=True)
        process.start()
        started.append(process)
        return process

    yield start
    for process in started:
        process.join(LIMIT if process is started[-1] else 1)
        assert process.exitcode is not None, process.kill()
        process.close()


def received(connection):
    assert connection.poll(LIMIT), "nothing came"
    return connection.recv()


def shared(*size):
    return tg.rand(*size).share_memory_()


# -- in one process


@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (2, 3)], ids=str)
@pytest.mark.parametrize("dtype", ["bool", "int32", "float16", "float64", "complex64"])
def test_moving_into_shared_memory(shape, dtype):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    tensor = tg.from_numpy(array.copy())
    assert not tensor.is_shared() and tensor.share_memory_() is tensor and tensor.is_shared()
    assert tensor.dtype == array.dtype and tensor.shape == shape
    np.testing.assert_array_equal(tensor.numpy(), array)
    address = tensor.data_ptr()
    assert tensor.share_memory_().data_ptr() == address


def test_strides_are_kept_where_they_are_dense():
    assert tg.from_numpy(np.asfortranarray(np.ones((2, 3)))).share_memory_().stride() == (1, 2)
    every_other = tg.from_numpy(np.arange(6.0)[::2]).share_memory_()
    assert every_other.tolist() == [0, 2, 4] and every_other.is_contiguous()


def test_views_of_shared_tensors_are_shared():
    tensor = shared(4, 3)
    views = [tensor[1:], tensor.t(), tensor.detach(), tensor.data, tensor[0, 0:1], nn.Parameter(tensor)]
    assert all(view.is_shared() for view in views)
    assert not any(other.is_shared() for other in (tensor + 1, tensor.clone(), tg.from_numpy(tensor.numpy() * 2)))


def test_what_has_views_is_not_moved():
    whole = tg.zeros(4)
    part = whole[1:]
    for tensor in (whole, part):
        with pytest.raises(AutogradError, match="shares its memory with others"):
            tensor.share_memory_()
    del part, tensor
    assert whole.share_memory_().is_shared()


def test_learning_goes_on_in_shared_memory():
    weight = nn.Parameter(tg.tensor([1.0, 2.0]))
    weight.note = "kept"
    (weight.share_memory_() ** 2).sum().backward()
    assert weight.is_shared() and weight.grad.tolist() == [2, 4] and weight.note == "kept" and weight.requires_grad
    weight.data = tg.zeros(2)
    assert not weight.is_shared()


def test_a_module():
    net = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2))
    net.register_buffer("mean", tg.zeros(2))
    assert net.share_memory() is net
    assert all(tensor.is_shared() for tensor in (*net.parameters(), net.mean))


def test_ordinary_copies_are_not_shared():
    tensor = shared(3)
    for made in (pickle.loads(pickle.dumps(tensor)), copy.deepcopy(tensor), tensor.clone()):
        assert not made.is_shared() and made.tolist() == tensor.tolist()
    assert copy.copy(tensor).is_shared()


def test_import_does_not_load_what_only_sharing_needs(run_python):
    script = (
        "import sys, telegrad.core; assert 'multiprocessing.reduction' not in sys.modules, 'loaded';"
        "telegrad.core.Tensor([1.0]).share_memory_(); assert 'multiprocessing.reduction' in sys.modules"
    )
    run_python("-c", script)


def test_received_where_it_is_already():
    tensor = shared(4)
    queue = multiprocessing.SimpleQueue()
    try:
        queue.put([tensor[1:], tensor])
        part, whole = queue.get()
        assert whole.data_ptr() == tensor.data_ptr() and part.data_ptr() == tensor.data_ptr() + 4
        assert not transit.held or not transit.collect()
    finally:
        queue.close()


def test_the_result_of_a_recorded_operation_is_refused(programs):
    product = shared(3).requires_grad_().view(3, 1)
    with pytest.raises(AutogradError, match="its graph stays here; use detach"):
        programs.pickled(product)


def test_a_class_that_was_defined_later(programs):
    tensor = shared(3)

    class Later(tg.Tensor):
        pass

    late = Later(tensor.numpy()).share_memory_()
    assert late.is_shared() and ForkingPickler.loads(ForkingPickler.dumps(tensor)).is_shared()
    assert ForkingPickler._extra_reducers[Later] is reduce_tensor


def test_sending_from_many_threads(programs):
    def send_and_receive():
        for _ in range(50):
            assert ForkingPickler.loads(programs.pickled(shared(1))).is_shared()

    threads = [threading.Thread(target=send_and_receive) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# -- between processes


@pytest.mark.processes
def test_an_argument_of_a_process(context, start, programs):
    tensor = tg.zeros(3).share_memory_()
    ours, theirs = context.Pipe()
    with ours, theirs:
        start(programs.add_one, tensor, theirs)
        assert received(ours) == (True, [1, 1, 1]) and tensor.tolist() == [1, 1, 1]


@pytest.mark.processes
def test_queues_at_any_time(context, start, programs):
    there, back = context.SimpleQueue(), context.SimpleQueue()
    try:
        start(programs.answer_all, there, back)
        sent = [shared(2, 3), shared(4)[1:], nn.Parameter(tg.ones(2)).share_memory_(), shared(0), tg.ones(2)]
        for tensor in sent:
            expected = (tensor.detach() * 10).tolist()
            there.put(tensor)
            assert back._reader.poll(LIMIT)
            answer, kind, is_shared, requires_grad = back.get()
            assert (
                answer.tolist() == expected and kind == type(tensor).__name__ and requires_grad == tensor.requires_grad
            )
            assert is_shared == answer.is_shared() == tensor.is_shared()
            assert (answer.data_ptr() == tensor.data_ptr()) == tensor.is_shared() or not tensor.numel()
        there.put(None)
    finally:
        there.close()
        back.close()


@pytest.mark.processes
def test_views_over_one_segment_arrive_so(context, start, programs):
    whole = shared(4)
    ours, theirs = context.Pipe()
    with ours, theirs:
        start(programs.report_aliasing, theirs)
        ours.send([whole, whole[1:3], whole.reshape(2, 2).t()])
        assert received(ours) == [[7, 7], [[7, 7], [7, 7]]] and whole.tolist() == [7] * 4
        ours.send([tg.zeros(2), whole])  # an answer that ends it


@pytest.mark.processes
def test_the_sender_need_not_keep_what_it_sends(context, start, programs):
    ours, theirs = context.Pipe()
    with ours, theirs:
        start(programs.make_many, theirs, 20)
        tensors = [received(ours) for _ in range(20)]
        assert all(tensor.is_shared() and tensor.tolist() == [n] * 1000 for n, tensor in enumerate(tensors))
        ours.send("end")


@pytest.mark.processes
def test_a_sender_that_ended_is_named(context, start, programs):
    ours, theirs = context.Pipe()
    with ours, theirs:
        process = start(programs.send_and_end, theirs, 0)
        assert ours.poll(LIMIT)
        late = ours.recv_bytes()
        ours.send("end")
        process.join(LIMIT)
        with pytest.raises(
            SharedMemoryError, match=f"process {process.pid} cannot be opened: that process ended before"
        ):
            pickle.loads(late)


@pytest.mark.processes
def test_segments_vanish_with_a_killed_holder(context, start, programs):
    tensor = tg.zeros(3).share_memory_()
    ours, theirs = context.Pipe()
    with ours, theirs:
        process = start(programs.hold_forever, theirs, tensor)
        os.kill(received(ours), signal.SIGKILL)
        process.join(LIMIT)
        assert tensor.tolist() == [1, 1, 1]
    identity = tensor._array.base.identity
    del tensor
    gc.collect()
    assert known_segment(identity) is None
    with open("/proc/self/maps") as maps:
        assert "memfd:telegrad" not in maps.read()


@pytest.mark.processes
def test_hogwild(context, start, programs):
    tg.manual_seed(1)
    model = nn.Linear(3, 1).share_memory()
    processes = [start(programs.train, model, seed, 300) for seed in range(2)]
    for process in processes:
        process.join(LIMIT)
        assert process.exitcode == 0
    np.testing.assert_allclose(model.weight.detach().numpy(), [[1, -2, 0.5]], atol=0.05)
    np.testing.assert_allclose(model.bias.detach().numpy(), [3], atol=0.05)


@pytest.mark.processes
def test_pools(context, programs):
    tensor = tg.arange(3.0).share_memory_()
    with context.Pool(1) as pool:
        results = pool.map(programs.copies, [tensor, tensor[1:]])
        assert [result.tolist() for result in results] == [[0, 1, 2], [1, 2]]
        pool.close()
        pool.join()

"""The engine: graph tasks fed late, from threads, side by side; and backward/grad on top of it."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import telegrad.core as tg
from telegrad.base.errors import AutogradError
from telegrad.core.autograd import backward, grad
from telegrad.core.extend import AccumulateGrad, GraphTask, Node, attach, gradient_edge


class Recorder(Node):
    """A leaf of somebody else's making: notes what comes."""

    def __init__(self, num_inputs=1):
        super().__init__((), num_inputs)
        self.calls = []

    def apply(self, grads):
        self.calls.append(grads)
        return ()


def test_edges_and_attached_tensors():
    leaf = tg.ones(2, requires_grad=True)
    node, slot = gradient_edge(leaf)
    assert isinstance(node, AccumulateGrad) and slot == 0 and gradient_edge(leaf)[0] is node
    assert gradient_edge(tg.ones(2)) is None
    recorder = Recorder(2)
    tensor = attach(np.ones(3), recorder, 1)
    assert gradient_edge(tensor) == (recorder, 1) and tensor.grad_fn is recorder and not tensor.is_leaf
    (tensor * 2).sum().backward()
    ((first, second),) = recorder.calls
    assert first is None and second.tolist() == [2, 2, 2]


def test_sink_receives_leaf_gradients_and_grad_stays_empty():
    a, b = tg.ones(2, requires_grad=True), tg.ones(2, requires_grad=True)
    y = (a * b + a).sum()
    seen = {}
    task = GraphTask(sink=lambda leaf, gradient: seen.__setitem__(leaf, gradient.tolist()))
    task.expect(y.grad_fn)
    task.feed(y.grad_fn, (np.array(1.0, np.float32),))
    assert not task.idle
    task.run()
    assert task.idle and task.unfed() == [] and seen == {a: [2, 2], b: [1, 1]} and a.grad is None


def test_roots_are_fed_one_by_one_and_may_lie_below_one_another():
    a = tg.ones(2, requires_grad=True)
    low = a * 2
    high = (low * 3).sum()
    other = (a * 5).sum()
    task = GraphTask()
    task.expect(high.grad_fn, low.grad_fn, other.grad_fn)
    task.run()
    assert task.idle and task.unfed() == [high.grad_fn, low.grad_fn, other.grad_fn]
    task.feed(high.grad_fn, (np.array(1.0),))
    task.run()
    assert a.grad is None, "low still waits for its feed"
    task.feed(low.grad_fn, (np.ones(2),))
    task.run()
    assert a.grad is None, "the leaf still waits for the third root"
    task.feed(other.grad_fn, (None,))
    task.run()
    assert a.grad.tolist() == [8, 8] and task.unfed() == []


class Skipped(Recorder):
    """Notes also that it was left out."""

    def left_out(self):
        self.calls.append("left out")


def test_roots_that_take_no_part_leave_out_what_only_they_lead_to():
    only, shared, leaf = Skipped(), Skipped(), tg.ones(2, requires_grad=True)
    first = attach(np.ones(2), only, 0) * leaf
    below = attach(np.ones(2), shared, 0) * 3
    second = (below * 2).sum()
    unused = first * below
    task = GraphTask()
    task.expect(second.grad_fn, unused.grad_fn)
    assert task.reaches(only) and not task.reaches(Recorder())
    task.feed(unused.grad_fn, None)
    task.run()
    assert only.calls == ["left out"] and not shared.calls
    task.feed(second.grad_fn, (np.array(1.0),))
    task.run()
    assert [grad.tolist() for (grad,) in shared.calls] == [[6, 6]]
    assert leaf.grad is None and task.unfed() == [] and task.idle


def test_a_root_that_takes_no_part_runs_with_gradients_from_above():
    leaf = tg.ones(2, requires_grad=True)
    low = leaf * 2
    high = (low * 3).sum()
    task = GraphTask()
    task.expect(high.grad_fn, low.grad_fn)
    task.feed(high.grad_fn, (np.array(1.0),))
    task.run()
    task.feed(low.grad_fn, None)
    task.run()
    assert leaf.grad.tolist() == [6, 6]


def test_feeding_wrongly_is_an_error():
    a = tg.ones(2, requires_grad=True)
    y = (a * 2).sum()
    task = GraphTask()
    with pytest.raises(AutogradError, match="not an expected root"):
        task.feed(y.grad_fn, (np.array(1.0),))
    task.expect(y.grad_fn)
    task.expect(y.grad_fn)
    with pytest.raises(AutogradError, match="takes 1 gradients and you fed it 2"):
        task.feed(y.grad_fn, (None, None))
    task.feed(y.grad_fn, (np.array(1.0),))
    with pytest.raises(AutogradError, match="fed it before"):
        task.feed(y.grad_fn, (np.array(1.0),))


def test_an_exception_fails_the_task():
    class Bad(Node):
        def apply(self, grads):
            raise KeyError("boom")

    y = attach(np.ones(()), Bad(), 0) * 2
    task = GraphTask()
    task.expect(y.grad_fn)
    task.feed(y.grad_fn, (np.array(1.0),))
    with pytest.raises(KeyError, match="boom"):
        task.run()
    assert task.failed and task.idle
    with pytest.raises(AutogradError, match=r"failed before \(KeyError: 'boom'\)"):
        task.run()


def test_a_node_with_the_wrong_number_of_results_is_named():
    class Short(Node):
        def apply(self, grads):
            return ()

    a = tg.ones((), requires_grad=True)
    y = attach(np.ones(()), Short((gradient_edge(a),)), 0)
    with pytest.raises(AutogradError, match="Short returned 0 gradients for 1 inputs"):
        y.backward()


def test_nodes_of_the_table_are_skipped_when_nothing_comes_and_others_are_not():
    recorder = Recorder()
    low = attach(np.ones(()), recorder, 0)
    y = low * 2
    task = GraphTask()
    task.expect(y.grad_fn)
    task.feed(y.grad_fn, (None,))
    task.run()
    assert recorder.calls == [(None,)]


def test_a_second_runner_returns_at_once_and_its_feed_is_picked_up():
    a = tg.ones((), requires_grad=True)
    inside, fed = threading.Event(), threading.Event()
    other = a * 3

    class Slow(Node):
        def apply(self, grads):
            inside.set()
            assert fed.wait(10)
            return grads

    first = attach(np.ones(()), Slow((gradient_edge(a),)), 0)
    task = GraphTask()
    task.expect(first.grad_fn, other.grad_fn)
    task.feed(first.grad_fn, (np.array(1.0),))
    runner = threading.Thread(target=task.run)
    runner.start()
    assert inside.wait(10)
    task.feed(other.grad_fn, (np.array(1.0),))
    task.run()
    assert a.grad is None and not task.idle
    fed.set()
    runner.join(10)
    assert a.grad.item() == 4 and task.idle


def test_many_roots_fed_from_many_threads():
    a = tg.zeros(4, requires_grad=True)
    roots = [(a * float(k)).sum() for k in range(64)]
    task = GraphTask()
    task.expect(*(root.grad_fn for root in roots))
    barrier = threading.Barrier(8)

    def work(part):
        barrier.wait(10)
        for root in part:
            task.feed(root.grad_fn, (np.array(1.0, np.float32),))
            task.run()

    threads = [threading.Thread(target=work, args=(roots[k::8],)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert task.idle and not task.unfed() and a.grad.tolist() == [float(sum(range(64)))] * 4


def test_passes_over_one_graph_run_side_by_side():
    a = tg.ones(50, dtype=tg.float64, requires_grad=True)
    y = ((a * 2).exp() * a).sum()
    barrier, failures = threading.Barrier(4), []

    def work():
        barrier.wait(10)
        try:
            for _ in range(25):
                y.backward(retain_graph=True)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    (once,) = grad(y, a)
    assert not failures and np.allclose(a.grad.numpy(), 100 * once.numpy())


def test_backward_inside_backward():
    a = tg.ones(3, requires_grad=True)

    class Reentrant(tg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            with tg.enable_grad():
                inner = x.detach().requires_grad_()
                (inner * inner).sum().backward()
            return gradient * inner.grad

    (Reentrant.apply(a) * 3).sum().backward()
    assert a.grad.tolist() == [6, 6, 6]


@pytest.mark.slow
def test_deep_chains_are_run_and_freed_without_recursion():
    a = tg.ones(1, requires_grad=True)
    y = a
    for _ in range(100_000):
        y = y * 1.0
    y.backward()
    assert a.grad.item() == 1
    saved = a
    for _ in range(100_000):
        saved = saved.exp().log()
    del saved, y


def test_backward_and_its_arguments():
    a = tg.ones(3, requires_grad=True)
    y = a * 2
    with pytest.raises(AutogradError, match="must be given"):
        y.backward()
    with pytest.raises(AutogradError, match=r"needs a gradient of that shape, not \(2,\)"):
        y.backward(tg.ones(2))
    y.backward(tg.tensor([1.0, 2.0, 3.0]))
    assert a.grad.tolist() == [2, 4, 6]
    with pytest.raises(AutogradError, match="does not require grad and has no grad_fn"):
        tg.ones(1).backward()
    with pytest.raises(AutogradError, match="give one for each"):
        backward([y, y], [None])


def test_backward_from_several_tensors_and_into_chosen_inputs():
    a, b = tg.ones(2, requires_grad=True), tg.ones(2, requires_grad=True)
    y, z = (a * b).sum(), (a + 2 * b).sum()
    backward([y, z, z], retain_graph=True)
    assert a.grad.tolist() == [3, 3] and b.grad.tolist() == [5, 5]
    a.grad = b.grad = None
    z.backward(inputs=[b])
    assert a.grad is None and b.grad.tolist() == [2, 2]


def test_gradients_add_up_and_are_the_leafs_own():
    a, b = tg.zeros(2, requires_grad=True), tg.zeros(2, requires_grad=True)
    for _ in range(2):
        (a + b).sum().backward()
    assert a.grad.tolist() == [2, 2]
    a.grad = b.grad = None
    start = tg.ones(2)
    (a + b).backward(start)
    start.zero_()
    a.grad.mul_(5)
    assert a.grad.tolist() == [5, 5] and b.grad.tolist() == [1, 1] and a.grad is a.grad


def test_grad_leaves_grad_alone_and_reports_unused_inputs():
    a, b = tg.ones(2, requires_grad=True), tg.ones(2, requires_grad=True)
    middle = a * 3
    y = (middle * middle).sum()
    by_a, by_middle = grad(y, [a, middle], retain_graph=True)
    assert by_a.tolist() == [18, 18] and by_middle.tolist() == [6, 6] and a.grad is None
    with pytest.raises(AutogradError, match=r"inputs\[0\] takes no part"):
        grad(y, [b], retain_graph=True)
    assert grad(y, [b], retain_graph=True, allow_unused=True) == (None,)
    assert grad(y, [b], retain_graph=True, materialize_grads=True)[0].tolist() == [0, 0]
    with pytest.raises(AutogradError, match=r"inputs\[0\] does not require grad"):
        grad(y, [tg.ones(2)])


def test_grad_does_not_run_what_leads_nowhere():
    a, b = tg.ones((), requires_grad=True), tg.ones((), requires_grad=True)

    class Never(Node):
        def apply(self, grads):
            raise AssertionError("this node leads to no input")

    y = a * 2 + attach(np.ones((), np.float32), Never((gradient_edge(b),)), 0)
    assert grad(y, a)[0].item() == 2


def test_the_graph_is_freed_unless_it_is_kept():
    a = tg.ones(2, requires_grad=True)
    y = a.exp().sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(AutogradError, match="retain_graph=True"):
        y.backward()
    z = (a + a).sum()  # saves nothing, so there is nothing to free
    z.backward()
    z.backward()


def test_higher_derivatives():
    a = tg.tensor([1.0, 2.0], dtype=tg.float64, requires_grad=True)
    y = (a**4).sum()
    for factor, power in ((4, 3), (12, 2), (24, 1), (24, 0)):
        (gradient,) = grad(y, a, create_graph=True)
        assert np.allclose(gradient.numpy(force=True), factor * a.numpy(force=True) ** power)
        y = gradient.sum()
    (a * a).sum().backward(create_graph=True)
    assert a.grad.requires_grad
    a.grad.sum().backward()
    assert a.grad.tolist() == [4, 6]


def test_modes():
    a = tg.ones(2, requires_grad=True)
    with tg.no_grad():
        assert not (a * 2).requires_grad and not tg.is_grad_enabled()
        with tg.enable_grad():
            assert (a * 2).requires_grad

    @tg.no_grad()
    def frozen():
        return (a * 2).requires_grad

    assert not frozen() and tg.is_grad_enabled()
    with pytest.raises(KeyError), tg.no_grad():
        raise KeyError
    assert tg.is_grad_enabled()
    tg.set_grad_enabled(False)
    try:
        assert not (a * 2).requires_grad
    finally:
        tg.set_grad_enabled(True)
    with tg.set_grad_enabled(False):
        assert not tg.is_grad_enabled()
    assert tg.is_grad_enabled()
    seen = []
    with tg.no_grad():
        thread = threading.Thread(target=lambda: seen.append(tg.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_names_and_next_functions_keep_their_identity():
    a = tg.ones(2, requires_grad=True)
    y = a.exp()
    z = (y * 2).sum()
    assert y.grad_fn is y.grad_fn and z.grad_fn.name() == "SumBackward"
    ((mul, slot),) = z.grad_fn.next_functions
    assert mul.name() == "MulBackward" and slot == 0
    assert mul.next_functions == ((y.grad_fn, 0), (None, 0))
    ((accumulate, _),) = y.grad_fn.next_functions
    assert accumulate.variable is a
    mul.metadata["note"] = 1
    assert z.grad_fn.next_functions[0][0].metadata == {"note": 1}


def test_sums_are_added_to_in_place_and_what_others_hold_is_not():
    a, b, c = (tg.ones(3, requires_grad=True) for _ in range(3))
    seen = []
    c.register_hook(lambda gradient: seen.append(gradient))
    # One array of ones goes to every input of every sum; only a's and b's sums of several may be written into.
    (a + b + a + c + a + b + a).backward(tg.ones(3))
    assert a.grad.tolist() == [4] * 3 and b.grad.tolist() == [2] * 3
    assert c.grad.tolist() == [1] * 3 and seen[0].tolist() == [1] * 3


def test_sums_of_recorded_passes_are_recorded():
    a = tg.ones(2, dtype=tg.float64, requires_grad=True)
    y = (a * a + a * a * a + a * a).sum()
    (gradient,) = grad(y, a, create_graph=True)
    assert gradient.tolist() == [7, 7] and grad(gradient.sum(), a)[0].tolist() == [10, 10]


def test_numbers_without_dimensions_add_up_too():
    a = tg.tensor(2.0, requires_grad=True)
    (a * a + a * 3 + a + a).backward()
    assert a.grad.item() == 9 and isinstance(a.grad.numpy(), np.ndarray)

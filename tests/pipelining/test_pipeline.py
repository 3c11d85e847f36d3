"""Pipelines give the losses and gradients of the whole model, in every schedule; failures end all stages."""

import itertools
import re
import threading
from pathlib import Path

import numpy as np
import pytest
import telegrad as tg
from helpers import remote
from helpers.numbered import numbered_cluster
from telegrad.base.errors import AutogradError, RpcError, RpcTimeoutError, WorkerLostError
from telegrad.pipelining import Action, Pipeline, Timeline
from telegrad.pipelining.deliveries import Deliveries
from telegrad.pipelining.inbox import Inbox
from telegrad.testing.cluster import in_process_cluster

LOSS = tg.nn.functional.mse_loss


class Front(tg.nn.Module):
    """Two results, one of whole numbers."""

    def __init__(self):
        super().__init__()
        self.layer = tg.nn.Linear(3, 4).double()

    def forward(self, x):
        return self.layer(x).tanh(), (x[:, :1] > 0).long()


class Back(tg.nn.Module):
    """Two arguments, the second of whole numbers."""

    def __init__(self):
        super().__init__()
        self.layer = tg.nn.Linear(4, 2).double()

    def forward(self, hidden, flags):
        return self.layer(hidden) * flags


def modules():
    tg.manual_seed(5)
    middle = tg.nn.Linear(4, 4).double()
    return [Front(), Middle(middle), Back()]


class Middle(tg.nn.Module):
    """A layer that hands the second argument on."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, hidden, flags):
        return self.layer(hidden).sin(), flags


@pytest.fixture
def cluster():
    with in_process_cluster("driver", "a", "b", "c") as agents, agents[0].use():
        yield agents


def placed(parts, agents):
    """References to modules on the workers after the first; these are agents of this process, and share its memory."""
    remote.Parts.given = tuple(parts)
    owners = itertools.cycle(agents[1:])
    return [tg.rpc.remote(agent.name, remote.part, (place,)) for place, agent in zip(range(len(parts)), owners)]


def batch(rows=10):
    random = np.random.default_rng(2)
    return tg.tensor(random.standard_normal((rows, 3))), tg.tensor(random.standard_normal((rows, 2)))


def run_alone(parts, x):
    values = (x,)
    for part in parts:
        result = part(*values)
        values = result if isinstance(result, tuple) else (result,)
    return values[0]


@pytest.mark.parametrize("schedule", ["GPipe", "1F1B"])
@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("microbatches", [1, 2, 4, 7])
def test_loss_and_gradients_are_those_of_the_whole_model(cluster, schedule, checkpoint, microbatches):
    parts, (x, y) = modules(), batch()
    pipeline = Pipeline(placed(parts, cluster), LOSS, microbatches, schedule, checkpoint)
    losses = [pipeline.step(x, y).item(), pipeline.step(x, target=y).item()]
    got = [p.grad.numpy().copy() for part in parts for p in part.parameters()]
    for part in parts:
        part.zero_grad()
    loss = LOSS(run_alone(parts, x), y)
    (2 * loss).backward()
    assert losses == pytest.approx([loss.item()] * 2, rel=1e-12)
    for grad, parameter in zip(got, [p for part in parts for p in part.parameters()], strict=True):
        np.testing.assert_allclose(grad, parameter.grad.numpy(), rtol=1e-11, atol=1e-14)
    work = pipeline.timeline.work
    assert len(work) == 2 * 3 * microbatches
    assert all(tg.rpc.debug_info()[name] == 0 for name in ("pending_calls", "contexts"))


def test_numbers_of_workers_need_not_be_their_ranks():
    with numbered_cluster(driver=4, a=0, b=1) as agents:
        parts, (x, y) = modules(), batch()
        pipeline = Pipeline(placed(parts, [*agents.values()]), LOSS, 2)
        assert pipeline.step(x, y).item() == pytest.approx(LOSS(run_alone(parts, x), y).item(), rel=1e-12)


def test_results_without_training(cluster):
    parts, (x, _) = modules(), batch()
    pipeline = Pipeline(placed(parts, cluster), n_microbatches=3).eval()
    assert not any(part.training for part in parts)
    np.testing.assert_allclose(pipeline(x).numpy(), run_alone(parts, x).detach().numpy(), rtol=1e-12)
    pipeline.train()
    assert all(part.training for part in parts)
    with pytest.raises(ValueError, match="a step needs a loss"):
        pipeline.step(x, x)
    first, second = Pipeline(placed(parts[:1], cluster), n_microbatches=3)(x)
    assert first.shape == (10, 4) and second.dtype == tg.int64


def test_optimizers_of_all_stages(cluster):
    parts, (x, y) = modules(), batch()
    alone = modules()
    pipeline = Pipeline(placed(parts, cluster), LOSS, 4)
    optimizer = pipeline.optimizer(tg.optim.Adam, lr=0.01)
    parameters = [p for part in alone for p in part.parameters()]
    plain = tg.optim.Adam(parameters, lr=0.01)
    for step in range(4):
        pipeline.step(x, y)
        LOSS(run_alone(alone, x), y).backward()
        norm = optimizer.clip_grad_norm_(0.1)
        assert norm.item() == pytest.approx(tg.nn.utils.clip_grad_norm_(parameters, 0.1).item())
        optimizer.step()
        plain.step()
        plain.zero_grad()
        if step == 2:
            optimizer.set_options(lr=0.02)
            plain.param_groups[0]["lr"] = 0.02
    for mine, other in zip([p for part in parts for p in part.parameters()], parameters, strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), rtol=1e-10)
        assert mine.grad is None
    parts[0].layer.bias.grad = tg.full((4,), float("nan")).double()
    with pytest.raises(AutogradError, match="norm of the gradients of all stages is nan"):
        optimizer.clip_grad_norm_(1.0, error_if_nonfinite=True)
    optimizer.zero_grad()
    assert parts[0].layer.bias.grad is None


class Failing(tg.nn.Module):
    """Fails at its third call."""

    calls = 0

    def forward(self, hidden, flags):
        self.calls += 1
        if self.calls == 3:
            raise ArithmeticError("the third call")
        return hidden * 1.0, flags


@pytest.mark.parametrize("schedule", ["GPipe", "1F1B"])
def test_an_error_of_a_stage_ends_all_and_the_next_step_works(cluster, schedule):
    parts, (x, y) = modules(), batch()
    parts[1] = Failing()
    pipeline = Pipeline(placed(parts, cluster), LOSS, 5, schedule)
    with pytest.raises(ArithmeticError, match="the third call"):
        pipeline.step(x, y)
    assert pipeline.step(x, y).item() > 0


class Waiting(tg.nn.Module):
    """Waits until it is told to go on."""

    def __init__(self):
        super().__init__()
        self.entered, self.go = threading.Event(), threading.Event()

    def forward(self, x):
        self.entered.set()
        self.go.wait(20)
        return x


def test_a_stage_that_takes_too_long_is_named(cluster):
    slow = Waiting()
    pipeline = Pipeline(placed([slow, tg.nn.Linear(3, 2).double()], cluster), LOSS, 2, timeout=0.3)
    threading.Timer(1.0, slow.go.set).start()
    with pytest.raises(RpcTimeoutError, match="stage 1 waited in vain for micro-batch 0 of the forward of worker 'a'"):
        pipeline.step(*batch())


def test_a_lost_stage_is_named(cluster):
    slow = Waiting()
    pipeline = Pipeline(placed([tg.nn.Linear(3, 3).double(), slow, tg.nn.Linear(3, 2).double()], cluster), LOSS, 2)
    errors = []

    def step():
        with cluster[0].use():
            try:
                pipeline.step(*batch())
            except Exception as error:
                errors.append(error)

    thread = threading.Thread(target=step)
    thread.start()
    assert slow.entered.wait(20)
    slow.go.set()
    cluster[2].close("it ends")
    thread.join()
    assert not errors or isinstance(errors[0], WorkerLostError)
    with pytest.raises(WorkerLostError) as caught:
        pipeline.step(*batch())
    assert caught.value.worker == "b"


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: Pipeline([]), ValueError, "stages is empty"),
        (lambda: Pipeline([tg.nn.Linear(1, 1)]), TypeError, r"stages\[0\] must be a RemoteModule"),
        (lambda: Pipeline([tg.rpc.remote("a", int)]), TypeError, "a stage must be an nn.Module"),
        (lambda: Pipeline([tg.RemoteModule("a", Front)], n_microbatches=0), ValueError, "n_microbatches must be"),
        (lambda: Pipeline([tg.RemoteModule("a", Front)], schedule="2F2B"), ValueError, "schedule must be"),
        (lambda: Pipeline([tg.RemoteModule("a", Front)])(tg.ones(3, 3)), ValueError, "at least 4; you gave"),
        (lambda: Pipeline([tg.RemoteModule("a", tg.nn.Tanh)], LOSS).optimizer(tg.optim.SGD), ValueError, "no stage"),
    ],
)
def test_wrong_arguments(cluster, make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_a_picture_of_who_was_busy_when(cluster, tmp_path):
    pipeline = Pipeline(placed(modules(), cluster), LOSS, 4)
    pipeline.step(*batch())
    pipeline.timeline.draw(tmp_path / "step.svg", "three stages")
    picture = (tmp_path / "step.svg").read_text()
    assert picture.count("<rect") == 1 + 24 and "0: a" in picture and "in theory 33%" in picture
    assert 0 <= pipeline.timeline.bubble() < 1


def test_a_timeline_measures_the_bubble():
    forward, backward = Action("forward", 0), Action("backward", 0)
    timeline = Timeline.of(
        ["a", "b"], [[(forward, 1.0, 2.0), (backward, 4.0, 5.0)], [(forward, 12.0, 13.0)]], [0.0, -10.0], 1
    )
    assert timeline.seconds() == 4.0 and timeline.bubble() == 1 - 3 / 8 and timeline.theory() == 0.5
    assert re.search("stroke", timeline.svg())


def test_an_inbox_drops_what_belongs_to_steps_that_are_over():
    inbox, action = Inbox(), Action("forward", 0)
    inbox.put(2, action, "early")
    inbox.begin(1)
    inbox.put(1, action, "now")
    with pytest.raises(RuntimeError, match="one step of a pipeline at a time"):
        inbox.begin(2)
    assert inbox.take(1, action, 1) == "now"
    inbox.put(1, Action("forward", 1), "not taken")
    inbox.end()
    inbox.put(1, action, "late")
    inbox.abort(1, ValueError())
    assert len(inbox) == 1
    inbox.begin(2)
    assert inbox.take(2, action, 1) == "early"
    inbox.abort(2, ValueError("given up"))
    with pytest.raises(ValueError, match="given up"):
        inbox.take(2, Action("backward", 0), 1)
    inbox.end()
    assert len(inbox) == 0


def test_an_inbox_whose_step_is_given_up_before_it_begins():
    inbox = Inbox()
    inbox.abort(1, ValueError("given up"))
    inbox.begin(1)
    with pytest.raises(ValueError, match="given up"):
        inbox.take(1, Action("forward", 0), 1)
    inbox.end()
    inbox.begin(2)
    inbox.put(2, Action("forward", 0), "not given up")
    assert inbox.take(2, Action("forward", 0), 1) == "not given up"


class Marked(tg.nn.Module):
    """Hands a value on that is no tensor."""

    def forward(self, x):
        return x * 1.0, Path("mark")


class Reader(tg.nn.Module):
    """Takes it."""

    def forward(self, x, mark):
        assert mark == Path("mark")
        return x


def test_values_that_are_no_tensors_go_along(cluster):
    x, _ = batch()
    pipeline = Pipeline(placed([Marked(), Reader()], cluster), n_microbatches=2)
    np.testing.assert_array_equal(pipeline(x).numpy(), x.numpy())


def test_a_delivery_to_a_stage_that_is_gone(cluster):
    deliveries, action = Deliveries.of(cluster[0]), Action("forward", 0)
    inbox, kept = Inbox(), Deliveries.of(cluster[1])
    address = kept.add(inbox)
    inbox.begin(1)
    deliveries.send(address, 1, action, (tg.ones(2),), 20.0).wait()
    assert inbox.take(1, action, 20.0)[0].tolist() == [1.0, 1.0]
    del inbox
    with pytest.raises(RpcError, match="worker 'a' has no stage 1 of a pipeline any more"):
        deliveries.send(address, 1, action, (tg.ones(2),), 20.0).wait()

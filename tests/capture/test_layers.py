"""Large operations, compiled: they have plans of their own, with the bits of eager calls."""

import numpy as np
import pytest
import telegrad as tg
from helpers.compiled import array
from helpers.plans import saved
from telegrad import nn
from telegrad.core.extend import in_row_buffers

IMAGES = {
    "convolution": lambda: nn.Conv2d(4, 6, 3, padding=1),
    "strided": lambda: nn.Conv2d(4, 6, 3, stride=2, padding=1, bias=False),
    "of one pixel": lambda: nn.Conv2d(4, 6, 1),
    "in groups": lambda: nn.Conv2d(4, 6, 3, groups=2, dilation=2, padding=2),
    "depthwise": lambda: nn.Conv2d(4, 4, 3, groups=4, padding=1),
    "transposed": lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1),
    "max_pool": lambda: nn.MaxPool2d(2),
    "max_pool, overlapping": lambda: nn.MaxPool2d(3, stride=2, padding=1),
    "avg_pool": lambda: nn.AvgPool2d(3, stride=2, padding=1),
    "layer_norm": lambda: nn.LayerNorm((12, 12)),
    "batch_norm without statistics": lambda: nn.BatchNorm2d(4, track_running_stats=False),
    "group_norm": lambda: nn.GroupNorm(2, 4),
}
SEQUENCES = {
    "lstm": lambda: nn.LSTM(6, 8),
    "lstm, both ways": lambda: nn.LSTM(6, 8, num_layers=2, bidirectional=True),
    "lstm without bias": lambda: nn.LSTM(6, 8, bias=False, batch_first=True),
    "gru": lambda: nn.GRU(6, 8),
    "gru, both ways": lambda: nn.GRU(6, 8, bidirectional=True),
    "rnn": lambda: nn.RNN(6, 8),
    "rnn of relu": lambda: nn.RNN(6, 8, nonlinearity="relu", bidirectional=True),
    "linear of few rows": lambda: nn.Linear(6, 4096),
    "encoder layer": lambda: nn.TransformerEncoderLayer(6, 2, dim_feedforward=8, dropout=0.0),
}


def training(layer, shape):
    """Return a function that makes a training step of a layer, for ``Sides.run``."""

    def make():
        module, weight = layer(), tg.nn.Parameter(tg.from_numpy(array(shape[-1])))
        optimizer = tg.optim.SGD([weight, *module.parameters()], lr=0.1)

        def step(x):
            optimizer.zero_grad()
            result = module(x * weight)
            result = result[0] if isinstance(result, tuple) else result
            result.square().mean().backward()
            optimizer.step()
            return result.detach()

        return step, lambda: [weight, *module.parameters()], lambda call: (tg.from_numpy(array(*shape, seed=call)),)

    return make


def whole(sides):
    """Return the names of the operations that run as a whole in a replay."""
    return {name for entry in sides.compiled._entries.values() for plan in entry.plans for name, _ in plan.whole}


@pytest.mark.parametrize("shape", [(2, 3, 5, 4), (2, 3, 3, 5, 4)])
def test_images_sampled_at_points_are_recorded(shape, sides):
    size = (shape[0], *shape[2:], len(shape) - 2)

    def make():
        images, grid = (tg.nn.Parameter(tg.from_numpy(array(*each))) for each in (shape, size))

        def step(x):
            images.grad = grid.grad = None
            result = nn.functional.grid_sample(images, tg.tanh(grid * x), align_corners=False)
            result.square().sum().backward()
            return result.detach()

        return step, lambda: [images, grid], lambda call: (tg.from_numpy(array(1, seed=call)),)

    sides.run(make, calls=4)
    assert sides.replays() == 2 and not whole(sides) and not sides.reasons()


@pytest.mark.parametrize("batch", [2, 9])
@pytest.mark.parametrize("name", IMAGES)
def test_layers_of_images(name, batch, sides):
    sides.run(training(IMAGES[name], (batch, 4, 12, 12)), calls=4)
    assert sides.replays() == 2 and not whole(sides) and not sides.reasons()


def test_numbers_of_long_rows_have_buffers_of_a_row(sides):
    sides.run(training(lambda: nn.GroupNorm(2, 4), (20, 4, 25, 24)), calls=4)
    (plan,) = sides.compiled.plans()
    assert sides.replays() == 2 and any(each is in_row_buffers for each in plan.source.constants.values())
    assert np.getbufsize() == 8192


@pytest.mark.parametrize("momentum", [0.1, 0.0])
@pytest.mark.parametrize("shape", [(5, 4), (3, 4, 6, 5), (70, 4, 32, 32)])
def test_running_statistics(shape, momentum, sides):
    def make():
        layer = nn.BatchNorm2d(4, momentum=momentum) if len(shape) > 2 else nn.BatchNorm1d(4, momentum=momentum)
        optimizer = tg.optim.SGD(layer.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            layer(x).square().sum().backward()
            optimizer.step()

        state = lambda: [*layer.parameters(), layer.running_mean, layer.running_var, layer.num_batches_tracked]  # noqa: E731
        return step, state, lambda call: (tg.from_numpy(array(*shape, seed=call)),)

    sides.run(make, calls=5)
    assert sides.replays() == 3 and whole(sides) == {"add_"} and not sides.reasons()


def test_statistics_that_a_call_reads_after_it_has_changed_them(sides):
    def make():
        mean, var = tg.zeros(4), tg.ones(4)

        def step(x):
            before = mean * 2
            y = nn.functional.batch_norm(x, mean, var, training=True)
            return before, y, mean + 1, nn.functional.batch_norm(x, mean, var)

        return step, lambda: [mean, var], lambda call: (tg.from_numpy(array(6, 4, seed=call)),)

    sides.run(make, calls=5)
    assert sides.replays() == 3 and not sides.reasons()


def test_statistics_that_are_results_run_as_a_whole_or_eagerly(sides):
    def make():
        def step(x):
            mean, var = x.mean(0), x.var(0)
            return nn.functional.batch_norm(x, mean, var, training=True), mean, var

        return step, list, lambda call: (tg.from_numpy(array(6, 4, seed=call)),)

    sides.run(make, calls=5)


@pytest.mark.parametrize("name", SEQUENCES)
def test_layers_of_sequences(name, sides):
    sides.run(training(SEQUENCES[name], (5, 3, 6)), calls=4)
    assert sides.replays() == 2 and not whole(sides) - {"zeros", "chunk"} and not sides.reasons()


def test_sequences_of_different_lengths(sides):
    def make():
        module = nn.LSTM(6, 8, bidirectional=True)

        def step(x):
            module.zero_grad()
            packed = nn.utils.rnn.pack_padded_sequence(x, tg.tensor([5, 3, 2]))
            module(packed)[0].data.square().mean().backward()

        return step, lambda: list(module.parameters()), lambda call: (tg.from_numpy(array(5, 3, 6, seed=call)),)

    sides.run(make, calls=4)


def test_a_layer_with_too_many_calls_runs_as_a_whole(sides, monkeypatch):
    monkeypatch.setattr("telegrad.capture.tracer._MOST", 40)
    sides.run(training(SEQUENCES["lstm"], (5, 3, 6)), calls=4)
    assert sides.replays() == 2 and "lstm_layer" in whole(sides)


def classifier():
    """Return a training step of a linear classifier, and its parameters."""
    tg.manual_seed(0)
    module = nn.Linear(4, 3)
    optimizer = tg.optim.SGD(module.parameters(), lr=0.1)

    def step(x, classes):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(module(x), classes)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, list(module.parameters())


def test_classes_are_checked_before_a_replay_begins(sides):
    targets = [[0, 1, 2], [2, 2, 1], [1, 0, 0], [-100, 0, 2], [1, 1, 1], [0, -100, -100]]

    def make():
        step, parameters = classifier()
        x = tg.from_numpy(array(3, 4))
        return step, lambda: parameters, lambda call: (x, tg.tensor(targets[call % len(targets)]))

    sides.run(make, calls=12)
    assert sides.replays() >= 4 and not sides.reasons()


def test_a_wrong_class_changes_nothing():
    step, parameters = classifier()
    compiled, x = tg.compile(step), tg.ones(2, 4)
    for _ in range(3):
        compiled(x, tg.tensor([0, 2]))
    before = [each.detach().clone() for each in parameters]
    plan = next(plan for entry in compiled._entries.values() for plan in entry.plans)
    assert plan.replays == 1 and not plan.whole
    with pytest.raises(IndexError, match="target 3 is not a class"):
        compiled(x, tg.tensor([0, 3]))
    assert all(tg.equal(one, other) for one, other in zip(before, parameters))


def test_classes_that_the_call_computes_are_no_condition(sides):
    def make():
        step, parameters = classifier()
        x = tg.from_numpy(array(3, 4))
        return lambda x, t: step(x, t + 1), lambda: parameters, lambda call: (x, tg.tensor([0, 1, call % 2]))

    sides.run(make, calls=6)
    assert sides.replays() == 4 and "cross_entropy" in whole(sides)


def test_rows_that_repeat_after_the_recording(sides):
    rows = [[1, 2, 3], [4, 5, 6], [1, 1, 3], [0, 0, 0]]

    def make():
        module = nn.Embedding(10, 4)

        def step(x):
            module.zero_grad()
            module(x).square().sum().backward()

        return step, lambda: list(module.parameters()), lambda call: (tg.tensor(rows[call]),)

    sides.run(make, calls=4)
    assert sides.replays() == 2


def test_a_loaded_plan_checks_the_classes():
    logits, classes = tg.from_numpy(array(3, 4)), tg.tensor([0, 3, 1])
    file, _ = saved(nn.functional.cross_entropy, logits, classes)
    plan = tg.load_plan(file)
    expected = nn.functional.cross_entropy(logits, tg.tensor([2, 2, 0]))
    assert tg.equal(plan(logits, tg.tensor([2, 2, 0])), expected)
    for wrong in (4, -1):
        with pytest.raises(IndexError, match="too large, or negative"):
            plan(logits, tg.tensor([0, wrong, 1]))


def test_a_loaded_plan_samples_images():
    images, grid = tg.from_numpy(array(2, 3, 5, 4)), tg.from_numpy(array(2, 4, 4, 2))
    sampled = lambda grid: nn.functional.grid_sample(images, grid, align_corners=False)  # noqa: E731
    file, _ = saved(sampled, grid)
    assert tg.equal(tg.load_plan(file)(grid / 2), sampled(grid / 2))


def test_a_loaded_plan_moves_its_running_statistics():
    module, x = nn.BatchNorm1d(4, affine=False), tg.from_numpy(array(6, 4))
    mean, var = module.running_mean, module.running_var
    file, _ = saved(lambda x: nn.functional.batch_norm(x, mean, var, training=True), x)
    plan = tg.load_plan(file)
    for _ in range(2):
        assert tg.equal(plan(x + 1), nn.functional.batch_norm(x + 1, mean, var, training=True))
    assert {each.numpy().tobytes() for each in plan.tensors} == {mean.numpy().tobytes(), var.numpy().tobytes()}


HIDDEN = [[[1, 1, 1], [0, 1, 1]], [[0, 0, 0], [1, 0, 0]], [[1, 0, 1], [0, 0, 0]]]  # the keys that queries may attend to


@pytest.mark.parametrize("numbers", [False, True])
def test_queries_that_attend_to_no_key_in_some_replays(numbers, sides):
    def make():
        def step(q, k, mask):
            result = nn.functional.scaled_dot_product_attention(q, k, k, attn_mask=mask)
            q.grad = k.grad = None
            result.square().sum().backward()
            return result.detach()

        q, k = (tg.from_numpy(array(2, length, 4)).requires_grad_() for length in (2, 3))

        def arguments(call):
            mask = tg.tensor(HIDDEN[call % 3]).bool()
            return q, k, tg.where(mask, 0.0, -tg.inf) if numbers else mask

        return step, lambda: [q, k], arguments

    sides.run(make, calls=7)
    assert sides.replays() == 5 and not whole(sides) and not sides.reasons()


@pytest.mark.parametrize("causal", [False, True])
def test_multi_head_attention_with_masks(causal, sides):
    def make():
        module = nn.MultiheadAttention(8, 2, batch_first=True)
        mask = nn.Transformer.generate_square_subsequent_mask(3) if causal else None

        def step(x, padding):
            module.zero_grad()
            result, weights = module(x, x, x, key_padding_mask=padding, attn_mask=mask)
            (result.sum() + weights.square().sum()).backward()
            return result.detach()

        def arguments(call):
            padding = tg.tensor([[False, False, call % 2 == 1], [False, call % 3 == 1, True]])
            return tg.from_numpy(array(2, 3, 8, seed=call)), padding

        return step, lambda: list(module.parameters()), arguments

    sides.run(make, calls=7)
    assert sides.replays() == 5 and not sides.reasons() and "attention" not in whole(sides)


def test_a_loaded_plan_of_masked_attention():
    q, attend = tg.from_numpy(array(2, 3, 4)), nn.functional.scaled_dot_product_attention
    file, _ = saved(lambda q, mask: attend(q, q, q, attn_mask=mask), q, tg.ones(3, 3).bool())
    plan = tg.load_plan(file)
    for mask in (tg.eye(3).bool(), tg.zeros(3, 3).bool()):
        assert tg.equal(plan(q, mask), attend(q, q, q, attn_mask=mask))

"""Recurrent layers and cells give PyTorch's numbers (tests/golden/record_recurrent.py).

That their gradients are right, first and second, is checked with those of all operations (tools/ops/recurrence.py).
"""

import pytest
import telegrad as tg
from helpers.golden import TOLERANCES, assert_close, largest, numbers, recorded, tensors_in
from telegrad import nn
from telegrad.nn.utils import rnn

GOLDEN = recorded("recurrent")
STEPS, SEQUENCES, FEATURES, HIDDEN = 4, 3, 2, 3


def filled(module, dtype):
    module.to(dtype=dtype)
    for seed, parameter in enumerate(module.parameters(), 20):
        parameter.data = numbers(seed, *parameter.shape, dtype=dtype) * 0.8
    return module


def states(case, sequences, dtype):
    options = case["options"]
    count = options.get("num_layers", 1) * (1 + options.get("bidirectional", False))
    shape = (count, sequences) if sequences else (count,)
    h = numbers(5, *shape, options.get("proj_size") or HIDDEN, dtype=dtype).requires_grad_()
    return (h, numbers(6, *shape, HIDDEN, dtype=dtype).requires_grad_()) if case["layer"] == "LSTM" else h


def assert_recorded(found, expected, dtype):
    assert_close(found, expected, TOLERANCES[dtype], largest(expected))


def check(outputs, gradients, case, module, dtype):
    for output, expected in zip(outputs, case["outputs"], strict=True):
        assert_recorded(output, expected, dtype)
    sum(
        (output * numbers(seed + 40, *output.shape, dtype=dtype)).sum() for seed, output in enumerate(outputs)
    ).backward()
    for name, parameter in module.named_parameters():
        assert_recorded(parameter.grad, case["gradients"][name], dtype)
    for name, tensor in gradients.items():
        assert_recorded(tensor.grad, case["gradients"][name], dtype)


def label(case):
    return f"{case['layer']}-{case['kind']}-{case['options']}".replace(" ", "")


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("case", GOLDEN["layers"], ids=label)
def test_layers(case, dtype):
    module = filled(getattr(nn, case["layer"])(FEATURES, HIDDEN, **case["options"]), dtype)
    kind = case["kind"]
    outer = (SEQUENCES, STEPS) if case["options"].get("batch_first") else (STEPS, SEQUENCES)
    x = numbers(1, *((STEPS,) if kind == "unbatched" else outer), FEATURES, dtype=dtype).requires_grad_()
    hx = states(case, 0 if kind == "unbatched" else SEQUENCES, dtype) if case["given"] else None
    if kind in GOLDEN["lengths"]:
        packed = rnn.pack_padded_sequence(x, GOLDEN["lengths"][kind], enforce_sorted=kind == "packed")
        y, last = module(packed, hx)
        y, lengths = rnn.pad_packed_sequence(y)
        assert lengths.tolist() == GOLDEN["lengths"][kind]
    else:
        y, last = module(x, hx)
    check([y, *tensors_in(last)], {"x": x}, case, module, dtype)
    for state, expected in zip(tensors_in(hx) if case["given"] else (), case["gradients"]["states"]):
        assert_recorded(state.grad, expected, dtype)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("case", GOLDEN["cells"], ids=lambda case: f"{case['cell']}-{case['options']}")
def test_cells(case, dtype):
    module = filled(getattr(nn, case["cell"])(FEATURES, HIDDEN, **case["options"]), dtype)
    x = numbers(1, SEQUENCES, FEATURES, dtype=dtype).requires_grad_()
    h, c = (numbers(seed, SEQUENCES, HIDDEN, dtype=dtype).requires_grad_() for seed in (2, 3))
    outputs = tensors_in(module(x, (h, c) if case["cell"] == "LSTMCell" else h))
    check(outputs, {"x": x, "h": h}, case, module, dtype)


def test_a_layer_is_one_node_and_frees_what_it_saved():
    lstm = nn.LSTM(2, 3)
    y, _ = lstm(tg.ones(4, 1, 2))
    assert y.grad_fn.name() == "LstmBackward"
    y.sum().backward()
    with pytest.raises(tg.errors.AutogradError, match="retain_graph=True"):
        y.sum().backward()


def test_a_weight_changed_between_the_passes_is_told():
    gru = nn.GRU(2, 3)
    y, _ = gru(tg.ones(4, 1, 2))
    with tg.no_grad():
        gru.weight_ih_l0.mul_(2)
    with pytest.raises(tg.errors.AutogradError, match="GruBackward needs an input"):
        y.sum().backward()


def test_dropout_is_between_layers_and_only_while_training():
    tg.manual_seed(0)
    lstm = nn.LSTM(2, 8, num_layers=2, dropout=0.5)
    x = tg.ones(5, 2, 2)
    assert not bool((lstm(x)[0] == lstm(x)[0]).all())
    lstm.eval()
    assert bool((lstm(x)[0] == lstm(x)[0]).all())
    alone = nn.LSTM(2, 8, dropout=0.5)
    assert bool((alone(x)[0] == alone(x)[0]).all())


def test_packing_and_unpacking():
    sequences = [tg.tensor([[1.0], [2.0]]), tg.tensor([[3.0], [4.0], [5.0]]), tg.tensor([[6.0]])]
    packed = rnn.pack_sequence(sequences, enforce_sorted=False)
    assert packed.data.flatten().tolist() == [3, 1, 6, 4, 2, 5] and packed.batch_sizes.tolist() == [3, 2, 1]
    for have, given in zip(rnn.unpack_sequence(packed), sequences, strict=True):
        assert have.tolist() == given.tolist()
    padded, lengths = rnn.pad_packed_sequence(packed, batch_first=True, padding_value=-1, total_length=4)
    assert padded[..., 0].tolist() == [[1, 2, -1, -1], [3, 4, 5, -1], [6, -1, -1, -1]] and lengths.tolist() == [2, 3, 1]
    left = rnn.pad_sequence(sequences, batch_first=True, padding_side="left")
    assert left[..., 0].tolist() == [[0, 1, 2], [3, 4, 5], [0, 0, 6]]


@pytest.mark.parametrize(
    "act, message",
    [
        (lambda: nn.LSTM(2, 3)(tg.ones(4, 1, 5)), r"LSTM takes an input of shape \(L, N, 2\)"),
        (lambda: nn.GRU(2, 3, batch_first=True)(tg.ones(5)), r"GRU takes an input of shape \(N, L, 2\)"),
        (lambda: nn.GRU(2, 3)(tg.ones(4, 1, 2), tg.ones(1, 2, 3)), r"state h of shape \(1, 1, 3\)"),
        (lambda: nn.RNN(2, 3, nonlinearity="sin"), 'must be "tanh" or "relu"'),
        (lambda: nn.LSTM(2, 0), "hidden_size must be a positive integer"),
        (lambda: nn.LSTM(2, 3, proj_size=3), "proj_size must be from 0 to below hidden_size"),
        (lambda: nn.GRU(2, 3, dropout=2), "dropout must be between 0 and 1"),
        (lambda: nn.LSTMCell(2, 3)(tg.ones(4, 5)), r"LSTMCell takes an input of shape \(N, 2\)"),
        (lambda: nn.GRUCell(2, 3)(tg.ones(4, 2), tg.ones(3, 3)), r"needs a state of shape \(4, 3\)"),
        (lambda: rnn.pack_padded_sequence(tg.ones(3, 2, 1), [1, 3]), "the lengths must fall"),
        (lambda: rnn.pack_padded_sequence(tg.ones(3, 2, 1), [4, 3]), "needs 2 lengths from 1 to 3"),
        (lambda: rnn.pad_sequence([]), "at least one sequence"),
    ],
)
def test_misuse_is_told(act, message):
    with pytest.raises(ValueError, match=message):
        act()

"""Plans in files: the same bits without the function, and clear errors for other files and arguments."""

import io

import pytest
import telegrad as tg
from helpers.plans import compiled, forged, mutated, saved, try_forged
from telegrad import nn
from telegrad.base.errors import CheckpointError, TelegradError


def images():
    """Return a convolutional network, and images."""
    layers = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3)
    return nn.Sequential(*layers).eval(), tg.randn(2, 3, 8, 8)


def recurrent():
    """Return an LSTM of two directions, and sequences."""
    lstm = nn.LSTM(6, 4, bidirectional=True)
    return (lambda x: {"outputs": lstm(x)[0], "none": [None, 2]}), tg.randn(5, 2, 6)


PROGRAMS = {
    "linear": lambda: (nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3), nn.Softmax(-1)), tg.randn(4, 6)),
    "images": images,
    "recurrent": recurrent,
    "attention": lambda: (nn.TransformerEncoderLayer(6, 2, 12).eval(), tg.randn(4, 2, 6)),
    "embedding": lambda: (nn.Embedding(5, 3), tg.randint(0, 5, (7,))),
    "numbers": lambda: ((lambda x: (x[:, 1:3] * 2.5 + tg.tensor([1.0, 2.0])).clamp(-0.0, 3).double()), tg.randn(4, 6)),
    "large": lambda: ((lambda x: (x.tanh() * 2 + 1).exp().sum(0)), tg.randn(300, 300)),
    "cumulative": lambda: ((lambda x: x.cumsum(1)), tg.randn(200, 200)),
    "transposed": lambda: ((lambda x: x.reshape(-1) * 2), tg.randn(6, 4).t()),
}


def flat(result):
    """Return the tensors of a result."""
    parts = result.values() if isinstance(result, dict) else [result]
    return [each for each in parts if isinstance(each, tg.Tensor)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loaded_plan_has_the_same_bits(name):
    tg.manual_seed(0)
    function, x = PROGRAMS[name]()
    file, _ = saved(function, x)
    plan = tg.load_plan(file)
    for _ in range(3):
        other = x if x.dtype == tg.int64 else x.detach() + 1
        given = other if name != "transposed" else other.contiguous()  # laid out as in the recording, by a copy
        for one, two in zip(flat(plan(given)), flat(function(other)), strict=True):
            assert one.numpy(force=True).tobytes() == two.numpy(force=True).tobytes()


@pytest.mark.parametrize("name", ["linear", "images", "attention"])
def test_gradients_of_a_loaded_plan_are_those_of_the_function(name):
    tg.manual_seed(0)
    function, x = PROGRAMS[name]()
    x.requires_grad_()
    file, _ = saved(function, x)
    plan = tg.load_plan(file)
    for call in (plan, function):
        x.grad = None
        call(x).square().sum().backward()
        found = x.grad.numpy().tobytes()
        expected = locals().get("expected", found)
    assert found == expected
    # The order of parameters is that in which they are used.
    left = {each.grad.numpy().tobytes() for each in plan.tensors if each.grad is not None}
    assert left == {each.grad.numpy().tobytes() for each in function.parameters()}
    with tg.no_grad():
        assert not plan(x).requires_grad


def test_it_runs_without_the_source(tmp_path, run_python):
    tg.manual_seed(0)
    net = nn.Linear(6, 2)
    model, result = compiled(lambda x: net(x).tanh(), tg.ones(4, 6))
    model.plans()[0].save(tmp_path / "plan")
    program = f"import telegrad as tg; print(tg.load_plan({str(tmp_path / 'plan')!r})(tg.ones(4, 6)).tolist())"
    assert run_python("-c", program).strip() == str(result.tolist())


def plan():
    """Return a loaded plan of two arguments."""
    file, _ = saved(lambda x, y, factor: x * y.sum() * factor, tg.ones(2, 3), tg.ones(4, dtype=tg.float64), 2)
    return tg.load_plan(file)


def test_arguments_are_checked():
    x, y = tg.ones(2, 3), tg.ones(4, dtype=tg.float64)
    loaded = plan()
    for given, error, words in [
        ((x,), TypeError, "takes 2 tensors, and you gave 1"),
        ((x, [1]), TypeError, "argument 1 must be a tensor; you gave list"),
        ((x, y.float()), TypeError, "argument 1 has dtype float32"),
        ((x[:1], y), ValueError, r"argument 0 has shape \(1, 3\), and the plan is for \(2, 3\)"),
        ((tg.ones(2, 3, requires_grad=True), y), ValueError, "argument 0 requires grad"),
    ]:
        with pytest.raises(error, match=words) as caught:
            loaded(*given)
        assert isinstance(caught.value, TelegradError) and isinstance(caught.value, RuntimeError)
    assert [(each.shape, str(each.dtype)) for each in loaded.inputs] == [((2, 3), "float32"), ((4,), "float64")]
    assert "operations" in repr(loaded) and loaded.tensors == ()


def test_steps_of_optimizers_are_not_saved():
    net = nn.Linear(6, 2)
    optimizer = tg.optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()

    with pytest.raises(TypeError, match=r"cannot be saved: it calls Optimizer.zero_grad\(\)"):
        saved(step, tg.ones(4, 6))


def test_overlapping_arguments_are_not_saved():
    with pytest.raises(TypeError, match="overlap"):
        saved(lambda x: x * 2, tg.ones(4, 6)[:, ::2])


def data():
    """Return the data of a plan with arguments of some kinds, and the plan's inputs."""
    net = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.Softplus(), nn.MaxPool2d(2))
    x = tg.randn(2, 1, 4, 4)
    file, _ = saved(lambda x: {"a": net(x)[:, 1:].sum(0), "b": x.repeat(2, 1, 1, 1)}, x)
    return tg.load(file), [x]


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        ("version", 1, "is a plan of version 1, and this version of telegrad reads 2"),
        ("version", None, "version None"),
        ("kind", "checkpoint", "is not a plan"),
        ("statements", [("CALL", "os.system", ("id",), {"dict": []}, None, None, [], (False,) * 3)], "may not call"),
        ("statements", [("CALL", "add", (1,), {"dict": [("x=exit()", 1)]}, None, None, [], (False,) * 3)], "no name"),
        ("inputs", [((1 << 20, 1 << 20), "float32", (1 << 22, 4), False)], "bytes; pass load_plan"),
        ("inputs", [((2,), "object", (8,), False)], "cannot be read as a plan"),
        ("inputs", [((4, 4), "float32", (0, 0), False)], "overlap"),
        ("half", 10**9, "not in order"),
        ("results", {"value": 10**6}, "cannot be read as a plan"),
        ("results", {"outer": (5, True)}, "tensor 5"),
    ],
)
def test_forged_plans_are_refused(part, value, words):
    with pytest.raises(CheckpointError, match=words):
        tg.load_plan(forged({**data()[0], part: value}))


def test_wrong_arguments_are_named():
    with pytest.raises(TypeError, match="memory must be a number of bytes"):
        tg.load_plan("scores.plan", memory="1G")
    with pytest.raises(TypeError, match="a path or an open binary file, not int"):
        tg.load_plan(3)


def test_numbers_are_not_saved():
    compiled = tg.compile(lambda x: x.sum().item())
    for _ in range(3):
        compiled(tg.ones(2))
    with pytest.raises(TypeError, match="a number that item\\(\\) reads"):
        compiled.plans()[0].save("scores.plan")


def test_conditions_of_other_functions_are_refused():
    given, _ = data()
    condition = ("EFFECT", "condition_of", ({"function": "zeros"}, 8), {"dict": []}, None, None, [], (False,) * 3)
    later = [(mask, start + 1, *rest) for mask, start, *rest in given["backwards"]]
    changed = {"statements": [condition, *given["statements"]], "half": given["half"] + 1, "backwards": later}
    with pytest.raises(CheckpointError, match="condition that no operation has"):
        tg.load_plan(forged({**given, **changed}))


def test_integers_that_make_large_arrays_are_refused():
    found, _ = data()
    for each in found["statements"]:
        if each[1] == "call_whole" and each[2][0] == {"function": "operation.repeat"}:
            break
    else:
        each = ["CALL", "tile", ({"value": found["arrays"][0][0]}, 10**7), {"dict": []}, None, None, [], (False,) * 3]
        found["statements"].insert(0, each)
        with pytest.raises(CheckpointError, match="10000000"):
            tg.load_plan(forged(found))


def test_views_of_other_memory_are_refused():
    file, _ = saved(lambda x: x * 2, tg.ones(4, 4))
    found = tg.load(file)
    ((number, storages, array),) = [each for each in found["values"] if each[0] == found["arrays"][0][0]]
    found["values"].append((999, storages, (*array[:2], (1 << 40, 4), True)))
    view = ("VIEW", "strided", ({"value": number}, (4, 4), (1 << 40, 4)), {"dict": []}, 999, None, [], (False,) * 3)
    changed = {
        **found,
        "statements": [view, *found["statements"]],
        "results": {"wrapped": (999, False)},
        "half": found["half"] + 1,
    }
    with pytest.raises(CheckpointError, match="leaves the memory"):
        tg.load_plan(forged(changed))(tg.ones(4, 4))


def test_changed_data_gives_an_error_of_the_library_or_a_plan():
    found, inputs = data()
    errors = [try_forged(found, seed, inputs) for seed in range(60)]
    assert sum(error is not None for error in errors) > 20
    odd = [each for each in errors if not isinstance(each, (type(None), CheckpointError, IndexError))]
    assert not [each for each in odd if not isinstance(each, TelegradError)]


def test_files_that_were_cut_or_changed_are_refused():
    file, _ = saved(lambda x: x * 2 + 1, tg.ones(3))
    content = file.getvalue()
    for at in range(0, len(content) - 1, 97):
        for changed in (content[:at], content[:at] + bytes([content[at] ^ 64]) + content[at + 1 :]):
            with pytest.raises(CheckpointError):
                tg.load_plan(io.BytesIO(changed))
    with pytest.raises(CheckpointError, match="is not a plan"):
        tg.load_plan(forged({"a": tg.ones(3)}))
    with pytest.raises(FileNotFoundError):
        tg.load_plan("/nowhere/plan")


def test_mutation_changes_something():
    import random

    assert any(mutated([1, (2, {"a": 3})], random.Random(seed)) != [1, (2, {"a": 3})] for seed in range(5))

"""The harness that compares with PyTorch, on cases written out by hand: no torch is needed here."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest
from telegrad.tools.parity.replay import replayed
from telegrad.tools.parity.report import Entry, summary


class Places(pickle.Pickler):
    """Writes tuples marked "place" as persistent ids, like the peer."""

    def persistent_id(self, obj):
        return obj[1:] if isinstance(obj, tuple) and obj[:1] == ("place",) else None


def pickled(value):
    file = io.BytesIO()
    Places(file).dump(value)
    return file.getvalue()


def tensor(*values, dtype="float64", grad=False):
    return "tensor", dtype, np.array(values, dtype), grad


LEAF = ("place", "leaf", 0)


def case(name, *arguments, **more):
    program = pickled([(name, arguments, {})])
    return {
        "entry": name, "note": "float64 0", "kind": "operation", "leaves": [tensor(1.0, 4.0, grad=True)],
        "program": program, "output": None, "shapes_only": False, **more,
    }  # fmt: skip


GRADIENT = ([0], [tensor(1.0, 1.0)], [tensor(0.5, 0.25)])


def test_agreement():
    message = case("torch.sqrt", LEAF, values=[tensor(1.0, 2.0)], order1=GRADIENT)
    assert replayed(message) == ("agrees", "")


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([tensor(1.0, 3.0)], "1 of 2 elements, at (1,) 2.0 instead of 3.0"),
        ([tensor(1.0, 2.0, 3.0)], "shape (2,), not (3,)"),
        ([tensor(1.0, 2.0, dtype="float32")], "float64, not float32"),
        ([], "1 results, not 0"),
    ],
)
def test_other_values(values, found):
    verdict, detail = replayed(case("torch.sqrt", LEAF, values=values))
    assert verdict == "wrong" and found in detail


def test_another_gradient():
    message = case("torch.sqrt", LEAF, values=[tensor(1.0, 2.0)], order1=([0], [tensor(1.0, 1.0)], [tensor(0.5, 0.5)]))
    assert replayed(message)[0] == "wrong"


def test_a_program_of_two_steps():
    message = case("torch.sqrt", LEAF, values=[tensor(-1.0, -2.0)])
    message["program"] = pickled([("torch.sqrt", (LEAF,), {}), ("torch.Tensor.neg", (("place", "result", 0, ()),), {})])
    assert replayed(message) == ("agrees", "")


def test_missing_names():
    assert replayed(case("torch.no_such", LEAF, values=[])) == ("missing", "no torch.no_such")


def test_errors():
    wrong_type = case("torch.sqrt", "text", error=(["TypeError", "Exception"], "must be a tensor"))
    assert replayed(wrong_type)[0] == "agrees"
    assert replayed(case("torch.sqrt", LEAF, error=(["TypeError"], "")))[0] == "silent"
    assert replayed(case("torch.sqrt", "text", error=(["IndexError"], "")))[0] == "other error"


def test_an_optimizer():
    message = {
        "entry": "optim.SGD", "note": "", "kind": "optimizer", "leaves": [tensor(1.0, 2.0, grad=True)],
        "options": pickled(("torch.optim.SGD", {"lr": 0.5})), "gradients": [[tensor(1.0, 0.0)]], "closure": False,
        "after": [[tensor(0.5, 2.0)]], "state_keys": [],
    }  # fmt: skip
    assert replayed(message) == ("agrees", "")


NAN = float("nan")


@pytest.mark.parametrize(
    ("expected", "verdict"),
    [([0.0], "agrees"), ([6.6e-8], "wrong"), ([0.0, NAN], "agrees"), ([6.6e-8, NAN], "wrong")],
)
def test_cancelled_digits_are_held_against_the_result_in_double_precision(expected, verdict):
    # 1 + 2e-7 / 3 is 1 + 1.19e-7 in float32; less 1, no digit of 6.67e-8 is right. Where the peer has none, ours may be any.
    thirds = tensor(*[1 / 3 for _ in expected], dtype="float32")
    steps = [("torch.mul", (LEAF, 2e-7), {}), ("torch.add", (1.0, ("place", "result", 0, ())), {})]
    steps.append(("torch.sub", (("place", "result", 1, ()), 1.0), {}))
    message = case("torch.mul", values=[tensor(*expected, dtype="float32")], leaves=[thirds])
    assert replayed({**message, "program": pickled(steps), "note": "float32 0"})[0] == verdict


def test_a_result_that_only_the_peer_has_is_wrong():
    square = ("place", "result", 0, ())
    steps = [("torch.mul", (LEAF, LEAF), {}), ("torch.sub", (square, square), {})]  # infinity less infinity
    message = case("torch.mul", values=[tensor(0.0, dtype="float32")], leaves=[tensor(1e30, dtype="float32")])
    assert replayed({**message, "program": pickled(steps), "note": "float32 0"})[0] == "wrong"


def test_what_differs_on_purpose_has_a_reason():
    entry = Entry("cov")
    entry.add("complex128 0", ("wrong", "gradient 0 of order 2: 1 of 2 elements"))
    assert entry.verdict == "differs" and "cancels" in entry.line()
    entry.add("float64 0", ("wrong", "result 0: 1 of 2 elements"))
    assert entry.verdict == "wrong"


def test_an_entry_has_its_worst_verdict():
    entry = Entry("sqrt")
    entry.add("float64 0", ("agrees", ""))
    entry.add("float64 1", ("wrong", "1 of 2 elements"))
    assert entry.verdict == "wrong" and "[float64 1] 1 of 2 elements" in entry.line()
    assert summary([entry]) == "1 entries: 1 wrong"

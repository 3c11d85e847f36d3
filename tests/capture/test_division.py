"""Random functions of Python, divided at random lines: with their segments as plain functions they do the same."""

import contextlib
import linecache
from random import Random
from types import SimpleNamespace

import pytest
from telegrad.capture.segments import Segments

NAMES = ["a", "b", "c", "d"]


def _call(random):
    return f"call({', '.join(random.choices([*NAMES, 'x', 'around'], k=random.choice([1, 2])))})"


def _lines(random, depth=0, loop=False):
    """Return the lines of a random block."""
    found = []
    for _ in range(random.randrange(1, 5)):
        kind, name = random.randrange(14), random.choice(NAMES)
        inner = lambda loop=loop: ["    " + each for each in _lines(random, depth + 1, loop)]  # noqa: E731
        if depth < 2 and kind == 0:
            found += [f"if {_call(random)} % 2:", *inner(), *(["else:", *inner()] if random.random() < 0.5 else [])]
        elif depth < 2 and kind == 1:
            found += [f"for {random.choice([*NAMES, 'i'])} in range({random.randrange(3)}):", *inner(True)]
        elif depth < 2 and kind == 2:
            found += [f"with {random.choice(['no_grad()', 'autograd_dist.context()'])}:", *inner()]
        elif depth < 2 and kind == 3:
            found += ["try:", *inner(), f"    risky({name})", "except ValueError:", *inner()]
        elif depth < 2 and kind == 4:
            found += ["with suppress(ValueError):", *inner(), f"    risky({name})"]
        elif kind == 5 and depth:
            found += [
                f"if {_call(random)} % 3 == 0:",
                f"    {random.choice(['break', 'continue']) if loop else 'return a'}",
            ]
        elif kind == 6:
            found += [f"log.append({name})"]
        elif kind == 7:
            found += [f"{name} += {_call(random)}"]
        elif kind == 8:
            found += [f"{name} = sum([call({name}, c) for {random.choice(NAMES)} in range(2)])"]
        elif kind == 9 and not depth and random.random() < 0.3:
            found += ["def inner():", f"    return call({name})", f"{random.choice(NAMES)} = inner()"]
        elif kind == 10 and random.random() < 0.3:
            found += ["nonlocal around", "around = call(around)"] if not depth and not found else [f"{name} = x"]
        elif kind == 11 and random.random() < 0.2:
            found += [f"return {_call(random)}, {name}"]
        else:
            found += [f"{name} = {_call(random)}"]
    return found


def _made(seed, places):
    """Return a random function, what it writes to, and the number of its lines."""
    random = Random(seed)
    start = [f"{name} = call(x)" for name in NAMES if random.random() < 0.8]
    body = [*start, *_lines(random), *_lines(random), "return " + ", ".join(NAMES)]
    if "nonlocal around" in body:
        body.insert(0, body.pop(body.index("nonlocal around")))
    text = [
        "def outer():",
        "    around = 5",
        "    def run(x):",
        *["        " + each for each in body],
        "    return run",
    ]
    name, log, calls = f"<division {seed}>", [], []
    linecache.cache[name] = (0, None, [f"{each}\n" for each in text], name)
    places.append(name)

    def call(*given):
        calls.append(given)
        return sum(given) * 31 % 97

    def risky(given):
        if given % 3 == 0:
            raise ValueError

    names = {
        "call": call,
        "risky": risky,
        "log": log,
        "no_grad": contextlib.nullcontext,
        "autograd_dist": SimpleNamespace(context=contextlib.nullcontext),
        "suppress": contextlib.suppress,
    }
    exec(compile("\n".join(text), name, "exec"), names)
    return names["outer"](), (log, calls), len(text)


def _outcome(function, kept, x):
    for each in kept:
        each.clear()
    try:
        result = function(x)
    except (NameError, ValueError) as error:
        result = type(error)
    return result, *[list(each) for each in kept]


def _check(seed, places):
    """Check a function, and return the number of its segments."""
    random = Random(-1 - seed)
    try:
        one, kept, _ = _made(seed, places)
        other, others, length = _made(seed, places)
    except SyntaxError:  # a name is a parameter of a comprehension and nonlocal
        return 0
    segments, count = Segments(other, SimpleNamespace(_compiled=lambda function, segment: function)), 0
    for x in range(4):
        segments.leave_out([random.randrange(length + 1)] if x else [])
        assert _outcome(one, kept, x) == _outcome(segments.function, others, x), f"seed {seed}, call {x}"
        count += len(segments.used)
    return count


@pytest.mark.parametrize(
    "seeds", [range(40), pytest.param(range(40, 1000), marks=pytest.mark.soak)], ids=["few", "many"]
)
def test_divided_functions_do_the_same(seeds):
    places = []
    try:
        counts = [_check(seed, places) for seed in seeds]
    finally:
        for name in places:
            linecache.cache.pop(name, None)
    assert sum(each > 0 for each in counts) > len(seeds) // 2

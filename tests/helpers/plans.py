"""Plans in files: compiled functions, and files that were changed to do harm."""

import io
import random

import telegrad as tg


def compiled(function, *args):
    """Return a compiled function that has replayed a call, and the result."""
    found = tg.compile(function)
    for _ in range(3):
        result = found(*args)
    return found, result


def saved(function, *args):
    """Return the file of the plan of a function, and its result."""
    found, result = compiled(function, *args)
    file = io.BytesIO()
    found.plans()[-1].save(file)
    file.seek(0)
    return file, result


def forged(data):
    """Return a file with other data and a right checksum."""
    file = io.BytesIO()
    tg.save(data, file)
    file.seek(0)
    return file


_PARTS = (None, True, 0, -1, 3, 1 << 20, 1 << 40, -5.5, "add", "operation.pad", "__import__('os')", "x=1)", (), [], {})


def mutated(tree, rng):
    """Return an object with one part replaced, removed or doubled."""
    if isinstance(tree, (tuple, list)) and tree and rng.random() < 0.95:
        parts, at = list(tree), rng.randrange(len(tree))
        kind = rng.random()
        if kind < 0.02:
            del parts[at]
        elif kind < 0.04:
            parts.insert(at, rng.choice(parts))
        else:
            parts[at] = mutated(parts[at], rng)
        return type(tree)(parts)
    if isinstance(tree, dict) and tree and rng.random() < 0.95:
        key = rng.choice(list(tree))
        return {**tree, key: mutated(tree[key], rng)}
    if type(tree) is int and rng.random() < 0.6:
        return tree + rng.choice([-1, 1, 2, 7])
    return rng.choice(_PARTS)


def try_forged(data, seed, inputs):
    """Load changed data, and call it with tensors; return what was raised, or ``None``."""
    rng = random.Random(seed)
    for _ in range(rng.randrange(1, 4)):
        data = mutated(data, rng)
    try:
        tg.load_plan(forged(data), memory=1 << 24)(*inputs)
    except Exception as error:
        return error
    return None

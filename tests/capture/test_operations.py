"""Operations, compiled: results and gradients of their samples are those of eager calls, bit by bit."""

import warnings

import pytest
import telegrad as tg
from helpers.compiled import bits
from telegrad.testing.ops import Make
from telegrad.tools.ops.catalogue import CHECKS

# Views, changes in place, several results, integers as indices, branches on elements, random numbers, complex numbers.
SOME = CHECKS[:: len(CHECKS) // 24]
NAMED = [
    check for check in CHECKS if check.name in ("setitem", "getitem", "setitem:arrays", "to_sparse", "max", "dropout")
]


def tensors(tree):
    """Return the tensors in a result."""
    if isinstance(tree, tg.Tensor):
        return [] if tree.is_sparse else [tree]
    return [each for part in tree for each in tensors(part)] if isinstance(tree, (tuple, list)) else []


def single(tree, leaves):
    """Return a copy of arguments in single precision; its tensors are added to ``leaves``."""
    if isinstance(tree, tg.Tensor):
        copy = tree.detach().clone()
        copy = copy.float() if copy.is_floating_point() else copy
        leaves.append(copy.requires_grad_(tree.requires_grad))
        return copy
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*[single(each, leaves) for each in tree])
    return type(tree)(single(each, leaves) for each in tree) if isinstance(tree, (tuple, list)) else tree


def log(function, sample, compiled):
    """Return what four calls of an operation give, with a backward pass in each, and the gradients that they leave."""

    def run(*args):
        results = tensors(function(*args))
        for each in results:
            if each.requires_grad:
                (each * each.conj()).real.sum().backward(retain_graph=True)
        return [each.detach() for each in results]

    leaves, entries = [], []
    args = [single(each, leaves) for each in sample]
    call = tg.compile(run) if compiled else run
    for number in range(4):
        tg.manual_seed(number)
        try:
            entries.append(bits(call(*args)))
        except Exception as error:
            entries.append((type(error).__name__, str(error)))
        entries.append(
            [bits(each.grad) if each.grad is not None and not each.grad.is_sparse else None for each in leaves]
        )
    return entries


def check_samples(check, count):
    """Compare some samples of an operation."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in list(check.samples(Make(check.name)))[:count]:
            assert log(check.function, sample, True) == log(check.function, sample, False)


@pytest.mark.parametrize("check", [*SOME, *NAMED], ids=lambda check: check.name)
def test_samples_of_some_operations(check):
    check_samples(check, 1)


@pytest.mark.soak
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_samples_of_all_operations(check):
    check_samples(check, 3)

"""Results that are made again before a late use: the bits stay, and the memory in between is free."""

import numpy as np
import pytest
import telegrad as tg
from helpers.compiled import array
from telegrad.capture.recomputing import recomputed
from telegrad.capture.values import Kind, Statement, Value
from telegrad.nn import functional as F
from telegrad.tools.compiled_programs.tiny import tiny_limits

COUNT = 1 << 18  # elements of a result, of 1 MiB


class Program:
    """Statements written by hand; each result has memory of its own."""

    def __init__(self):
        self.statements = []
        self.numbers = iter(range(1, 1000))

    def call(self, function, *args, count=COUNT):
        number = next(self.numbers)
        result = Value(number, frozenset([number]), np.empty(count, np.float32))
        self.statements.append(Statement(Kind.CALL, function, args, result=result, into=True))
        return result

    def write(self, function, *args, target):
        self.statements.append(Statement(Kind.WRITE, function, args, {"out": target}, target=target))

    def result(self, kept=()):
        """Return the statements with those that are made again."""
        found, _ = recomputed(self.statements, [0, len(self.statements)], {each.number for each in kept})
        return found

    def busy(self, start):
        """Make results of five times the memory, one after the other."""
        for _ in range(5):
            start = self.call(np.matmul, start, start)
        return start


@pytest.fixture
def program():
    return Program()


def relu_of_a_product(program):
    source = program.call(np.matmul, 1, 2)
    return source, program.call(np.maximum, source, 0)


def test_what_a_kept_operand_gives_is_made_again(program):
    source, active = relu_of_a_product(program)
    end = program.busy(active)
    program.call(np.add, active, source)
    again, last = program.result(kept=[end])[-2:]
    assert again.function is np.maximum and again.args == (source, 0) and again.result is not active
    assert last.args == (again.result, source) and not again.result.storages & active.storages


def test_all_that_was_written_to_it_is_written_again(program):
    source, active = relu_of_a_product(program)
    program.write(np.multiply, active, 3.0, target=active)
    end = program.busy(active)
    program.call(np.add, active, source)
    first, second, last = program.result(kept=[end])[-3:]
    assert [first.function, second.function] == [np.maximum, np.multiply]
    assert second.target is second.args[0] is second.kwargs["out"] is first.result is last.args[0]


def not_kept(program, source, active):
    program.call(np.add, active, active)


def changed_operand(program, source, active):
    program.write(np.add, source, 1.0, target=source)
    program.call(np.add, active, source)


def changed_later(program, source, active):
    program.write(np.add, active, source, target=active)


@pytest.mark.parametrize("end", [not_kept, changed_operand, changed_later])
def test_it_is_kept_if_its_operand_is_not_there_any_more_or_if_it_changes(program, end):
    source, active = relu_of_a_product(program)
    program.busy(active)
    end(program, source, active)
    assert program.result() == program.statements


def test_it_is_kept_if_little_happens_in_between_or_if_it_is_expensive(program):
    source, active = relu_of_a_product(program)
    program.call(np.matmul, active, active)
    program.call(np.add, active, source)
    assert program.result() == program.statements
    program.busy(active)
    product = program.call(np.matmul, source, source)
    program.busy(product)
    program.call(np.add, product, source)
    assert sum(each.function is np.matmul for each in program.result()) == sum(
        each.function is np.matmul for each in program.statements
    )


def test_what_is_returned_is_not_made_again(program):
    source, active = relu_of_a_product(program)
    program.busy(active)
    program.call(np.add, active, source)
    assert program.result(kept=[active]) == program.statements


def blocks(layers):
    """Return a network of convolutions with batch_norm and relu, 8 channels wide."""
    return tg.nn.Sequential(
        *(
            part
            for _ in range(layers)
            for part in (tg.nn.Conv2d(8, 8, 3, padding=1), tg.nn.BatchNorm2d(8), tg.nn.ReLU())
        )
    )


@pytest.mark.parametrize("inside", [True, False])
def test_a_network_with_results_made_again_has_the_same_bits(inside):
    nets, results = (blocks(4), blocks(4)), []
    nets[1].load_state_dict(nets[0].state_dict())
    x = tg.from_numpy(array(64, 8, 16, 16))

    def loss(net):
        return lambda x: F.mse_loss(net(x), x)

    def step(net):
        def run(x):
            value = loss(net)(x)
            value.backward()
            return value.detach()

        return run

    compiled = tg.compile(step(nets[1]) if inside else loss(nets[1]))
    for function, net in ((step(nets[0]), nets[0]), (compiled, nets[1])):
        for _ in range(4):
            net.zero_grad()
            value = function(x)
            if not inside and net is nets[1]:
                value.backward()
        results.append([value.detach(), *(each.grad for each in net.parameters()), *net.buffers()])
    assert all(tg.equal(*pair) for pair in zip(*results))
    source = compiled.plans()[-1].source
    again = len(recomputed(source.recorded.statements, [0, len(source.recorded.statements)], source._kept)[0])
    assert not inside or again > len(source.recorded.statements)


def test_results_are_made_again_for_a_gradient_in_another_layout():
    weight = tg.from_numpy(array(4, 4)).requires_grad_()

    def function(x):
        y = (x * 2).square()
        return (y @ weight).tanh().square() * y

    def gradients(function):
        x, weight.grad = tg.from_numpy(array(4, 4)).requires_grad_(), None
        function(x).backward(tg.arange(16.0).reshape(4, 4).t())
        return x.grad, weight.grad

    expected, compiled = gradients(function), tg.compile(function)
    with tiny_limits():
        results = [gradients(compiled) for _ in range(4)]
    assert all(tg.equal(*pair) for result in results for pair in zip(result, expected))
    assert compiled.plans()[-1].replays == 2

"""Training steps of the examples, compiled: with dropout, clipping and a schedule, the bits of eager ones."""

import pytest
import telegrad as tg
from helpers.compiled import train
from telegrad import nn
from telegrad.examples.char_rnn import CharRNN
from telegrad.examples.cnn import ConvNet
from telegrad.examples.local_training import MAX_GRADIENT_NORM
from telegrad.examples.text_training import bits
from telegrad.examples.transformer import CharTransformer

TEXT = (lambda: tg.randint(0, 9, (2, 5)), lambda: tg.randint(0, 9, (2, 5)), bits)
EXAMPLES = {
    "cnn": (
        lambda: ConvNet(4),
        lambda: tg.randn(3, 1, 8, 8),
        lambda: tg.randint(0, 10, (3,)),
        nn.functional.cross_entropy,
    ),
    "char_rnn": (lambda: CharRNN(9, 8), *TEXT),
    "transformer": (lambda: CharTransformer(9, 8, 2, 1), *TEXT),
}


def run(name, compiled):
    """Return the bits that training leaves, and the function of a step."""
    make, inputs, targets, loss = EXAMPLES[name]
    tg.manual_seed(0)
    model = make()
    optimizer = tg.optim.AdamW(model.parameters(), weight_decay=0.01)
    schedule = tg.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, total_steps=9)
    return train(model, optimizer, loss, (inputs, targets), compiled, MAX_GRADIENT_NORM, schedule.step)


@pytest.mark.parametrize("name", EXAMPLES)
def test_steps_of_examples_have_the_bits_of_eager_ones(name, recwarn):
    eager, _ = run(name, False)
    found, compiled = run(name, True)
    assert eager == found and not recwarn.list
    assert sum(plan.replays for plan in compiled.plans()) == 3

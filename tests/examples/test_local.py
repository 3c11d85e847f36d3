"""Examples that train in one process: they run, learn, write their files, and a thousand steps leave nothing behind."""

import gc
import re
from pathlib import Path

import psutil
import pytest
import telegrad as tg
import telegrad.examples
from telegrad import nn
from telegrad.examples import char_rnn, cnn, transformer
from telegrad.examples.local_training import take_step
from telegrad.examples.text import Text
from telegrad.examples.text_training import bits

FOLDER = Path(telegrad.examples.__file__).parent
STEPS = 1000


@pytest.mark.parametrize(
    "script, steps, measure, least, most",
    [
        ("cnn.py", 60, r"held-out fifth: ([\d.]+)%", 60, 100),
        ("char_rnn.py", 60, r"held-out text: ([\d.]+)", 2, 5.2),
        ("transformer.py", 40, r"held-out text: ([\d.]+)", 2, 5.2),
    ],
)
def test_an_example_learns_and_draws(script, steps, measure, least, most, tmp_path, run_python):
    output = run_python(FOLDER / script, "--steps", steps, "--out", tmp_path / "out", cwd=tmp_path)
    assert least < float(re.search(measure, output)[1]) <= most
    (picture,) = [Path(line.split(": ")[1]) for line in output.splitlines() if line.startswith("picture: ")]
    assert picture.read_bytes().startswith(b"\x89PNG") and f"{steps} steps took" in output


def make_cnn():
    model, batches = cnn.ConvNet(8), cnn.Batches(0)

    def loss():
        images, labels = batches.draw()
        return nn.functional.cross_entropy(model(images[:8]), labels[:8])

    return model, loss


def make_text(kind):
    text = Text(0)
    model = kind(len(text.characters), 16)

    def loss():
        pieces, following = text.batch(2, 12)
        return bits(model(pieces), following)

    return model, loss


MODELS = {
    "cnn": make_cnn,
    "lstm": lambda: make_text(char_rnn.CharRNN),
    "transformer": lambda: make_text(transformer.CharTransformer),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_steps_leave_nothing_behind_without_the_garbage_collector(name):
    model, loss = MODELS[name]()
    optimizer = tg.optim.AdamW(model.parameters())
    for _ in range(20):
        take_step(model, loss, optimizer)
    gc.collect()
    gc.disable()
    try:
        objects, memory = len(gc.get_objects()), psutil.Process().memory_info().rss
        for _ in range(STEPS):
            take_step(model, loss, optimizer)
        grown, more = len(gc.get_objects()) - objects, psutil.Process().memory_info().rss - memory
    finally:
        gc.enable()
    # The allocator may keep some memory of its own: one lost array of 16 KiB in each step would be 16 MiB.
    assert grown <= 5 and more < 2**22, f"{grown} objects, {more} bytes"

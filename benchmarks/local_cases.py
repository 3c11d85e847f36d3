"""Cases of the local benchmark: each is written once, and runs on either library.

A case's ``build(lib)`` gets the imported package, ``telegrad`` or ``torch``, and returns a function without arguments:
one step. That the same code runs on both also shows that programs can be moved by changing an import.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from .resnet import resnet18

Step = Callable[[], Any]
EXAMPLES = 2000


@dataclass(frozen=True)
class Case:
    """Row of the table. ``aim`` is the ratio Telegrad / PyTorch that must not be exceeded."""

    name: str
    build: Callable[[Any], Step]
    aim: float


def chain(lib: Any) -> Step:
    """Return forward and backward of 41 element-wise operations and one sum on 8x8."""
    x, scale, shift = (lib.randn(8, 8, requires_grad=True) for _ in range(3))

    def step() -> None:
        y = x
        for _ in range(10):
            y = ((y * scale) + shift).tanh() - scale
        y.sum().backward()
        x.grad = scale.grad = shift.grad = None

    return step


def training(lib: Any, model: Any, inputs: tuple[Any, ...], loss: Callable[[Any], Any]) -> Step:
    """Return a training step: zero the gradients, forward, backward, a step of SGD."""
    optimizer = lib.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        loss(model(*inputs)).backward()
        optimizer.step()

    return step


def classification(lib: Any, model: Any, batch: int, *shape: int) -> Step:
    """Return a step that trains ``model`` to classify noise into ten classes."""
    target, criterion = lib.randint(0, 10, (batch,)), lib.nn.CrossEntropyLoss()
    return training(lib, model, (lib.randn(batch, *shape),), lambda scores: criterion(scores, target))


def perceptron(hidden: int, batch: int) -> Callable[[Any], Step]:
    """Return a case that trains an MLP 784-hidden-10."""

    def build(lib: Any) -> Step:
        nn = lib.nn
        model = nn.Sequential(nn.Linear(784, hidden), nn.ReLU(), nn.Linear(hidden, 10))
        return classification(lib, model, batch, 784)

    return build


def convolution(lib: Any) -> Step:
    """Return a step of two convolutions with pooling, for digits of 28x28."""
    nn = lib.nn
    model = nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(32 * 7 * 7, 10)),
    )
    return classification(lib, model, 64, 1, 28, 28)


def residual(lib: Any) -> Step:
    """Return a step of ResNet-18 on images of 32x32."""
    return classification(lib, resnet18(lib), 64, 3, 32, 32)


def recurrence(lib: Any) -> Step:
    """Return a step of an LSTM over 32 elements of 20 sequences, 64 wide."""
    model = lib.nn.LSTM(64, 64)
    return training(lib, model, (lib.randn(32, 20, 64),), lambda result: result[0].sum())


def transformer(lib: Any) -> Step:
    """Return a step of a transformer encoder layer on 16 sequences of 32 tokens, 64 wide."""
    model = lib.nn.TransformerEncoderLayer(64, 4, dim_feedforward=128, dropout=0.0, batch_first=True)
    return training(lib, model, (lib.randn(16, 32, 64),), lambda result: (result * result).mean())


def adam(lib: Any) -> Step:
    """Return a step of Adam on a million parameters."""
    parameter = lib.nn.Parameter(lib.randn(1000, 1000))
    parameter.grad = lib.randn(1000, 1000)
    return lib.optim.Adam([parameter]).step


def loading(lib: Any) -> Step:
    """Return an epoch of a DataLoader over a ``TensorDataset``, which may give whole batches at once."""
    data = getattr(lib, "utils", lib).data
    return epoch(data, data.TensorDataset(lib.randn(EXAMPLES, 64), lib.randint(0, 10, (EXAMPLES,))))


def loading_own(lib: Any) -> Step:
    """Return an epoch over a dataset of a user's own: it gives single examples, which are then collated."""
    data = getattr(lib, "utils", lib).data
    inputs, target = lib.randn(EXAMPLES, 64), lib.randint(0, 10, (EXAMPLES,))

    class Examples(data.Dataset):  # type: ignore[misc, name-defined]
        def __len__(self) -> int:
            return EXAMPLES

        def __getitem__(self, index: int) -> tuple[Any, Any]:
            return inputs[index], target[index]

    return epoch(data, Examples())


def epoch(data: Any, examples: Any) -> Step:
    """Return an epoch of shuffled batches of 64."""
    loader = data.DataLoader(examples, batch_size=64, shuffle=True)

    def step() -> None:
        assert sum(len(target) for _, target in loader) == EXAMPLES

    return step


def importing(lib: Any) -> Step:
    """Return ``import`` in a new interpreter, whose own start is not counted (see ``measure``)."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # installed packages have theirs
    program = f"import time; start = time.perf_counter(); import {lib.__name__}; print(time.perf_counter() - start)"

    def step() -> float:
        return float(subprocess.check_output([sys.executable, "-c", program], text=True, env=environment))

    return step


CASES = (
    Case("41 operations on 8x8", chain, 0.7),
    Case("MLP 784-128-10, batch 64", perceptron(128, 64), 0.9),
    Case("MLP 784-1024-10, batch 256", perceptron(1024, 256), 1.0),
    Case("CNN on 28x28, batch 64", convolution, 1.2),
    Case("ResNet-18 on 32x32, batch 64", residual, 1.5),
    Case("LSTM 32x20x64", recurrence, 1.2),
    Case("transformer layer 16x32x64", transformer, 1.2),
    Case("Adam, 1,000,000 parameters", adam, 1.0),
    Case("DataLoader, TensorDataset", loading, 1.0),
    Case("DataLoader, own dataset", loading_own, 1.0),
    Case("import", importing, 0.2),
)


def measure(step: Step, seconds: float) -> float:
    """Return the median processor time of one step in seconds, of as many as fit into ``seconds``; at least three.

    On one thread that is the time of a step on a machine with nothing else to do. A step that returns a number has measured
    itself.
    """
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.process_time()
        own = step()
        elapsed = time.process_time() - start
        times.append(own if isinstance(own, float) else elapsed)
    return median(times)

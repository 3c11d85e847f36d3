"""Convolutional network that learns handwritten digits, in one process.

    python examples/cnn.py
    python examples/cnn.py --steps 200 --out somewhere

Two convolutions with pooling and batch normalisation, a linear layer, dropout; images are shifted a little each time. It
writes a checkpoint, and a picture with the digits that it is least sure about.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import telegrad as tg
from numpy.typing import NDArray
from telegrad import nn
from telegrad.examples import digits
from telegrad.examples.figures import COLOURS, INK
from telegrad.examples.local_options import Options, parse
from telegrad.examples.local_picture import picture
from telegrad.examples.local_training import train

BATCH = 64


class ConvNet(nn.Module):
    """Network from images (N, 1, 8, 8), float32, to scores (N, 10), float32."""

    def __init__(self, channels: int = 32) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *self.block(1, channels),
            *self.block(channels, 2 * channels),
            nn.Flatten(),
        )
        self.classify = nn.Sequential(nn.Dropout(0.3), nn.Linear(2 * channels * 4, digits.CLASSES))

    @staticmethod
    def block(inputs: int, outputs: int) -> list[nn.Module]:
        """Return the modules of a convolution whose output has half as many pixels in each dimension."""
        return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)]

    def forward(self, images: tg.Tensor) -> tg.Tensor:
        """Return the scores of each class."""
        return self.classify(self.features(images))


class Batches:
    """Random batches of shifted training images."""

    def __init__(self, seed: int) -> None:
        self.images, self.labels, *_ = digits.load()
        self.random = np.random.default_rng(seed)

    def draw(self) -> tuple[tg.Tensor, tg.Tensor]:
        """Return images (64, 1, 8, 8), float32, and labels (64,), int64."""
        chosen = self.random.integers(0, len(self.labels), BATCH)
        images = digits.jitter(self.images[chosen], self.random)
        return tg.from_numpy(images[:, None]), tg.from_numpy(self.labels[chosen])


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, and show accuracy and a picture."""
    options = parse("cnn", "A convolutional network learns handwritten digits.", 1500, 0.01, arguments)
    tg.manual_seed(options.seed)
    model, batches = ConvNet(), Batches(options.seed)
    *_, test_x, test_y = digits.load()
    images, labels = tg.from_numpy(test_x[:, None]), tg.from_numpy(test_y)

    def loss_of_a_batch() -> tg.Tensor:
        inputs, targets = batches.draw()
        return nn.functional.cross_entropy(model(inputs), targets)

    def accuracy() -> float:
        return float((model(images).argmax(1) == labels).float().mean())

    began = time.perf_counter()
    history = train(model, loss_of_a_batch, accuracy, options)
    print(f"{options.steps} steps took {time.perf_counter() - began:.1f} s")
    print(f"accuracy on the held-out fifth: {history.held_out[-1]:.2%}")
    save(model, options)
    with tg.no_grad():
        probabilities = model(images).softmax(1).numpy()

    def show(figure: Any, part: Any) -> None:
        show_doubtful(part, test_x, test_y, probabilities)

    title = f"A convolutional network on digits: {history.held_out[-1]:.1%} of the held-out ones are right"
    picture(options.out / "cnn.png", title, history, "held-out digits that are right (%)", show, 100)


def save(model: nn.Module, options: Options) -> None:
    """Save the model, and print where."""
    options.out.mkdir(parents=True, exist_ok=True)
    checkpoint = options.out / "model.safetensors"
    tg.save(model.state_dict(), checkpoint)
    print(f"checkpoint: {checkpoint.resolve()}")


def show_doubtful(
    part: Any, images: NDArray[Any], labels: NDArray[Any], probabilities: NDArray[Any], rows: int = 3, columns: int = 6
) -> None:
    """Draw the digits that the model is least sure about, with its predictions, and the labels where they differ."""
    part.suptitle("The held-out digits that it is least sure about", fontsize=11, color=INK)
    doubtful = np.argsort(probabilities.max(1))[: rows * columns]
    for axes, index in zip(part.subplots(rows, columns).flat, doubtful):
        predicted, label = int(probabilities[index].argmax()), int(labels[index])
        axes.imshow(images[index], cmap="gray_r")
        axes.set_axis_off()
        probability = probabilities[index].max()
        text = f"{predicted}  ({probability:.0%})" if predicted == label else f"{predicted}, and it is {label}"
        axes.set_title(text, fontsize=9, color=INK if predicted == label else COLOURS[1])


if __name__ == "__main__":
    main()

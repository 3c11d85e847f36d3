"""Cases of the benchmark of compiled steps: Telegrad's are compiled by ``tg.compile``, PyTorch's run eagerly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .local_cases import Case, Step, adam, convolution, perceptron, recurrence, residual, transformer


def captured(build: Callable[[Any], Step], fast_math: bool = False) -> Callable[[Any], Step]:
    """Return a case whose step is compiled, if the library is Telegrad.

    Args:
        build: the case.
        fast_math: for ``compile``.
    """

    def build_captured(lib: Any) -> Step:
        step = build(lib)
        compiled: Step = lib.compile(step, fast_math=fast_math) if lib.__name__ == "telegrad" else step
        return compiled

    return build_captured


def activations(lib: Any) -> Step:
    """Return forward and backward of 20 products and 20 activations on 8x8, and one sum."""
    x = lib.randn(8, 8, requires_grad=True)

    def step() -> None:
        x.grad = None
        y = x
        for _ in range(20):
            y = (y * 1.01).tanh()
        y.sum().backward()

    return step


CASES = (
    Case("compiled: 41 operations on 8x8", captured(activations), 0.2),
    Case("fast_math: 41 operations on 8x8", captured(activations, fast_math=True), 0.15),
    Case("compiled: MLP 784-128-10, batch 64", captured(perceptron(128, 64)), 0.7),
    Case("compiled: MLP 784-1024-10, batch 256", captured(perceptron(1024, 256)), 0.9),
    Case("compiled: CNN on 28x28, batch 64", captured(convolution), 0.8),
    Case("compiled: ResNet-18 on 32x32, batch 64", captured(residual), 1.0),
    Case("compiled: LSTM 32x20x64", captured(recurrence), 0.7),
    Case("compiled: transformer layer 16x32x64", captured(transformer), 0.7),
    Case("compiled: Adam, 1,000,000 parameters", captured(adam), 0.6),
    Case("fast_math: Adam, 1,000,000 parameters", captured(adam, fast_math=True), 0.6),
)

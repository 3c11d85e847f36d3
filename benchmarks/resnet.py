"""ResNet-18 (He et al. 2016), as the local benchmark trains it: written once for either library."""

from __future__ import annotations

from typing import Any


def resnet18(lib: Any) -> Any:
    """Return the network of torchvision, for images of three channels and ten classes."""
    nn = lib.nn
    stages, width = [], 64
    for outputs in (64, 128, 256, 512):
        stages += [_block(lib, width, outputs, 1 if outputs == 64 else 2), _block(lib, outputs, outputs, 1)]
        width = outputs
    return nn.Sequential(
        *(nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU()),
        *(nn.MaxPool2d(3, stride=2, padding=1), *stages),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)),
    )


def _block(lib: Any, inputs: int, outputs: int, stride: int) -> Any:
    """Return two convolutions with a connection that skips them."""
    nn = lib.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.residual = nn.Sequential(
                *(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()),
                *(nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)),
            )
            self.skip = nn.Identity()
            if stride != 1:
                self.skip = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

        def forward(self, x: Any) -> Any:
            return nn.functional.relu(self.residual(x) + self.skip(x))

    return Block()

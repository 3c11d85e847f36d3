"""Draw the picture of a plan in ``docs/compile.md``: running this file writes it here."""

from __future__ import annotations

from pathlib import Path

import telegrad as tg
from telegrad import nn, optim
from telegrad.nn import functional as F

FOLDER = Path(__file__).parent


def draw_all(folder: Path) -> None:
    """Draw a training step of a network with one hidden layer."""
    tg.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 1024), nn.SiLU(), nn.Linear(1024, 1))
    optimizer = optim.SGD(net.parameters(), lr=0.1)

    def step(x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    compiled = tg.compile(step)
    for _ in range(3):
        compiled(tg.randn(256, 64), tg.randn(256, 1))
    compiled.explain(folder / "plan.svg")


if __name__ == "__main__":
    draw_all(FOLDER)

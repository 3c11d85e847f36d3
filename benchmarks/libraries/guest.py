"""PyTorch's tensors and models over Telegrad's calls, references and gradients."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import torch
from telegrad.launcher import migrate_file

from .telegrad import LANES, OnLanes


def make(transport: str) -> Guest:
    """Return the library on that lane."""
    return Guest(LANES.get(transport, [transport]), encrypted=False)


class Guest(OnLanes):
    """Telegrad for programs that keep PyTorch's tensors, as ``telegrad migrate --keep-torch`` leaves them."""

    def __init__(self, lanes: list[str] | None, encrypted: bool) -> None:
        super().__init__(lanes, encrypted)
        self._api = replace(self._api, lib=torch, program=keep_torch)
        self.versions = {**self.versions, "torch": torch.__version__}


def keep_torch(source: str) -> str:
    """Return a program for PyTorch's RPC with its remote calls changed to Telegrad's."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "program.py"
        script.write_text(source)
        migrate_file(script, keep_torch=True)
        return script.read_text()

"""Disks of 64 KiB, and full ones."""

import os
import subprocess
from contextlib import contextmanager

import pytest

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a disk")


@contextmanager
def small_disk(folder):
    """A disk in a folder, as long as the block lasts."""
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "telegrad", disk], check=True, timeout=30)
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True, timeout=30)


def fill(disk):
    """Leave no room on a disk: a file "filler" takes it."""
    with (disk / "filler").open("wb", 0) as filler, pytest.raises(OSError, match="No space left"):
        while True:
            filler.write(bytes(1 << 12))

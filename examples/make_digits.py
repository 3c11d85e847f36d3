"""Maker of ``data/digits.npz`` from scikit-learn's copy of the UCI optical digits: ``python examples/make_digits.py``.

The same input gives the same file to the byte: the archive's members have a fixed date, unlike those of ``numpy.savez``.
It needs scikit-learn, which nothing else here does.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

TARGET = Path(__file__).parent / "data" / "digits.npz"


def main() -> None:
    """Load the images, check that nothing is lost in eight bits, and write the archive."""
    from sklearn.datasets import load_digits  # pyright: ignore[reportMissingImports]

    bunch = load_digits()
    images, labels = bunch.images.astype(np.uint8), bunch.target.astype(np.uint8)
    assert (images == bunch.images).all() and images.max() == 16
    write_archive(TARGET, {"images": images, "labels": labels})
    print(f"{TARGET}: {len(images)} images, {TARGET.stat().st_size} bytes")


def write_archive(path: Path, arrays: dict[str, NDArray[np.uint8]]) -> None:
    """Write ``arrays`` as a compressed ``.npz`` whose bytes depend on the arrays only."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            member.compress_type = zipfile.ZIP_DEFLATED
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, array)
            archive.writestr(member, buffer.getvalue())


if __name__ == "__main__":
    main()

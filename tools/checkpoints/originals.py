"""Valid checkpoints of every form, and of every kind of object that they can hold."""

from __future__ import annotations

import io
import pickle
import struct
import sys
import zipfile
from collections import OrderedDict
from typing import Any

import numpy as np
from safetensors.numpy import save as save_safetensors

from ...core import Tensor, tensor
from ...core.serialization import save
from ...core.size import Size
from ...optim import Adam
from .structures import joined, split

_MAGIC = 0x1950A86A20F9469CFC6C  # of PyTorch's form before 1.6


def originals() -> tuple[list[bytes], list[bytes], list[bytes]]:
    """Return the contents of files by form: safetensors, an archive of PyTorch's, and PyTorch's older form."""
    objects = [_training(), _common(), Tensor(np.arange(30_000.0))]
    ours = [_saved(obj) for obj in [*objects, _ours()]]
    ours.append(save_safetensors({"weight": np.ones((3, 4), np.float32), "steps": np.arange(5)}))
    archives = [_undated(_saved(obj, format="torch")) for obj in [*objects, _theirs()]]
    return [joined(*split(content)) for content in ours], archives, [older(content) for content in archives]


def _undated(archive: bytes) -> bytes:
    """Return an archive without its time, so that it is the same in each run."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as opened, zipfile.ZipFile(file, "w") as made:
        for name in opened.namelist():
            made.writestr(zipfile.ZipInfo(name), opened.read(name))
    return file.getvalue()


def _saved(obj: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    save(obj, file, **options)
    return file.getvalue()


def _training() -> Any:
    weights = [Tensor(np.full(shape, 0.5, np.float32)).requires_grad_() for shape in ((4, 3), (4,), (2, 4))]
    optimizer = Adam(weights)
    sum((weight.sum() for weight in weights), tensor(0.0)).backward()
    optimizer.step()
    return {"epoch": 3, "model": OrderedDict(zip("abc", weights)), "optimizer": optimizer.state_dict()}


def _common() -> dict[Any, Any]:
    dense = tensor([[0.0, 2.0], [3.0, 0.0]])
    keys = {("a", (1, 2.5)): True, None: False, 2**70: "x" * 300, 0.5: -(2**40)}
    numbers = [float("nan"), 1e-300, 1j, b"\xff\0", "ünï", [], {}, ()]
    views = [dense, dense.t(), dense[1], dense.to_sparse(), Tensor(np.arange(3)), Tensor(np.ones(2, np.complex64))]
    return {"keys": keys, "numbers": numbers, "views": views, "again": views[0], "nested": [[[[(((1,),),)]]]]}


def _ours() -> Any:
    return {"common": _common(), "array": np.arange(6, dtype=np.uint16).reshape(2, 3), "scalar": np.float64(2)}


def _theirs() -> Any:
    dtypes = [tensor(1.0).dtype, Tensor(np.zeros(1, np.int8)).dtype]
    return OrderedDict(common=_common(), members={1, (3,)}, size=Size((2, 3)), dtypes=dtypes)


def older(archive: bytes) -> bytes:
    """Return an archive's contents in the form that PyTorch wrote before 1.6."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        described = opened.read("checkpoint/data.pkl")
        keys = [name.rpartition("/")[2] for name in opened.namelist() if "/data/" in name]
        memory = [opened.read(f"checkpoint/data/{key}") for key in keys]
    counts = _Counts(io.BytesIO(described)).of(keys)
    start = [pickle.dumps(part, 2) for part in (_MAGIC, 1001, {"little_endian": sys.byteorder == "little"})]
    parts = [struct.pack("<q", counts[key]) + octets for key, octets in zip(keys, memory)]
    return b"".join([*start, described, pickle.dumps(keys, 2), *parts])


class _Counts(pickle.Unpickler):
    """Reader of the numbers of elements that a pickle gives for its storages."""

    def of(self, keys: list[str]) -> dict[str, int]:
        """Return them by key."""
        self.counts = dict.fromkeys(keys, 0)
        self.load()
        return self.counts

    def find_class(self, module: str, name: str) -> Any:
        """Return a function that makes a placeholder: nothing that is named is imported."""
        return OrderedDict if name == "OrderedDict" else lambda *_: f"{module}.{name}"

    def persistent_load(self, identity: Any) -> Any:
        """Note a storage."""
        _, _, key, _, count = identity
        self.counts[key] = count

"""Reading of checkpoints: their states, with every file compared with the index, and their description."""

from __future__ import annotations

import os
import warnings
from collections.abc import Container
from functools import partial
from typing import Any

from ..base.errors import CheckpointError
from ..core import Tensor
from .folder import Entry, Folder
from .index import Index, ShardFile
from .job import Job
from .remote import open_folder

_LISTINGS = 10
NO_INDEX = "it has no index: it is being written, or its writer was killed"


class CheckpointWarning(UserWarning):
    """A checkpoint is damaged, and an earlier one is used."""


def read(folder: Folder, entry: Entry, ranks: Container[int] | None = None) -> tuple[Index, dict[int, dict[str, Any]]]:
    """Return the index of a checkpoint, and by rank the states in its files, by part.

    Args:
        folder: where it is.
        entry: which it is.
        ranks: the ranks whose files to read; ``None`` is all.

    Raises:
        CheckpointError: it is damaged; the text says which file.
    """
    try:
        index = folder.read_index(entry)
        files = [(rank, file) for rank, file in enumerate(index.files) if ranks is None or rank in ranks]
        return index, {rank: _read_file(folder, entry, file) for rank, file in files}
    except CheckpointError as error:
        raise CheckpointError(f"checkpoint {entry.name} in {folder} is damaged: {error}") from error
    except OSError as error:
        raise CheckpointError(f"checkpoint {entry.name} in {folder} cannot be read: {error}") from error


def _read_file(folder: Folder, entry: Entry, file: ShardFile) -> dict[str, Any]:
    if (size := folder.size(entry, file.name)) != file.size:
        raise CheckpointError(f"{file.name} has {size:,} bytes, and it was written with {file.size:,}")
    state, checksum = folder.load(entry, file.name)
    if checksum != file.sha256:
        raise CheckpointError(f"{file.name} is not the file that the index tells of: it has another checksum")
    if not isinstance(state, dict):
        raise CheckpointError(f"{file.name} holds no parts")
    return state


def newest(
    folder: Folder, step: int | None, job: Job, ranks: Container[int] | None
) -> tuple[Entry, int, dict[int, dict[str, Any]]] | None:
    """Return the newest checkpoint that all workers can read, how many workers saved it, and its states by rank.

    Each that is damaged causes a ``CheckpointWarning``. Without any checkpoint, return ``None``.

    Args:
        folder: where they are.
        step: only of this step; ``None`` is any.
        job: the workers; they choose the same one.
        ranks: the ranks whose files this worker reads; ``None`` is all.

    Raises:
        CheckpointError: there are some, and all of them are damaged.
    """
    errors: dict[Entry, str] = {}
    for _ in range(_LISTINGS):  # a writer may remove those that were listed; then there are newer ones
        found = job.all_do(lambda: [entry for entry in folder.entries() if step is None or entry.step == step])
        entries = [entry for entry in job.share(found)[0] if entry not in errors]
        for entry in reversed(entries):
            try:
                index, states = job.all_do(partial(read, folder, entry, ranks))
                return entry, len(index.files), states
            except CheckpointError as error:
                errors[entry] = str(error)
                warnings.warn(f"{error}; the one before is used, if there is one", CheckpointWarning, stacklevel=4)
        if not entries:
            break
    if errors:
        raise CheckpointError(
            f"none of the {len(errors)} checkpoints in {folder} can be used: {next(iter(errors.values()))}. "
            "To begin anew, use another folder"
        )
    return None


def verify(path: str | os.PathLike[str], step: int | None = None) -> dict[str, str | None]:
    """Read every file of the checkpoints in a folder, and return what is wrong with each, by name; ``None`` for a whole one.

    Args:
        path: the folder.
        step: only those of this step.
    """
    folder = open_folder(path)
    found: dict[str, str | None] = {}
    for entry in folder.entries(complete=False):
        if step is None or entry.step == step:
            found[entry.name] = _problem(folder, entry)
    return found


def _problem(folder: Folder, entry: Entry) -> str | None:
    if entry not in folder.entries():
        return NO_INDEX
    try:
        read(folder, entry)
    except CheckpointError as error:
        return str(error)
    return None


def summaries(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return step, metric, size in bytes, number of files and time of the checkpoints in a folder, by their indexes.

    Args:
        path: the folder.
    """
    folder = open_folder(path)
    return [
        {"name": entry.name, "step": entry.step, **_summary(folder, entry)} for entry in folder.entries(complete=False)
    ]


def _summary(folder: Folder, entry: Entry) -> dict[str, Any]:
    try:
        index = folder.read_index(entry)
    except FileNotFoundError:
        return {"problem": NO_INDEX}
    except (CheckpointError, OSError) as error:
        return {"problem": str(error)}
    size = sum(file.size for file in index.files)
    return {"metric": index.metric, "size": size, "files": len(index.files), "saved_at": index.saved_at}


def describe(path: str | os.PathLike[str], step: int | None = None) -> dict[str, Any]:
    """Return the contents of a checkpoint: step, metric, files, and by part the name, dtype and shape of each tensor.

    Args:
        path: the folder of the checkpoints.
        step: the step; ``None`` is the newest.

    Raises:
        CheckpointError: there is none, or it is damaged.
    """
    folder = open_folder(path)
    entries = [entry for entry in folder.entries() if step is None or entry.step == step]
    if not entries:
        which = "no checkpoint" if step is None else f"no checkpoint of step {step}"
        raise CheckpointError(f"there is {which} in {folder}")
    index, states = read(folder, entries[-1])
    files = [
        {
            "name": file.name,
            "size": file.size,
            "sha256": file.sha256,
            "parts": {each: outline(state[each]) for each in state},
        }
        for file, state in zip(index.files, states.values())
    ]
    return {
        "name": entries[-1].name,
        "step": index.step,
        "metric": index.metric,
        "saved_at": index.saved_at,
        "files": files,
    }


def outline(state: Any, path: str = "") -> dict[str, str]:
    """Return dtype and shape of each tensor or array in a state, by its path, and the texts of other values.

    Args:
        state: the state.
        path: its own path.
    """
    if isinstance(state, dict):
        pairs = [(f"{path}.{key}" if path else str(key), value) for key, value in state.items()]
    elif isinstance(state, (list, tuple)) and any(isinstance(each, (dict, list, tuple, Tensor)) for each in state):
        pairs = [(f"{path}[{place}]", value) for place, value in enumerate(state)]
    else:
        return {path: _text(state)}
    return {name: text for place, value in pairs for name, text in outline(value, place).items()}


def _text(value: Any) -> str:
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.dtype} {tuple(value.shape)}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

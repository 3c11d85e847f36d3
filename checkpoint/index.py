"""``Index``: the file of a checkpoint that is written last: its step, its files and their checksums, and one of its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from ..base.errors import CheckpointError

FORMAT = 1
SHARD_NAME = "worker{}.safetensors"  # with the rank of its writer: an index that names another file is not one of ours


@dataclass(frozen=True)
class ShardFile:
    """File of a checkpoint, as its index tells of it.

    Attributes:
        name: its name in the checkpoint's folder.
        size: its length in bytes.
        sha256: checksum of its contents, which also stands in its header.
        parts: names of the parts of the training that have a state in it.
    """

    name: str
    size: int
    sha256: str
    parts: list[str]


@dataclass(frozen=True)
class Index:
    """Contents of an index.

    Attributes:
        step: number of the step after which it was saved.
        metric: measure of the model then, if one was given.
        saved_at: time of the machine's clock, for readers: nothing is decided by it.
        files: the files, one for each worker in the order of their ranks.
    """

    step: int
    metric: float | None
    saved_at: str
    files: list[ShardFile] = field(default_factory=list)

    def to_json(self) -> str:
        """Return the text of the file."""
        return _text(_digest(body := {"format": FORMAT, **asdict(self)}), body)

    @staticmethod
    def from_json(text: str) -> Index:
        """Return the index that a text holds.

        Raises:
            CheckpointError: the text is damaged, or of a newer version.
        """
        try:
            whole = json.loads(text)
            body = dict(whole["checkpoint"])
            intact = _text(_digest(body), body) == text
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise CheckpointError(f"its index is damaged: {str(error)[:200]}") from error
        if not intact:
            raise CheckpointError("its index is damaged: it does not have the checksum that it was written with")
        return _index(body)


def _index(body: dict[str, Any]) -> Index:
    if (version := body.get("format")) != FORMAT:
        raise CheckpointError(f"its index has format {version!r}; this version of Telegrad reads {FORMAT}")
    try:
        files = [ShardFile(**each) for each in body["files"]]
        index = Index(body["step"], body["metric"], body["saved_at"], files)
    except (LookupError, TypeError) as error:
        raise CheckpointError(f"its index is not one that Telegrad writes: {str(error)[:200]}") from error
    for what, right in _checks(index):
        if not right:
            raise CheckpointError(f"its index is not one that Telegrad writes: {what}")
    return index


def _checks(index: Index) -> Iterator[tuple[str, bool]]:
    """Yield what can be wrong with an index, and whether it is right."""
    yield "its step is not a number", type(index.step) is int
    yield "its metric is not a number", index.metric is None or type(index.metric) in (int, float)
    yield "its time is not a text", type(index.saved_at) is str
    yield "it has no files", bool(index.files)
    for rank, file in enumerate(index.files):
        yield f"file {rank} is named {str(file.name)[:100]!r}", file.name == SHARD_NAME.format(rank)
        yield f"the size of file {rank} is not a number", type(file.size) is int and file.size > 0
        yield f"the checksum of file {rank} is not a text", type(file.sha256) is str


def _text(digest: str, body: dict[str, Any]) -> str:
    # Whole texts are compared, so that a changed space is found too.
    return json.dumps({"sha256": digest, "checkpoint": body}, indent=1) + "\n"


def _digest(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body).encode()).hexdigest()

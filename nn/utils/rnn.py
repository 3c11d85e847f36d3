"""Sequences of different lengths: padded to one length, or packed step by step (``torch.nn.utils.rnn``)."""

# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...core import cat, full, index_select, stack, unbind
from ...core.extend import Array, Tensor


class PackedSequence(NamedTuple):
    """Sequences, the longest first, stored step by step: the elements of the first step of all, then of the second, and so on.

    Make one with ``pack_padded_sequence`` or ``pack_sequence``.

    Attributes:
        data: all elements, shape (total, ...).
        batch_sizes: number of sequences at each step, int64.
        sorted_indices: index in the given sequences of each one here; ``None`` if they were given in this order.
        unsorted_indices: index here of each given sequence.
    """

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None

    @property
    def counts(self) -> list[int]:
        """Return ``batch_sizes`` as a list."""
        return [int(size) for size in self.batch_sizes.numpy()]

    def padded(self) -> Tensor:
        """Return the elements as (steps, sequences, ...), with any values behind a sequence's end."""
        return self.data[_flat_indices(self.counts)]

    def like(self, padded: Tensor) -> PackedSequence:
        """Return other elements, given in the form of ``padded``, of the same sequences."""
        flat = padded.reshape(-1, *padded.shape[2:])
        present = np.arange(padded.shape[1]) < np.array(self.counts)[:, None]
        return self._replace(data=flat[np.flatnonzero(present)])

    def is_packed(self) -> bool:
        """Return true."""
        return True


def _flat_indices(counts: Sequence[int]) -> Array:
    """Return the index in ``data`` of each element of the padded form, shape (steps, sequences); 0 behind the ends."""
    starts = np.cumsum([0, *counts[:-1]])
    sequences = np.arange(counts[0] if counts else 0)
    return np.where(sequences < np.array(counts)[:, None], starts[:, None] + sequences, 0)


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Return padded sequences as a ``PackedSequence``.

    Args:
        input: shape (steps, sequences, ...), or with ``batch_first`` (sequences, steps, ...).
        lengths: length of each sequence.
        batch_first: the order of the input's first dimensions.
        enforce_sorted: whether the longest must come first; if not, they are sorted, and recurrent layers restore the
            order.

    Raises:
        ValueError: a length is not positive or longer than the input, there are not as many as sequences, or they are
            not sorted although they must be.
    """
    sizes = np.asarray(lengths.numpy() if isinstance(lengths, Tensor) else lengths, np.int64)
    padded = input.transpose(0, 1) if batch_first else input
    if sizes.shape != (padded.shape[1],) or (sizes <= 0).any() or (sizes > padded.shape[0]).any():
        raise ValueError(
            f"pack_padded_sequence() needs {padded.shape[1]} lengths from 1 to {padded.shape[0]}, and you gave {sizes.tolist()}"
        )
    order: Tensor | None = None
    back: Tensor | None = None
    if not enforce_sorted:
        chosen = np.argsort(-sizes, kind="stable")
        order, back = Tensor(chosen), Tensor(np.argsort(chosen))
        padded, sizes = index_select(padded, 1, order), sizes[chosen]
    elif (np.diff(sizes) > 0).any():
        raise ValueError(
            f"the lengths must fall, and you gave {sizes.tolist()}; pass enforce_sorted=False to have them sorted"
        )
    counts = (np.arange(sizes[0])[:, None] < sizes).sum(1)
    whole = PackedSequence(padded, Tensor(counts), order, back)
    return whole.like(padded[: int(sizes[0])])


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return the padded sequences in their original order, and their lengths: the inverse of ``pack_padded_sequence``.

    Args:
        sequence: the packed sequences.
        batch_first: whether the result is (sequences, steps, ...) instead of (steps, sequences, ...).
        padding_value: value behind the ends.
        total_length: number of steps; that of the longest sequence if ``None``.

    Raises:
        ValueError: ``total_length`` is shorter than the longest sequence.
    """
    counts = sequence.counts
    steps = len(counts) if total_length is None else total_length
    if steps < len(counts):
        raise ValueError(
            f"total_length must be at least {len(counts)}, the longest length, and you gave {total_length}"
        )
    missing = np.arange(counts[0]) >= np.array(counts)[:, None]
    trailing = (1,) * (sequence.data.ndim - 1)
    padded = sequence.padded().masked_fill(Tensor(missing.reshape(*missing.shape, *trailing)), padding_value)
    if steps > len(counts):
        tail = full((steps - len(counts), *padded.shape[1:]), padding_value, dtype=padded.dtype)
        padded = cat([padded, tail])
    lengths = Tensor((~missing).sum(0))
    if sequence.unsorted_indices is not None:
        padded = index_select(padded, 1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices]
    return (padded.transpose(0, 1) if batch_first else padded), lengths


def pad_sequence(
    sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Return sequences as one tensor, padded to the length of the longest.

    Args:
        sequences: each of shape (length, ...).
        batch_first: whether the result is (sequences, steps, ...) instead of (steps, sequences, ...).
        padding_value: value of the padding.
        padding_side: "right" for padding behind the sequences, "left" for padding before them.

    Raises:
        ValueError: there are no sequences, or ``padding_side`` is neither "right" nor "left".
    """
    if not sequences:
        raise ValueError("pad_sequence() needs at least one sequence")
    if padding_side not in ("right", "left"):
        raise ValueError(f'padding_side must be "right" or "left", and you gave {padding_side!r}')
    steps = max(len(sequence) for sequence in sequences)

    def filled(sequence: Tensor) -> Tensor:
        padding = full((steps - len(sequence), *sequence.shape[1:]), padding_value, dtype=sequence.dtype)
        return cat([sequence, padding] if padding_side == "right" else [padding, sequence])

    return stack([filled(sequence) for sequence in sequences], 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Return the sequences without padding: the inverse of ``pad_sequence``.

    Args:
        padded_sequences: shape (steps, sequences, ...), or with ``batch_first`` (sequences, steps, ...).
        lengths: length of each sequence, integers.
        batch_first: the order of the first dimensions.

    Raises:
        ValueError: there are not as many lengths as sequences.
    """
    rows = unbind(padded_sequences, 0 if batch_first else 1)
    return [row[: int(length)] for row, length in zip(rows, lengths.numpy(), strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Return sequences as a ``PackedSequence``.

    Args:
        sequences: each of shape (length, ...).
        enforce_sorted: whether the longest must come first; if not, they are sorted.

    Raises:
        ValueError: a sequence is empty, or they are not sorted although they must be.
    """
    lengths = [len(sequence) for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return the sequences, in their original order: the inverse of ``pack_sequence``."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences))

"""``powerSGD_hook``: gradients of matrices as products of two thin ones (T. Vogels et al., "PowerSGD", NeurIPS 2019).

The gradient M (n x m) of each weight is replaced by P Qᵀ, with P (n x r) and Q (m x r): P = M Q, mean over the ranks, made
orthonormal; Q = Mᵀ P, mean over the ranks. What that leaves out is added to the rank's next gradient, so that it is late and
not lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...core import Tensor
from ...core.extend import Array
from ...core.futures import Future
from ..group import ProcessGroup
from ..reduction import ReduceOp
from ..registry import find
from .buckets import GradBucket
from .reducer import all_reduce_hook


class PowerSGDState:
    """State of ``powerSGD_hook`` on one rank.

    Args:
        process_group: the ranks; ``None`` for the default group.
        matrix_approximation_rank: columns r of P and Q.
        start_powerSGD_iter: steps before the compression starts; until then gradients are exact.
        min_compression_rate: a gradient is compressed if it has more than so many times the elements of P and Q.
        use_error_feedback: add what a step left out to the next gradient.
        warm_start: start from the Q of the step before, and not from a random one.
        orthogonalization_epsilon: added to the length of a column of P before dividing by it.
        random_seed: of the first Q; it must be the same on all ranks.

    Raises:
        ValueError: a number is below its least.
    """

    def __init__(
        self,
        process_group: Any,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1000,  # noqa: N803 - PyTorch's name
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
    ) -> None:
        if matrix_approximation_rank < 1 or start_powerSGD_iter < 0 or min_compression_rate < 0:
            raise ValueError(
                "matrix_approximation_rank must be at least 1, start_powerSGD_iter and min_compression_rate at least 0; "
                f"you gave {matrix_approximation_rank}, {start_powerSGD_iter} and {min_compression_rate}"
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback = use_error_feedback
        self.warm_start = warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.iter = 0
        self.sent = 0  # elements in messages so far, and those of the gradients
        self.of = 0
        self._errors: dict[int, Array] = {}  # by bucket
        self._qs: dict[int, list[Array]] = {}
        self._random = np.random.default_rng(random_seed)

    def compression_stats(self) -> tuple[float, int, int]:
        """Return elements of gradients per element sent, and both numbers, since the compression started."""
        return (self.of / self.sent if self.sent else 0.0), self.of, self.sent

    def matrix(self, gradient: Array) -> Array | None:
        """Return a gradient as a matrix in its own memory; ``None`` if it is not worth compressing."""
        if gradient.ndim < 2 or not gradient.size:
            return None
        matrix = gradient.reshape(len(gradient), -1)
        columns = min(self.matrix_approximation_rank, *matrix.shape)
        worth = sum(matrix.shape) * columns * self.min_compression_rate < matrix.size
        return matrix if worth else None

    def start(self, bucket: int, matrices: Sequence[Array]) -> list[Array]:
        """Return the first Q of each matrix, equal on all ranks."""
        if not self.warm_start or bucket not in self._qs:
            self._qs[bucket] = [self._random_q(matrix) for matrix in matrices]
        return self._qs[bucket]

    def _random_q(self, matrix: Array) -> Array:
        columns = min(self.matrix_approximation_rank, *matrix.shape)
        q: Array = self._random.standard_normal((matrix.shape[1], columns)).astype(matrix.dtype)
        return _orthonormal(q, self.orthogonalization_epsilon)

    def add_error(self, bucket: int, row: Array) -> None:
        """Add to the gradients what the step before left out."""
        if self.use_error_feedback:
            row += self._errors.get(bucket, 0)

    def keep(self, bucket: int, error: Array, qs: list[Array]) -> None:
        """Keep for the next step what this one left out, and its Q."""
        if self.use_error_feedback:
            self._errors[bucket] = error
        self._qs[bucket] = qs


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Any]:  # noqa: N802 - PyTorch's name
    """Take the mean of gradients, of matrices approximately.

    Args:
        state: a ``PowerSGDState``, of this module alone.
        bucket: the gradients.
    """
    group = find(state.process_group)
    assert group is not None  # DistributedDataParallel is made on members alone
    if bucket.is_last():
        state.iter += 1
    if state.iter - bucket.is_last() < state.start_powerSGD_iter:
        return all_reduce_hook(group, bucket)
    # Both calls get their numbers now: the order must be the same on all ranks, and their bodies run in the background.
    calls = [group.begin("powerSGD_hook", f"bucket {bucket.index()}, {name}") for name in "PQ"]
    row = bucket.buffer()._array
    state.add_error(bucket.index(), row)
    gradients = [gradient._array for gradient in bucket.gradients()]
    matrices = [matrix for gradient in gradients if (matrix := state.matrix(gradient)) is not None]
    exact = [gradient for gradient in gradients if state.matrix(gradient) is None]
    qs = state.start(bucket.index(), matrices)

    def body() -> Tensor:
        ps = [matrix @ q for matrix, q in zip(matrices, qs, strict=True)]
        state.sent += _mean(group, calls[0], [*exact, *ps])
        ps = [_orthonormal(p, state.orthogonalization_epsilon) for p in ps]
        fresh = [matrix.T @ p for matrix, p in zip(matrices, ps, strict=True)]
        given = row.copy()  # the means of what travels as it is, and this rank's matrices
        state.sent += _mean(group, calls[1], fresh)
        for matrix, p, q in zip(matrices, ps, fresh, strict=True):
            np.matmul(p, q.T, out=matrix)
        state.of += row.size
        state.keep(bucket.index(), given - row, fresh)
        return Tensor(row)

    work = group.run(body, True)
    assert work is not None
    return work


def _mean(group: ProcessGroup, call: Any, arrays: Sequence[Array]) -> int:
    """Replace arrays by their means over the ranks, in one collective; return their number of elements."""
    if not arrays:
        return 0
    row = np.concatenate([array.reshape(-1) for array in arrays])
    group.all_reduce(call, row, ReduceOp.AVG)
    for array, part in zip(arrays, _split(row, arrays), strict=True):
        array[...] = part.reshape(array.shape)
    return row.size


def _split(row: Array, arrays: Sequence[Array]) -> Iterator[Array]:
    end = 0
    for array in arrays:
        start, end = end, end + array.size
        yield row[start:end]


def _orthonormal(columns: Array, epsilon: float) -> Array:
    """Return the columns made orthonormal, from the first to the last (Gram and Schmidt)."""
    result = columns.copy()
    for index in range(result.shape[1]):
        column = result[:, index]
        for _ in range(2):  # twice is enough (Giraud et al. 2005)
            column -= result[:, :index] @ (result[:, :index].T @ column)
        length = np.linalg.norm(column) + epsilon
        column /= length if length > 0 else 1
    return result

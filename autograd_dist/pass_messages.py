"""Encoding of requests and answers of a backward pass: a text of numbers, and the gradients as arrays.

These are raw bodies (``RawBody``), so small gradients need neither a pickle nor tables. A sparse one is two arrays: the places
of its elements, and the elements. A text of numbers is faster than a pickle of them, on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from ..core import sparse_coo_tensor
from ..core.extend import Tensor
from ..rpc.extend import RawBody
from .local_pass import Entry, Unfed

SMALL_GRADIENT_BYTES = 4096  # largest gradient that is copied if it has gaps, or one element for many
ABSENT, DENSE, SPARSE, COALESCED = range(4)  # forms of a gradient
# By worker: how often it became idle, and the messages for which nothing had come then. The latest report counts.
Reports: TypeAlias = dict[int, tuple[int, list[Unfed]]]


class PassRequest(NamedTuple):
    """Request with entries for a worker.

    Attributes:
        context_id: the context.
        pass_id: see ``PassId``.
        keep_graph: keep the saved values of the nodes.
        smart: leave out nodes that take no part.
        entries: entries for the worker.
    """

    context_id: int
    pass_id: tuple[int, int, int]
    keep_graph: bool
    smart: bool
    entries: Sequence[Entry]


def pack_request(
    context_id: int, pass_id: tuple[int, int, int], keep_graph: bool, smart: bool, entries: Sequence[Entry]
) -> RawBody:
    """Return the body of a request.

    Args:
        context_id, pass_id, keep_graph, smart, entries: see ``PassRequest``.
    """
    return _body([context_id, *pass_id, int(keep_graph), int(smart)], entries)


def open_request(body: RawBody) -> PassRequest:
    """Return the request of a body."""
    numbers, entries = _content(body)
    context_id, root, number, oldest, keep_graph, smart = numbers
    return PassRequest(context_id, (root, number, oldest), bool(keep_graph), bool(smart), entries)


def pack_answer(entries: Sequence[Entry], reports: Reports) -> RawBody | None:
    """Return the body of an answer; ``None`` if there are no entries and no reports."""
    if not (entries or reports):
        return None
    numbers: list[int] = []
    for worker, (settled, unfed) in reports.items():
        numbers += [worker, settled, len(unfed)]
        for each in unfed:
            numbers += each
    return _body(numbers, entries)


def open_answer(body: RawBody | None) -> tuple[Sequence[Entry], Reports]:
    """Return the entries and reports of an answer."""
    if body is None:
        return (), {}
    numbers, entries = _content(body)
    given, reports = iter(numbers), {}
    for worker in given:
        settled, count = next(given), next(given)
        reports[worker] = (settled, [Unfed(next(given), next(given), next(given)) for _ in range(count)])
    return entries, reports


def _body(numbers: list[int], entries: Sequence[Entry]) -> RawBody:
    """Return the body: the numbers, then for each entry its kind, message and forms of gradients; and the arrays."""
    arrays: list[Any] = []
    numbers = [len(numbers), *numbers]
    for kind, message_id, gradients in entries:
        numbers += (kind, message_id, len(gradients))
        for gradient in gradients:
            if gradient is None:
                numbers.append(ABSENT)
            elif isinstance(gradient, Tensor):
                sparse: Any = gradient
                numbers += (COALESCED if sparse.is_coalesced() else SPARSE, sparse.ndim, *sparse.shape)
                arrays += (sparse._indices()._array, sparse._values()._array)
            else:
                numbers.append(DENSE)
                spread = gradient.nbytes <= SMALL_GRADIENT_BYTES and not gradient.flags.forc
                arrays.append(gradient.copy() if spread else gradient)  # so that it travels in the body
    return RawBody(" ".join(map(str, numbers)).encode(), arrays)


def _content(body: RawBody) -> tuple[list[int], list[Entry]]:
    numbers = list(map(int, body.words.split()))
    end = numbers[0] + 1
    entries: list[Entry] = []
    given, arrays = iter(numbers[end:]), iter(body.arrays)
    for kind in given:
        message_id, gradients = next(given), list[Any]()
        for _ in range(next(given)):
            form = next(given)
            if form == DENSE:
                gradients.append(next(arrays))
            else:
                gradients.append(None if form == ABSENT else _sparse(form, given, arrays))
        entries.append((kind, message_id, gradients))
    return numbers[1:end], entries


def _sparse(form: int, numbers: Iterator[int], arrays: Iterator[Any]) -> Tensor:
    shape = [next(numbers) for _ in range(next(numbers))]
    return sparse_coo_tensor(next(arrays), Tensor(next(arrays)), shape, is_coalesced=form == COALESCED)

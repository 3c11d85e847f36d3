"""Encoding of requests and answers of a backward pass: a text of numbers, and the gradients as tensors.

This is the form of a call by name whose arguments are tensors, which needs no pickle (``rpc/calls/codec.py``). Only sparse
gradients need one. A text of numbers is faster than a pickle of them, on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from ..core.extend import Tensor
from .local_pass import Entry, Unfed

SMALL_GRADIENT_BYTES = 4096  # largest gradient that is copied
Body: TypeAlias = tuple[str, tuple[Tensor, ...], dict[str, Any]]
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
) -> Body:
    """Return the body of a request.

    Args:
        context_id, pass_id, keep_graph, smart, entries: see ``PassRequest``.
    """
    return _body([context_id, *pass_id, int(keep_graph), int(smart)], entries)


def open_request(body: Body) -> PassRequest:
    """Return the request of a body."""
    numbers, entries = _content(body)
    context_id, root, number, oldest, keep_graph, smart = numbers
    return PassRequest(context_id, (root, number, oldest), bool(keep_graph), bool(smart), entries)


def pack_answer(entries: Sequence[Entry], reports: Reports) -> Body | None:
    """Return the body of an answer; ``None`` if there are no entries and no reports."""
    if not (entries or reports):
        return None
    numbers: list[int] = []
    for worker, (settled, unfed) in reports.items():
        numbers += [worker, settled, len(unfed)]
        for each in unfed:
            numbers += each
    return _body(numbers, entries)


def open_answer(body: Body | None) -> tuple[Sequence[Entry], Reports]:
    """Return the entries and reports of an answer."""
    if body is None:
        return (), {}
    numbers, entries = _content(body)
    given, reports = iter(numbers), {}
    for worker in given:
        settled, count = next(given), next(given)
        reports[worker] = (settled, [Unfed(next(given), next(given), next(given)) for _ in range(count)])
    return entries, reports


def _body(numbers: list[int], entries: Sequence[Entry]) -> Body:
    """Return the body: the numbers, then for each entry its kind, message, and which gradients exist, then the gradients."""
    tensors: list[Tensor] = []
    numbers = [len(numbers), *numbers]
    for kind, message_id, gradients in entries:
        numbers += (kind, message_id, len(gradients))
        for gradient in gradients:
            if gradient is None:
                numbers.append(0)
                continue
            numbers.append(1)
            if isinstance(gradient, Tensor):
                tensors.append(gradient)
            else:  # a small one is copied: to find out its layout, and what shares its memory, takes longer
                tensors.append(Tensor(gradient.copy() if gradient.nbytes <= SMALL_GRADIENT_BYTES else gradient))
    return " ".join(map(str, numbers)), tuple(tensors), {}


def _content(body: Body) -> tuple[list[int], list[Entry]]:
    text, tensors, _ = body
    numbers = list(map(int, text.split()))
    end = numbers[0] + 1
    entries: list[Entry] = []
    given, gradients = iter(numbers[end:]), iter(tensors)
    for kind in given:
        message_id, count = next(given), next(given)
        entries.append((kind, message_id, [next(gradients) if next(given) else None for _ in range(count)]))
    return numbers[1:end], entries

"""Reports: workers tell one another which workers they cannot reach (``verdict.py``). With their encoding."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import chain
from typing import NamedTuple

from ...proto.rpc_pb2 import MembershipReport, Question
from .intervals import IntervalSet


class LinkFinding(IntEnum):
    """Finding of one worker about its link to another."""

    REACHED = 1  # it answered after another worker had suspected it
    SILENT = 2  # no session during the time in which a broken session may come back
    DEAD = 3  # no process listens at its address, or another incarnation does


class Evidence(NamedTuple):
    """A finding, and the reason in words."""

    finding: LinkFinding
    reason: str = ""


class Loss(NamedTuple):
    """Reason why a worker is lost; ``left``: the worker itself said goodbye."""

    reason: str
    left: bool = False


MOST_REASONS = 64  # losses with a reason in one report
FORMER = Loss("it was lost, or had left, before this worker heard of it", left=True)  # ``left``: no warning is logged


@dataclass(slots=True)
class Report:
    """Report of one worker, its author, about the others. The report with the highest version is valid.

    Attributes:
        version: counts up with each report of its author.
        links: by number, the author's finding about its link to that worker, if a worker suspects that worker.
        lost: by number, why the author counts a worker as lost. Only the latest losses: many may leave a dynamic group.
        gone: numbers of all workers that the author counts as lost. They are few intervals, because no number is used again.
        asks: by number of a worker that the author is about to lose, the version of its report that asked the others first.
        heard: by number of a worker that asks, the version of its latest question that the author knows.
        checks: by number of a worker about which the author asks all for their findings, the version that asked first.
        leaving: numbers of the workers that are about to leave alone, and have no work any more. They may have left.
    """

    version: int = 0
    links: dict[int, Evidence] = field(default_factory=dict)
    lost: dict[int, Loss] = field(default_factory=dict)
    gone: IntervalSet = field(default_factory=IntervalSet)
    asks: dict[int, int] = field(default_factory=dict)
    heard: dict[int, int] = field(default_factory=dict)
    checks: dict[int, int] = field(default_factory=dict)
    leaving: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        for number in self.lost:
            self.gone.add(number)

    def lose(self, number: int, loss: Loss) -> None:
        """Add a worker to those that the author counts as lost."""
        self.gone.add(number)
        self.lost[number] = loss
        if len(self.lost) > MOST_REASONS:
            del self.lost[next(iter(self.lost))]

    def loss(self, number: int) -> Loss:
        """Return why a worker that is ``gone`` is lost; ``FORMER`` if the reason is no longer known."""
        return self.lost.get(number, FORMER)

    def copy(self) -> Report:
        """Return a copy that does not change when this report does."""
        return replace(
            self,
            links=dict(self.links),
            lost=dict(self.lost),
            gone=self.gone.copy(),
            asks=dict(self.asks),
            heard=dict(self.heard),
            checks=dict(self.checks),
            leaving=set(self.leaving),
        )

    def without(self, numbers: Set[int]) -> Report:
        """Return the report without what it says about some workers, which are lost."""
        if not any(number in numbers for number in (*self.links, *self.checks)):
            return self
        links = {number: evidence for number, evidence in self.links.items() if number not in numbers}
        checks = {number: version for number, version in self.checks.items() if number not in numbers}
        return replace(self, links=links, checks=checks)

    def findings(self) -> dict[int, LinkFinding]:
        """Return what the author has found about its links, by number, without the reasons."""
        return {number: evidence.finding for number, evidence in self.links.items()}

    def suspects(self, number: int) -> bool:
        """Return whether the author cannot reach that worker."""
        link = self.links.get(number)
        return link is not None and link.finding is not LinkFinding.REACHED

    def confirms(self, asker: int, number: int, version: int) -> bool:
        """Return whether the author suspects a worker, and knew the question about it when it said so.

        Args:
            asker: number of the worker that asked.
            number: number of the suspected worker.
            version: of the asker's report that asked first.
        """
        return self.suspects(number) and self.heard.get(asker, 0) >= version


def encode_report(report: Report) -> bytes:
    """Return a report as the bytes of its protobuf form."""
    out = MembershipReport(version=report.version)
    for number, evidence in report.links.items():
        out.links.add(number=number, finding=evidence.finding, reason=evidence.reason)
    for number, loss in report.lost.items():
        out.lost.add(number=number, reason=loss.reason, left=loss.left)
    out.asks.extend(Question(number=number, version=version) for number, version in report.asks.items())
    out.heard.extend(Question(number=number, version=version) for number, version in report.heard.items())
    out.checks.extend(Question(number=number, version=version) for number, version in report.checks.items())
    out.gone.extend(chain.from_iterable(report.gone.intervals()))
    out.leaving.extend(sorted(report.leaving))
    return out.SerializeToString()


def decode_report(data: bytes) -> Report:
    """Return the report in ``data``."""
    given = MembershipReport.FromString(data)
    links = {link.number: Evidence(LinkFinding(link.finding), link.reason) for link in given.links}
    report = Report(given.version, links, {loss.number: Loss(loss.reason, loss.left) for loss in given.lost})
    for first, end in zip(given.gone[::2], given.gone[1::2], strict=True):
        report.gone.add_range(first, end)
    report.asks = {question.number: question.version for question in given.asks}
    report.heard = {question.number: question.version for question in given.heard}
    report.checks = {question.number: question.version for question in given.checks}
    report.leaving = set(given.leaving)
    return report

"""Workers that judge losses together: their state machines, and links between them that a test cuts and mends."""

from collections import deque

from telegrad.rpc.links.reports import Evidence, LinkFinding
from telegrad.rpc.losses.events import Opened, Reached, ReportReceived, SendReport, TimePassed, Unreachable
from telegrad.rpc.losses.verdict import Verdicts

TIMEOUT = 10.0
SILENT = Evidence(LinkFinding.SILENT, "no connection within 10 s")
DEAD = Evidence(LinkFinding.DEAD, "connection refused")


class Job:
    """Machines whose reports arrive at once, wherever a path of links leads."""

    def __init__(self, count):
        self.machines = {rank: Verdicts(rank, range(count), "w{}".format, TIMEOUT) for rank in range(count)}
        self.held = set()  # they answer nothing for a while
        self.mended = set()  # pairs whose link was cut and is back
        self.now = 0.0
        self.due = deque()

    def failed(self, rank, other, evidence):
        self.mended.discard(frozenset((rank, other)))
        self.handle(rank, Unreachable(other, evidence))
        self.settle()

    def handle(self, rank, event):
        self.due.extend((rank, said) for said in self.machines[rank].handle(event, self.now))

    def cut(self, one, other):
        self.failed(one, other, SILENT)
        self.failed(other, one, SILENT)

    def reconnect(self, one, other):
        self.mended.add(frozenset((one, other)))
        self.handle(one, Opened(other))
        self.handle(other, Opened(one))
        self.settle()

    def kill(self, rank):
        del self.machines[rank]

    def pass_time(self, seconds):
        self.now += seconds
        for rank in self.machines:
            self.handle(rank, TimePassed())
        self.settle()

    def settle(self):
        while self.due:
            rank, said = self.due.popleft()
            if isinstance(said, SendReport) and rank in self.machines:
                self.deliver(rank, said)

    def deliver(self, rank, said):
        for to in said.to:
            way = self.machines[rank].next_hop(to) is not None
            if way and to in self.machines and to not in self.held:
                self.handle(to, ReportReceived(rank, said.report))
                if self.linked(rank, to):
                    self.handle(rank, Reached(to, said.report.version))

    def linked(self, one, other):
        back = frozenset((one, other)) in self.mended
        return back or not (self.machines[one].report.suspects(other) or self.machines[other].report.suspects(one))

    def lost(self):
        return {rank: sorted(machine.report.lost) for rank, machine in self.machines.items() if not machine.closed}

    def closed(self):
        return [rank for rank, machine in self.machines.items() if machine.closed]


def machine_of_three(rank):
    return Verdicts(rank, range(3), "abc".__getitem__, TIMEOUT)

"""Graceful shutdown of many workers: it needs no sessions beside those that the job had."""

from concurrent.futures import ThreadPoolExecutor

from telegrad import rpc
from telegrad.rpc.group.shutdown import shut_down
from telegrad.rpc.lanes.inproc import InProcessLane, InProcessNetwork
from telegrad.testing.cluster import in_process_cluster

COUNT = 12


class CountingLane(InProcessLane):
    """Lane that notes whom its worker dials."""

    def __init__(self, network, dialed):
        super().__init__(network)
        self.dialed = dialed

    def dial(self, listener, peer, address):
        self.dialed.append(peer.name)
        return super().dial(listener, peer, address)


def nothing():
    pass


def test_workers_that_one_called_dial_nobody_when_they_leave():
    network, dialed = InProcessNetwork(), []
    names = [f"w{rank}" for rank in range(COUNT)]
    with in_process_cluster(*names, make_lane=lambda: CountingLane(network, dialed)) as agents:
        with agents[0].use():
            for name in names[1:]:
                rpc.rpc_sync(name, nothing)
        with ThreadPoolExecutor(COUNT) as threads:
            for done in [threads.submit(shut_down, agent, True, 20) for agent in agents]:
                done.result()
    assert dialed == names[1:]

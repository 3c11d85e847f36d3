"""Conformance suite of the lanes that leave a host, where one end dials from this host and the other listens on another.

The arguments are a folder, the names of this host's network and of the other's, and the other's address.
"""

import asyncio
import socket
import sys
from pathlib import Path

import pytest
from helpers.hosts import enter
from helpers.lanes import grpc, grpc_tls, tcp, tcp_tls
from telegrad.testing.check_lane import CHECKS, pair

FOLDER, HERE, THERE, ADDRESS = sys.argv[1:]


def on_the_other_host(made):
    """Return a maker of lanes that listen on the other host, and dial from this one.

    A socket belongs to the network that its thread is in when it is made, and so do those that it accepts: all lanes of a
    process listen on the thread of one loop.
    """

    async def go(network):
        enter(network)

    def make():
        lane = made()
        listen = lane.listen

        def listen_there(listener, _):
            asyncio.run_coroutine_threadsafe(go(THERE), lane.loop).result()
            try:
                found = listen(listener, f"{ADDRESS}:0")
            finally:
                asyncio.run_coroutine_threadsafe(go(HERE), lane.loop).result()
            assert all(ADDRESS in address for address in (found, *lane.offers))
            return found

        lane.listen = listen_there
        return lane

    return make


def main():
    with pytest.raises(OSError):
        socket.create_server((ADDRESS, 0))  # so it is not this host's
    for kind in (grpc, tcp, grpc_tls, tcp_tls):
        make = on_the_other_host(kind(Path(FOLDER)))
        with pair(make) as both:
            both.talk()
            assert both.session.scheme == kind.__name__.partition("_")[0], both.session.lane_note
        for check in CHECKS:
            check(make)
            print("passed", kind.__name__, check.__name__, flush=True)


if __name__ == "__main__":
    main()

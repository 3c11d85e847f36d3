"""What init_rpc is told about the meeting is checked before anybody waits."""

import pytest
from telegrad.core.errors import RendezvousError
from telegrad.rpc.rendezvous import plan_rendezvous


@pytest.mark.parametrize("given", [{"rank": "0", "world_size": 2}, {"rank": 0, "world_size": "2"}])
def test_ranks_and_sizes_are_numbers(given):
    with pytest.raises(TypeError, match="must be a whole number; you gave '"):
        plan_rendezvous("tcp://127.0.0.1:4711", **given)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "[::1]"])
def test_addresses_of_the_loopback(host):
    assert plan_rendezvous(f"tcp://{host}:4711", 0, 1).world_size == 1


@pytest.mark.parametrize("host", ["10.0.0.1", "127.example.org", "localhost.example.org"])
def test_other_addresses_are_refused(host):
    with pytest.raises(RendezvousError, match="not an address of this machine alone"):
        plan_rendezvous(f"tcp://{host}:4711", 0, 1)

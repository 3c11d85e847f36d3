"""Several rendezvous at one address: of the workers of ``init_rpc``, and of process groups."""

import threading

import pytest
import telegrad as tg
from telegrad import collective as dist
from telegrad import rpc
from telegrad.agents.process_groups import add_group_parts
from telegrad.agents.starting import meeting_places, open_agent, start_grpc
from telegrad.base.errors import AgentClosedError, RendezvousError
from telegrad.base.job_secrets import remembered, secret_of
from telegrad.rpc.extend import plan_rendezvous

pytestmark = pytest.mark.usefixtures("outside_a_job")


@pytest.fixture
def together():
    """``together(join, ranks)`` calls ``join(rank)`` in a thread for each rank; returns agents or errors."""
    made = []

    def run(join, ranks):
        def one(rank):
            try:
                results[rank] = join(rank)
                made.append(results[rank])
            except Exception as error:
                results[rank] = error

        results = {}
        threads = [threading.Thread(target=one, args=(rank,)) for rank in ranks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [results[rank] for rank in ranks]

    yield run
    for agent in made:
        agent.close()


def at(port, seconds=20.0):
    return rpc.GrpcRpcBackendOptions(init_method=f"tcp://127.0.0.1:{port}", init_timeout=seconds)


def worker(port, world_size):
    return lambda rank: start_grpc(f"w{rank}", rank, world_size, at(port))


def member(port, world_size, purpose="process group", seconds=20.0):
    def join(rank):
        options = at(port, seconds)
        plan = plan_rendezvous(options.init_method, rank, world_size, seconds, purpose, meeting_places())
        return open_agent(f"rank{rank}", plan, options, add_group_parts, private=True)

    return join


def sizes(agents):
    return [len(agent.peers) for agent in agents]


def test_one_address_serves_workers_and_groups(together, port):
    workers = together(worker(port, 3), range(3))
    for _ in range(2):
        members = together(member(port, 2), range(2))
        assert sizes(members) == [2, 2]
        for agent in members:
            agent.close()
    with workers[0].use():
        assert rpc.rpc_sync("w2", abs, (-1,)) == 1


def test_a_group_may_begin_again_where_its_first_agent_listened_for_others(together, port):
    first = together(member(port, 2), range(2))
    workers = together(worker(port, 3), range(3))
    for agent in first:
        agent.close()
    assert sizes(workers) == [3] * 3
    assert sizes(together(member(port, 2), range(2))) == [2, 2]


def test_a_joiner_hears_who_is_missing_where_another_agent_listens(together, port):
    together(worker(port, 1), [0])
    [alone] = together(member(port, 3, seconds=0.5), [1])
    assert isinstance(alone, RendezvousError)
    assert "1 of 3 workers came; ranks 0, 2 did not" in str(alone)
    assert [len(agent.peers) for agent in together(member(port, 2), range(2))] == [2, 2]  # of another size, afterwards


def test_a_dynamic_group_needs_an_address_of_its_own(together, port):
    together(member(port, 1), [0])
    [refused] = together(worker(port, 0), [0])
    assert isinstance(refused, RendezvousError) and "give init_rpc another init_method=" in str(refused)


def test_calls_do_not_go_through_the_agent_of_a_group(port):
    url = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("rpc", url, world_size=1, rank=0)
    try:
        with pytest.raises(AgentClosedError, match="RPC is not running"):
            rpc.rpc_sync("rank0", abs, (-1,))
        rpc.init_rpc("only", rank=0, world_size=1, rpc_backend_options=at(port))
        assert rpc.rpc_sync("only", abs, (-1,)) == 1
        rpc.shutdown()
        x = tg.ones(3)
        dist.all_reduce(x)
        assert len(tg.data.DistributedSampler(range(8))) == 8
    finally:
        dist.destroy_process_group()


def test_a_process_that_started_one_job_knows_its_secret_at_any_place():
    with remembered(4711, "first"):
        assert [secret_of(port) for port in (4711, 4712, None)] == ["first"] * 3
        with remembered(4713, "second"):
            assert [secret_of(port) for port in (4711, 4713, 4712, None)] == ["first", "second", None, None]
    assert secret_of(4711) is None

"""Names of ``torch.distributed`` and its RPC that are not ours: backends, groups, options, and parts of ``rpc.api``."""

import pytest
import telegrad as tg
from telegrad.compat import torch
from telegrad.testing import in_process_cluster

dist, rpc = torch.distributed, torch.distributed.rpc


def test_backends_are_names():
    assert dist.Backend("GLOO") == dist.Backend.GLOO == "gloo" and isinstance(dist.Backend("gloo"), dist.Backend)
    assert dist.Backend.NCCL in dist.Backend.backend_list and dist.Backend("mine") == "mine"
    with pytest.raises(ValueError, match="takes a name"):
        dist.Backend(3)
    assert dist.is_gloo_available() and dist.is_backend_available("gloo")
    assert not dist.is_nccl_available() and not dist.is_backend_available("nccl")


def test_former_names_of_operations():
    with pytest.warns(FutureWarning, match="use ReduceOp"):
        assert dist.reduce_op.SUM is dist.ReduceOp.SUM
    with pytest.raises(AttributeError, match="has no NOTHING"):
        _ = dist.reduce_op.NOTHING


def test_there_is_a_world_while_there_is_a_group(tmp_path):
    assert dist.group.WORLD is None and dist.GroupMember.WORLD is None
    assert dist.group.NON_GROUP_MEMBER is tg.collective.GroupMember.NON_GROUP_MEMBER
    with pytest.raises(RuntimeError, match="no default process group"):
        dist.distributed_c10d._get_default_group()
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/rendezvous", world_size=1, rank=0)
    try:
        assert isinstance(dist.group.WORLD, dist.ProcessGroup) and dist.get_world_size(dist.group.WORLD) == 1
        assert dist.distributed_c10d._get_default_group() is dist.group.WORLD
    finally:
        dist.destroy_process_group()
    assert dist.group.WORLD is None


def test_several_messages_at_a_time():
    begun = []

    def fake(tensor, peer, group=None, tag=0):
        begun.append((peer, group, tag))
        return len(begun)

    with pytest.raises(ValueError, match="isend or irecv"):
        dist.P2POp(fake, tg.ones(1), 1)
    with pytest.raises(ValueError, match="P2POp"):
        dist.batch_isend_irecv([3])
    operations = [dist.P2POp(dist.isend, tg.ones(1), 1), dist.P2POp(dist.irecv, tg.ones(1), 2, tag=4)]
    for each in operations:
        each.op = fake
    assert dist.batch_isend_irecv(operations) == [1, 2] and begun == [(1, None, 0), (2, None, 4)]


def test_errors_of_groups_are_runtime_errors():
    assert issubclass(dist.DistBackendError, RuntimeError) and issubclass(dist.DistNetworkError, RuntimeError)
    assert dist.DistBackendError is tg.errors.CollectiveError
    assert dist.GradBucket is tg.nn.parallel.GradBucket


def test_tensorpipe_is_a_backend():
    kind = rpc.BackendType.TENSORPIPE
    assert (
        kind is rpc.backend_registry.BackendType["TENSORPIPE"]
        and kind in rpc.BackendType
        and rpc.backend_registered("TENSORPIPE")
    )
    assert repr(kind) == "BackendType.TENSORPIPE" and kind.name == "TENSORPIPE"
    options = rpc.backend_registry.construct_rpc_backend_options(
        kind,
        rpc_timeout=5,
        init_method="tcp://localhost:1",
        num_worker_threads=3,
        _transports=["uv"],
        _channels=["basic"],
    )
    assert isinstance(options, rpc.TensorPipeRpcBackendOptions)
    assert (options.rpc_timeout, options.num_worker_threads, options.init_method) == (5, 3, "tcp://localhost:1")


def test_a_job_of_tensorpipe(tmp_path):
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{tmp_path}/rendezvous", _transports=["uv"])
    assert not rpc.api._is_current_rpc_agent_set()
    rpc.init_rpc("a", backend=rpc.BackendType.TENSORPIPE, rank=0, world_size=1, rpc_backend_options=options)
    try:
        assert rpc.api._is_current_rpc_agent_set() and rpc.api._all_gather(3) == {"a": 3}
        assert rpc.api._get_current_rpc_agent().name == "a"
    finally:
        rpc.shutdown()


def test_functions_that_need_rpc():
    @rpc.api._require_initialized
    def work(number, *, more=0):
        return number + more

    assert work.__name__ == "work"
    with pytest.raises(RuntimeError, match="init_rpc"):
        work(1)
    with in_process_cluster("a") as (agent,), agent.use():
        assert work(1, more=2) == 3


def test_states_of_a_gathering():
    states = rpc.api.AllGatherStates()
    assert states.gathered_objects == {} and not states.proceed_signal.is_set()

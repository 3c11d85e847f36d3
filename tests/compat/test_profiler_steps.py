"""``torch.profiler``: cycles of steps, their events, and those of calls to other workers."""

import json

import pytest
import telegrad as tg
from telegrad import rpc
from telegrad.compat import torch
from telegrad.testing import in_process_cluster

profiler = torch.profiler


def test_a_schedule_is_pytorchs():
    """The values are those of PyTorch 2.13."""
    plan = profiler.schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    assert [plan(step).value for step in range(11)] == [0, 0, 1, 2, 3, 0, 1, 2, 3, 0, 0]
    plan = profiler.schedule(wait=2, warmup=0, active=1, skip_first_wait=1)
    assert [plan(step).value for step in range(6)] == [3, 0, 0, 3, 0, 0]
    with pytest.raises(AssertionError, match="active more than 0"):
        profiler.schedule(wait=0, warmup=1, active=0)


def test_cycles_are_handed_over():
    cycles = []
    plan = profiler.schedule(wait=1, warmup=0, active=2, repeat=2)
    with profiler.profile(schedule=plan, on_trace_ready=lambda each: cycles.append(each.events())) as profiled:
        for number in range(8):
            tg.ones(number + 1)
            profiled.step()
    assert [[event.name.rpartition(":")[2] for event in events] for events in cycles] == [["ones"] * 2] * 2
    assert profiled.step_num == 8


def test_a_profile_without_steps_ends_with_its_block(tmp_path):
    handler = profiler.tensorboard_trace_handler(str(tmp_path / "traces"), "me")
    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU], record_shapes=True, on_trace_ready=handler
    ) as profiled:
        tg.ones(2).exp()
    tg.ones(2)
    assert len(profiled.events()) == 2 and profiled.events()[1].input_shapes == ((2,),)
    assert sum(row.count for row in profiled.key_averages()) == 2
    (trace,) = (tmp_path / "traces").glob("me.*.pt.trace.json")
    assert [each["ph"] for each in json.loads(trace.read_text())] == ["M", "X", "X"]  # its clock, and two operations
    assert profiler.supported_activities() == {profiler.ProfilerActivity.CPU}


def test_calls_to_other_workers_are_events():
    with in_process_cluster("worker0", "worker1") as (here, _), here.use(), profiler.profile() as profiled:
        rpc.rpc_sync("worker1", tg.add, (tg.ones(2), 1))
    names = [event.name for event in profiled.events()]
    call = "rpc_sync#aten::add(worker0 -> worker1)"
    assert call in names and names[-1] == f"{call}#remote_op: aten::add"
    assert profiled.events()[-1].is_remote and profiled.events()[-1].node_id == 1

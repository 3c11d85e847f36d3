"""Process groups beside RPC: either comes first, either ends first, and they may be of different workers."""

import pytest

pytestmark = [pytest.mark.processes, pytest.mark.slow]


@pytest.mark.parametrize("place", ["env://", "file"])
def test_groups_and_rpc_begin_and_end_in_any_order(forked_job, tmp_path, place):
    place = f"file://{tmp_path}/meeting" if place == "file" else place
    job = forked_job("rpc_with_groups", 4, [place])
    job.wait(60)
    assert all("all right" in job.output(rank) for rank in range(4)), job.outputs()

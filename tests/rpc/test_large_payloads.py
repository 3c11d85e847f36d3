"""Large arguments and results between processes: whatever their shape, and whatever the system refuses or kills."""

import pytest

pytestmark = [pytest.mark.processes, pytest.mark.slow]
PARTS = ("sent_again", "odd_shapes", "thousands", "one_of_many_is_kept", "interrupted_and_late", "killed")


@pytest.mark.parametrize(
    ("lane", "refused"), [("unix", "nothing"), ("tcp", "nothing"), ("unix", "memfd"), ("unix", "memory")]
)
def test_large_payloads_arrive_and_leave_nothing_behind(job, lane, refused):
    running = job("payloads", 2, args=(lane, refused))
    running.wait(100, codes=[0, -9])
    assert [part for part in PARTS if f"done {part}" not in running.output(0)] == []
    assert "Traceback" not in running.outputs() and "over" in running.output(0)

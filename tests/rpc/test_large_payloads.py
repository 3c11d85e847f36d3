"""Large arguments and results between processes: whatever their shape, and whatever the system refuses or kills."""

import pytest
from helpers.certificates import authority, tls_files

pytestmark = [pytest.mark.processes, pytest.mark.slow]
PARTS = ("sent_again", "odd_shapes", "thousands", "one_of_many_is_kept", "interrupted_and_late", "killed")


@pytest.mark.parametrize(
    ("lane", "refused"),
    [
        ("unix", "nothing"),
        pytest.param("tcp", "nothing", marks=pytest.mark.soak),
        ("tls", "nothing"),
        ("unix", "memfd"),
        ("unix", "memory"),
    ],
)
def test_large_payloads_arrive_and_leave_nothing_behind(job, tmp_path, lane, refused):
    jobs = authority("job.test")
    for worker in ("w0", "w1"):
        tls_files(tmp_path / "tls" / worker, jobs, worker)
    running = job("payloads", 2, args=(lane, refused, tmp_path / "tls"))
    running.wait(240, codes=[0, -9])
    assert [part for part in PARTS if f"done {part}" not in running.output(0)] == []
    assert "Traceback" not in running.outputs() and "over" in running.output(0)

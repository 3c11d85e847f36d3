"""Workers in processes of their own, over gRPC."""

import pytest

pytestmark = pytest.mark.processes


def test_three_workers(job):
    together = job("together", 3)
    together.wait(60)
    for part in ("main_globals", "nested", "large", "by_value", "fork"):
        assert f"done {part}" in together.output(0)
    assert together.outputs().count("over") == 3
    assert "Traceback" not in together.outputs()


def test_tensor_classes_between_workers(job):
    running = job("subclasses", 2)
    running.wait()
    assert running.output(0).count("done") == 5 and running.outputs().count("over") == 2
    assert "Traceback" not in running.outputs()

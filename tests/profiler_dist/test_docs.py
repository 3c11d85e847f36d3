"""The picture of the page about profiling can be drawn from a real run."""

import json
import runpy
from pathlib import Path
from xml.etree import ElementTree

import pytest
import telegrad

DOCS = Path(telegrad.__file__).parent / "docs"


def test_no_label_of_the_picture_s_time_is_cut_off():
    drawing = runpy.run_path(str(DOCS / "pictures" / "draw_trace.py"))
    right = drawing["WIDTH"]
    assert 'x="502.0" y="20">4 ms' in drawing["tick"](4000, 500, 100)
    assert f'x="{right - 12}.0" text-anchor="end" y="20">10 ms' in drawing["tick"](10_000, right - 10, 100)


@pytest.mark.processes
@pytest.mark.slow
def test_the_picture_comes_from_a_run_of_real_workers(run_python, tmp_path):
    script = DOCS / "pictures" / "draw_trace.py"
    run_python(script, "--trace", tmp_path / "trace.json", "--out", tmp_path / "trace.svg")
    drawing = runpy.run_path(str(script))
    found = drawing["slices"](json.loads((tmp_path / "trace.json").read_text()))
    assert {each.worker for each in found} == {"server", "trainer0", "trainer1"}
    step = drawing["one_step"](found)
    assert {each.kind for each in step} == set(drawing["COLOURS"])
    shown = "".join(ElementTree.parse(tmp_path / "trace.svg").getroot().itertext())
    assert all(word in shown for word in ("server", "trainer0", "trainer1", "exchange"))
    for drawn in (tmp_path / "trace.svg", DOCS / "pictures" / "trace.svg"):
        assert ElementTree.parse(drawn).getroot().tag.endswith("svg")

"""Pictures of plans."""

import runpy
from pathlib import Path
from xml.etree import ElementTree

import pytest
import telegrad as tg

PICTURES = Path(tg.__file__).parent / "docs" / "pictures"


def test_the_picture_on_the_page_is_fresh(tmp_path):
    runpy.run_path(str(PICTURES / "draw_plan.py"))["draw_all"](tmp_path)
    drawn = (tmp_path / "plan.svg").read_text()
    assert drawn == (PICTURES / "plan.svg").read_text(), "run docs/pictures/draw_plan.py"


def test_calls_stand_beside_their_memory(tmp_path):
    compiled = tg.compile(lambda x: (x @ x).tanh().sum())
    for _ in range(3):
        compiled(tg.ones(8, 8))
    compiled.explain(tmp_path / "plan.svg")
    root = ElementTree.parse(tmp_path / "plan.svg").getroot()
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["calls", "buffers: 256 bytes", "dot  (8, 8)", "tanh  (8, 8)", "add.reduce  ()"]


def test_functions_of_numpy_have_their_names(tmp_path):
    compiled = tg.compile(lambda x, weight: tg.nn.functional.conv2d(x, weight))
    for _ in range(3):
        compiled(tg.ones(4, 1, 6, 6), tg.ones(4, 1, 3, 3))
    compiled.explain(tmp_path / "plan.svg")
    found = (tmp_path / "plan.svg").read_text()
    assert ">empty  (" in found and "built-in function" not in found


def test_all_parts_of_a_plan_are_drawn(tmp_path):
    numbers = []

    def run(x):
        x = (x @ x).sin()
        if x.sum() > 0:
            x = x.exp().sqrt()
        numbers.append(1)
        return (x * 2).cos().tanh()

    compiled = tg.compile(run)
    with pytest.warns(UserWarning, match="runs eagerly in part"):
        for _ in range(6):
            compiled(tg.ones(2, 2))
    compiled.explain(tmp_path / "plan.svg")
    texts = [each.text for each in ElementTree.parse(tmp_path / "plan.svg").iter("{http://www.w3.org/2000/svg}text")]
    calls = [each.partition("  ")[0] for each in texts if "buffers" not in each]
    first = next(place for place, each in enumerate(calls) if each.startswith("lines "))
    assert " ".join(calls[:first]).startswith("eager: the call changes what it reads") and calls[-4].startswith(
        "lines "
    )
    assert calls[first + 1 : first + 4] == ["dot", "sin", "add.reduce"] and calls[-3:] == ["multiply", "cos", "tanh"]
    (look,) = [place for place, each in enumerate(calls) if each.startswith("bool() of test_picture.py")]
    assert calls[look + 1 : -4] == ["exp", "sqrt"]


def test_a_picture_of_eager_calls_has_the_whole_reason(tmp_path):
    calls = []

    def run_that_counts_its_calls_in_a_list(x):
        calls.append(1)
        return x * 2

    compiled = tg.compile(run_that_counts_its_calls_in_a_list)
    with pytest.warns(UserWarning, match="runs eagerly"):
        for _ in range(3):
            compiled(tg.ones(2, 2))
    compiled.explain(tmp_path / "plan.svg")
    page = ElementTree.parse(tmp_path / "plan.svg")
    texts = list(page.iter("{http://www.w3.org/2000/svg}text"))
    (reason,) = [each.reason for each in compiled._known()]
    assert " ".join(each.text for each in texts) == f"eager: {reason}"
    width = float(page.getroot().get("width"))
    assert all(float(each.get("x")) + 6 * len(each.text) < width for each in texts) and len(texts) > 1


def test_without_a_plan_there_is_no_picture(tmp_path):
    compiled = tg.compile(lambda x: x * 2)
    with pytest.raises(ValueError, match="no plan to draw"):
        compiled.explain(tmp_path / "plan.svg")
    with pytest.raises(ValueError, match="a path that ends with"):
        compiled.explain(tmp_path / "plan.png")
    assert not list(tmp_path.iterdir())

"""The page docs/distributed-autograd.md: its pictures are drawn by the code as it is, and its programs do what it says."""

import re
import runpy
from pathlib import Path

import telegrad as tg
from telegrad.testing import in_process_cluster

DOCS = Path(tg.__file__).parent / "docs"


def test_the_pictures_are_fresh(tmp_path):
    page = (DOCS / "distributed-autograd.md").read_text()
    runpy.run_path(str(DOCS / "pictures" / "draw_contexts.py"))["draw_all"](tmp_path)
    shown = re.findall(r"\(pictures/(\w+\.svg)\)", page)
    assert sorted(shown) == sorted(path.name for path in tmp_path.iterdir())
    for name in shown:
        assert (tmp_path / name).read_text() == (DOCS / "pictures" / name).read_text(), (
            "run docs/pictures/draw_contexts.py"
        )


def test_the_programs_run():
    page = (DOCS / "distributed-autograd.md").read_text()
    names = {"__name__": __name__}
    for program in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(program, names)
    tg.manual_seed(1)
    with in_process_cluster("trainer", "server 1", "server 2") as agents, agents[0].use():
        losses = names["train"](20, tg.randn(8, 3))
        assert len(losses) == 20 and losses[-1] < 0.5 * losses[0]
        assert "SqrtBackward made a nan in the backward pass" in names["find_nan"]()

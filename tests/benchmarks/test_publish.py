"""The page gets tables, the file and the picture, between its marks and nowhere else."""

import subprocess
import sys

import pytest
from telegrad.benchmarks.publish import BEGIN, END, IN_README, PAGE, README, beside_torch, publish
from telegrad.benchmarks.results import Results, Row, Source, read

pytest.importorskip("matplotlib")


def results():
    rows = [Row(name, name, "p50") for name in ("no-op", "1 KiB echo", "1 MiB echo")]
    made = Results({"processor": "test"}, {"load": "none"}, rows, [Source("telegrad", {"numpy": "2"}), Source("torch")])
    for row in rows:
        made.record(row.case, "telegrad").rounds.append({"p50": 1e-4})
        made.record(row.case, "torch").rounds.append({"p50": 2e-4})
    return made


@pytest.mark.processes
@pytest.mark.slow
def test_a_page_is_written_again_between_its_marks(tmp_path):
    results().write(tmp_path / "run.json")
    page = tmp_path / "page.md"
    figures = tmp_path / "page" / "figures.md"
    figures.parent.mkdir()
    for each in (page, figures):
        each.write_text(f"before\n{BEGIN}old\n{END}after\n")
    for _ in range(2):
        # In a process of its own, because Matplotlib keeps its fonts' files open.
        arguments = [str(tmp_path / "run.json"), "--page", str(page)]
        subprocess.run([sys.executable, "-m", "telegrad.benchmarks.publish", *arguments], check=True, timeout=60)
    text, all_figures = page.read_text(), figures.read_text()
    for each in (text, all_figures):
        assert each.startswith("before\n") and each.endswith("after\n") and "old" not in each
    assert "| no-op | telegrad / torch | 0.50 | 0.2 | 0.1 | no |" in text
    assert "| no-op | 100 µs | 200 µs (0.50) |" in all_figures and "* telegrad: numpy 2" in all_figures
    assert (tmp_path / "page" / "results.json").read_text() == (tmp_path / "run.json").read_text()
    assert "no-op: telegrad / torch" in (tmp_path / "page" / "results.svg").read_text()


def test_a_page_without_marks_is_left_alone(tmp_path):
    results().write(tmp_path / "run.json")
    (tmp_path / "page.md").write_text("text")
    with pytest.raises(ValueError, match="must have the lines"):
        publish(tmp_path / "run.json", tmp_path / "page.md", tmp_path / "page")
    assert (tmp_path / "page.md").read_text() == "text"


def test_the_readme_has_the_figures_of_the_page():
    table = list(beside_torch(read(PAGE.with_suffix("") / "results.json")))
    assert len(table) == 2 + len(IN_README)
    assert README.read_text().partition(BEGIN)[2].partition(END)[0].splitlines() == table, "make bench-docs"

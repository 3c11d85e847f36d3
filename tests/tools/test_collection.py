"""The tests run in a clone of any name."""

import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_folder_need_not_have_a_name_of_python(tmp_path, run_python):
    clone = tmp_path / "telegrad-0.1.0"
    (clone / "tests" / "core").mkdir(parents=True)
    for name in ("pyproject.toml", "__init__.py", "tests/core/test_dtypes.py"):
        shutil.copy(ROOT / name, clone / name)
    for folder in ("golden", "helpers"):
        shutil.copytree(ROOT / "tests" / folder, clone / "tests" / folder)
    run_python("-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "test_aliases or test_limits", cwd=clone)

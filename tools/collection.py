"""Plugin of pytest: the repository's root is a package, but not a package of tests.

Without it, pytest would import the root under the name of the folder of the clone, which may not be a module's name.
"""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Return a plain directory for the root, and leave other folders to pytest."""
    return pytest.Dir.from_parent(parent, path=path) if path == parent.config.rootpath else None

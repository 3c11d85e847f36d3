"""For pytest: the repository's root is a package, but no package of tests.

Else pytest would import it under the name of the folder that it was cloned into, which need not be a name at all.
"""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A plain directory, for the root; the others are as ever."""
    return pytest.Dir.from_parent(parent, path=path) if path == parent.config.rootpath else None

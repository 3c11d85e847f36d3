"""Questions about a process that Python's multiprocessing may have started: has it, and does it still import the script?"""

import sys
from types import ModuleType

GUARD = 'put the work of the script under `if __name__ == "__main__":`, because processes that it starts import it'


def is_multiprocessing_child() -> bool:
    """Return whether Python's multiprocessing has started this process."""
    process = _process_module()
    return process is not None and process.parent_process() is not None


def imports_main() -> bool:
    """Return whether this process, started with multiprocessing, still imports the script that has started it."""
    # Python's own check asks the same. `parent_process()` is None until the import is over.
    process = _process_module()
    return process is not None and bool(getattr(process.current_process(), "_inheriting", False))


def _process_module() -> ModuleType | None:
    """Return ``multiprocessing.process``, which every such process has imported; others need not import it."""
    return sys.modules.get("multiprocessing.process")

"""Generates ``telegrad_pb2.py`` and ``.pyi`` from ``telegrad.proto``; with ``--check`` it only says whether they are fresh.

The generator is pinned (the ``dev`` extra) to the oldest protobuf that the package supports: newer runtimes accept
older generated code, never the other way round.
"""

import sys
import tempfile
from pathlib import Path

ROOM = Path(__file__).resolve().parent
OUTPUTS = ("telegrad_pb2.py", "telegrad_pb2.pyi")


def generate(target: Path) -> None:
    """Run protoc; the generated files appear in ``target``."""
    from grpc_tools import protoc

    arguments = ["protoc", f"-I{ROOM}", f"--python_out={target}", f"--pyi_out={target}", str(ROOM / "telegrad.proto")]
    if protoc.main(arguments) != 0:
        raise SystemExit("protoc failed; its message stands above")


def stale(directory: Path) -> list[str]:
    """The generated files in the tree that differ from those in ``directory``."""
    return [
        name
        for name in OUTPUTS
        if not (ROOM / name).exists() or (ROOM / name).read_bytes() != (directory / name).read_bytes()
    ]


def main() -> None:
    """Regenerate in place, or check."""
    if "--check" not in sys.argv[1:]:
        generate(ROOM)
        return
    with tempfile.TemporaryDirectory() as directory:
        generate(Path(directory))
        if names := stale(Path(directory)):
            raise SystemExit(f"{', '.join(names)} is not what telegrad.proto generates: run `make proto` and commit")


if __name__ == "__main__":
    main()

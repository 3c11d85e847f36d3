"""Generate a ``_pb2.py`` and a ``_pb2.pyi`` from each schema file; with ``--check``, only say which of them are stale.

The generator is pinned (the ``dev`` extra) to the oldest protobuf that the package supports: newer runtimes accept
older generated code, never the other way round.
"""

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCHEMAS = sorted(HERE.glob("*.proto"))
VIRTUAL = "telegrad/proto"  # protobuf knows every schema of a process by its path, so ours must be unique


def generate(target: Path) -> list[Path]:
    """Run protoc below ``target``; return the generated files."""
    from grpc_tools import protoc

    names = [f"{VIRTUAL}/{schema.name}" for schema in SCHEMAS]
    if protoc.main(["protoc", f"-I{VIRTUAL}={HERE}", f"--python_out={target}", f"--pyi_out={target}", *names]) != 0:
        raise SystemExit("protoc failed; its message stands above")
    return sorted((target / VIRTUAL).iterdir())


def stale(fresh: list[Path]) -> list[str]:
    """Return the names of generated files in the tree that are missing, differ, or have no schema."""
    expected = {path.name: path.read_bytes() for path in fresh}
    present = {path.name: path.read_bytes() for path in HERE.glob("*_pb2.py*")}
    return sorted(name for name in expected.keys() | present.keys() if expected.get(name) != present.get(name))


def main() -> None:
    """Regenerate in place, or check."""
    with tempfile.TemporaryDirectory() as directory:
        fresh = generate(Path(directory))
        if "--check" not in sys.argv[1:]:
            for path in fresh:
                (HERE / path.name).write_bytes(path.read_bytes())
        if names := stale(fresh):
            raise SystemExit(f"{', '.join(names)}: not what the schema generates; run `make proto` and commit")


if __name__ == "__main__":
    main()

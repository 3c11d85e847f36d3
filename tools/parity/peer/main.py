"""Writes cases to stdout, each a pickle: ``python -m peer.main [--only NAME]...``, with an interpreter that has torch."""

from __future__ import annotations

import argparse
import os
import pickle
import warnings

import torch

from . import modules, operations, optimizers


def main() -> None:
    """Write ``("entries", names)``, then for each entry its cases and ``("end", name)``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", action="append", default=[])
    chosen = parser.parse_args().only
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else prints
    found = [
        (name, entry, source)
        for source in (operations, modules, optimizers)
        for name, entry in source.entries().items()
        if not chosen or name in chosen or getattr(entry, "name", name) in chosen
    ]
    pickle.dump(("entries", [name for name, _, _ in found], str(torch.__version__)), out)
    for name, entry, source in found:
        for message in source.cases(name, entry):
            if message is not None:
                pickle.dump(message, out)
        pickle.dump(("end", name), out)
        out.flush()


if __name__ == "__main__":
    main()

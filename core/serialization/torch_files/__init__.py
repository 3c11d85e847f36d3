"""PyTorch's own checkpoint files: archives and, to read, the older sequence of pickles. Nothing in a file is run."""

from .reading import is_torch_file, read_torch_file
from .writing import write_torch_file

__all__ = ["is_torch_file", "read_torch_file", "write_torch_file"]

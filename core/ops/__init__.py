"""The operations: each family in a folder, the machinery that they share in ``table``; ``core/namespaces.py`` loads all."""

import warnings

# log(0) is -inf and 0/0 is nan, silently as in PyTorch. Silencing NumPy itself costs more than most operations do.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"telegrad\.")

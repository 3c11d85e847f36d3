"""Attack on a real job by strangers on its machine, who lack its secret: ``python -m telegrad.tools.strangers``."""

"""Command ``telegrad doctor``: checks of this machine, of the way to another, and of two machines against each other."""

"""``python -m telegrad.launcher``: the command ``telegrad``, where its script is not in the path."""

from .cli import main

if __name__ == "__main__":
    main()

"""Commands that watch running jobs: ``telegrad ps``, ``top``, ``stack``, ``memory``, ``logs``, ``why``, ``debug``, ``kill``."""

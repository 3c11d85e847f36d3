"""Number of the extra of a message in which events travel."""

PROFILE_EXTRA = 3

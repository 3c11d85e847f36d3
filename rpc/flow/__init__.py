"""Flow control: how much may be in flight on one session."""

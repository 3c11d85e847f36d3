"""Arrays of other libraries: each has an adapter, and travels in a message's tables as ours do."""

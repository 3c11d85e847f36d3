"""``chaos --restarts``: trainings whose workers are killed and restarted, beside the same trainings undisturbed."""

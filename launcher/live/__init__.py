"""Live view of a job under ``telegrad run``, below its output: what each worker does, what it logs, how far its loops are."""

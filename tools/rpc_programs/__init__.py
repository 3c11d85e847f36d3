"""Random programs of calls, references, streams and failures, each with the result that one process computes."""

"""New tensors and filling: ranges, new tensors like another, sparse tensors."""

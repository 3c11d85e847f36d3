"""New tensors: from data, filled, ranges, like another one, sparse; and filling tensors."""

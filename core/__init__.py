"""Floor 0: errors, futures, tensors and autograd. Knows no network."""

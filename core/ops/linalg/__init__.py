"""Linear algebra: products, norms, decompositions, solving."""

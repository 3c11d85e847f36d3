"""Random programs, run eagerly and compiled: results, gradients and parameters are equal bit by bit."""

"""Random steps of distributed autograd, eagerly and compiled: losses, errors and parameters must be equal, bit by bit."""

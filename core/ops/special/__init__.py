"""Special functions: error, gamma, zeta, Bessel and Airy functions, orthogonal polynomials."""

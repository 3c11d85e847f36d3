"""Names of other libraries: a program that was written for one of them changes its import lines and nothing else."""

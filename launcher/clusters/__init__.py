"""Clusters: machines that MPI, Slurm or Kubernetes share out. A job for them is one command or manifest of theirs."""

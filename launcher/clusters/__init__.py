"""Clusters: machines that MPI, Slurm, Kubernetes or Ray share out. Their jobs are commands, manifests or actors."""

"""The lowest package: processes, jobs, texts and late imports. It knows no tensors and no network, and needs Python alone."""

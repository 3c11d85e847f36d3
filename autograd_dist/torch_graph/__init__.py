"""PyTorch's part of a context's graph on one worker. It is imported when a tensor of PyTorch that requires grad is sent."""

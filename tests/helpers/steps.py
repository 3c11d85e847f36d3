"""Steps of optimizers with given gradients."""

import numpy as np
import telegrad as tg


def step_with(optimizer, grads):
    """Take a step with these gradients, by parameter, and leave none."""
    for parameter, gradient in grads.items():
        parameter.grad = (
            gradient if isinstance(gradient, tg.Tensor) else tg.tensor(np.asarray(gradient, parameter.dtype))
        )
    try:
        optimizer.step()
    finally:
        for parameter in grads:
            parameter.grad = None

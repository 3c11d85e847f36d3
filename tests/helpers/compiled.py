"""``Sides``: the same program eagerly and compiled, side by side; ``train`` does steps of a model in one of these ways."""

import numpy as np
import telegrad as tg


def array(*shape, seed=0):
    """Return an array of numbers from 0 to 1, float32."""
    return np.random.default_rng((seed, *shape)).random(shape, dtype=np.float32)


def bits(tree):
    """Return tensors as shapes, dtypes, bytes and gradients, to be compared."""
    if isinstance(tree, tg.Tensor):
        grad = bits(tree.grad) if tree.is_leaf and tree.grad is not None else None
        return tree.shape, str(tree.dtype), tree.requires_grad, tree.detach().numpy().tobytes(), grad
    if isinstance(tree, (tuple, list)):
        return [bits(each) for each in tree]
    if isinstance(tree, dict):
        return {key: bits(each) for key, each in tree.items()}
    return tree


class Sides:
    """Runs a program twice, and compares what it returns and what it leaves.

    Attributes:
        compiled: the compiled function of the last run.
    """

    def __init__(self, recwarn):
        self._warnings = recwarn

    def run(self, make, calls=6):
        """Call a function eagerly and compiled with the same arguments.

        Args:
            make: makes the function, a function of the state to compare, and a function from the number of a call to arguments.
            calls: the number of calls.
        """
        logs = []
        for compiled in (False, True):
            tg.manual_seed(0)
            function, state, arguments = make()
            if compiled:
                function = self.compiled = tg.compile(function)
            log = []
            for call in range(calls):
                log.append(bits(function(*arguments(call))))
                log.append(bits(state()))
            logs.append(log)
        for call, (eager, replayed) in enumerate(zip(*logs)):
            assert eager == replayed, f"call {call // 2} differs"

    def replays(self):
        """Return the number of replays."""
        return sum(plan.replays for entry in self.compiled._entries.values() for plan in entry.plans)

    def reasons(self):
        """Return the warnings about eager calls, once each."""
        return [str(each.message) for each in self._warnings.list if each.category is UserWarning]


def train(model, optimizer, loss, batches, compiled, clip=None, after=lambda: None, calls=5):
    """Train a model for some steps, eagerly or compiled.

    Args:
        model, optimizer: what is trained.
        loss: a function of output and target.
        batches: two functions, which make an input and its target.
        compiled: compile the step.
        clip: largest norm of the gradients; None without.
        after: called after each step, outside of it.
        calls: the number of steps.

    Returns:
        The bits that the steps leave, and the function of a step.
    """

    def step(x, y):
        optimizer.zero_grad()
        value = loss(model(x), y)
        value.backward()
        if clip is not None:
            tg.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        return value.detach()

    function, log = tg.compile(step) if compiled else step, []
    for call in range(calls):
        tg.manual_seed(call)
        log.append(function(*(make() for make in batches)).numpy().tobytes())
        after()
    return log + [each.detach().numpy().tobytes() for each in (*model.parameters(), *model.buffers())], function

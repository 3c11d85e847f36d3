"""Modules with several results that require grad, compiled: any of them may be differentiated outside."""

import pytest
import telegrad as tg
from helpers.compiled import bits
from telegrad import nn
from telegrad.base.errors import AutogradError


class Heads(nn.Module):
    """Two linear maps of one input, ``both`` of them results twice."""

    def __init__(self, twice=False):
        super().__init__()
        self.twice, self.left, self.right = twice, nn.Linear(6, 4), nn.Linear(6, 4)

    def forward(self, x):
        left, right = self.left(x).tanh(), self.right(x)
        return (left, {"right": [right, left]}) if self.twice else (left, right)


def results(tree):
    """Return the tensors of a result in order."""
    if isinstance(tree, tg.Tensor):
        return [tree]
    parts = tree.values() if isinstance(tree, dict) else tree
    return [each for part in parts for each in results(part)]


USES = (
    lambda r: r[0].sum(),
    lambda r: r[-1].square().sum(),
    lambda r: r[0].sum() + r[-1].mean(),
    lambda r: sum(each.square().mean() for each in r),
)
MODULES = {
    "rnn": lambda: nn.RNN(6, 4),
    "gru": lambda: nn.GRU(6, 4),
    "lstm": lambda: nn.LSTM(6, 4),
    "lstm of two layers": lambda: nn.LSTM(6, 4, num_layers=2, bidirectional=True),
    "two": Heads,
    "one twice": lambda: Heads(twice=True),
}


@pytest.mark.parametrize("name", MODULES)
def test_any_results_are_differentiated_outside(name, recwarn):
    logs, compiled = [], None
    for side in range(2):
        tg.manual_seed(0)
        module = MODULES[name]()
        function = module if side == 0 else (compiled := tg.compile(module))
        log = []
        for call in range(10):
            x = tg.randn(5, 3, 6, requires_grad=True)
            module.zero_grad()
            found = results(function(x))
            USES[call % len(USES)](found).backward()
            log.append([bits(each.detach()) for each in found] + bits([x, *module.parameters()]))
        logs.append(log)
    assert logs[0] == logs[1] and not recwarn.list
    assert compiled is not None and sum(plan.replays for e in compiled._entries.values() for plan in e.plans) == 8


def test_attention(recwarn):
    logs = []
    for side in range(2):
        tg.manual_seed(0)
        module = nn.MultiheadAttention(6, 2)
        function = module if side == 0 else tg.compile(module)
        log = []
        for call in range(6):
            x = tg.randn(5, 3, 6, requires_grad=True)
            output, weights = function(x, x, x)
            (output.sum() if call % 2 else weights.square().sum() + output.mean()).backward()
            log.append(bits([output.detach(), weights.detach(), x]))
        logs.append(log)
    assert logs[0] == logs[1] and not recwarn.list


def replayed(module):
    """Return the results of a replay."""
    compiled = tg.compile(module)
    for _ in range(2):
        compiled(tg.ones(2, 6))
    found = compiled(tg.ones(2, 6))
    assert found[0].grad_fn.name() == f"Replay({type(module).__name__})"
    return found


def test_each_result_has_a_backward_pass_of_its_own():
    left, right = replayed(Heads())
    left.sum().backward()
    right.sum().backward()
    with pytest.raises(AutogradError, match="freed"):
        left.sum().backward()


def test_a_graph_that_is_kept_runs_again():
    module = Heads()
    left, right = replayed(module)
    for _ in range(2):
        (left.sum() + right.sum()).backward(retain_graph=True)
    assert (module.right.bias.grad == 4).all()


def test_more_results_than_passes_run_eagerly():
    compiled = tg.compile(nn.Module.__call__)
    module = Heads()
    module.forward = lambda x: [module.left(x) * k for k in range(4)]
    with pytest.warns(UserWarning, match="more than 3 results require grad"):
        for _ in range(2):
            compiled(module, tg.ones(2, 6))

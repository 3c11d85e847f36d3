"""``make_text``: the source of a random function: statements in branches, loops, ``try`` and ``with``."""

from __future__ import annotations

from random import Random
from textwrap import indent

_HEAD = """
def make(tg, F, E):
    o, d, l, net, w, b, opt, numbers, other = E.o, E.d, E.l, E.net, E.w, E.b, E.opt, E.numbers, E.other
    n = 0

    def helper(x, k=2, *, scale=1.5, more=(1, 2)):
        return x * scale + k / len(more)

    def half(x):
        return x if not x.abs().mean() > 0.5 else half(x * 0.5)

    def power(x, k):
        return x if k == 0 else power(x * 0.75, k - 1) + k

    def parts(x):
        for scale in (0.5, 0.25):
            x = x * scale
            yield x

    def weighed(x):
        return x * (1 + int((x > 0.5).sum()) % 2)

    def count():
        nonlocal n
        n += 1
        return n

    @E.once
    def table(length):
        return tg.arange(length).float().unsqueeze(1)

    def run(x, y, k=1, *, flag=True):
        nonlocal n
"""
_LINES = [
    "x = x * 1.5 + 0.25",
    "x = (x @ w).tanh()",
    "x = F.linear(x, w, b).relu() - 0.1",
    "x = net(x)",
    "x = net(x) if flag else x",
    "x = helper(x, 3)",
    "x = helper(x, scale=0.5, **d['options'])",
    "x = half(x)",
    "x = power(x, 3)",
    "x = weighed(x)",
    "x = x * k",
    "x = x * (1 if x.sum() > 0 else 0.5)",
    "x = -x if (m := x.mean()) > 0.2 else x + m",
    "x = x + sum((x * each).mean() for each in l)",
    "x = tg.stack([x * each for each in (1, 2)]).mean(0)",
    "x = sum(parts(x)) / 2",
    "x = {'x': x, **d}['x'] * 2",
    "x = x + d.get('mean', 0)",
    "x = x * (n % 3 + 1)",
    "x = x * o.scale",
    "x = x + getattr(o, 'extra', 0)",
    "if o.kept is not None and o.kept.shape == x.shape:\n    x = x + o.kept",
    "v = x.clone()\nv[:1].mul_(0.5)\nx = v + 1",
    "v = x * 1\nv[..., ::2] += 0.5\nif v.sum() > 0:\n    v[:1] = 0\nv.t()[0].add_(1)\nx = v",
    "x = x.double().sin().float()",
    "x = x.half().float()",
    "x = tg.cat([x, x[:0]]) + x[:0].sum()",
    "x = x + x.sum().tanh()",
    "x = x.t().contiguous().t()",
    "x = x.flip(0)[: len(x)]",
    "x = x.expand(2, *x.shape)[1]",
    "x = x[[int(each) for each in y.tolist()]]",
    "x = F.dropout(x, 0.3)",
    "x = x + float(numbers[0])",
    "with tg.no_grad():\n    w.mul_(0.99)",
    "with tg.no_grad():\n    x = x * w.sum() + 1",
    "x = table(len(x)) * x",
    "x = other(x)",
    "x = x * GLOBAL",
    "try:\n    x = x[y + d['shift']]\nexcept IndexError:\n    x = x * 0.5",
    "if x.mean() > 0.9:\n    raise ValueError(n)",
    "if x.mean() > 0.6:\n    return x.detach()",
    "if len(x) > 2 and flag:\n    x = x * 2",
    "assert x.ndim == 2",
]
_EFFECTS = [  # rare: lines that run eagerly
    "d['seen'] = d.get('seen', 0) + 1",
    "d['mean'] = x.detach().mean()",
    "l.append(0.5)\ndel l[:-2]",
    "n = (n + 1) % 3",
    "x = x * (count() % 3)",
    "o.calls += 1",
    "o.kept = x.detach() * 0.5",
    "x = x + x.detach().mean().clamp(-1, 1).round().item()",
    "with tg.autocast('cpu'):\n    x = x @ w\nx = x.float()",
]
_BLOCKS = [
    "if x.sum() > {c}:\n{body}",
    "if x.sum() > {c}:\n{body}\nelse:\n{rest}",
    "if o.flag:\n{body}\nelif k > 1:\n{rest}",
    "for i in range({k}):\n{body}",
    "for scale in list(l):\n{body}\n    x = x * scale",
    "turn{depth} = 0\nwhile x.abs().mean() > 0.5 and turn{depth} < 4:\n{body}\n    x, turn{depth} = x * 0.4, turn{depth} + 1",
    "with tg.enable_grad():\n{body}",
    "with tg.no_grad():\n{body}",
    "try:\n{body}\nexcept (ValueError, IndexError):\n    x = x * 0.5",
    "try:\n{body}\nfinally:\n    o.flag = not o.flag",
]
_STEP = "loss = x.square().mean()\nopt.zero_grad()\nif loss.requires_grad:\n    loss.backward()\n    opt.step()\n"
_ENDS = [
    "return x",
    "return x.detach()",
    "return {'x': x.detach(), 'rows': [x.detach()[0]], 'k': k}",
    _STEP + "return loss.detach()",
    _STEP + "return loss.item()",
    _STEP + "l[0] = loss.item()\nreturn x.detach()",
    _STEP + "return loss.detach(), [None if each.grad is None else each.grad.norm() for each in (w, b)]",
]


def make_text(random: Random) -> str:
    """Return the source of a function ``make(tg, F, E)`` that makes a function from what ``E`` holds.

    Args:
        random: chooses.
    """
    body = "\n".join(_statement(random, 0) for _ in range(random.randrange(2, 7)))
    body += "\n" + random.choice(_ENDS)
    return _HEAD + indent(body, " " * 8) + "\n\n    return run\n"


def _statement(random: Random, depth: int) -> str:
    if depth == 2 or random.random() < 0.7:
        return random.choice(_EFFECTS if random.random() < 0.05 else _LINES)

    def inside() -> str:
        return indent("\n".join(_statement(random, depth + 1) for _ in range(random.randrange(1, 4))), "    ")

    form = random.choice(_BLOCKS)
    return form.format(
        body=inside(), rest=inside(), c=random.choice([-1, 0, 1.5]), k=random.randrange(1, 4), depth=depth
    )

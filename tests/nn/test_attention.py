"""Attention and transformers give PyTorch's numbers (tests/golden/record_attention.py), and their gradients are right twice."""

import numpy as np
import pytest
import telegrad as tg
from helpers.golden import TOLERANCES, assert_close, largest, numbers, recorded, tensors_in
from telegrad import nn

GOLDEN = recorded("attention")
L, S, N, E = 3, 4, 2, 4


def mask(name, dtype="float64"):
    if name == "padding":
        return tg.tensor([[False, False, False, True], [False, True, False, False]])
    if name == "hidden":
        rows = [[False, True, False, False], [True, False, False, True], [False, False, False, False]]
        return tg.tensor(rows)
    if name == "nowhere":
        return tg.tensor([[False, True, False, False], [True] * 4, [False] * 4])
    if name == "numbers":
        return numbers(9, L, S, dtype=dtype)
    return nn.Transformer.generate_square_subsequent_mask(L, dtype=dtype)


def check(case, outputs, inputs, dtype, module=None):
    for output, expected in zip(outputs, case["outputs"], strict=True):
        assert_close(output, expected, TOLERANCES[dtype], largest(expected))
    sum(
        (output * numbers(seed + 40, *output.shape, dtype=dtype)).sum() for seed, output in enumerate(outputs)
    ).backward()
    # Gradients that cancel are as exact as the largest one beside them.
    scale = largest(*case["inputs"])
    for tensor, expected in zip(inputs, case["inputs"]):
        assert_close(tensor.grad, expected, TOLERANCES[dtype], max(scale, largest(expected)))
    for name, parameter in module.named_parameters() if module is not None else ():
        expected = case["parameters"][name]
        assert_close(parameter.grad, expected, TOLERANCES[dtype], max(scale, largest(expected)))


def build(name, options):
    if name in ("TransformerEncoder", "TransformerDecoder"):
        return getattr(nn, name)(getattr(nn, f"{name}Layer")(**options), 2, nn.LayerNorm(E))
    return getattr(nn, name)(**options)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("case", GOLDEN["modules"], ids=lambda case: f"{case['name']}-{'-'.join(case['extra'])}")
def test_modules(case, dtype):
    module = build(case["name"], case["options"]).to(dtype=dtype)
    assert {name for name, _ in module.named_parameters()} == case["parameters"].keys()
    for seed, parameter in enumerate(module.parameters(), 20):
        parameter.data = numbers(seed, *parameter.shape, dtype=dtype) * 0.8
    inputs = [numbers(seed, *shape, dtype=dtype).requires_grad_() for seed, shape in enumerate(case["shapes"], 1)]
    given = {key: mask(value, dtype) if isinstance(value, str) else value for key, value in case["extra"].items()}
    alike = 3 if case["name"] == "MultiheadAttention" and len(inputs) == 1 else 1
    check(case, tensors_in(module(*inputs * alike, **given)), inputs, dtype, module)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("case", GOLDEN["attentions"], ids=lambda case: f"{case['options']}-{case['mask']}")
def test_scaled_dot_product_attention(case, dtype):
    inputs = [numbers(seed, *shape, dtype=dtype).requires_grad_() for seed, shape in enumerate(case["shapes"], 1)]
    if case["mask"] == "learned":
        chosen = inputs[3]
    else:
        chosen = None if case["mask"] is None else mask(case["mask"], dtype)
        chosen = ~chosen if case["mask"] in ("hidden", "nowhere") else chosen
    output = nn.functional.scaled_dot_product_attention(*inputs[:3], attn_mask=chosen, **case["options"])
    check(case, [output], inputs, dtype)


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"attn_mask": numbers(9, L, S)}], ids=str)
def test_gradients_of_attention_are_right_twice(options):
    inputs = [numbers(seed, *shape).requires_grad_() for seed, shape in enumerate([(2, L, 2), (2, S, 2), (2, S, 3)])]

    def attend(*given):
        return nn.functional.scaled_dot_product_attention(*given, **options)

    assert tg.autograd.gradcheck(attend, inputs)
    assert tg.autograd.gradgradcheck(attend, inputs)


def test_dropout_hides_weights_while_training():
    tg.manual_seed(0)
    module = nn.MultiheadAttention(E, 2, dropout=0.5)
    x = tg.ones(L, N, E)
    assert not bool((module(x, x, x)[0] == module(x, x, x)[0]).all())
    module.eval()
    assert bool((module(x, x, x)[0] == module(x, x, x)[0]).all())
    assert module(x, x, x, need_weights=False)[1] is None


def test_who_sees_nothing_gets_nan_beside_weights_and_zero_without():
    module = nn.MultiheadAttention(E, 2)
    x, blind = tg.ones(L, N, E), tg.ones(N, L, dtype=bool)
    out, weights = module(x, x, x, key_padding_mask=blind)
    assert bool(out.isnan().all()) and bool(weights.isnan().all())
    # The projection of 0: its bias, which starts at 0.
    assert bool((module(x, x, x, key_padding_mask=blind, need_weights=False)[0] == 0).all())


def test_dropped_weights_are_those_that_were_used_and_gradients_too():
    query, key, value = (numbers(seed, 2, L, E).requires_grad_() for seed in range(3))

    def attend(query, key, value):
        tg.manual_seed(3)
        return nn.functional.scaled_dot_product_attention(query, key, value, dropout_p=0.5)

    assert tg.autograd.gradcheck(attend, (query, key, value))
    assert tg.autograd.gradgradcheck(attend, (query, key, value))
    tg.manual_seed(0)
    module = nn.MultiheadAttention(E, 1, dropout=0.5, dtype="float64")
    for weight, values in ((module.in_proj_weight, np.tile(np.eye(E), (3, 1))), (module.out_proj.weight, np.eye(E))):
        weight.data = tg.tensor(values)
    x = numbers(1, L, 1, E)
    out, weights = module(x, x, x)
    assert bool((weights == 0).any())
    np.testing.assert_allclose((weights @ x.transpose(0, 1)).numpy(force=True), out.transpose(0, 1).numpy(force=True))


@pytest.mark.parametrize(
    "inputs, options, error, message",
    [
        ([(2, L, E)] * 3, {"attn_mask": tg.ones(L, L, dtype="int64")}, TypeError, "booleans or of floating point"),
        ([(2, L, E)] * 3, {"attn_mask": tg.ones(S, L)}, ValueError, "mask of shape .* does not fit scores"),
        ([(2, L, E)] * 3, {"attn_mask": tg.ones(L, L), "is_causal": True}, ValueError, "two masks"),
        ([(2, L, E)] * 3, {"dropout_p": 1.5}, ValueError, "probability between 0 and 1"),
        ([(1, 3, L, E), (1, 2, L, E), (1, 2, L, E)], {"enable_gqa": True}, ValueError, "divide the query's evenly"),
    ],
)
def test_misuse_of_attention_is_told(inputs, options, error, message):
    with pytest.raises(error, match=message):
        nn.functional.scaled_dot_product_attention(*(tg.ones(*shape) for shape in inputs), **options)


def test_inputs_of_two_dtypes_are_refused():
    x = tg.ones(1, L, E)
    with pytest.raises(TypeError, match="one dtype"):
        nn.functional.scaled_dot_product_attention(x, x.double(), x)


@pytest.mark.parametrize(
    "act, message",
    [
        (lambda: nn.MultiheadAttention(5, 2), "positive multiple of num_heads"),
        (
            lambda: nn.MultiheadAttention(4, 2)(tg.ones(3, 1, 5), *[tg.ones(3, 1, 4)] * 2),
            "query must have 4 features",
        ),
        (
            lambda: nn.MultiheadAttention(4, 2)(*[tg.ones(3, 1, 4)] * 3, attn_mask=tg.zeros(2, 2)),
            "attn_mask must have shape",
        ),
        (
            lambda: nn.MultiheadAttention(4, 2)(*[tg.ones(3, 1, 4)] * 3, tg.zeros(3, 1)),
            "key_padding_mask must have shape",
        ),
        (lambda: nn.MultiheadAttention(4, 2)(*[tg.ones(3, 1, 4)] * 3, is_causal=True), "give attn_mask too"),
        (lambda: nn.MultiheadAttention(4, 2)(*[tg.ones(n, 1, 4) for n in (3, 5, 4)]), "must have one length"),
        (
            lambda: nn.MultiheadAttention(4, 2, kdim=3)(*[tg.ones(3, 1, 4)] * 3),
            "key must have 3 features, and has 4",
        ),
        (lambda: nn.TransformerEncoderLayer(4, 2, activation="sin"), 'must be "relu", "gelu" or a function'),
        (lambda: nn.Transformer(4, 2, 1, 1)(tg.ones(3, 2, 4), tg.ones(3, 1, 4)), "as many sources as targets"),
        (
            lambda: nn.functional.scaled_dot_product_attention(tg.ones(2, 3), tg.ones(2, 4), tg.ones(2, 3)),
            "needs a query",
        ),
    ],
)
def test_misuse_is_told(act, message):
    with pytest.raises(ValueError, match=message):
        act()


def test_the_function_of_several_heads_takes_weights_together_or_apart():
    layer = nn.MultiheadAttention(4, 2)
    q, k = tg.randn(3, 2, 4), tg.randn(5, 2, 4)
    together = (
        layer.in_proj_weight,
        layer.in_proj_bias,
        None,
        None,
        False,
        0.0,
        layer.out_proj.weight,
        layer.out_proj.bias,
    )
    apart = dict(zip(("q_proj_weight", "k_proj_weight", "v_proj_weight"), tg.chunk(layer.in_proj_weight, 3)))
    attend = nn.functional.multi_head_attention_forward
    expected = layer(q, k, k)
    for found in (
        attend(q, k, k, 4, 2, *together),
        attend(q, k, k, 4, 2, None, *together[1:], use_separate_proj_weight=True, **apart),
    ):
        assert all((one == other).all() for one, other in zip(found, expected))
    with pytest.raises(ValueError, match="no projection of the query"):
        attend(q, k, k, 4, 2, None, *together[1:])
    with pytest.raises(ValueError, match="static_k"):
        attend(q, k, k, 4, 2, *together, static_k=k)
    with pytest.raises(ValueError, match="embed_dim_to_check=6"):
        attend(q, k, k, 6, 2, *together)

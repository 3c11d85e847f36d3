"""Records PyTorch's attention and transformers, for tests/nn/test_attention.py."""

import torch
from torch import nn
from values import flat, numbers

torch.set_default_dtype(torch.float64)
L, S, N, E = 3, 4, 2, 4
SMALL = {"dim_feedforward": 5, "dropout": 0.0}

# Module, arguments, shapes of the inputs, keyword inputs by the names below.
CASES = [
    ("MultiheadAttention", {"embed_dim": E, "num_heads": 2}, [(L, N, E), (S, N, E), (S, N, E)], {}),
    (
        "MultiheadAttention",
        {"embed_dim": E, "num_heads": 1, "batch_first": True, "bias": False},
        [(N, L, E), (N, S, E), (N, S, E)],
        {"key_padding_mask": "padding", "average_attn_weights": False},
    ),
    (
        "MultiheadAttention",
        {"embed_dim": E, "num_heads": 2, "kdim": 3, "vdim": 2},
        [(L, N, E), (S, N, 3), (S, N, 2)],
        {"attn_mask": "hidden"},
    ),
    (
        "MultiheadAttention",
        {"embed_dim": E, "num_heads": 2, "add_bias_kv": True, "add_zero_attn": True},
        [(L, N, E), (S, N, E), (S, N, E)],
        {"attn_mask": "numbers", "key_padding_mask": "padding"},
    ),
    ("MultiheadAttention", {"embed_dim": E, "num_heads": 2}, [(L, E), (S, E), (S, E)], {}),
    ("MultiheadAttention", {"embed_dim": E, "num_heads": 2, "batch_first": True}, [(N, L, E)], {"need_weights": True}),
    (
        "MultiheadAttention",
        {"embed_dim": E, "num_heads": 2},
        [(L, N, E), (S, N, E), (S, N, E)],
        {"attn_mask": "nowhere", "need_weights": False},
    ),
    ("TransformerEncoderLayer", {"d_model": E, "nhead": 2, **SMALL}, [(L, N, E)], {}),
    (
        "TransformerEncoderLayer",
        {"d_model": E, "nhead": 2, **SMALL, "norm_first": True, "activation": "gelu", "batch_first": True},
        [(N, L, E)],
        {"src_mask": "causal"},
    ),
    (
        "TransformerEncoderLayer",
        {"d_model": E, "nhead": 2, **SMALL, "bias": False},
        [(S, N, E)],
        {"src_key_padding_mask": "padding"},
    ),
    ("TransformerEncoder", {"d_model": E, "nhead": 2, **SMALL}, [(L, N, E)], {"mask": "causal", "is_causal": True}),
    ("TransformerDecoder", {"d_model": E, "nhead": 2, **SMALL}, [(L, N, E), (S, N, E)], {"memory_mask": "numbers"}),
    ("TransformerDecoderLayer", {"d_model": E, "nhead": 2, **SMALL}, [(L, N, E), (S, N, E)], {"tgt_mask": "causal"}),
    (
        "TransformerDecoderLayer",
        {"d_model": E, "nhead": 2, **SMALL, "norm_first": True},
        [(L, N, E), (S, N, E)],
        {"memory_mask": "hidden", "memory_key_padding_mask": "padding"},
    ),
    (
        "Transformer",
        {"d_model": E, "nhead": 2, "num_encoder_layers": 2, "num_decoder_layers": 1, **SMALL},
        [(S, N, E), (L, N, E)],
        {"tgt_mask": "causal"},
    ),
]
ATTENTIONS = [
    ({}, [(N, L, E), (N, S, E), (N, S, 3)], None),
    ({"is_causal": True}, [(N, 2, L, E), (N, 2, S, E), (N, 2, S, 3)], None),
    ({"scale": 0.3}, [(N, L, E), (N, S, E), (N, S, 3)], "hidden"),
    ({}, [(N, L, E), (N, S, E), (N, S, 3)], "numbers"),
    ({}, [(N, L, E), (N, S, E), (N, S, 3)], "nowhere"),
    ({}, [(N, L, E), (N, S, E), (N, S, 3), (L, S)], "learned"),
    ({"enable_gqa": True}, [(N, 4, L, E), (N, 2, S, E), (N, 2, S, 3)], None),
]


MASKS = {
    "padding": torch.tensor([[False, False, False, True], [False, True, False, False]]),
    "hidden": torch.tensor([[False, True, False, False], [True, False, False, True], [False, False, False, False]]),
    "nowhere": torch.tensor([[False, True, False, False], [True, True, True, True], [False, False, False, False]]),
    "numbers": numbers(9, L, S),
    "causal": nn.Transformer.generate_square_subsequent_mask(L, dtype=torch.float64),
}


def finish(case, outputs, inputs, named=()):
    sum((output * numbers(seed + 40, *output.shape)).sum() for seed, output in enumerate(outputs)).backward()
    case["outputs"] = [output.tolist() for output in outputs]
    case["inputs"] = [x.grad.tolist() for x in inputs]
    case["parameters"] = {name: parameter.grad.tolist() for name, parameter in named}
    return case


def build(name, options):
    if name in ("TransformerEncoder", "TransformerDecoder"):
        return getattr(nn, name)(getattr(nn, f"{name}Layer")(**options), 2, nn.LayerNorm(E))
    return getattr(nn, name)(**options)


def record(name, options, shapes, extra):
    module = build(name, options)
    for seed, parameter in enumerate(module.parameters(), 20):
        with torch.no_grad():
            parameter.copy_(numbers(seed, *parameter.shape) * 0.8)
    inputs = [numbers(seed, *shape).requires_grad_() for seed, shape in enumerate(shapes, 1)]
    given = {key: MASKS[value] if isinstance(value, str) else value for key, value in extra.items()}
    # Query, key and value are one where only one shape is named.
    alike = 3 if name == "MultiheadAttention" and len(inputs) == 1 else 1
    outputs = flat(module(*inputs * alike, **given))
    case = {"name": name, "options": options, "shapes": shapes, "extra": extra}
    return finish(case, outputs, inputs, module.named_parameters())


def record_attention(options, shapes, mask):
    inputs = [numbers(seed, *shape).requires_grad_() for seed, shape in enumerate(shapes, 1)]
    # Here true means: look.
    looks = {name: ~MASKS[name] for name in ("hidden", "nowhere")}
    chosen = {**MASKS, **looks, "learned": inputs[-1], None: None}[mask]
    outputs = [nn.functional.scaled_dot_product_attention(*inputs[:3], attn_mask=chosen, **options)]
    return finish({"options": options, "shapes": shapes, "mask": mask}, outputs, inputs)


def recorded():
    return {
        "attention": {
            "modules": [record(*case) for case in CASES],
            "attentions": [record_attention(*case) for case in ATTENTIONS],
        }
    }

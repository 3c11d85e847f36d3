"""Entries that are not compared, each with the reason."""

from __future__ import annotations

PRIVATE = "not a public name of PyTorch"
IMPRECISE = "PyTorch's own values are wrong from the seventh digit on where x is above 5 (held against 40 digits)"
GPU = "there is no GPU here: torch computes it on GPUs only"

LEFT_OUT = {
    "_softmax_backward_data": PRIVATE,
    "_native_batch_norm_legit": PRIVATE,
    "_batch_norm_with_update": PRIVATE,
    "_upsample_bilinear2d_aa": PRIVATE,
    "torch._scaled_mm_v2": PRIVATE,
    "torch._scaled_mm": PRIVATE,
    "torch.ops.aten._safe_softmax.default": PRIVATE,
    "torch.ops.aten._flash_attention_forward": PRIVATE,
    "torch.ops.aten._efficient_attention_forward": PRIVATE,
    "_unsafe_masked_index": PRIVATE,
    "_unsafe_masked_index_put_accumulate": PRIVATE,
    "_chunk_cat": PRIVATE,
    "_segment_reduce.lengths": PRIVATE,
    "_segment_reduce.offsets": PRIVATE,
    "slice": PRIVATE,
    "max_pool2d_with_indices_backward": PRIVATE,
    "special.bessel_j0": IMPRECISE,
    "special.bessel_y1": IMPRECISE,
    "jiterator_unary": GPU,
    "jiterator_binary": GPU,
    "jiterator_4inputs_with_extra_args": GPU,
    "jiterator_binary_return_by_ref": GPU,
    "jiterator_2inputs_2outputs": GPU,
}

# Their second result, indices, is one of several where elements are equal; only its shape is compared then.
INDICES_OF_EQUALS = {"sort", "topk", "kthvalue", "mode", "median", "nanmedian"}

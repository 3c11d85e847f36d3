"""Entries and cases that are not compared, each with the reason."""

from __future__ import annotations

PRIVATE = "not a public name of PyTorch"
IMPRECISE = "PyTorch's own values are wrong from the seventh digit on where x is above 5 (held against 40 digits)"
GPU = "there is no GPU here: torch computes it on GPUs only"
CHALF = "complex numbers of two halves, which NumPy does not have: the result is complex64"
SPARSE = "its samples are sparse tensors, which this comparison cannot send"
UNUSED_TRIANGLE = "PyTorch gives gradients to the triangle of the factor that it does not read"
TWO_NUMBERS = "reflected operators are called by Python, which never passes two numbers"
BLOCK = "a building block of another function, which programs do not call"
OBJECT = "its arguments are modules, which this comparison cannot send; its layers are compared"

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
    "nn.functional.batch_norm.without_cudnn": GPU,
    "chalf": CHALF,
    "sparse.sampled_addmm": SPARSE,
    "sparse.mm.reduce": SPARSE,
    "to_sparse": SPARSE,
    "native_layer_norm": BLOCK,
    "native_batch_norm": BLOCK,
    "native_dropout_backward": BLOCK,
    "nn.TransformerEncoder": OBJECT,
    "nn.functional.triplet_margin_with_distance_loss": OBJECT,
}

# Where this library differs on purpose: how the case's note begins, what its outcome says, and the reason.
DIFFERS: dict[str, tuple[str, str, str]] = {
    "cholesky_inverse": ("", "gradient", UNUSED_TRIANGLE),
    "cholesky_solve": ("", "gradient", UNUSED_TRIANGLE),
    "linalg.norm.subgradients_at_zero": ("", "of order 2", "PyTorch's second derivative at 0 is nan; here it is 0"),
    "nn.functional.ctc_loss": ("", "gradient", "PyTorch's gradient is that of scores before log_softmax"),
    "nn.CTCLoss": ("", "gradient", "PyTorch's gradient is that of scores before log_softmax"),
    "as_strided_scatter": ("", "gradient 0", "PyTorch gives the input the gradient of the elements that src replaces"),
    "cov": ("complex128", "of order 2", "the gradient cancels: half of its digits are rounding, in PyTorch too"),
    "__rmod__": ("error input", "two numbers", TWO_NUMBERS),
    "__rpow__": ("error input", "two numbers", TWO_NUMBERS),
    "__rsub__": ("error input", "not NotImplemented", TWO_NUMBERS),
    "gather": ("error input", "dtype float", "out of a wider dtype is written to, as by other operations"),
    "complex": ("error input", "ComplexDouble", "out of a wider dtype is written to, as by other operations"),
    "masked.logaddexp": (
        "float64",
        "of order 2",
        "PyTorch gives nan for the second derivative at -inf, which is 0 here",
    ),
    "optim.Muon": ("", "", "PyTorch orthogonalizes in bfloat16, which leaves two digits"),
    "addbmm": ("form: in place", "cannot write", "PyTorch's addbmm_ enlarges the tensor that it writes to"),
}


def differs(entry: str, note: str, detail: str) -> str | None:
    """Return the reason why a case's outcome differs on purpose; ``None`` if there is none."""
    start, text, reason = DIFFERS.get(entry, ("", "", ""))
    return reason if reason and note.startswith(start) and text in detail else None


# The number of their result that is indices: one choice of several where elements are equal; only its shape is compared then.
INDICES_OF_EQUALS = {"sort": 1, "topk": 1, "kthvalue": 1, "mode": 1, "median": 1, "nanmedian": 1, "argsort": 0}

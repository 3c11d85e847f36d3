"""Records the dtypes of PyTorch's results under autocast on the CPU, for tests/amp/test_autocast.py."""

import warnings

import torch
import torch.nn.functional as F

# Evaluated here and there: m(...) is a tensor of a dtype, pd(n) a positive-definite matrix of it, i(...) integers.
SQUARE = "m(3, 3)"
EXPRESSIONS = [
    # products
    "t.mm(m(3, 3), m(3, 3))",
    "m(3, 3) @ m(3, 3)",
    "t.matmul(m(2, 3, 3), m(3, 3))",
    "t.matmul(m(3), m(3))",
    "t.bmm(m(2, 3, 3), m(2, 3, 3))",
    "t.mv(m(3, 3), m(3))",
    "t.dot(m(3), m(3))",
    "t.vdot(m(3), m(3))",
    "t.inner(m(2, 3), m(2, 3))",
    "t.outer(m(3), m(3))",
    "t.kron(m(2, 2), m(2, 2))",
    "t.addmm(m(3, 3), m(3, 3), m(3, 3))",
    "t.addmv(m(3), m(3, 3), m(3))",
    "t.addr(m(3, 3), m(3), m(3))",
    "t.addbmm(m(3, 3), m(2, 3, 3), m(2, 3, 3))",
    "t.baddbmm(m(2, 3, 3), m(2, 3, 3), m(2, 3, 3))",
    "t.einsum('ij,jk->ik', m(3, 3), m(3, 3))",
    "t.tensordot(m(3, 3), m(3, 3), 1)",
    "t.chain_matmul(m(3, 3), m(3, 3), m(3, 3))",
    "t.linalg.multi_dot([m(3, 3), m(3, 3), m(3, 3)])",
    "t.linalg.vecdot(m(3, 3), m(3, 3))",
    "t.linalg.matmul(m(3, 3), m(3, 3))",
    "t.linalg.matrix_power(m(3, 3), 2)",
    "t.cross(m(3), m(3), -1)",
    "t.cdist(m(3, 2), m(4, 2))",
    "F.pdist(m(3, 2))",
    "t.cov(m(3, 4))",
    "t.corrcoef(m(3, 4))",
    # layers
    "F.linear(m(2, 3), m(4, 3), m(4))",
    "F.bilinear(m(2, 3), m(2, 3), m(4, 3, 3))",
    "F.conv1d(m(1, 2, 8), m(3, 2, 3))",
    "F.conv2d(m(1, 2, 8, 8), m(3, 2, 3, 3), m(3))",
    "F.conv3d(m(1, 2, 4, 4, 4), m(3, 2, 3, 3, 3))",
    "F.conv_transpose1d(m(1, 2, 8), m(2, 3, 3))",
    "F.conv_transpose2d(m(1, 2, 8, 8), m(2, 3, 3, 3))",
    "F.conv_transpose3d(m(1, 2, 4, 4, 4), m(2, 3, 3, 3, 3))",
    "F.prelu(m(2, 3), m(3))",
    "F.scaled_dot_product_attention(m(1, 2, 3, 4), m(1, 2, 3, 4), m(1, 2, 3, 4))",
    "F.embedding(i(2), m(3, 4))",
    "F.layer_norm(m(2, 3), (3,))",
    "F.group_norm(m(2, 4, 3), 2)",
    "F.instance_norm(m(2, 4, 3))",
    "F.batch_norm(m(4, 3), None, None, training=True)",
    "F.rms_norm(m(2, 3), (3,))",
    "F.local_response_norm(m(2, 4, 3), 2)",
    "F.normalize(m(2, 3))",
    "F.cosine_similarity(m(2, 3), m(2, 3))",
    "F.pairwise_distance(m(2, 3), m(2, 3))",
    "F.dropout(m(2, 3), 0.5)",
    "F.unfold(m(1, 2, 4, 4), 2)",
    "F.fold(m(1, 8, 9), (4, 4), 2)",
    # activations
    *(
        f"F.{name}(m(2, 3))"
        for name in ("relu", "gelu", "silu", "mish", "elu", "selu", "celu", "leaky_relu", "softplus")
    ),
    *(
        f"F.{name}(m(2, 3))"
        for name in ("hardswish", "hardsigmoid", "hardtanh", "logsigmoid", "softsign", "tanhshrink")
    ),
    "F.softmax(m(2, 3), -1)",
    "F.log_softmax(m(2, 3), -1)",
    "F.softmin(m(2, 3), -1)",
    "F.glu(m(2, 4))",
    # losses
    "F.mse_loss(m(2, 3), m(2, 3))",
    "F.l1_loss(m(2, 3), m(2, 3))",
    "F.smooth_l1_loss(m(2, 3), m(2, 3))",
    "F.huber_loss(m(2, 3), m(2, 3))",
    "F.nll_loss(m(2, 3), i(2))",
    "F.nll_loss(m(2, 3, 2, 2), i(2, 2, 2))",
    "F.cross_entropy(m(2, 3), i(2))",
    "F.cross_entropy(m(2, 3), m(2, 3))",
    "F.kl_div(m(2, 3), m(2, 3), reduction='batchmean')",
    "F.binary_cross_entropy(m(2, 3), m(2, 3))",
    "F.binary_cross_entropy_with_logits(m(2, 3), m(2, 3))",
    "F.poisson_nll_loss(m(2, 3), m(2, 3))",
    "F.gaussian_nll_loss(m(2, 3), m(2, 3), m(2, 3))",
    "F.soft_margin_loss(m(2, 3), m(2, 3))",
    "F.multi_margin_loss(m(2, 3), i(2))",
    "F.multilabel_margin_loss(m(2, 3), i(2, 3))",
    "F.multilabel_soft_margin_loss(m(2, 3), m(2, 3))",
    "F.hinge_embedding_loss(m(2, 3), m(2, 3))",
    "F.cosine_embedding_loss(m(2, 3), m(2, 3), m(2))",
    "F.margin_ranking_loss(m(2), m(2), m(2))",
    "F.triplet_margin_loss(m(2, 3), m(2, 3), m(2, 3))",
    "F.ctc_loss(F.log_softmax(m(5, 1, 3), -1), i(1, 2), [5], [2])",
    # pooling, padding, resampling
    "F.max_pool1d(m(1, 2, 4), 2)",
    "F.max_pool2d(m(1, 2, 4, 4), 2)",
    "F.max_pool3d(m(1, 2, 4, 4, 4), 2)",
    "F.avg_pool1d(m(1, 2, 4), 2)",
    "F.avg_pool2d(m(1, 2, 4, 4), 2)",
    "F.avg_pool3d(m(1, 2, 4, 4, 4), 2)",
    "F.lp_pool2d(m(1, 2, 4, 4), 2, 2)",
    "F.adaptive_avg_pool1d(m(1, 2, 4), 2)",
    "F.adaptive_avg_pool2d(m(1, 2, 4, 4), 2)",
    "F.adaptive_avg_pool3d(m(1, 2, 4, 4, 4), 2)",
    "F.adaptive_max_pool1d(m(1, 2, 4), 2)",
    "F.adaptive_max_pool2d(m(1, 2, 4, 4), 2)",
    "F.adaptive_max_pool3d(m(1, 2, 4, 4, 4), 2)",
    "F.max_unpool1d(m(1, 1, 2), i(1, 1, 2), 2)",
    "F.max_unpool2d(m(1, 1, 2, 2), i(1, 1, 2, 2), 2)",
    "F.max_unpool3d(m(1, 1, 2, 2, 2), i(1, 1, 2, 2, 2), 2)",
    "F.pad(m(1, 2, 4), (1, 1))",
    "F.pad(m(1, 2, 4), (1, 1), mode='reflect')",
    "F.pad(m(1, 2, 4, 4), (1, 1, 1, 1), mode='reflect')",
    "F.pad(m(1, 2, 4, 4, 4), (1, 1, 1, 1, 1, 1), mode='reflect')",
    "F.pad(m(1, 2, 4), (1, 1), mode='replicate')",
    "F.pad(m(1, 2, 4, 4), (1, 1, 1, 1), mode='replicate')",
    "F.pad(m(1, 2, 4, 4, 4), (1, 1, 1, 1, 1, 1), mode='replicate')",
    "F.pad(m(1, 2, 4), (1, 1), mode='circular')",
    *(f"F.interpolate(m(1, 2, 4), 6, mode='{mode}')" for mode in ("nearest", "linear")),
    *(f"F.interpolate(m(1, 2, 4, 4), 6, mode='{mode}')" for mode in ("nearest", "bilinear", "bicubic", "area")),
    "F.interpolate(m(1, 2, 4, 4, 4), 6, mode='trilinear')",
    "F.grid_sample(m(1, 2, 4, 4), m(1, 3, 3, 2))",
    "F.affine_grid(m(1, 2, 3), (1, 2, 4, 4))",
    "F.pixel_shuffle(m(1, 4, 2, 2), 2)",
    # reductions
    *(
        f"t.{name}(m(2, 3))"
        for name in ("sum", "mean", "prod", "var", "std", "norm", "median", "amax", "logsumexp_", "trace_")[:8]
    ),
    "t.logsumexp(m(2, 3), 0)",
    "t.cumsum(m(3), 0)",
    "t.cumprod(m(3), 0)",
    "t.trace(m(3, 3))",
    "t.quantile(m(4), q(0.5))",
    "t.nanquantile(m(4), q(0.5))",
    "t.renorm(m(2, 3), 2, 0, 1.0)",
    # element by element
    *(
        f"t.{name}(m(2, 3))"
        for name in ("exp", "log", "sqrt", "rsqrt", "sin", "tanh", "sigmoid", "erf", "erfinv", "lgamma")
    ),
    *(f"t.{name}(m(2, 3), m(2, 3))" for name in ("add", "mul", "div", "pow", "atan2", "hypot", "fmod", "maximum")),
    "t.addcmul(m(3), m(3), m(3))",
    "t.addcdiv(m(3), m(3), m(3))",
    "t.lerp(m(3), m(3), 0.5)",
    "t.where(m(3) > 0.5, m(3), m(3))",
    "t.polar(m(3), m(3))",
    "t.complex(m(3), m(3))",
    "t.view_as_complex(m(3, 2))",
    # linear algebra
    "t.cholesky_inverse(t.eye(3, dtype=dtype))",
    "t.cholesky_solve(m(3, 3), t.eye(3, dtype=dtype))",
    "t.inverse(pd(3))",
    "t.linalg.inv(pd(3))",
    "t.pinverse(pd(3))",
    "t.linalg.pinv(pd(3))",
    "t.cholesky(pd(3))",
    "t.linalg.cholesky(pd(3))",
    "t.det(pd(3))",
    "t.logdet(pd(3))",
    "t.slogdet(pd(3))[1]",
    "t.linalg.det(pd(3))",
    "t.linalg.slogdet(pd(3))[1]",
    "t.linalg.eigvalsh(pd(3))",
    "t.linalg.eigh(pd(3))[0]",
    "t.linalg.eigvals(pd(3))",
    "t.linalg.eig(pd(3))[0]",
    "t.linalg.svdvals(pd(3))",
    "t.linalg.svd(pd(3))[1]",
    "t.svd(pd(3))[1]",
    "t.linalg.qr(pd(3))[0]",
    "t.qr(pd(3))[0]",
    "t.geqrf(pd(3))[0]",
    "t.linalg.householder_product(pd(3), m(3))",
    "t.linalg.solve(pd(3), m(3, 3))",
    "t.linalg.solve_triangular(pd(3), m(3, 3), upper=True)",
    "t.triangular_solve(m(3, 3), pd(3))[0]",
    "t.linalg.lstsq(pd(3), m(3, 3))[0]",
    "t.linalg.lu_factor(pd(3))[0]",
    "t.linalg.lu(pd(3))[1]",
    "t.linalg.norm(m(3, 3))",
    "t.linalg.vector_norm(m(3, 3))",
    "t.linalg.matrix_norm(m(3, 3))",
    "t.linalg.matrix_norm(m(3, 3), 2)",
    "t.linalg.cond(pd(3))",
    "t.linalg.matrix_rank(pd(3))",
    "t.linalg.matrix_exp(m(3, 3))",
    "t.matrix_exp(m(3, 3))",
    "t.linalg.tensorinv(pd(4).reshape(2, 2, 2, 2))",
    "t.linalg.tensorsolve(pd(4).reshape(2, 2, 4), m(2, 2))",
    "t.linalg.ldl_factor(pd(3))[0]",
    # Fourier transforms
    *(f"t.fft.{name}(m(4))" for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")),
    *(f"t.fft.{name}(m(4, 4))" for name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")),
    "t.stft(m(16), 4, return_complex=True)",
    # joining, and operands of two dtypes
    "t.cat([m(2), w(2)])",
    "t.stack([m(2), w(2)])",
    "t.hstack([m(2), w(2)])",
    "t.vstack([m(2), w(2)])",
    "t.index_copy(m(3), 0, i(1), w(1))",
    "m(2, 3) + w(2, 3)",
    "t.mm(m(3, 3), w(3, 3))",
    "F.mse_loss(m(2, 3), w(2, 3))",
    # modules
    "t.nn.Linear(3, 2)(m(2, 3))",
    "t.nn.LSTM(3, 2)(m(4, 1, 3))[0]",
    "t.nn.GRU(3, 2)(m(4, 1, 3))[0]",
    "t.nn.RNN(3, 2)(m(4, 1, 3))[0]",
    "t.nn.LSTMCell(3, 2)(m(1, 3))[0]",
    "t.nn.GRUCell(3, 2)(m(1, 3))",
    "t.nn.RNNCell(3, 2)(m(1, 3))",
    "t.nn.MultiheadAttention(4, 2)(m(3, 1, 4), m(3, 1, 4), m(3, 1, 4))[0]",
    "t.nn.TransformerEncoderLayer(4, 2, 8)(m(3, 1, 4))",
    "t.nn.Sequential(t.nn.Conv2d(1, 2, 3), t.nn.BatchNorm2d(2), t.nn.ReLU())(m(1, 1, 5, 5))",
    "t.nn.Embedding(3, 2)(i(2))",
]


def evaluated(library, functional, expression, dtype, wide, double=None):
    """Return the result's dtype, or the class of the error."""

    def m(*shape):
        count = 1
        for length in shape:
            count *= length
        return library.linspace(0.1, 0.9, count, dtype=library.float32).reshape(shape).to(dtype)

    names = {
        "t": library,
        "F": functional,
        "dtype": dtype,
        "m": m,
        "q": lambda x: library.tensor(x, dtype=dtype),
        "w": lambda *shape: m(*shape).to(wide),
        "i": lambda *shape: library.zeros(shape, dtype=library.int64),
        "pd": lambda n: (library.eye(n) + 0.1).to(dtype),
    }
    return eval(expression, names)


def record(expression, amp, dtype, wide):
    try:
        with torch.autocast("cpu", amp), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = evaluated(torch, F, expression, dtype, wide)
    except (RuntimeError, NotImplementedError, TypeError, ValueError):
        return None
    return str(result.dtype).removeprefix("torch.")


def recorded():
    cases = []
    for expression in EXPRESSIONS:
        entry = {"code": expression}
        for amp in ("bfloat16", "float16"):
            low = getattr(torch, amp)
            entry[amp] = {
                "float32": record(expression, low, torch.float32, low),
                amp: record(expression, low, low, torch.float32),
                "float64": record(expression, low, torch.float64, low),
            }
        cases.append(entry)
    return {"amp": {"cases": cases}}

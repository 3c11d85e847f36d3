"""Functions of ``telegrad.masked``: written by ``python -m telegrad.core.signatures.write``; do not edit."""

from ..ops.reduce.masked import masked_amax as amax
from ..ops.reduce.masked import masked_amin as amin
from ..ops.reduce.masked import masked_argmax as argmax
from ..ops.reduce.masked import masked_argmin as argmin
from ..ops.reduce.masked import masked_logsumexp as logsumexp
from ..ops.reduce.masked import masked_mean as mean
from ..ops.reduce.masked import masked_median as median
from ..ops.reduce.masked import masked_norm as norm
from ..ops.reduce.masked import masked_prod as prod
from ..ops.reduce.masked import masked_std as std
from ..ops.reduce.masked import masked_sum as sum
from ..ops.reduce.masked import masked_var as var
from ..ops.reduce.masked_lines import masked_cumprod as cumprod
from ..ops.reduce.masked_lines import masked_cumsum as cumsum
from ..ops.reduce.masked_lines import masked_log_softmax as log_softmax
from ..ops.reduce.masked_lines import masked_logaddexp as logaddexp
from ..ops.reduce.masked_lines import masked_normalize as normalize
from ..ops.reduce.masked_lines import masked_softmax as softmax
from ..ops.reduce.masked_lines import masked_softmin as softmin

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

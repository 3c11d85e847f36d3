"""Operations on all gradients or parameters of a model at once, and on weights before use (``torch.nn.utils``)."""

from . import parametrizations as parametrizations
from . import parametrize as parametrize
from . import prune as prune
from . import rnn as rnn
from . import stateless as stateless
from .averaging import AveragedModel as AveragedModel
from .averaging import get_ema_avg_fn as get_ema_avg_fn
from .averaging import get_ema_multi_avg_fn as get_ema_multi_avg_fn
from .averaging import get_swa_avg_fn as get_swa_avg_fn
from .averaging import get_swa_multi_avg_fn as get_swa_multi_avg_fn
from .averaging import update_bn as update_bn
from .clipping import clip_grad_norm_ as clip_grad_norm_
from .clipping import clip_grad_value_ as clip_grad_value_
from .clipping import clip_grads_with_norm_ as clip_grads_with_norm_
from .clipping import get_total_norm as get_total_norm
from .fusion import fuse_conv_bn_eval as fuse_conv_bn_eval
from .fusion import fuse_conv_bn_weights as fuse_conv_bn_weights
from .fusion import fuse_linear_bn_eval as fuse_linear_bn_eval
from .fusion import fuse_linear_bn_weights as fuse_linear_bn_weights
from .spectral_norm import remove_spectral_norm as remove_spectral_norm
from .spectral_norm import spectral_norm as spectral_norm
from .stateless import functional_call as functional_call
from .vectors import parameters_to_vector as parameters_to_vector
from .vectors import vector_to_parameters as vector_to_parameters
from .weight_norm import remove_weight_norm as remove_weight_norm
from .weight_norm import weight_norm as weight_norm

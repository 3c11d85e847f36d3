"""Computation in mixed precision (``torch.amp``): products of matrices in bfloat16 or float16, losses in float32."""

from .autocast import autocast as autocast
from .autocast import is_autocast_available as is_autocast_available
from .custom_functions import custom_bwd as custom_bwd
from .custom_functions import custom_fwd as custom_fwd
from .grad_scaler import GradScaler as GradScaler
from .state import autocast_decrement_nesting as autocast_decrement_nesting
from .state import autocast_increment_nesting as autocast_increment_nesting
from .state import clear_autocast_cache as clear_autocast_cache
from .state import get_autocast_cpu_dtype as get_autocast_cpu_dtype
from .state import get_autocast_dtype as get_autocast_dtype
from .state import is_autocast_cache_enabled as is_autocast_cache_enabled
from .state import is_autocast_cpu_enabled as is_autocast_cpu_enabled
from .state import is_autocast_enabled as is_autocast_enabled
from .state import set_autocast_cache_enabled as set_autocast_cache_enabled
from .state import set_autocast_cpu_dtype as set_autocast_cpu_dtype
from .state import set_autocast_cpu_enabled as set_autocast_cpu_enabled
from .state import set_autocast_dtype as set_autocast_dtype
from .state import set_autocast_enabled as set_autocast_enabled

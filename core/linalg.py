"""``tg.linalg``: linear algebra under the names of ``torch.linalg``."""

from .ops.decompositions import cholesky as cholesky
from .ops.decompositions import eig as eig
from .ops.decompositions import eigh as eigh
from .ops.decompositions import eigvals as eigvals
from .ops.decompositions import eigvalsh as eigvalsh
from .ops.decompositions import qr as qr
from .ops.decompositions import svdvals as svdvals
from .ops.determinants import det as det
from .ops.determinants import slogdet as slogdet
from .ops.linalg_errors import LinAlgError as LinAlgError
from .ops.matrix_functions import matrix_exp as matrix_exp
from .ops.matrix_functions import matrix_power as matrix_power
from .ops.matrix_functions import multi_dot as multi_dot
from .ops.matrix_norms import cond as cond
from .ops.matrix_norms import matrix_norm as matrix_norm
from .ops.matrix_norms import matrix_rank as matrix_rank
from .ops.matrix_products import matmul as matmul
from .ops.solving import inv as inv
from .ops.solving import lstsq as lstsq
from .ops.solving import pinv as pinv
from .ops.solving import solve as solve
from .ops.triangular import solve_triangular as solve_triangular
from .ops.vector_norms import vector_norm as vector_norm
from .ops.vector_products import tensorinv as tensorinv
from .ops.vector_products import tensorsolve as tensorsolve
from .ops.vector_products import vecdot as vecdot

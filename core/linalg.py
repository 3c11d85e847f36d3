"""``tg.linalg``: linear algebra under the names of ``torch.linalg``."""

from .ops.linalg.checks import LinAlgError
from .ops.linalg.decompositions import cholesky, cholesky_ex
from .ops.linalg.decompositions import linalg_qr as qr
from .ops.linalg.determinants import det, slogdet
from .ops.linalg.eigenvalues import eig, eigh, eigvals, eigvalsh, svdvals
from .ops.linalg.eigenvalues import linalg_svd as svd
from .ops.linalg.householder import householder_product
from .ops.linalg.ldl import ldl_factor, ldl_factor_ex, ldl_solve
from .ops.linalg.lu import linalg_lu as lu
from .ops.linalg.lu import linalg_lu_solve as lu_solve
from .ops.linalg.lu import lu_factor, lu_factor_ex
from .ops.linalg.matrix_functions import matrix_exp, matrix_power, multi_dot
from .ops.linalg.matrix_products import matmul
from .ops.linalg.norms import cond, matrix_norm, matrix_rank
from .ops.linalg.norms import linalg_norm as norm
from .ops.linalg.solving import inv, inv_ex, lstsq, pinv, solve, solve_ex
from .ops.linalg.triangular import solve_triangular
from .ops.linalg.vector_norms import vector_norm
from .ops.linalg.vector_products import linalg_cross as cross
from .ops.linalg.vector_products import linalg_vander as vander
from .ops.linalg.vector_products import tensorinv, tensorsolve, vecdot
from .ops.shape.diagonal import linalg_diagonal as diagonal

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]

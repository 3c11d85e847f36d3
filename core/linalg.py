"""``tg.linalg``: linear algebra under the names of ``torch.linalg``."""

from .ops.decompositions import cholesky, cholesky_ex
from .ops.decompositions import linalg_qr as qr
from .ops.determinants import det, slogdet
from .ops.diagonal import linalg_diagonal as diagonal
from .ops.householder import householder_product
from .ops.ldl import ldl_factor, ldl_factor_ex, ldl_solve
from .ops.linalg_errors import LinAlgError
from .ops.lu import linalg_lu as lu
from .ops.lu import linalg_lu_solve as lu_solve
from .ops.lu import lu_factor, lu_factor_ex
from .ops.matrix_functions import matrix_exp, matrix_power, multi_dot
from .ops.matrix_products import matmul
from .ops.norms import cond, matrix_norm, matrix_rank
from .ops.norms import linalg_norm as norm
from .ops.solving import inv, inv_ex, lstsq, pinv, solve, solve_ex
from .ops.spectra import eig, eigh, eigvals, eigvalsh, svdvals
from .ops.spectra import linalg_svd as svd
from .ops.triangular import solve_triangular
from .ops.vector_norms import vector_norm
from .ops.vector_products import linalg_cross as cross
from .ops.vector_products import linalg_vander as vander
from .ops.vector_products import tensorinv, tensorsolve, vecdot

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

"""Functions of ``telegrad.linalg``: written by ``python -m telegrad.core.signatures.write``; do not edit."""

from ..ops.linalg.checks import LinAlgError as LinAlgError
from ..ops.linalg.decompositions import cholesky as cholesky
from ..ops.linalg.decompositions import cholesky_ex as cholesky_ex
from ..ops.linalg.decompositions import householder_product as householder_product
from ..ops.linalg.decompositions import linalg_qr as qr
from ..ops.linalg.eigenvalues import eig as eig
from ..ops.linalg.eigenvalues import eigh as eigh
from ..ops.linalg.eigenvalues import eigvals as eigvals
from ..ops.linalg.eigenvalues import eigvalsh as eigvalsh
from ..ops.linalg.eigenvalues import linalg_svd as svd
from ..ops.linalg.eigenvalues import svdvals as svdvals
from ..ops.linalg.ldl import ldl_factor as ldl_factor
from ..ops.linalg.ldl import ldl_factor_ex as ldl_factor_ex
from ..ops.linalg.ldl import ldl_solve as ldl_solve
from ..ops.linalg.lu import linalg_lu as lu
from ..ops.linalg.lu import linalg_lu_solve as lu_solve
from ..ops.linalg.lu import lu_factor as lu_factor
from ..ops.linalg.lu import lu_factor_ex as lu_factor_ex
from ..ops.linalg.matrix_functions import det as det
from ..ops.linalg.matrix_functions import matrix_exp as matrix_exp
from ..ops.linalg.matrix_functions import matrix_power as matrix_power
from ..ops.linalg.matrix_functions import multi_dot as multi_dot
from ..ops.linalg.matrix_functions import slogdet as slogdet
from ..ops.linalg.matrix_products import matmul as matmul
from ..ops.linalg.norms import cond as cond
from ..ops.linalg.norms import linalg_norm as norm
from ..ops.linalg.norms import matrix_norm as matrix_norm
from ..ops.linalg.norms import matrix_rank as matrix_rank
from ..ops.linalg.norms import vector_norm as vector_norm
from ..ops.linalg.solving import inv as inv
from ..ops.linalg.solving import inv_ex as inv_ex
from ..ops.linalg.solving import lstsq as lstsq
from ..ops.linalg.solving import pinv as pinv
from ..ops.linalg.solving import solve as solve
from ..ops.linalg.solving import solve_ex as solve_ex
from ..ops.linalg.triangular import solve_triangular as solve_triangular
from ..ops.linalg.vector_products import linalg_cross as cross
from ..ops.linalg.vector_products import linalg_vander as vander
from ..ops.linalg.vector_products import tensorinv as tensorinv
from ..ops.linalg.vector_products import tensorsolve as tensorsolve
from ..ops.linalg.vector_products import vecdot as vecdot
from ..ops.shape.diagonal import linalg_diagonal as diagonal

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

"""Probability distributions: samples, densities, and gradients through both (``torch.distributions``)."""

from . import constraints as constraints
from .bernoulli import Bernoulli as Bernoulli
from .bernoulli import Geometric as Geometric
from .beta import Beta as Beta
from .beta import Dirichlet as Dirichlet
from .categorical import Categorical as Categorical
from .categorical import OneHotCategorical as OneHotCategorical
from .distribution import Distribution as Distribution
from .gamma import Exponential as Exponential
from .gamma import Gamma as Gamma
from .independent import Independent as Independent
from .kl import kl_divergence as kl_divergence
from .kl import register_kl as register_kl
from .laplace import Laplace as Laplace
from .multinomial import Multinomial as Multinomial
from .multivariate_normal import MultivariateNormal as MultivariateNormal
from .normal import LogNormal as LogNormal
from .normal import Normal as Normal
from .poisson import Poisson as Poisson
from .uniform import Uniform as Uniform

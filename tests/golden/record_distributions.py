"""Records PyTorch's densities, entropies, moments and divergences, for tests/distributions/test_distributions.py."""

import torch
from torch import distributions as d

COVARIANCE = [[2.0, 0.5], [0.5, 1.25]]
# Class, parameters, values.
CASES = [
    ("Normal", {"loc": [0.0, -1.5], "scale": [1.0, 0.3]}, [[0.5, -1.0], [-2.0, -1.5]]),
    ("LogNormal", {"loc": [0.0, -1.5], "scale": [1.0, 0.3]}, [[0.5, 0.2], [2.0, 0.25]]),
    ("Uniform", {"low": [0.0, -2.0], "high": [1.0, 3.0]}, [[0.5, -1.0], [0.0, 2.5]]),
    ("Laplace", {"loc": [0.0, 1.0], "scale": [1.0, 0.4]}, [[0.5, 1.0], [-3.0, 2.0]]),
    ("Exponential", {"rate": [1.0, 0.2]}, [[0.5, 4.0], [0.0, 0.1]]),
    ("Gamma", {"concentration": [0.5, 3.0], "rate": [1.0, 2.5]}, [[0.5, 1.0], [2.0, 0.1]]),
    ("Beta", {"concentration1": [0.5, 3.0], "concentration0": [1.5, 2.5]}, [[0.5, 0.1], [0.9, 0.99]]),
    ("Dirichlet", {"concentration": [[0.5, 1.0, 2.0], [3.0, 3.0, 0.2]]}, [[0.2, 0.3, 0.5], [0.7, 0.2, 0.1]]),
    ("Bernoulli", {"probs": [0.1, 0.7]}, [[0.0, 1.0], [1.0, 0.0]]),
    ("Bernoulli", {"logits": [-3.0, 40.0]}, [[0.0, 1.0], [1.0, 0.0]]),
    ("Geometric", {"probs": [0.1, 0.7]}, [[0.0, 1.0], [5.0, 2.0]]),
    ("Categorical", {"probs": [[0.1, 0.2, 0.7], [1.0, 1.0, 2.0]]}, [[0, 2], [1, 1]]),
    ("Categorical", {"logits": [[0.1, -2.0, 3.0], [1.0, 1.0, 2.0]]}, [[0, 2], [1, 1]]),
    ("OneHotCategorical", {"probs": [0.1, 0.2, 0.7]}, [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    ("Multinomial", {"total_count": 4, "probs": [0.1, 0.2, 0.7]}, [[0.0, 1.0, 3.0], [2.0, 2.0, 0.0]]),
    ("Poisson", {"rate": [0.5, 6.0]}, [[0.0, 4.0], [3.0, 9.0]]),
    ("HalfNormal", {"scale": [1.0, 0.3]}, [[0.5, 0.1], [2.0, 0.0]]),
    ("Gumbel", {"loc": [0.0, 1.0], "scale": [1.0, 0.4]}, [[0.5, 1.0], [-1.0, 2.0]]),
    ("Weibull", {"scale": [1.0, 0.3], "concentration": [2.5, 1.5]}, [[0.5, 0.1], [2.0, 0.7]]),
    ("Pareto", {"scale": [1.0, 0.3], "alpha": [6.5, 9.0]}, [[1.5, 0.4], [2.0, 0.7]]),
    ("Chi2", {"df": [3.0, 7.5]}, [[0.5, 4.0], [2.0, 9.0]]),
    ("StudentT", {"df": [5.0, 9.0], "loc": [0.0, 1.0], "scale": [1.0, 0.4]}, [[0.5, 1.0], [-3.0, 2.0]]),
    ("Cauchy", {"loc": [0.0, 1.0], "scale": [1.0, 0.4]}, [[0.5, 1.0], [-30.0, 2.0]]),
    ("MultivariateNormal", {"loc": [0.5, -1.0], "covariance_matrix": COVARIANCE}, [[0.5, 0.1], [-1.0, 2.0]]),
    (
        "MultivariateNormal",
        {"loc": [[0.5, -1.0], [0.0, 0.0]], "precision_matrix": COVARIANCE},
        [[0.5, 0.1], [-1.0, 2.0]],
    ),
    ("MultivariateNormal", {"loc": [0.5, -1.0], "scale_tril": [[1.5, 0.0], [-0.5, 0.25]]}, [[0.5, 0.1], [-1.0, 2.0]]),
    (
        "LowRankMultivariateNormal",
        {"loc": [0.5, -1.0, 2.0], "cov_factor": [[1.5], [-0.5], [0.25]], "cov_diag": [0.5, 1.0, 2.0]},
        [[0.5, 0.1, 1.0], [-1.0, 2.0, 0.0]],
    ),
    (
        "OneHotCategoricalStraightThrough",
        {"logits": [[0.1, -2.0, 3.0], [1.0, 1.0, 2.0]]},
        [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    ),
    ("Binomial", {"total_count": 4, "probs": [0.1, 0.7]}, [[0.0, 1.0], [4.0, 3.0]]),
    ("Binomial", {"total_count": [4.0, 4.0], "logits": [-3.0, 2.0]}, [[0.0, 1.0], [4.0, 3.0]]),
    ("NegativeBinomial", {"total_count": [4.0, 2.5], "probs": [0.1, 0.7]}, [[0.0, 1.0], [7.0, 3.0]]),
    ("NegativeBinomial", {"total_count": 4, "logits": [-3.0, 0.5]}, [[0.0, 1.0], [7.0, 3.0]]),
    ("ContinuousBernoulli", {"probs": [0.1, 0.7]}, [[0.25, 0.0], [1.0, 0.4]]),
    ("ContinuousBernoulli", {"logits": [-3.0, 0.5]}, [[0.25, 0.75], [1.0, 0.5]]),
    ("FisherSnedecor", {"df1": [3.0, 7.5], "df2": [9.0, 30.0]}, [[0.5, 4.0], [2.0, 0.9]]),
    (
        "GeneralizedPareto",
        {"loc": [0.0, -1.0], "scale": [1.0, 2.0], "concentration": [0.2, -0.5]},
        [[0.5, -1.0], [3.0, 2.5]],
    ),
    ("HalfCauchy", {"scale": [1.0, 0.3]}, [[0.5, 0.1], [20.0, 0.0]]),
    ("InverseGamma", {"concentration": [6.5, 9.0], "rate": [1.0, 2.5]}, [[0.5, 1.0], [2.0, 0.1]]),
    ("Kumaraswamy", {"concentration1": [0.5, 3.0], "concentration0": [1.5, 2.5]}, [[0.5, 0.1], [0.9, 0.99]]),
    ("LKJCholesky", {"dim": 2, "concentration": [0.5, 3.0]}, [[1.0, 0.0], [0.6, 0.8]]),
    ("LKJCholesky", {"dim": 3, "concentration": 1.5}, [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [-0.48, 0.64, 0.6]]),
    ("LogisticNormal", {"loc": [[0.5, -1.0], [0.0, 2.0]], "scale": [[1.0, 0.5], [2.0, 1.0]]}, [0.5, 0.3, 0.2]),
    ("LogitRelaxedBernoulli", {"temperature": 0.7, "probs": [0.1, 0.7]}, [[0.5, -1.0], [2.0, 0.0]]),
    ("RelaxedBernoulli", {"temperature": 0.7, "probs": [0.1, 0.7]}, [[0.5, 0.1], [0.9, 0.99]]),
    ("RelaxedBernoulli", {"temperature": 0.7, "logits": [-3.0, 0.5]}, [[0.5, 0.1], [0.9, 0.99]]),
    ("ExpRelaxedCategorical", {"temperature": 0.7, "probs": [0.1, 0.2, 0.7]}, [[-1.0, -2.0, -0.7]]),
    ("RelaxedOneHotCategorical", {"temperature": 0.7, "probs": [0.1, 0.2, 0.7]}, [[0.2, 0.3, 0.5], [0.7, 0.2, 0.1]]),
    (
        "RelaxedOneHotCategorical",
        {"temperature": 0.7, "logits": [[0.1, -2.0, 3.0], [1.0, 1.0, 2.0]]},
        [[0.2, 0.3, 0.5], [0.7, 0.2, 0.1]],
    ),
    ("VonMises", {"loc": [0.0, -1.5], "concentration": [2.0, 0.3]}, [[0.5, -1.0], [-2.0, 7.5]]),
    ("Wishart", {"df": [3.5, 6.0], "covariance_matrix": COVARIANCE}, [[2.0, 0.5], [0.5, 1.0]]),
    ("Wishart", {"df": 4.0, "precision_matrix": COVARIANCE}, [[2.0, 0.5], [0.5, 1.0]]),
    ("Wishart", {"df": 4.0, "scale_tril": [[1.5, 0.0], [-0.5, 0.25]]}, [[2.0, 0.5], [0.5, 1.0]]),
]
# Evaluated here and there: a distribution, and values for its density.
NORMAL = "d.Normal(t([0.5, -0.25]), t([2.0, 0.5]))"
EXPRESSIONS = [
    (f"d.TransformedDistribution({NORMAL}, d.ExpTransform())", [0.5, 2.0]),
    (f"d.TransformedDistribution({NORMAL}, [d.TanhTransform()])", [0.5, -0.25]),
    (f"d.TransformedDistribution({NORMAL}, [d.SigmoidTransform()])", [0.5, 0.25]),
    (f"d.TransformedDistribution({NORMAL}, [d.SoftplusTransform()])", [0.5, 3.0]),
    (f"d.TransformedDistribution({NORMAL}, [d.AffineTransform(1.0, t([-2.0, 0.5])), d.ExpTransform()])", [0.5, 2.0]),
    (f"d.TransformedDistribution({NORMAL}, [d.AffineTransform(1.0, 3.0, event_dim=1)])", [0.5, 2.0]),
    (f"d.TransformedDistribution(d.Independent({NORMAL}, 1), d.TanhTransform())", [0.5, -0.25]),
    ("d.TransformedDistribution(d.Exponential(t(2.0)), d.PowerTransform(t(0.5)))", [0.5, 2.0]),
    (
        "d.TransformedDistribution(d.Uniform(t(0.0), t(1.0)), [d.SigmoidTransform().inv])",
        [0.5, 2.0],
    ),
    (
        f"d.TransformedDistribution({NORMAL}, d.ComposeTransform([d.ExpTransform(), d.PowerTransform(t(-2.0))]))",
        [0.5, 2.0],
    ),
    (f"d.TransformedDistribution(d.Independent({NORMAL}, 1), d.StickBreakingTransform())", [0.5, 0.3, 0.2]),
    (f"d.MixtureSameFamily(d.Categorical(t([0.25, 0.75])), {NORMAL})", [0.5, 2.0, -1.0]),
    (
        "d.MixtureSameFamily(d.Categorical(logits=t([[0.5, 1.0], [0.0, -1.0]])), "
        "d.Independent(d.Normal(t([[[0.5, 1.0], [0.0, 2.0]]]), t([[[1.0, 2.0], [0.5, 1.5]]])).expand((2, 2, 2)), 1))",
        [[0.5, 2.0], [1.0, 0.0]],
    ),
]
SQUARE = [[0.5, 9.0], [-1.0, 0.25]]
# Transforms, and arguments.
TRANSFORMS = [
    ("d.AbsTransform()", [-0.5, 2.0]),
    ("d.SoftmaxTransform()", [[0.5, -1.0, 2.0]]),
    ("d.StickBreakingTransform()", [[0.5, -1.0, 2.0], [0.0, 0.0, 0.0]]),
    ("d.LowerCholeskyTransform()", SQUARE),
    ("d.PositiveDefiniteTransform()", SQUARE),
    ("d.CumulativeDistributionTransform(d.Normal(t(0.5), t(2.0)))", [-0.5, 2.0]),
    ("d.IndependentTransform(d.ExpTransform(), 1)", SQUARE),
    ("d.biject_to(d.constraints.simplex)", [[0.5, -1.0, 2.0]]),
    ("d.transform_to(d.constraints.simplex)", [[0.5, -1.0, 2.0]]),
    ("d.biject_to(d.constraints.real)", [0.5, 2.0]),
    ("d.biject_to(d.constraints.positive)", [0.5, 2.0]),
    ("d.biject_to(d.constraints.unit_interval)", [0.5, 2.0]),
    ("d.biject_to(d.constraints.interval(t(-1.0), t([2.0, 3.0])))", [0.5, 2.0]),
    ("d.biject_to(d.constraints.independent(d.constraints.positive, 1))", [0.5, 2.0]),
    ("d.biject_to(d.Dirichlet.arg_constraints['concentration'])", [0.5, 2.0]),
    ("d.transform_to(d.constraints.lower_cholesky)", SQUARE),
    ("d.transform_to(d.constraints.positive_definite)", SQUARE),
    ("d.CorrCholeskyTransform()", [[0.5, -1.0, 2.0], [0.0, 0.3, -0.1]]),
    ("d.CorrCholeskyTransform()", [[0.5, -1.0, 2.0, 0.0, 0.3, -0.1]]),
    ("d.ReshapeTransform((2, 2), (4,))", SQUARE),
    ("d.CatTransform([d.ExpTransform(), d.AffineTransform(1.0, 2.0)], dim=-1, lengths=[1, 2])", [[0.5, -1.0, 2.0]]),
    ("d.CatTransform([d.ExpTransform(), d.TanhTransform()], dim=0)", SQUARE),
    ("d.StackTransform([d.TanhTransform(), d.ExpTransform()], dim=1)", SQUARE),
    ("d.ComposeTransform([d.ReshapeTransform((3,), (3, 1)), d.ExpTransform()])", [[0.5, -1.0, 2.0]]),
    ("d.ComposeTransform([d.AffineTransform(1.0, 2.0, event_dim=1), d.StickBreakingTransform()])", [[0.5, -1.0, 2.0]]),
    ("d.transforms.identity_transform", [0.5, 2.0]),
    ("d.biject_to(d.constraints.corr_cholesky)", [[0.5, -1.0, 2.0]]),
    ("d.biject_to(d.constraints.greater_than(t(2.0)))", [0.5, 2.0]),
    ("d.biject_to(d.constraints.greater_than_eq(2.0))", [0.5, 2.0]),
    ("d.biject_to(d.constraints.less_than(2.0))", [0.5, 2.0]),
    ("d.biject_to(d.constraints.half_open_interval(-1.0, 2.0))", [0.5, 2.0]),
    ("d.biject_to(d.constraints.cat([d.constraints.positive, d.constraints.real], dim=0))", [0.5, 2.0]),
    ("d.biject_to(d.constraints.stack([d.constraints.positive, d.constraints.unit_interval], dim=-1))", SQUARE),
    ("d.transform_to(d.constraints.positive_semidefinite)", SQUARE),
]
VALUES = [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0]
UNIT_ROWS = [[1.0, 0.0], [0.6, 0.8]]
MATRICES = [
    [[2.0, 1.0], [1.0, 2.0]],
    [[1.0, 2.0], [2.0, 1.0]],
    [[1.0, 1.0], [1.0, 1.0]],
    [[2.0, 0.0], [1.0, 2.0]],
    UNIT_ROWS,
]
VECTORS = [[0.2, 0.3, 0.5], [0.0, 1.0, 0.0], [1.0, 2.0, 0.0], [-1.0, 1.0, 1.0]]
# Constraints, and values that they hold for or not.
CONSTRAINTS = [
    *(
        (name, VALUES)
        for name in ("boolean", "nonnegative", "nonnegative_integer", "positive", "positive_integer", "real")
    ),
    ("unit_interval", VALUES),
    *((f"{name}(1.0)", VALUES) for name in ("greater_than", "greater_than_eq", "less_than")),
    *((f"{name}(0, 2)", VALUES) for name in ("interval", "half_open_interval", "integer_interval")),
    *((name, VECTORS) for name in ("simplex", "one_hot", "real_vector")),
    *((name, MATRICES) for name in ("corr_cholesky", "lower_cholesky", "lower_triangular", "square", "symmetric")),
    # With one that is not symmetric among them, PyTorch looks no further.
    *((name, MATRICES[:3]) for name in ("positive_definite", "positive_semidefinite")),
    ("square", VECTORS),
    ("cat([c.positive, c.real], dim=-1, lengths=[1, 2])", VECTORS),
    ("stack([c.positive, c.real, c.unit_interval], dim=1)", VECTORS),
    ("independent(c.positive, 1)", VECTORS),
    ("MixtureSameFamilyConstraint(c.positive)", VALUES),
    ("MixtureSameFamilyConstraint(c.simplex)", VECTORS),
]
UNLIKE = {
    "Beta": {"concentration1": 2.0, "concentration0": 0.5},
    "Exponential": {"rate": 0.5},
    "Gamma": {"concentration": 2.0, "rate": 0.5},
    "Gumbel": {"loc": 0.5, "scale": 2.0},
    "Laplace": {"loc": -1.0, "scale": 0.7},
    "Normal": {"loc": 0.5, "scale": 2.0},
    "Pareto": {"scale": 0.5, "alpha": 2.5},
    "Uniform": {"low": 0.2, "high": 0.7},
    "ContinuousBernoulli": {"probs": 0.8},
    "Bernoulli": {"probs": 0.8},
    "Binomial": {"total_count": 3, "probs": 0.8},
    "Poisson": {"rate": 0.7},
}
WIDE = {"low": -0.2, "high": 1.7}
UNLIKE_PAIRS = [
    *((p, "Normal") for p in ("Beta", "Exponential", "Gamma", "Gumbel", "Laplace", "Uniform")),
    *((p, "Exponential") for p in ("Beta", "Pareto", "Uniform")),
    *((p, q) for p in ("Normal", "Laplace", "Gumbel") for q in ("Beta", "Exponential", "Gamma", "Uniform")),
    *((p, q) for p in ("Exponential", "Gamma") for q in ("Beta", "Uniform")),
    ("Normal", "Laplace"),
    *(
        (p, "ContinuousBernoulli")
        for p in ("Beta", "Exponential", "Gamma", "Gumbel", "Laplace", "Normal", "Pareto", "Uniform")
    ),
    *(("ContinuousBernoulli", q) for q in ("Exponential", "Normal", "Pareto", "Uniform")),
    *((p, "Gumbel") for p in ("Exponential", "Gamma", "Normal", "Uniform")),
    *((p, "Pareto") for p in ("Beta", "Exponential", "Gamma", "Gumbel", "Laplace", "Normal", "Uniform")),
    *(("Pareto", q) for q in ("Beta", "Gamma", "Normal", "Uniform")),
    *((p, q) for p, q in (("Beta", "Gamma"), ("Beta", "Uniform"), ("Uniform", "Beta"), ("Uniform", "Gamma"))),
    *((p, q) for p, q in (("Bernoulli", "Poisson"), ("Poisson", "Bernoulli"), ("Poisson", "Binomial"))),
]
LOW_RANK = {"loc": [0.5, -1.0], "cov_factor": [[1.5], [-0.5]], "cov_diag": [0.5, 2.0]}
PAIRS = [
    *((p, UNLIKE[p], q, UNLIKE[q]) for p, q in UNLIKE_PAIRS),
    ("Uniform", {"low": -0.2, "high": 0.7}, "Exponential", {"rate": 0.5}),
    ("Pareto", {"scale": 1.5, "alpha": 2.5}, "Pareto", {"scale": 0.5, "alpha": 1.5}),
    ("Pareto", {"scale": 0.5, "alpha": 2.5}, "Pareto", {"scale": 1.5, "alpha": 1.5}),
    ("Cauchy", {"loc": 0.5, "scale": 2.0}, "Cauchy", {"loc": -1.0, "scale": 0.7}),
    ("HalfNormal", {"scale": 2.0}, "HalfNormal", {"scale": 0.7}),
    ("Chi2", {"df": 3.0}, "Gamma", {"concentration": 0.7, "rate": 2.0}),
    (
        "MultivariateNormal",
        {"loc": [0.5, -1.0], "covariance_matrix": COVARIANCE},
        "MultivariateNormal",
        {"loc": [0.0, 1.0], "scale_tril": [[1.5, 0.0], [-0.5, 0.25]]},
    ),
    ("Normal", {"loc": 0.5, "scale": 2.0}, "Normal", {"loc": -1.0, "scale": 0.7}),
    ("LogNormal", {"loc": 0.5, "scale": 2.0}, "LogNormal", {"loc": -1.0, "scale": 0.7}),
    ("Bernoulli", {"probs": 0.3}, "Bernoulli", {"probs": 0.8}),
    ("Bernoulli", {"logits": -1.0}, "Bernoulli", {"probs": 0.8}),
    ("Categorical", {"probs": [0.2, 0.3, 0.5]}, "Categorical", {"logits": [0.0, 1.0, -1.0]}),
    ("OneHotCategorical", {"probs": [0.2, 0.3, 0.5]}, "OneHotCategorical", {"logits": [0.0, 1.0, -1.0]}),
    ("Uniform", {"low": 0.2, "high": 0.7}, "Uniform", {"low": 0.0, "high": 2.0}),
    ("Uniform", {"low": 0.2, "high": 2.7}, "Uniform", {"low": 0.0, "high": 2.0}),
    ("Exponential", {"rate": 0.5}, "Exponential", {"rate": 2.0}),
    ("Gamma", {"concentration": 2.0, "rate": 0.5}, "Gamma", {"concentration": 0.7, "rate": 2.0}),
    ("Gamma", {"concentration": 2.0, "rate": 0.5}, "Exponential", {"rate": 2.0}),
    ("Exponential", {"rate": 0.5}, "Gamma", {"concentration": 0.7, "rate": 2.0}),
    ("Beta", {"concentration1": 2.0, "concentration0": 0.5}, "Beta", {"concentration1": 1.0, "concentration0": 3.0}),
    ("Dirichlet", {"concentration": [0.5, 2.0, 1.0]}, "Dirichlet", {"concentration": [1.0, 1.5, 3.0]}),
    ("Laplace", {"loc": 0.5, "scale": 2.0}, "Laplace", {"loc": -1.0, "scale": 0.7}),
    ("Poisson", {"rate": 0.5}, "Poisson", {"rate": 2.0}),
    ("Geometric", {"probs": 0.3}, "Geometric", {"probs": 0.8}),
    *((p, UNLIKE[p], "Uniform", WIDE) for p in ("Beta", "ContinuousBernoulli")),
    *(("Uniform", WIDE, q, UNLIKE[q]) for q in ("Beta", "ContinuousBernoulli", "Gamma", "Pareto")),
    ("Uniform", {"low": 0.7, "high": 1.7}, "Pareto", UNLIKE["Pareto"]),
    ("Pareto", {"scale": 0.5, "alpha": 1.5}, "Normal", UNLIKE["Normal"]),
    ("Binomial", {"total_count": 3, "probs": 0.3}, "Binomial", {"total_count": 3, "probs": 0.8}),
    ("Binomial", {"total_count": 4, "probs": 0.3}, "Binomial", {"total_count": 3, "probs": 0.8}),
    ("ContinuousBernoulli", {"probs": 0.5}, "ContinuousBernoulli", {"logits": 1.5}),
    ("Gumbel", {"loc": 0.5, "scale": 2.0}, "Gumbel", {"loc": -1.0, "scale": 0.7}),
    ("InverseGamma", {"concentration": 2.0, "rate": 0.5}, "InverseGamma", {"concentration": 0.7, "rate": 2.0}),
    ("HalfCauchy", {"scale": 2.0}, "HalfCauchy", {"scale": 0.7}),
    (
        "LogisticNormal",
        {"loc": [0.5, -1.0], "scale": [1.0, 0.5]},
        "LogisticNormal",
        {"loc": [0.0, 2.0], "scale": [2.0, 1.0]},
    ),
    ("LowRankMultivariateNormal", LOW_RANK, "LowRankMultivariateNormal", {**LOW_RANK, "cov_diag": [1.0, 1.0]}),
    ("LowRankMultivariateNormal", LOW_RANK, "MultivariateNormal", {"loc": [0.0, 1.0], "covariance_matrix": COVARIANCE}),
    ("MultivariateNormal", {"loc": [0.0, 1.0], "covariance_matrix": COVARIANCE}, "LowRankMultivariateNormal", LOW_RANK),
    (
        "Wishart",
        {"df": 4.0, "covariance_matrix": COVARIANCE},
        "Wishart",
        {"df": 3.5, "scale_tril": [[1.5, 0.0], [-0.5, 0.25]]},
    ),
]
QUANTILES = [0.1, 0.9]


def kind(name):
    places = (d, d.relaxed_bernoulli, d.relaxed_categorical)
    return next(getattr(place, name) for place in places if hasattr(place, name))


def tensors(parameters, **options):
    return {key: v if isinstance(v, int) else torch.tensor(v, **options) for key, v in parameters.items()}


def make(name, parameters):
    return kind(name)(**tensors(parameters))


def attempt(function):
    try:
        return function().tolist()
    except NotImplementedError:
        return None


def slopes(name, parameters, function):
    """The derivatives of the sum of a function's values by the parameters."""
    given = tensors(parameters, requires_grad=True)
    leaves = [each for each in given.values() if isinstance(each, torch.Tensor)]
    try:
        total = function(kind(name)(**given)).sum()
    except NotImplementedError:
        return None
    found = torch.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True)
    return [each.tolist() for each in found]


def record(name, parameters, values):
    made, value = make(name, parameters), torch.tensor(values)
    return {
        "name": name,
        "parameters": parameters,
        "values": values,
        "batch_shape": list(made.batch_shape),
        "event_shape": list(made.event_shape),
        "log_prob": made.log_prob(value).tolist(),
        "entropy": attempt(made.entropy),
        "mean": attempt(lambda: made.mean),
        "variance": attempt(lambda: made.variance),
        "stddev": attempt(lambda: made.stddev),
        "mode": attempt(lambda: made.mode),
        "cdf": attempt(lambda: made.cdf(value)),
        "icdf": attempt(lambda: made.icdf(quantiles(made))),
        "support": attempt(lambda: made.support.check(value)),
        "slopes_of_log_prob": slopes(name, parameters, lambda made: made.log_prob(value)),
        "slopes_of_icdf": slopes(name, parameters, lambda made: made.icdf(quantiles(made))),
    }


def quantiles(made):
    return torch.tensor(QUANTILES if made.batch_shape[-1:] in ((), (2,)) else QUANTILES[:1])


def record_expression(expression, values):
    made, value = eval(expression, {"d": d, "t": torch.tensor}), torch.tensor(values)
    return {
        "expression": expression,
        "values": values,
        "batch_shape": list(made.batch_shape),
        "event_shape": list(made.event_shape),
        "log_prob": made.log_prob(value).tolist(),
        "cdf": attempt(lambda: made.cdf(value)),
        "icdf": attempt(lambda: made.icdf(torch.tensor([[0.1], [0.9]]))),
        "mean": attempt(lambda: made.mean),
        "variance": attempt(lambda: made.variance),
    }


def record_transform(expression, values):
    made, x = eval(expression, {"d": d, "t": torch.tensor}), torch.tensor(values)
    y = made(x)
    return {
        "expression": expression,
        "values": values,
        "result": y.tolist(),
        "inverse": made.inv(y).tolist(),
        "log_abs_det": attempt(lambda: made.log_abs_det_jacobian(x, y)),
        "shape": list(made.forward_shape(x.shape)),
    }


def held(name, values):
    constraint = eval(f"c.{name}", {"c": d.constraints})
    return constraint.check(torch.tensor(values)).tolist()


def recorded():
    torch.set_default_dtype(torch.float64)
    return {
        "distributions": {
            "quantiles": QUANTILES,
            "cases": [record(*case) for case in CASES],
            "expressions": [record_expression(*case) for case in EXPRESSIONS],
            "transforms": [record_transform(*case) for case in TRANSFORMS],
            "constraints": [
                {"constraint": name, "values": values, "holds": held(name, values)} for name, values in CONSTRAINTS
            ],
            "pairs": [
                {"pair": pair, "divergence": d.kl_divergence(make(*pair[:2]), make(*pair[2:])).tolist()}
                for pair in PAIRS
            ],
        }
    }

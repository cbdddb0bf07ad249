"""Drivers of packages for Gaussian processes, probabilities and flows."""

# ruff: noqa: D103 - each function is named after its package

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from .drivers import Call, r


def gpytorch() -> Iterator[Call]:
    import gpytorch as gp

    x, y = r(12, 2), r(12)

    class Exact(gp.models.ExactGP):  # type: ignore[misc]
        def __init__(self, kernel: Any, likelihood: Any) -> None:
            super().__init__(x, y, likelihood)
            self.mean_module, self.covar_module = gp.means.ConstantMean(), kernel

        def forward(self, x: Any) -> Any:
            mean, covar = self.mean_module(x), self.covar_module(x)
            return gp.distributions.MultivariateNormal(mean, covar)

    k = gp.kernels
    kernels = {
        "RBF": lambda: k.ScaleKernel(k.RBFKernel(ard_num_dims=2)),
        "Matern": lambda: k.MaternKernel(1.5) + k.LinearKernel(),
        "periodic": lambda: k.PeriodicKernel() * k.RQKernel(),
        "mixture": lambda: k.SpectralMixtureKernel(num_mixtures=3, ard_num_dims=2),
        "polynomial": lambda: k.PolynomialKernel(2),
        "cosine": lambda: k.CosineKernel() + k.ConstantKernel(),
        "arc": lambda: k.ArcKernel(k.MaternKernel(2.5), ard_num_dims=2),
        "piecewise": lambda: k.PiecewisePolynomialKernel(ard_num_dims=2),
    }
    for name, make in kernels.items():

        def run(make: Any = make) -> None:
            likelihood = gp.likelihoods.GaussianLikelihood()
            model = Exact(make(), likelihood)
            loss = -gp.mlls.ExactMarginalLogLikelihood(likelihood, model)(model(x), y)
            loss.backward()
            model.eval(), likelihood.eval()
            likelihood(model(r(5, 2))).confidence_region()

        yield name, run

    class Variational(gp.models.ApproximateGP):  # type: ignore[misc]
        def __init__(self) -> None:
            distribution = gp.variational.CholeskyVariationalDistribution(4)
            super().__init__(gp.variational.VariationalStrategy(self, r(4, 2), distribution))
            self.mean_module, self.covar_module = gp.means.LinearMean(2), k.RBFKernel()

        def forward(self, x: Any) -> Any:
            return gp.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    for kind in ("Gaussian", "Bernoulli", "StudentT", "Laplace", "Beta"):

        def fit(kind: str = kind) -> None:
            likelihood = getattr(gp.likelihoods, f"{kind}Likelihood")()
            model = Variational()
            target = y.round() if kind == "Bernoulli" else y
            (-gp.mlls.VariationalELBO(likelihood, model, 12)(model(x), target)).backward()
            likelihood(model.eval()(x)).mean.sum()

        yield f"variational {kind}", fit


def linear_operator() -> Iterator[Call]:
    from linear_operator import operators as o
    from linear_operator import to_linear_operator

    a = r(6, 6)
    spd = to_linear_operator(a @ a.mT + 6 * torch.eye(6))
    yield "solve", lambda: spd.solve(r(6, 2))
    yield "diagonal", lambda: (spd.add_diagonal(r(6)) @ r(6)).sum()
    yield "products", lambda: (o.DiagLinearOperator(r(6)) @ spd).to_dense()
    yield "kronecker", lambda: o.KroneckerProductLinearOperator(spd, spd).to_dense()
    yield "determinant", lambda: spd.inv_quad_logdet(r(6, 1), logdet=True)
    yield "toeplitz", lambda: o.ToeplitzLinearOperator(r(6)) @ r(6, 2)
    yield "low rank", lambda: (o.RootLinearOperator(r(6, 2)) + spd).solve(r(6))
    yield "batches", lambda: (to_linear_operator(r(3, 6, 6)) * r(3, 1, 1)).sum(-1)
    yield "root", lambda: spd.root_decomposition().to_dense() + spd.sqrt_inv_matmul(r(6, 2)).sum()


def botorch() -> Iterator[Call]:
    import botorch as bo
    from botorch import acquisition as acq
    from botorch.models import SingleTaskGP
    from botorch.test_functions import BraninCurrin, Hartmann
    from gpytorch.mlls import ExactMarginalLogLikelihood

    x = r(10, 2).double()
    y = (x.sin().sum(-1, keepdim=True) + 0.1 * r(10, 1)).double()
    model = SingleTaskGP(x, y)
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double()
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    yield "fit", lambda: bo.fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"maxiter": 5}})
    few = {"num_restarts": 2, "raw_samples": 4, "options": {"maxiter": 3}}
    for name, make in {
        "EI": lambda: acq.ExpectedImprovement(model, y.max()),
        "LogEI": lambda: acq.LogExpectedImprovement(model, y.max()),
        "UCB": lambda: acq.UpperConfidenceBound(model, 0.1),
        "qEI": lambda: acq.qExpectedImprovement(model, y.max()),
        "qLogEI": lambda: acq.qLogExpectedImprovement(model, y.max()),
        "qNEI": lambda: acq.qNoisyExpectedImprovement(model, x),
        "qKG": lambda: acq.qKnowledgeGradient(model, num_fantasies=2),
        "qMES": lambda: acq.qMaxValueEntropy(model, r(20, 2).double()),
    }.items():
        yield name, lambda make=make: bo.optim.optimize_acqf(make(), bounds, q=1, **few)
    two = SingleTaskGP(x, torch.cat([y, -y], -1))
    from botorch.acquisition.multi_objective import qExpectedHypervolumeImprovement
    from botorch.utils.multi_objective.box_decompositions import NondominatedPartitioning

    point = torch.tensor([0.0, -2.0]).double()
    parts = NondominatedPartitioning(point, torch.cat([y, -y], -1))
    hyper = qExpectedHypervolumeImprovement(two, point.tolist(), parts)
    yield "hypervolume", lambda: bo.optim.optimize_acqf(hyper, bounds, q=2, **few)
    yield "functions", lambda: (Hartmann()(r(4, 6)), BraninCurrin()(r(4, 2)))
    yield "samples", lambda: bo.utils.sampling.draw_sobol_samples(bounds, 4, 2)
    yield "thompson", lambda: bo.generation.MaxPosteriorSampling(model)(x, num_samples=2)


def pyro_ppl() -> Iterator[Call]:
    import pyro
    import pyro.distributions as d
    from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, TraceEnum_ELBO
    from pyro.infer.autoguide import AutoMultivariateNormal, AutoNormal

    x, y = r(20, 3), r(20)

    def regression(x: Any, y: Any = None) -> Any:
        w = pyro.sample("w", d.Normal(torch.zeros(3), 1.0).to_event(1))
        with pyro.plate("data", len(x)):
            return pyro.sample("y", d.Normal(x @ w, 0.1), obs=y)

    for guide in (AutoNormal, AutoMultivariateNormal):

        def fit(guide: Any = guide) -> None:
            pyro.clear_param_store()
            own = guide(regression)
            svi = SVI(regression, own, pyro.optim.Adam({"lr": 0.01}), Trace_ELBO(4))
            svi.step(x, y)
            Predictive(regression, guide=own, num_samples=5)(x)

        yield guide.__name__, fit
    kernel = NUTS(regression, max_tree_depth=2)
    yield "NUTS", lambda: MCMC(kernel, 3, warmup_steps=2, disable_progbar=True).run(x, y)

    def mixture(y: Any) -> None:
        weights = pyro.sample("weights", d.Dirichlet(torch.ones(3)))
        with pyro.plate("parts", 3):
            loc = pyro.sample("loc", d.Normal(0.0, 5.0))
        with pyro.plate("data", len(y)):
            z = pyro.sample("z", d.Categorical(weights), infer={"enumerate": "parallel"})
            pyro.sample("y", d.Normal(loc[z], 1.0), obs=y)

    guide = AutoNormal(pyro.poutine.block(mixture, hide=["z"]))
    elbo = TraceEnum_ELBO(max_plate_nesting=1)
    yield "mixture", lambda: SVI(mixture, guide, pyro.optim.Adam({"lr": 0.1}), elbo).step(y)
    yield "laws", lambda: [law.log_prob(law.sample()) for law in _laws(d)]
    yield (
        "hmm",
        lambda: d.GaussianHMM(
            d.MultivariateNormal(torch.zeros(2), torch.eye(2)),
            torch.eye(2).expand(5, 2, 2),
            d.MultivariateNormal(torch.zeros(5, 2), torch.eye(2)),
            torch.eye(2).expand(5, 2, 2),
            d.MultivariateNormal(torch.zeros(5, 2), torch.eye(2)),
        ).log_prob(r(5, 2)),
    )
    from pyro.contrib import gp

    yield "gp", lambda: gp.models.GPRegression(x, y, gp.kernels.RBF(3))(r(4, 3))


def _laws(d: Any) -> list[Any]:
    one = torch.ones(4)
    return [
        d.Normal(one, one).expand([3, 4]),
        d.LogNormal(one, one),
        d.Gamma(one, one),
        d.Beta(one, one),
        d.StudentT(one * 3, one, one),
        d.VonMises(one, one),
        d.ZeroInflatedPoisson(one, gate=one * 0.3),
        d.GammaPoisson(one, one),
        d.BetaBinomial(one, one, 5),
        d.AsymmetricLaplace(one, one, one),
        d.TransformedDistribution(d.Normal(one, one), [d.transforms.ExpTransform()]),
    ]


def zuko() -> Iterator[Call]:
    import zuko as z

    for name in ("NSF", "MAF", "NICE", "SOSPF", "NAF", "UNAF", "CNF", "GF", "BPF", "NCSF", "GMM"):

        def run(name: str = name) -> None:
            more = {"components": 3} if name == "GMM" else {"hidden_features": (16, 16)}
            flow = getattr(z.flows, name)(3, context=2, **more)
            law = flow(r(5, 2))
            (-law.log_prob(r(5, 3)).mean()).backward()
            law.sample((4,))

        yield name, run

"""Accuracy of JointLogistic, compared with the exact posterior of two weights on a grid.

`python -m benchmarks posterior` prints three figures, for true weights near and far from the prior. They are the
distance of the mean to the exact mean in exact standard deviations, the standard deviation as a share of the exact one,
and the largest error of a probability.
"""

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import expit

import results
from bayesvote import JointLogistic
from bayesvote.core.checks import Array

SCALE, SEEDS = 4.0, 5  # the prior mean of both weights is SCALE/2


class Case(NamedTuple):
    """True weights, the precision of the prior, and a number of rows."""

    truth: tuple[float, float]
    precision: float | tuple[float, ...]
    n: int


DEFAULT = (1.0, 10.0, 100.0, 1000.0)  # precisions of JointLogistic()
CASES = (
    Case((2.5, 1.0), 1.0, 20),
    Case((2.5, 1.0), 1.0, 300),
    Case((2.5, 1.0), 1.0, 3000),
    Case((7.0, -3.0), 1.0, 300),
    Case((7.0, -3.0), 1.0, 1000),
    Case((7.0, -3.0), 1.0, 3000),
    Case((10.0, -5.0), DEFAULT, 300),
    Case((10.0, -5.0), DEFAULT, 2000),
    Case((30.0, -20.0), 1.0, 2000),
)


def labelled(case: Case, seed: int) -> tuple[Array, np.random.Generator]:
    """Return margins (n, 2) of labels drawn by the true weights; the members' margins are uniform."""
    rng = np.random.default_rng(seed)
    D = rng.uniform(-1, 1, (case.n, 2))
    return D * np.where(rng.random((case.n, 1)) < expit(D @ np.array(case.truth))[:, None], 1, -1), rng


def mode(D: Array, prior: float, precision: float) -> tuple[Array, Array]:
    """Return the mode of the exact posterior and the inverse of its curvature, by damped Newton steps."""
    weights = np.full(2, prior)
    for _ in range(200):
        miss = expit(-D @ weights)
        H = precision * np.eye(2) + D.T @ ((miss * (1 - miss))[:, None] * D)
        step = np.linalg.solve(H, D.T @ miss - precision * (weights - prior))
        weights = weights + step * min(1, 2 / np.linalg.norm(step))
    return weights, np.linalg.inv(H)


def exact(D: Array, prior: float, precision: float) -> tuple[Array, Array, Array, Array]:
    """Return exact mean and standard deviations, the grid (n, 2) of nine of these to all sides, and its probabilities.

    Row t's label has the log-odds ``D[t] @ weights``.
    """
    centre, spread = mode(D, prior, precision)
    axis = np.linspace(-9, 9, 181)
    grid = centre + np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2) @ np.linalg.cholesky(spread).T
    density = -precision / 2 * ((grid - prior) ** 2).sum(axis=1)
    for rows in np.array_split(D, -(-len(D) // 500)):
        density -= np.logaddexp(0, -grid @ rows.T).sum(axis=1)
    density = np.exp(density - density.max())
    density /= density.sum()
    mean = density @ grid
    return mean, np.sqrt(density @ (grid - mean) ** 2), grid, density


def measured(case: Case, seed: int) -> tuple[float, float, float]:
    """Return the worst lag, share of the standard deviation, and error of a probability.

    Of several precisions, the exact posterior has the first, under which the true weights are most probable.
    """
    D, rng = labelled(case, seed)
    weighter = JointLogistic(case.precision, scale=SCALE)
    state = weighter.update(weighter.init(2), (1 - D) / 2)
    mean, sd, grid, density = exact(D, SCALE / 2, float(np.atleast_1d(case.precision)[0]))
    share = np.sqrt(weighter.variance(state)) / sd
    X = rng.uniform(-1, 1, (200, 2))
    chances = density @ expit(grid @ X.T)
    found = np.exp(-weighter.losses(state, (1 - np.stack((-X, X), axis=1)) / 2)[:, 1])
    lag = np.abs(weighter.mean(state) - mean) / sd
    return float(lag.max()), float(share[np.abs(share - 1).argmax()]), float(np.abs(found - chances).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    given = parser.parse_args()
    lines = []
    for case in CASES:
        lag, share, off = np.mean([measured(case, seed) for seed in range(given.seeds)], axis=0).tolist()
        lines.append(case._asdict() | {"lag": lag, "share": share, "off": off})
        print(case, f"{lag:.2f} {share:.2f} {off:.3f}", flush=True)
    results.write("posterior", {"cases": lines})


def lags(result: results.Result) -> Iterator[str]:
    """Yield the table of docs/theory.md."""
    yield "| true weights | precision of the prior | rows | lag | standard deviation | probability |"
    yield "|---|---|---:|---:|---:|---:|"
    for case in result.figures["cases"]:
        truth = ", ".join(f"{weight:g}" for weight in case["truth"])
        precision = "default" if isinstance(case["precision"], list) else f"{case['precision']:g}"
        yield f"| {truth} | {precision} | {case['n']:,} | {case['lag']:.2f} | {case['share']:.2f} | {case['off']:.3f} |"


if __name__ == "__main__":
    main()

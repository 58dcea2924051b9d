"""Bayesian logistic regressions beside a plain computation: scipy finds each mode, matrices are inverted whole."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from bayesvote import LogisticBank
from bayesvote.core.checks import MOST_WEIGHT, Array, Labels
from bayesvote.core.gaussian import symmetric
from bayesvote.core.state import MOST_ROWS


def laplace(X: Array, y: Labels, w: Array, precision: float) -> Array:
    """Half the moderated log-odds of each row before it is learned."""
    X = np.column_stack((np.ones(len(X)), np.nan_to_num(X)))
    mean, inverse = np.zeros(X.shape[1]), precision * np.eye(X.shape[1])
    out = []
    for x, sign, weight in zip(X, 2 * y - 1, w, strict=True):
        out.append(x @ mean / np.sqrt(1 + np.pi / 8 * (x @ np.linalg.solve(inverse, x))) / 2)
        if weight == 0:
            continue

        mean = mode(mean, inverse, sign * x, weight)
        p = expit(x @ mean)
        inverse = inverse + weight * p * (1 - p) * np.outer(x, x)
    return np.array(out)


def mode(mean: Array, inverse: Array, x: Array, weight: float) -> Array:
    """Where a Gaussian times the likelihood of a row is largest; x is taken with the sign of the label."""

    def loss(v: Array) -> float:
        return float((v - mean) @ inverse @ (v - mean) / 2 + weight * np.logaddexp(0.0, -(x @ v)))

    def slope(v: Array) -> Array:
        return np.asarray(inverse @ (v - mean) - weight * expit(-(x @ v)) * x)

    def curvature(v: Array) -> Array:
        return np.asarray(inverse + weight * expit(x @ v) * expit(-(x @ v)) * np.outer(x, x))

    found: Any = minimize(loss, mean, jac=slope, hess=curvature, method="trust-exact", options={"gtol": 1e-12})
    return np.asarray(found.x)


def rows(n: int = 60, d: int = 3) -> tuple[Array, Labels, Array]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, d))
    y = (X @ np.arange(1, d + 1) + rng.normal(size=n) > 0).astype(np.intp)
    X[rng.random((n, d)) < 0.05] = np.nan
    return X, y, rng.choice([0.0, 0.5, 1.0, 3.0], size=n)


@pytest.mark.parametrize("precision", [0.1, 5.0])
def test_scores_are_those_of_the_posterior(precision: float) -> None:
    X, y, w = rows()
    bank = LogisticBank(1, precision=precision).start(3)
    np.testing.assert_allclose(bank.scores_then_learn(X, y, w)[:, 0], laplace(X, y, w, precision), atol=1e-6)


def test_classes_are_each_learned_against_the_rest() -> None:
    X, _, w = rows()
    y = np.random.default_rng(0).integers(3, size=len(w))
    got = LogisticBank(1, precision=1.0).start(3, 3).scores_then_learn(X, y, w)[:, 0]
    for k in range(3):
        expected = 0.5 * np.log(expit(2 * laplace(X, (y == k).astype(np.intp), w, 1.0)))
        np.testing.assert_allclose(got[:, k], expected, atol=1e-6)


def test_members_differ_by_their_precision_and_see_random_features() -> None:
    state = LogisticBank(4, precision=(1.0, 4.0), max_features=2).start(9, rng=0).state
    assert state is not None
    assert [covariance[0, 0, 0] for covariance in state.covariances] == [1.0, 0.25, 1.0, 0.25]
    assert state.features.shape == (4, 2)
    assert len({tuple(seen) for seen in state.features.tolist()}) > 1


def test_large_weights_and_values_stay_finite() -> None:
    X, y, w = rows()
    bank = LogisticBank(2).start(3)
    scores = bank.scores_then_learn(X * 1e50, y, w * 3e8)
    assert np.all(np.isfinite(scores))
    assert np.all(np.isfinite(bank.scores(X)))


def test_features_of_very_different_sizes_leave_a_state_that_can_be_saved() -> None:
    """Rounding takes more from the covariance than is left of some directions."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 4)) * 10.0 ** rng.integers(-3, int(rng.integers(2, 99)), size=4)
        if rng.random() < 0.5:
            X[rng.integers(60)] *= 10.0 ** rng.integers(0, 20)
        X = np.clip(X, -9e99, 9e99)
        bank = LogisticBank(2, max_features=4).start(4)
        assert np.all(np.isfinite(bank.scores_then_learn(X, (X[:, 0] > 0).astype(np.intp))))
        assert bank.state is not None
        bank.validate(bank.state)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": 0.0}, "precision"),
        ({"precision": (1.0, 1e-41)}, "precision must be at least 1e-40, got 1e-41"),
        ({"precision": ()}, "at least one"),
        ({"max_features": 0}, "max_features"),
    ],
)
def test_wrong_parameters_are_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LogisticBank(**options)


# Two directions at once in the last row, of one of which rounding has left nothing.
LOST = [
    [-6.513067776141848e-08, 2.1925300961968472e-20],
    [3.1100465352623376e-27, 3.442802032962548e-23],
    [-1.187953590384657e-29, -1.0876309304590502e-55],
    [-9.365581340056776e-67, -1.0554287615902132e-12],
    [3.0001087984407956e-34, -6.179548442558533e-64],
    [-3.5772198383190754e-41, 1.064498643076071e-58],
    [-3.5406963558416454e-70, 1787540389573880.0],
    [749574206783850.6, 7.1677070563658826e19],
]


def test_no_row_takes_more_of_a_variance_than_there_is() -> None:
    bank = LogisticBank(1, precision=0.03).start(2)
    bank.scores_then_learn(LOST, [0, 0, 1, 1, 1, 0, 1, 0])
    assert bank.state is not None
    assert np.linalg.eigvalsh(symmetric(bank.state.covariances[0, 0]))[0] > -1e-13


def wild(seed: int) -> tuple[LogisticBank, Array]:
    """A bank that has learned rows of very different sizes and weights, and the rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 4)) * 10.0 ** rng.integers(-99, 99, size=(80 if seed % 2 else 1, 4))
    w = [np.ones(80), np.full(80, 1e9), np.minimum(10.0 ** rng.uniform(-320, 9, 80), 1e9)][seed % 3]
    bank = LogisticBank(2, precision=(0.03, 0.3)).start(4)
    assert np.all(np.isfinite(bank.scores_then_learn(X, rng.integers(2, size=80), w)))
    return bank, X


def test_rows_of_any_size_and_weight_leave_a_state_that_can_be_saved() -> None:
    """What rounding leaves need not be definite, but is never larger than the prior's."""
    for seed in (*range(60), 413, 1298, 1919, 2741, 5648):  # the last five were not definite by far
        bank, _ = wild(seed)
        assert bank.state is not None
        bank.validate(bank.state)
        for covariance, precision in zip(bank.state.covariances[:, 0], (0.03, 0.3), strict=True):
            assert np.abs(np.tril(covariance)).max() * precision < 1 + 1e-9
            assert np.diag(covariance).min() * precision > -1e-9


def test_covariances_that_are_not_definite_are_learned_from_and_explained() -> None:
    bank = LogisticBank(1, precision=1.0).start(3)
    state = bank.state
    assert state is not None
    state.covariances[0, 0] = np.full((4, 4), -0.9) + 1.8 * np.eye(4)  # eigenvalues from -1.8 to 1.8
    with pytest.raises(ValueError, match="wider than those of the prior"):
        bank.validate(state)
    state.covariances[0, 0] = np.full((4, 4), 0.3) - 0.29 * np.eye(4)
    state.covariances[0, 0, 0, 0] = -0.1
    with pytest.raises(ValueError, match="variances must be at least 0"):
        bank.validate(state)
    state.covariances[0, 0] = np.full((4, 4), 0.3) - 0.29 * np.eye(4)  # from -0.29 to 0.91
    state.means[:] = 1.0
    bank.validate(state)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    for size in (1.0, 10.0 ** rng.integers(-9, 99, size=(50, 3)), 1e3):
        found = bank.attributions(bank.checked(X * size), np.ones((50, 1)), np.ones((50, 1)))
        assert np.all(np.isfinite(found.parts))
        if np.ndim(size) == 0:
            np.testing.assert_allclose(found.start + found.parts.sum(axis=1), bank.scores(X * size)[:, 0], rtol=1e-6)
        assert np.all(np.isfinite(bank.scores_then_learn(X * size, rng.integers(2, size=50), 1e9)))
        bank.validate(state)


def test_means_are_bounded_so_that_no_row_overflows() -> None:
    X, y, _ = rows()
    bank = LogisticBank(2, precision=1e-40).start(3, 3)
    state = bank.state
    assert state is not None
    state.means[:] = 1e229
    with pytest.raises(ValueError, match="means must be within reach of the rows"):
        bank.validate(state)
    state.means[:] = 4 * 1e100 * 2**20 * MOST_WEIGHT * MOST_ROWS / 1e-40
    bank.validate(state)
    assert np.all(np.isfinite(bank.scores_then_learn(X * 1e99, y, 1e9)))
    bank.validate(state)  # further rows are lost in its rounding

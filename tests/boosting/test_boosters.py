import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array, csr_array, csr_matrix

from bayesvote.boosting import OGBoost, OSBoost, OzaBoost, _booster
from bayesvote.boosting._booster import Booster
from bayesvote.boosting._kernels import _project
from bayesvote.boosting._poisson_kernels import poisson
from bayesvote.boosting._state import BoosterState
from bayesvote.core.checks import Array, Labels
from bayesvote.core.state import Shape
from oracles import boosting as oracle

MEMBERS = ("perceptron", "naive_bayes")
MAKERS: dict[str, Callable[..., Booster]] = {
    "oza": OzaBoost,
    "gradient": OGBoost,
    "uniform": OSBoost,
    "expert": lambda **options: OSBoost(variant="expert", **options),
    "convex": lambda **options: OSBoost(variant="convex", **options),
}
every = pytest.mark.parametrize("name", MAKERS)
both = pytest.mark.parametrize("member", MEMBERS)


def stream(n: int, seed: int, n_classes: int = 2) -> tuple[Array, Labels, Array]:
    """Gaussian, binary, constant, sparse and late-changing features; weights with zeros."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    X = rng.normal(size=(n, 6)) + 0.7 * y[:, None]
    X[:, 1] = rng.random(n) < 0.3 + 0.3 * (y == 1)
    X[:, 2] = np.where(rng.random(n) < 0.2, X[:, 2], 0.0)
    X[:, 3] = 2.0
    X[:, 4] = np.where(rng.random(n) < 0.4, -1.0, 1.0)
    X[n // 2, 4] = 0.5
    weight = rng.choice([0.0, 0.3, 1.0, 2.5], size=n, p=[0.1, 0.2, 0.5, 0.2])
    return X, y, weight


def started(state: BoosterState | None) -> BoosterState:
    assert state is not None
    return state


def copied(state: BoosterState | None) -> BoosterState:
    return BoosterState._make(array.copy() for array in started(state))


def same(a: BoosterState | None, b: BoosterState | None) -> None:
    for name, x, z in zip(BoosterState._fields, started(a), started(b), strict=True):
        np.testing.assert_array_equal(x, z, err_msg=name)


def twin(model: Booster, pool: int = 1) -> oracle.Oza | oracle.Gradient | oracle.Smooth:
    """Make the oracle for a just started two-class model."""
    state = started(model.state)
    key = state.clock[0, 0]
    m = state.record.shape[2]
    rows: list[tuple[oracle.Row, float]] = []
    members: list[oracle.Member] = (
        [oracle.Perceptron(w) for w in state.weights[0].T.tolist()]
        if model.member == "perceptron"
        else [oracle.NaiveBayes(rows) for _ in range(m)]
    )
    if isinstance(model, OzaBoost):
        return oracle.Oza(members, lambda rate, t, i: poisson(rate, key, np.uint64(t * m + i)))
    if isinstance(model, OSBoost):
        return oracle.Smooth(members, model.gamma, model.variant)
    return oracle.Gradient(members, pool)


@every
@both
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_follows_the_oracle_step_by_step(name: str, member: str, seed: int) -> None:
    X, y, weight = stream(40, seed)
    X[5, 2] = np.nan
    model = MAKERS[name](member=member, n_members=7).start(6, rng=seed)
    slow = twin(model)
    for x, label, w in zip(X, y, weight, strict=True):
        loss = model.decide_then_learn(x[None], [label], [w])
        row = x.tolist()
        complete = bool(np.all(np.isfinite(x)))
        expected = slow.vote(row) if complete else 0.0
        np.testing.assert_allclose(loss, [[expected, -expected]], rtol=1e-9, atol=1e-9)
        if complete and w > 0:
            slow.learn(row, 2 * int(label) - 1, float(w))
        np.testing.assert_allclose(started(model.state).record[0], slow.record, rtol=1e-9, atol=1e-12)
    if member == "perceptron":
        moved = [m.weights for m in slow.members if isinstance(m, oracle.Perceptron)]
        np.testing.assert_allclose(started(model.state).weights[0].T, moved, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["oza", "gradient", "uniform"])
@pytest.mark.parametrize("binary", [True, False])
def test_products_over_many_features_stay_in_range(name: str, binary: bool) -> None:
    rng = np.random.default_rng(10)
    y = rng.integers(2, size=24)
    d = 90 if binary else 35
    X = (rng.random((24, d)) < 0.002) * 1.0 if binary else rng.normal(size=(24, d))
    X[0] = 1.0  # of the binary features a value so rare that all of them together have a probability of 1e-190
    whole, parts = (MAKERS[name](member="naive_bayes", n_members=3).start(d, rng=10) for _ in range(2))
    slow = twin(parts)
    losses = whole.decide_then_learn(X, y)
    for x, label, loss in zip(X, y, losses, strict=True):
        np.testing.assert_array_equal(parts.decide_then_learn(x[None], [label])[0], loss)
        assert loss[0] == pytest.approx(slow.vote(x.tolist()), abs=1e-9)
        slow.learn(x.tolist(), 2 * int(label) - 1, 1.0)
    same(parts.state, whole.state)


def test_selectors_with_a_pool_follow_the_oracle() -> None:
    X, y, weight = stream(60, 3)
    model = OGBoost(n_members=4, pool=3).start(6, rng=3)
    slow = twin(model, pool=3)
    for x, label, w in zip(X, y, weight, strict=True):
        loss = model.decide_then_learn(x[None], [label], [w])[0, 0]
        assert loss == pytest.approx(slow.vote(x.tolist()), abs=1e-9)
        if w > 0:
            slow.learn(x.tolist(), 2 * int(label) - 1, float(w))
    np.testing.assert_allclose(started(model.state).record[0], slow.record, rtol=1e-9)


@every
@both
@settings(deadline=None, max_examples=8)
@given(cuts=st.lists(st.integers(0, 80), max_size=6), seed=st.integers(0, 5))
def test_chunks_of_any_size_change_nothing(name: str, member: str, cuts: list[int], seed: int) -> None:
    X, y, weight = stream(80, seed, n_classes=2 + seed % 2)
    edges = [0, *sorted(cuts), 80]
    whole, parts = (MAKERS[name](member=member, n_members=9).start(6, 2 + seed % 2, rng=seed) for _ in range(2))
    expected = whole.decide_then_learn(X, y, weight)
    got = [parts.decide_then_learn(X[a:b], y[a:b], weight[a:b]) for a, b in pairwise(edges)]
    np.testing.assert_array_equal(np.concatenate(got), expected)
    same(parts.state, whole.state)


@every
@both
def test_dividing_the_members_between_cores_changes_nothing(
    name: str, member: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, weight = stream(150, 9)
    X[70, 0] = np.nan
    monkeypatch.setattr(_booster, "_BLOCK", 20)
    models = [MAKERS[name](member=member, n_members=41).start(6, rng=9) for _ in range(2)]
    losses = []
    for n_threads, model in enumerate(models, start=1):
        monkeypatch.setattr(_booster, "n_threads", lambda n=n_threads: n)
        losses.append(model.decide_then_learn(X, y, weight))
    np.testing.assert_array_equal(losses[0], losses[1])
    same(models[0].state, models[1].state)


@every
@both
def test_sparse_rows_equal_dense_ones(name: str, member: str) -> None:
    X, y, _ = stream(80, 1)
    X[7, 0] = np.nan
    forms: list[Any] = [X, csr_array(X), csr_matrix(X), csc_array(X)]
    models = [MAKERS[name](member=member, n_members=9).start(6, rng=1) for _ in forms]
    losses = [model.decide_then_learn(form, y) for model, form in zip(models, forms, strict=True)]
    for model, loss in zip(models[1:], losses[1:], strict=True):
        np.testing.assert_array_equal(loss, losses[0])
        same(model.state, models[0].state)


@every
@both
def test_a_restored_model_goes_on_bit_for_bit(name: str, member: str) -> None:
    X, y, weight = stream(80, 2)
    model = MAKERS[name](member=member, n_members=9).start(6, rng=2)
    model.decide_then_learn(X[:50], y[:50], weight[:50])
    other = MAKERS[name](member=member, n_members=9)
    other.install(copied(model.state), Shape(6, 2))
    expected, got = (m.decide_then_learn(X[50:], y[50:], weight[50:]) for m in (model, other))
    np.testing.assert_array_equal(got, expected)
    same(model.state, other.state)


@every
@both
def test_deciding_learns_nothing(name: str, member: str) -> None:
    X, y, _ = stream(80, 3)
    model = MAKERS[name](member=member, n_members=9).start(6, rng=3)
    model.decide_then_learn(X[:60], y[:60])
    before = copied(model.state)
    decided = model.decide(X[60:61])
    same(model.state, before)
    np.testing.assert_array_equal(decided, model.decide_then_learn(X[60:61], y[60:61]))


@every
@both
def test_incomplete_and_weightless_rows_are_not_learned(name: str, member: str) -> None:
    X, y, _ = stream(80, 4)
    model = MAKERS[name](member=member, n_members=9).start(6, rng=4)
    model.decide_then_learn(X[:60], y[:60])
    before = copied(model.state)
    hole = X[60:61].copy()
    hole[0, 3] = np.nan
    np.testing.assert_array_equal(model.decide_then_learn(hole, y[60:61]), [[0.0, 0.0]])
    model.decide_then_learn(X[60:], y[60:], np.zeros(20))
    same(model.state, before)


@every
@both
def test_refused_input_leaves_the_state_alone(name: str, member: str) -> None:
    X, y, _ = stream(20, 5)
    model = MAKERS[name](member=member, n_members=9).start(6, rng=5)
    model.decide_then_learn(X, y)
    before = copied(model.state)
    infinite = X.copy()
    infinite[-1, -1] = np.inf
    late = y.copy()
    late[-1] = 2
    who = type(model).__name__
    with pytest.raises(ValueError, match=f"{who}: X must hold finite numbers"):
        model.decide_then_learn(infinite, y)
    with pytest.raises(ValueError, match=f"{who}: X must hold finite numbers"):
        model.decide(csr_array(infinite))
    with pytest.raises(ValueError, match=f"{who}: X must have 6 features"):
        model.decide_then_learn(X[:, :5], y)
    with pytest.raises(ValueError, match=f"{who}: X must be two-dimensional"):
        model.decide(X[0])
    with pytest.raises(TypeError, match=f"{who}: X must hold real numbers"):
        model.decide(X.astype(str))
    with pytest.raises(ValueError, match=f"{who}: y must hold class indices"):
        model.decide_then_learn(X, late)
    with pytest.raises(ValueError, match=f"{who}: y must hold class indices"):
        model.decide_then_learn(X, np.full(20, np.nan))
    with pytest.raises(ValueError, match=f"{who}: sample_weight"):
        model.decide_then_learn(X, y, np.full(20, -1.0))
    with pytest.raises(ValueError, match=f"{who}: sample_weight"):
        model.decide_then_learn(X, y, np.full(20, np.nan))
    same(model.state, before)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (OzaBoost(member="tree"), "OzaBoost: member must be one of"),
        (OzaBoost(n_members=0), "OzaBoost: n_members must be an integer of at least 1"),
        (OGBoost(pool=0), "OGBoost: pool must be an integer of at least 1"),
        (OGBoost(member="naive_bayes", pool=2), "OGBoost: pool must be 1 with naive Bayes"),
        (OSBoost(gamma=0.0), "OSBoost: gamma must be a finite number above 0"),
        (OSBoost(gamma=1.0), "OSBoost: gamma must be below 1"),
        (OSBoost(variant="experts"), "Did you mean 'expert'"),
    ],
)
def test_refuses_a_wrong_configuration(model: Booster, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        model.start(3)
    with pytest.raises(ValueError, match="must be started"):
        model.decide(np.zeros((1, 3)))


@every
@both
def test_three_classes_are_one_against_the_rest(name: str, member: str) -> None:
    X, y, weight = stream(300, 6, n_classes=3)
    X[:, 5] = np.where(y == 1, 3.0, 0.0) + np.random.default_rng(0).normal(size=300)
    model = MAKERS[name](member=member, n_members=9).start(6, 3, rng=6)
    alone = []
    for k in range(3):
        one = MAKERS[name](member=member, n_members=9)
        of_one = BoosterState._make(array[None].copy() for array in started(model.state).of_booster(k))
        one.install(of_one, Shape(6, 2))
        alone.append(one.decide_then_learn(X, y == k, weight)[:, 1])
    losses = model.decide_then_learn(X, y, weight)
    np.testing.assert_array_equal(losses, np.stack(alone, axis=1))
    assert np.mean(np.argmin(losses[150:], axis=1) != y[150:]) < 0.5


@every
@both
def test_learns_what_can_be_learned(name: str, member: str) -> None:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(4000, 8))
    y = (X[:, 0] + X[:, 1] + 0.2 * rng.normal(size=4000) > 0).astype(np.intp)
    losses = MAKERS[name](member=member).start(8, rng=7).decide_then_learn(X, y)
    assert np.mean((losses[:, 1] <= losses[:, 0])[2000:] != y[2000:]) < 0.12


@both
@every
@pytest.mark.parametrize("scale", [1e-160, 1e-8, 1e12, 1e98])
def test_no_scale_of_the_features_ruins_a_model(name: str, member: str, scale: float) -> None:
    X, y, _ = stream(60, 8)
    model = MAKERS[name](member=member, n_members=9).start(6, rng=8)
    losses = model.decide_then_learn(np.concatenate([X * scale, X]), np.concatenate([y, y]))
    assert np.all(np.isfinite(losses))
    for field, array in started(model.state)._asdict().items():
        assert field == "pair" or np.all(np.isfinite(array)), field


@both
@every
@pytest.mark.parametrize("weight", [5e-324, 1e-200, 1e9])
def test_no_sample_weight_that_is_taken_ruins_a_model(name: str, member: str, weight: float) -> None:
    """The rates of OzaBoost are products of weights, and must not become 0/0."""
    X, y, _ = stream(60, 8)
    model = MAKERS[name](member=member, n_members=9).start(6, rng=8)
    for w in (weight, 1.0):
        assert np.all(np.isfinite(model.decide_then_learn(X, y, w)))
        model.validate(started(model.state))


@pytest.mark.parametrize("mean", [1e-3, 0.6, 4.0, 9.9, 10.1, 60.0, 3e3])
def test_poisson_draws_have_the_right_distribution(mean: float) -> None:
    from scipy.stats import chisquare
    from scipy.stats import poisson as exact

    n = 20_000 if mean < 10 else 200_000  # the second method's constants show only so
    draws = np.array([poisson(mean, np.uint64(11), np.uint64(i)) for i in range(n)])
    assert abs(draws.mean() - mean) < 5 * np.sqrt(mean / n)
    edges = np.unique(exact.ppf([0.05, 0.2, 0.4, 0.6, 0.8, 0.95], mean))
    observed = np.diff([0, *(np.sum(draws <= e) for e in edges), n])
    expected = n * np.diff([0.0, *exact.cdf(edges, mean), 1.0])
    assert chisquare(observed, expected).pvalue > 1e-4


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=30))
@settings(deadline=None)
def test_projection_onto_the_simplex(x: list[float]) -> None:
    got = np.array(x)
    _project(got)
    assert got.sum() == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(got, oracle.project(x), atol=1e-9)


def test_importing_the_boosters_loads_no_compiler() -> None:
    code = "import sys, bayesvote.boosting; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

"""What every bank promises: each kind of the table goes through all of it."""

import copy
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from bayesvote import (
    Committees,
    Compact,
    Ensemble,
    EstimatorBank,
    FernBank,
    Frozen,
    LinearBank,
    LogisticBank,
    NaiveBayesBank,
    NeighbourBank,
    PerceptronBank,
    Scaled,
    TreeBank,
    Union,
    pretrain,
)
from bayesvote.core.checks import Array, Labels
from bayesvote.core.rows import as_rows
from bayesvote.io.model_file import dumps, loads
from bayesvote.members import BANKS, Bank
from contracts.toy_bank import CentroidBank

bayes: Any = import_module("sklearn.naive_bayes")

D, N = 6, 130


def rows(n_classes: int, seed: int = 0, missing: float = 0.02) -> tuple[Array, Labels, Array]:
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=N)
    X = rng.normal(size=(N, D)) + 0.5 * y[:, None]
    X[:, 0] = rng.integers(2, size=N)
    X[:, 1] = np.where(rng.random(N) < 0.6, 0.0, X[:, 1])
    X[rng.random((N, D)) < missing] = np.nan
    return X, y, rng.choice([0.0, 0.5, 1.0, 2.0], size=N)


def frozen(n_classes: int) -> Bank[Any]:
    X, y, w = rows(n_classes, seed=5)
    return pretrain(PerceptronBank(3).start(D, n_classes, rng=0), X, y, w)


def fitted(n_classes: int) -> Bank[Any]:
    X, y, _ = rows(n_classes, seed=6, missing=0)
    return EstimatorBank([bayes.GaussianNB().fit(X, y), (bayes.GaussianNB().fit(X[:, :2], y), [0, 1])])


# At least one bank of every kind; a kind that is not here fails the first test.
SAMPLES: dict[str, Callable[[int], Bank[Any]]] = {
    "perceptron": lambda _: PerceptronBank(4),
    "averaged": lambda _: PerceptronBank(4, max_features=None, averaged=True),
    "linear": lambda _: LinearBank(4, max_features=0.5),
    "linear_squared": lambda _: LinearBank(4, rule="passive_aggressive_squared"),
    "logistic": lambda _: LogisticBank(3, precision=(0.1, 10.0)),
    "logistic_of_few": lambda _: LogisticBank(2, max_features=4),
    "naive_bayes": lambda _: NaiveBayesBank(4),
    "neighbour": lambda _: NeighbourBank((7, 40), neighbours=4),
    "neighbours_of_few": lambda _: NeighbourBank((30,), max_features=4),
    "committees": lambda _: Committees(NaiveBayesBank(4), [3, 1]),
    "compact": lambda _: Compact(Union([PerceptronBank(3), NaiveBayesBank(2)]), first=3),
    "compact_scaled": lambda _: Compact(Scaled(LogisticBank(2)), first=4, max_features=5),
    "fern": lambda _: FernBank(4, depth=3, warmup=64),
    "tree": lambda _: TreeBank(3, recent=[(16, 2, 8)], refined=[1.0, 10.0], rows_kept=32, max_nodes=25),
    "frozen": frozen,
    "scaled": lambda _: Scaled(PerceptronBank(4)),
    "union": lambda k: Union([PerceptronBank(2), Union([NaiveBayesBank(2)]), frozen(k)]),
    "estimators": fitted,
    "toy": lambda _: CentroidBank(4),
}


def test_every_kind_has_a_sample() -> None:
    assert {type(make(2)) for make in SAMPLES.values()} - {CentroidBank} == set(BANKS.values())


every = pytest.mark.parametrize("name", SAMPLES)
both = pytest.mark.parametrize("n_classes", [2, 3])


def same(a: Any, b: Any) -> None:
    if isinstance(a, tuple):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            same(one, other)
    elif isinstance(a, np.ndarray):
        np.testing.assert_array_equal(a, b)


def objects(bank: Bank[Any]) -> dict[str, Any]:
    return {"bank.estimators": bank.estimators} if isinstance(bank, EstimatorBank) else {}


@every
@both
def test_shapes_and_attributes(name: str, n_classes: int) -> None:
    bank = SAMPLES[name](n_classes).start(D, n_classes, rng=1)
    assert bank.shape == (D, n_classes)
    assert (bank.n_features, bank.n_classes) == (D, n_classes)
    X, y, w = rows(n_classes)
    expected = (N, bank.n_members) if n_classes == 2 else (N, bank.n_members, n_classes)
    assert bank.scores(X).shape == bank.scores_then_learn(X, y, w).shape == expected
    assert bank.scores(X[:0]).shape == (0, *expected[1:])
    assert len(bank.member_names()) == bank.n_members
    together = sum(part.n_members for part in bank.parts)
    assert together in (0, bank.n_members) or name == "committees"
    assert all(part.lock is bank.lock for part in bank.parts)


@every
@both
@pytest.mark.parametrize("cuts", [[1, 2, 50], [64, 65, 128], list(range(1, N))], ids=["few", "edges", "rows"])
def test_chunks_change_nothing(name: str, n_classes: int, cuts: list[int]) -> None:
    X, y, w = rows(n_classes)
    one, many = (SAMPLES[name](n_classes).start(D, n_classes, rng=1) for _ in range(2))
    expected = one.scores_then_learn(X, y, w)
    edges = [0, *cuts, N]
    got = [many.scores_then_learn(X[a:b], y[a:b], w[a:b]) for a, b in pairwise(edges)]
    averaged = name == "averaged"  # their scores are sums, in an order that depends on the chunk
    np.testing.assert_allclose(np.concatenate(got), expected, rtol=1e-10 if averaged else 0, atol=0)
    same(many.state, one.state)


@every
@both
def test_sparse_rows_are_dense_rows(name: str, n_classes: int) -> None:
    X, y, w = rows(n_classes)
    dense, sparse = (SAMPLES[name](n_classes).start(D, n_classes, rng=1) for _ in range(2))
    expected, got = dense.scores_then_learn(X, y, w), sparse.scores_then_learn(csr_array(X), y, w)
    np.testing.assert_allclose(got, expected, rtol=1e-10 if name == "averaged" else 0, atol=0)
    same(sparse.state, dense.state)


@every
@both
def test_scores_leave_no_trace_and_a_frozen_bank_none_at_all(name: str, n_classes: int) -> None:
    X, y, w = rows(n_classes)
    bank = SAMPLES[name](n_classes).start(D, n_classes, rng=1)
    bank.scores_then_learn(X, y, w)
    before = copy.deepcopy(bank.state)
    first = bank.scores(X)
    np.testing.assert_array_equal(bank.scores(X), first)
    bank.scores_then_learn(X, y, np.zeros(N))  # rows of weight 0 are not learned
    same(bank.state, before)
    still = Frozen(bank)
    np.testing.assert_array_equal(still.scores_then_learn(X, y, w), first)
    same(bank.state, before)
    assert not still.learns


@every
@pytest.mark.parametrize("what", ["infinite", "wide", "label", "weight", "short"])
def test_a_refused_call_changes_nothing(name: str, what: str) -> None:
    X, y, w = rows(2)
    bank = SAMPLES[name](2).start(D, 2, rng=1)
    bank.scores_then_learn(X[:50], y[:50], w[:50])
    before = copy.deepcopy(bank.state)
    X, y, w = X[50:], y[50:].copy(), w[50:].copy()
    if what == "infinite":
        X = np.where(np.arange(D) == 3, np.inf, X)
    elif what == "wide":
        X = np.concatenate([X, X], axis=1)
    elif what == "label":
        y[-1] = 2
    elif what == "weight":
        w[-1] = -1.0
    else:
        y = y[:-1]
    with pytest.raises(ValueError, match="must"):
        bank.scores_then_learn(X, y, w)
    if what in ("infinite", "wide"):
        with pytest.raises(ValueError, match="must"):
            bank.scores(X)
    same(bank.state, before)


@every
@both
def test_saved_and_loaded_banks_go_on_bit_for_bit(name: str, n_classes: int) -> None:
    X, y, w = rows(n_classes)
    model = Ensemble(SAMPLES[name](n_classes)).start(D, n_classes, rng=1)
    known = {CentroidBank.__name__: CentroidBank} if name == "toy" else {}
    with pytest.MonkeyPatch.context() as patch:
        for key, kind in known.items():
            patch.setitem(BANKS, key, kind)
        model.decide_then_learn(X[:70], y[:70], w[:70])
        again = loads(dumps(model), objects=objects(model.bank))
        for part in (model, again):
            part.decide_then_learn(X[70:], y[70:], w[70:])
        same(again.bank.state, model.bank.state)
        assert dumps(again) == dumps(model)


@every
def test_widening_keeps_what_was_learned_or_is_refused(name: str) -> None:
    X, y, w = rows(2, missing=0)
    bank = SAMPLES[name](2).start(D, 2, rng=1)
    bank.scores_then_learn(X, y, w)
    before = bank.scores(X)
    bank.widen(D + 3, rng=0)
    assert bank.shape == (D + 3, 2)
    wide = np.pad(X, ((0, 0), (0, 3)))
    # A new feature that was always 0 tells the classes apart by its smoothing only.
    np.testing.assert_allclose(bank.scores(wide), before, rtol=1e-12, atol=1e-4)
    bank.scores_then_learn(wide, y, w)
    with pytest.raises(ValueError, match="at least 9"):
        bank.widen(D)


@every
def test_one_feature_becomes_many(name: str) -> None:
    X, y, w = rows(2, missing=0)
    bank = SAMPLES[name](2)
    if bank.shape is None and name not in ("estimators", "frozen", "union", "logistic_of_few"):
        bank.start(1, rng=1).scores_then_learn(X[:, 2:3], y, w)
        bank.widen(4, rng=0).scores_then_learn(X[:, 2:6], y, w)


@every
@pytest.mark.parametrize("widths", [(D + 1, D + 2), (D + 5,), (2 * D + 1,)], ids=str)
def test_widened_banks_come_back(name: str, widths: tuple[int, ...]) -> None:
    X, y, w = rows(2, missing=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BANKS, "toy", CentroidBank)
        model = Ensemble(SAMPLES[name](2)).start(D, 2, rng=1)
        model.decide_then_learn(X, y, w)
        for width in widths:
            model.widen(width, rng=0)
        again = loads(dumps(model), objects=objects(model.bank))
        wide = np.pad(X, ((0, 0), (0, widths[-1] - D)))
        np.testing.assert_array_equal(again.decide_then_learn(wide, y, w), model.decide_then_learn(wide, y, w))


@every
def test_a_bank_that_was_not_started_says_so(name: str) -> None:
    bank = SAMPLES[name](2)
    if bank.shape is None:
        for call in (lambda: bank.scores(np.zeros((1, D))), lambda: bank.widen(9)):
            with pytest.raises(ValueError, match="must be started"):
                call()
    with pytest.raises(ValueError, match="n_features must be"):
        bank.start(0)


@every
@both
def test_attributions_add_up_or_nothing_is_told(name: str, n_classes: int) -> None:
    X, y, w = rows(n_classes)
    bank = SAMPLES[name](n_classes).start(D, n_classes, rng=0)
    bank.scores_then_learn(X, y, w)
    checked, rng = as_rows("test", X), np.random.default_rng(1)
    scores = bank.score(checked)
    coefficients = np.where(np.isnan(scores), 0.0, rng.normal(size=scores.shape))
    found = bank.attributions(checked, coefficients, rng.random(scores.shape[:2]))
    assert found.parts.shape == found.looked.shape == X.shape
    if found.looked.any():
        total = np.nansum((coefficients * scores).reshape(N, -1), axis=1)
        np.testing.assert_allclose(found.parts.sum(axis=1) + found.start, total, rtol=1e-6, atol=1e-5)
    else:
        assert not found.parts.any()
        assert not found.start.any()
    kept = bank.kept_rows()
    assert kept is None or kept.shape[1] == D


@every
@both
def test_a_frozen_state_scores_as_before_and_is_sound(name: str, n_classes: int) -> None:
    X, y, w = rows(n_classes)
    bank = SAMPLES[name](n_classes).start(D, n_classes, rng=1)
    bank.scores_then_learn(X, y, w)
    expected = bank.scores(X)
    shape = bank.shape
    assert shape is not None
    bank.install(bank.frozen_state(), shape)
    np.testing.assert_array_equal(bank.scores(X), expected)
    bank.validate(bank.state)

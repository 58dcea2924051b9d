"""Boosters whose Perceptrons see standardised numbers: those of plain boosters over rows that were standardised."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_wine

from bayesvote import OGBoost, OSBoost, OzaBoost, OzaBoostClassifier, PerceptronBank, Scaled
from bayesvote.io.model_file import dumps, loads

BOOSTERS = [OzaBoost, OGBoost, OSBoost]


def rows(n: int = 300) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)) * [1.0, 1e4, 1e-3, 1.0] + [0.0, 5e4, 0.0, 3.0]
    X[:, 3] *= rng.random(n) < 0.1
    return X, (X[:, 1] > 5e4).astype(int) + (X[:, 2] > 1e-3)


@pytest.mark.parametrize("booster", BOOSTERS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_they_are_plain_boosters_over_standardised_rows(booster: Any, n_classes: int, missing: float) -> None:
    X, y = rows()
    X[np.random.default_rng(2).random(X.shape) < missing] = np.nan
    y = np.minimum(y, n_classes - 1)
    w = np.random.default_rng(1).choice([0.0, 1.0, 2.0], len(y))
    scaled = booster(n_members=5, scale=True).start(4, n_classes, rng=3)
    plain = booster(n_members=5).start(4, n_classes, rng=3)
    scaler = Scaled(PerceptronBank(n_members=1)).start(4, n_classes)
    for x, k, v in zip(X, y, w, strict=True):
        seen = scaler.standardised(scaler.checked(x[None])).todense()
        np.testing.assert_array_equal(scaled.decide(x[None]), plain.decide(seen))
        scaler.scores_then_learn(x[None], [k], [v])
        found = scaled.decide_then_learn(x[None], [k], [v])
        np.testing.assert_array_equal(found, plain.decide_then_learn(seen, [k], [v]))


@pytest.mark.parametrize("booster", BOOSTERS)
def test_a_row_with_a_missing_value_is_predicted_and_learned(booster: Any) -> None:
    X, y = rows()
    model = booster(n_members=5, scale=True).start(4, 3, rng=3)
    model.decide_then_learn(X, y)
    before = dumps(model)
    x = [[np.nan, X[0, 1], np.nan, 0.0]]
    assert np.any(model.decide_then_learn(x, [1]))
    assert dumps(model) != before
    assert model.about()["rows_learned"] == 301


@pytest.mark.parametrize("booster", BOOSTERS)
def test_chunks_sparse_rows_and_files_give_the_same_bits(booster: Any) -> None:
    X, y = rows(900)
    X[np.random.default_rng(2).random(X.shape) < 0.1] = np.nan
    whole = booster(n_members=40, scale=True).start(4, 3, rng=3)
    expected = whole.decide_then_learn(X, y)
    parts = booster(n_members=40, scale=True).start(4, 3, rng=3)
    found = []
    for first, last in ((0, 1), (1, 200), (200, 900)):
        found.append(parts.decide_then_learn(csr_array(X[first:last]), y[first:last]))
        before = dumps(parts)
        parts.decide(X)
        assert dumps(parts) == before  # predictions leave no trace
        parts = loads(before)
    np.testing.assert_array_equal(np.concatenate(found), expected)
    assert dumps(parts) == dumps(whole)
    wide = booster(n_members=3, scale=True).start(3, 3, rng=3)
    wide.decide_then_learn(X[:50, :3], y[:50])
    wide.widen(4, rng=0).decide_then_learn(X[50:], y[50:])
    assert np.all(np.isfinite(wide.decide(X)))


def test_naive_bayes_sees_numbers_as_they_are() -> None:
    X, y = rows()
    found = [
        OzaBoost("naive_bayes", 3, scale=flag).start(4, 3, rng=0).decide_then_learn(X, y) for flag in (True, False)
    ]
    np.testing.assert_array_equal(found[0], found[1])


def test_forged_scales_are_refused() -> None:
    X, y = rows()
    model = OzaBoost(n_members=3, scale=True).start(4, 3, rng=0)
    model.decide_then_learn(X, y)
    for place, value in (((0, 0, 0), -1.0), ((0, 0, 2), 5.0), ((0, 2, 1), 1e9), ((0, 4, 0), -1.0)):
        state: Any = model.state
        scales = state.scales.copy()
        scales[place] = value
        with pytest.raises(ValueError, match="must"):
            model.validate(state._replace(scales=scales))


def test_classifiers_scale_by_default_and_the_papers_are_within_reach() -> None:
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    scaled = OzaBoostClassifier(random_state=0)
    assert np.mean(scaled.predict_proba_then_learn(X, y, classes=[0, 1, 2]).argmax(axis=1) != y) < 0.1
    plain = OzaBoostClassifier(scale=False, random_state=0)
    assert np.mean(plain.predict_proba_then_learn(X, y, classes=[0, 1, 2]).argmax(axis=1) != y) > 0.3
    paper = OzaBoost().start(X.shape[1], 3, rng=0)
    paper.decide_then_learn(X, y)
    np.testing.assert_array_equal(plain.model_.decide(X), paper.decide(X))

"""Weights of the classes: the same as sample weights, whatever the chunks, kept in files."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from bayesvote import (
    BayesianEnsembleClassifier,
    Frozen,
    GammaRate,
    OGBoostClassifier,
    OSBoostClassifier,
    OzaBoostClassifier,
    PerceptronBank,
)
from bayesvote.core.checks import Array
from bayesvote.io.model_file import dumps, loads

checks: Any = import_module("sklearn.utils.estimator_checks")
CLASSIFIERS: list[Any] = [BayesianEnsembleClassifier, OzaBoostClassifier, OGBoostClassifier, OSBoostClassifier]


def stream(n: int = 400) -> tuple[Array, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    return X, np.where(X[:, 0] + rng.normal(size=n) > 1.2, "rare", "usual")


def balanced_by_hand(y: Any, w: Array, classes: list[str]) -> Array:
    counts, out = dict.fromkeys(classes, 0.0), []
    for label, weight in zip(y, w, strict=True):
        out.append(weight * (sum(counts.values()) + len(classes)) / (len(classes) * (counts[label] + 1)))
        counts[label] += weight
    return np.array(out)


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("class_weight", [{"rare": 3.0}, "balanced"])
def test_class_weights_are_sample_weights(kind: Any, class_weight: Any) -> None:
    X, y = stream()
    w = np.random.default_rng(1).choice([0.0, 0.5, 2.0], size=len(y))
    options: dict[str, Any] = {"n_members": 9, "shuffle": False, "random_state": 0}
    by_class = kind(class_weight=class_weight, **options).fit(X, y, sample_weight=w)
    by_hand = np.where(y == "rare", 3.0, 1.0) * w
    if class_weight == "balanced":
        by_hand = balanced_by_hand(y, w, ["rare", "usual"])
    by_sample = kind(**options).fit(X, y, sample_weight=by_hand)
    np.testing.assert_allclose(by_class.predict_proba(X), by_sample.predict_proba(X), rtol=1e-9)
    without = kind(**options).fit(X, y, sample_weight=w)
    assert not np.allclose(by_class.predict_proba(X), without.predict_proba(X))


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_chunks_and_files_change_nothing(kind: Any) -> None:
    X, y = stream(200)
    w = np.random.default_rng(1).gamma(1.0, 1.0, len(y))
    whole = kind(n_members=9, class_weight="balanced", shuffle=False, random_state=0).fit(X, y, sample_weight=w)
    parts = kind(n_members=9, class_weight="balanced", random_state=0)
    for first, last in ((0, 1), (1, 90), (90, 91), (91, 200)):
        at = slice(first, last)
        parts.partial_fit(X[at], y[at], classes=["rare", "usual"], sample_weight=w[at])
        parts = loads(dumps(parts))
    np.testing.assert_array_equal(whole.predict_proba(X), parts.predict_proba(X))
    np.testing.assert_array_equal(whole.class_counts_, parts.class_counts_)
    np.testing.assert_allclose(whole.class_counts_, [w[y == label].sum() for label in ("rare", "usual")])


@pytest.mark.parametrize("class_weight", [{"rare": 3.0, "usual": 0.5}, {1: 2.0}, {True: 2.0, False: 1.0}])
def test_weights_in_files(class_weight: Any) -> None:
    X, y = stream(50)
    labels = y if "rare" in class_weight else (y == "rare").astype(type(next(iter(class_weight))))
    model = BayesianEnsembleClassifier("perceptron", 3, class_weight=class_weight).fit(X, labels)
    assert loads(dumps(model)).class_weight == class_weight


def test_the_rare_class_is_found_more_often() -> None:
    X, y = stream(3000)
    plain, balanced = (BayesianEnsembleClassifier(class_weight=given, random_state=0) for given in (None, "balanced"))
    rare = X[2000:][y[2000:] == "rare"]
    found = [np.mean(model.fit(X[:2000], y[:2000]).predict(rare) == "rare") for model in (plain, balanced)]
    assert found[1] > found[0] + 0.1


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ("even", "balanced"),
        (3.0, "balanced"),
        ({"seldom": 2.0}, "seldom"),
        ({"rare": 0.0}, "above 0"),
        ({"rare": float("inf")}, "above 0"),
        ({"rare": "much"}, "above 0"),
        ({"rare": 1e12}, "at most 1e"),
    ],
)
def test_what_is_refused(class_weight: Any, message: str) -> None:
    X, y = stream(50)
    with pytest.raises((ValueError, TypeError), match=message):
        BayesianEnsembleClassifier("perceptron", 3, class_weight=class_weight).fit(X, y)


def test_unlearning_by_class_weights() -> None:
    X, y = stream(100)
    bank = PerceptronBank(5).start(4, rng=0)
    bank.scores_then_learn(X, (y == "usual").astype(np.intp))
    both, first = (
        BayesianEnsembleClassifier(Frozen(bank), weighter=GammaRate(), class_weight={"rare": 4.0}) for _ in range(2)
    )
    both.fit(X, y).unlearn(X[50:], y[50:])
    first.partial_fit(X[:50], y[:50], classes=["rare", "usual"])
    np.testing.assert_allclose(both.weights_["mean"], first.weights_["mean"], rtol=1e-12)
    balanced = BayesianEnsembleClassifier(Frozen(bank), weighter=GammaRate(), class_weight="balanced").fit(X, y)
    with pytest.raises(TypeError, match="balanced"):
        balanced.unlearn(X[50:], y[50:])


def test_river_looks_up_its_own_labels() -> None:
    pytest.importorskip("river")
    from bayesvote.integrations.river import BayesianEnsembleClassifier as OfRiver

    X, y = stream(200)
    rows = [dict(zip("abcd", x, strict=True)) for x in X.tolist()]
    given: dict[str, Any] = {"n_members": 9, "seed": 0, "classes": ["usual", "rare"]}
    for class_weight in ({"rare": 5.0}, "balanced"):
        model, plain = OfRiver(**given, class_weight=class_weight), OfRiver(**given)
        by_hand = np.where(y == "rare", 5.0, 1.0)
        if class_weight == "balanced":
            by_hand = balanced_by_hand(y, np.ones(len(y)), ["usual", "rare"])
        for x, label, w in zip(rows, y.tolist(), by_hand.tolist(), strict=True):
            model.learn_one(x, label)
            plain.learn_one(x, label, w=w)
        restored = loads(dumps(model))
        for x in rows[:20]:
            assert model.predict_proba_one(x) == pytest.approx(plain.predict_proba_one(x))
            assert restored.predict_proba_one(x) == model.predict_proba_one(x)
    unknown = OfRiver(n_members=9, seed=0, class_weight={"rare": 5.0})
    for x, label in zip(rows, y.tolist(), strict=True):
        unknown.learn_one(x, label)
    assert loads(dumps(unknown)).predict_one(rows[0]) == unknown.predict_one(rows[0])


def _outweighed(model: Any) -> None:
    """Run scikit-learn's check: classes that weigh 1000 and 0.0001 in 50 rows that overlap."""
    checks.check_class_weight_classifiers(type(model).__name__, model)


@pytest.mark.parametrize("n_members", [1, 10, 100])
@pytest.mark.parametrize("member", ["perceptron", "naive_bayes"])
@pytest.mark.parametrize("kind", [OGBoostClassifier, OSBoostClassifier])
def test_boosters_follow_weights_of_classes(kind: Any, member: str, n_members: int) -> None:
    _outweighed(kind(n_members=n_members, member=member))


@pytest.mark.parametrize("n_members", [10, 100])
@pytest.mark.parametrize(
    "members", ["adaptive", "fast", "mixed", "perceptron", "naive_bayes", "fern", "tree", "logistic"]
)
def test_ensembles_follow_weights_of_classes(members: str, n_members: int) -> None:
    _outweighed(BayesianEnsembleClassifier(members, n_members=n_members))


@pytest.mark.parametrize(("member", "n_members"), [("perceptron", 10), ("perceptron", 100), ("naive_bayes", 100)])
def test_ozaboost_undoes_weights_of_classes(member: str, n_members: int) -> None:
    """Why ``check_class_weight_classifiers`` is expected to fail: see CLASS_WEIGHTS in test_classifiers.py."""
    with pytest.raises(AssertionError):
        _outweighed(OzaBoostClassifier(n_members=n_members, member=member))

    X, y = checks.make_blobs(centers=2, random_state=0, cluster_std=20)
    model = OzaBoostClassifier(n_members=n_members, member=member, class_weight={0: 1000, 1: 0.0001}, random_state=0)
    state: Any = model.fit(X, y).model_.state
    right, wrong = state.record[0]
    share = wrong / (right + wrong)
    votes = np.log((1 - share) / np.maximum(share, 1e-10))
    # The first member follows the weights, and has the largest vote in AdaBoost; here, the others have more in sum.
    assert share[0] < 1e-6
    assert np.abs(votes[1:]).sum() > votes[0]

"""The classifiers at home in scikit-learn: its own checks, its tools, tables of three libraries, labels of any kind."""

from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.utils.estimator_checks import check_estimator

from bayesvote.boosting import OGBoost, OSBoost
from bayesvote.core.checks import Array
from bayesvote.ensemble import Ensemble
from bayesvote.estimators import (
    BayesianEnsembleClassifier,
    OGBoostClassifier,
    OSBoostClassifier,
    OzaBoostClassifier,
)
from bayesvote.estimators.base import OnlineClassifier
from bayesvote.io import model_file as persistence
from bayesvote.members import EstimatorBank, NaiveBayesBank, PerceptronBank, Union
from bayesvote.model import decided
from bayesvote.weighting import GammaRate

Online = OnlineClassifier[Any]

ORDER = (
    "The rows are a stream: each is learned by what the rows before it have left. So a row of weight 2 is one step "
    "of twice the size, and a row given twice is two steps, the second of them after the first."
)
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": ORDER,
    "check_sample_weight_equivalence_on_sparse_data": ORDER,
}
CLASS_WEIGHTS = {
    "check_class_weight_classifiers": (
        "OzaBoost raises the weight of the rows that a member gets wrong to half of all weight, which undoes weights "
        "of classes from the second member on. AdaBoost does so, too, but then measures errors near 1/2 and gives "
        "these members small votes. OzaBoost measures the error of a member just after it has learned the row: too low."
    )
}
CLASSIFIERS: list[Online] = [
    BayesianEnsembleClassifier(random_state=0),
    BayesianEnsembleClassifier("naive_bayes", 20, weighter="gamma_rate", calibrated=True, random_state=0),
    OzaBoostClassifier(n_members=20, random_state=0),
    OGBoostClassifier(n_members=20, calibrated=True, random_state=0),
    OSBoostClassifier(n_members=20, random_state=0),
]


def two_classes() -> tuple[Array, NDArray[np.str_]]:
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, np.array(["malignant", "benign"])[y]


def many_classes() -> tuple[Array, NDArray[np.intp]]:
    X, y = load_digits(return_X_y=True)
    return X / 16, 10 * y


@pytest.mark.parametrize("classifier", [BayesianEnsembleClassifier(), *CLASSIFIERS], ids=str)
def test_scikit_learns_own_checks(classifier: Online) -> None:
    expected = EXPECTED | CLASS_WEIGHTS if isinstance(classifier, OzaBoostClassifier) else EXPECTED
    found = check_estimator(classifier, expected_failed_checks=expected, on_skip=None)
    by_status = {status: {c["check_name"] for c in found if c["status"] == status} for status in ("xfail", "skipped")}
    assert by_status["xfail"] == set(expected)
    assert by_status["skipped"] <= {"check_array_api_input"}


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=str)
@pytest.mark.parametrize("data", [two_classes, many_classes])
def test_probabilities_and_decision_function_agree_with_predict(classifier: Online, data: Any) -> None:
    X, y = data()
    model = clone(classifier).fit(X[:300], y[:300])
    hidden = X[300:].copy()
    hidden[0] = np.nan  # answered like an average row
    labels, chances, votes = model.predict(hidden), model.predict_proba(hidden), model.decision_function(hidden)
    assert chances.min() >= 0
    np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(model.classes_[chances.argmax(axis=1)], labels)
    logs = model.predict_log_proba(hidden)
    assert np.isfinite(logs).all()
    np.testing.assert_array_equal(logs, np.log(chances))
    best = votes.argmax(axis=1) if len(model.classes_) > 2 else (votes > 0).astype(int)
    np.testing.assert_array_equal(model.classes_[best], labels)
    assert np.mean(labels == y[300:]) > 0.7


@pytest.mark.parametrize("classifier", [*CLASSIFIERS, BayesianEnsembleClassifier(horizon=0, random_state=0)], ids=str)
def test_chunks_of_any_size_give_the_same(classifier: Online) -> None:
    X, y = two_classes()
    classes = ["malignant", "benign"]
    fitted = clone(classifier).set_params(shuffle=False).fit(X[:120], y[:120]).predict_proba(X)
    whole = clone(classifier).partial_fit(X[:120], y[:120], classes=classes).predict_proba(X)
    np.testing.assert_array_equal(whole, fitted)
    for ends in ([1, 50, 120], range(1, 121)):
        parts = clone(classifier)
        for start, stop in pairwise([0, *ends]):
            parts.partial_fit(X[start:stop], y[start:stop], classes=classes)
        np.testing.assert_array_equal(parts.predict_proba(X), whole)


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=str)
def test_fit_shuffles_by_the_seed(classifier: Online) -> None:
    X, y = two_classes()
    shuffled, again = (clone(classifier).fit(X[:120], y[:120]).predict_proba(X) for _ in range(2))
    np.testing.assert_array_equal(again, shuffled)
    in_order = clone(classifier).set_params(shuffle=False).fit(X[:120], y[:120])
    assert not np.array_equal(in_order.predict_proba(X), shuffled)


def test_the_classifier_is_the_ensemble_and_the_booster() -> None:
    X, y = many_classes()
    labels = y // 10
    model = BayesianEnsembleClassifier(
        "perceptron", 10, weighter="gamma_rate", scale=False, shuffle=False, random_state=7
    )
    model.fit(X[:500], y[:500])
    plain = Ensemble(PerceptronBank(10), GammaRate()).start(64, 10, rng=7)
    plain.decide_then_learn(X[:500], labels[:500])
    np.testing.assert_array_equal(model.predict(X), 10 * decided(plain.decide(X)))
    boosted = OSBoostClassifier("naive_bayes", 3, gamma=0.2, variant="convex", shuffle=False, random_state=7)
    boosted.fit(X[:500], y[:500])
    booster = OSBoost("naive_bayes", 3, gamma=0.2, variant="convex").start(64, 10, rng=7)
    booster.decide_then_learn(X[:500], labels[:500])
    np.testing.assert_array_equal(boosted.predict(X), 10 * decided(booster.decide(X)))
    pooled = OGBoostClassifier("perceptron", 3, pool=4, scale=False, shuffle=False, random_state=7)
    pooled.fit(X[:500], y[:500])
    pools = OGBoost("perceptron", 3, pool=4).start(64, 10, rng=7)
    pools.decide_then_learn(X[:500], labels[:500])
    np.testing.assert_array_equal(pooled.predict(X), 10 * decided(pools.decide(X)))


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=str)
def test_sparse_rows_are_rows(classifier: Online) -> None:
    X, y = many_classes()
    dense = clone(classifier).fit(X[:200], y[:200])
    sparse = clone(classifier).fit(csr_array(X[:200]), y[:200])
    np.testing.assert_allclose(sparse.predict_proba(csr_array(X)), dense.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_tables_keep_their_names(library: str) -> None:
    tables: Any = pytest.importorskip(library)
    X, y = two_classes()
    X = X[:100, :4].copy()
    X[3, 1] = np.nan
    columns = {f"feature {j}": X[:, j] for j in range(4)}
    table = tables.table(columns) if library == "pyarrow" else tables.DataFrame(columns)
    wrong = {name: columns[name] for name in reversed(columns)}
    misnamed = tables.table(wrong) if library == "pyarrow" else tables.DataFrame(wrong)
    model = BayesianEnsembleClassifier(random_state=0).fit(table, y[:100])
    assert model.feature_names_in_.tolist() == list(columns)
    assert model.n_features_in_ == 4
    plain = BayesianEnsembleClassifier(random_state=0).fit(X, y[:100])
    np.testing.assert_array_equal(model.predict_proba(table), plain.predict_proba(X))
    if library == "pandas":  # check_estimator asks for this error
        with pytest.raises(ValueError, match=r"(?s)feature names should match.*must be in the same order"):
            model.predict(misnamed)
    else:
        np.testing.assert_array_equal(model.predict_proba(misnamed), plain.predict_proba(X))


def test_missing_values_of_a_table_are_nan() -> None:
    pandas: Any = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1, None, 3, 4] * 5, "b": [0.5, 1.5, 2.5, 3.5] * 5}).astype({"a": "Int64"})
    model = BayesianEnsembleClassifier(random_state=0).fit(table, [0, 0, 1, 1] * 5)
    assert model.predict(table).shape == (20,)
    with pytest.raises(ValueError, match="finite numbers"):
        model.predict(pandas.DataFrame({"a": [np.inf], "b": [0.0]}))


def test_scikit_learns_tools() -> None:
    selection: Any = import_module("sklearn.model_selection")
    make_pipeline = import_module("sklearn.pipeline").make_pipeline
    scaler = import_module("sklearn.preprocessing").StandardScaler
    calibrated = import_module("sklearn.calibration").CalibratedClassifierCV
    X, y = load_breast_cancer(return_X_y=True)
    pipeline = make_pipeline(scaler(), BayesianEnsembleClassifier(n_members=30, random_state=0))
    assert selection.cross_val_score(pipeline, X, y, cv=3).min() > 0.93
    grid = {
        "bayesianensembleclassifier__members": ["perceptron", "naive_bayes"],
        "bayesianensembleclassifier__weighter": ["gamma_rate", GammaRate(theta=1.0)],
    }
    search = selection.GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.9
    chances = calibrated(pipeline, cv=3).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1)


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=str)
def test_refused_input_changes_nothing(classifier: Online) -> None:
    X, y = two_classes()
    model = clone(classifier)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        model.partial_fit(X[:5], y[:5])
    with pytest.raises(ValueError, match="at least two classes, got one class, \\['benign'\\]"):
        model.fit(X[:5], ["benign"] * 5)
    assert not hasattr(model, "classes_")
    model.fit(X[:100], y[:100])
    before = model.predict_proba(X)
    wide = np.hstack((X, X))
    refused: list[tuple[Array, Any, dict[str, Any], str]] = [
        (X[:2], ["benign", "ill"], {}, "y must hold the classes \\['benign', 'malignant'\\] only, got .*'ill'"),
        (X[:2], y[:2], {"classes": ["a", "b"]}, "classes must be those of the first call"),
        (X[:2], y[:2], {"sample_weight": [1.0, -1.0]}, "at least 0"),
        (np.full((2, 30), np.inf), y[:2], {}, "finite numbers"),
        (wide[:2], y[:2], {}, "60 features"),
        (X[:2], y[:3], {}, "inconsistent numbers"),
    ]
    for rows, labels, options, told in refused:
        with pytest.raises(ValueError, match=told):
            model.partial_fit(rows, labels, **options)
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_a_seed_is_a_seed() -> None:
    X, y = two_classes()

    def chances(random_state: Any) -> Array:
        return BayesianEnsembleClassifier("perceptron", 5, random_state=random_state).fit(X, y).predict_proba(X)

    np.testing.assert_array_equal(chances(1), chances(np.random.default_rng(1)))
    np.testing.assert_array_equal(chances(np.random.RandomState(1)), chances(np.random.RandomState(1)))
    assert not np.array_equal(chances(1), chances(2))


def test_a_bank_that_is_given_stays_as_it_was() -> None:
    X, y = two_classes()
    bank = NaiveBayesBank(5)
    BayesianEnsembleClassifier(bank, random_state=0).fit(X, y)
    assert bank.state is None


def test_a_refused_fit_leaves_a_fitted_classifier_as_it_was() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 4)), rng.integers(2, size=40)
    model = BayesianEnsembleClassifier(n_members=9, random_state=0).fit(X, y)
    before = model.predict_proba(X)
    wide = rng.normal(size=(10, 6))
    refused: list[tuple[Any, Any, Any]] = [
        (wide, np.zeros(10), None),
        (np.where(wide > 1, np.inf, wide), rng.integers(2, size=10), None),
        (wide, np.arange(10) % 2, np.full(10, -1.0)),
    ]
    for rows, labels, weights in refused:
        with pytest.raises(ValueError, match="must"):
            model.fit(rows, labels, weights)
        np.testing.assert_array_equal(model.predict_proba(X), before)


class NoWeights:
    """Learns, but takes no sample weights."""

    def partial_fit(self, X: Array, y: Any) -> None:  # noqa: ARG002
        self.label = y[0]
        self.classes_ = np.array([0, 1])

    def predict(self, X: Array) -> Any:
        return np.full(len(X), self.label)


def test_weights_that_a_member_cannot_take_are_refused_before_any_row_is_learned() -> None:
    X, y = two_classes()
    bank = Union([PerceptronBank(3), EstimatorBank([NoWeights()], online=True)])
    model = BayesianEnsembleClassifier(bank, random_state=0)
    model.partial_fit(X[:50], y[:50], classes=["benign", "malignant"])
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="sample_weight must be 0 or 1"):
        model.partial_fit(X[50:], y[50:], sample_weight=np.full(len(y) - 50, 0.5))
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_labels_that_differ_by_a_trailing_nul_stay_two() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = ["x", "x\0"] * 30
    model = BayesianEnsembleClassifier("perceptron", 3, random_state=0).fit(X, y)
    assert model.classes_.tolist() == ["x", "x\0"]
    again = persistence.loads(persistence.dumps(model))
    assert again.classes_.tolist() == ["x", "x\0"]
    assert set(again.predict(X).tolist()) <= {"x", "x\0"}
    first = BayesianEnsembleClassifier("perceptron", 3).partial_fit(X[:2], y[:2], classes=["x\0", "x", "z"])
    assert first.classes_.tolist() == ["x", "x\0", "z"]
    other = BayesianEnsembleClassifier("perceptron", 3).partial_fit(X[:2], ["x", "z"], classes=["x", "z"])
    with pytest.raises(ValueError, match=r"must hold the classes \['x', 'z'\] only, got 'x\\x00'"):
        other.partial_fit(X[:1], ["x\0"])


@pytest.mark.parametrize("labels", [["ben", None], ["ben", float("nan")], ("ben", None), [1, None], [None, None]])
def test_a_missing_label_in_a_list_is_refused_in_words(labels: Any) -> None:
    model, X = BayesianEnsembleClassifier("perceptron", 3), np.eye(2)
    at = 0 if labels[0] is None else 1
    for y in (labels, np.array(labels, dtype=object)):
        with pytest.raises(ValueError, match=f"y: must hold a label for every row, got a missing one in row {at}"):
            model.fit(X, y)
        with pytest.raises(ValueError, match=f"y: must hold a label for every row, got a missing one in row {at}"):
            model.partial_fit(X, y, classes=["ann", "ben"])
        with pytest.raises(ValueError, match=f"classes: must hold labels only, got a missing one in place {at}"):
            model.partial_fit(X, ["ann", "ben"], classes=y)


def test_labels_of_several_kinds_are_refused_in_words() -> None:
    mixed = np.array(["ann", 1], dtype=object)
    model = BayesianEnsembleClassifier("perceptron", 3)
    with pytest.raises(ValueError, match="y: must hold labels of one kind, got 'ann' and 1"):
        model.fit(np.eye(2), mixed)
    with pytest.raises(ValueError, match="classes: must hold labels of one kind"):
        model.partial_fit(np.eye(2), ["ann", "ann"], classes=mixed)


@pytest.mark.parametrize("method", ["fit", "partial_fit", "predict_proba_then_learn"])
@pytest.mark.parametrize("table", [False, True])
def test_a_warning_shows_the_line_of_the_user_once(method: str, table: bool) -> None:
    X, y = two_classes()
    rows: Any = {"a": ["x", "y"] * 20, "b": X[:40, 0]} if table else X[:40, :2]
    known: dict[str, Any] = {} if method == "fit" else {"classes": ["benign", "malignant"]}
    model = BayesianEnsembleClassifier(n_members=3, random_state=0)
    with pytest.warns(UserWarning, match="A column-vector y was passed") as told:
        getattr(model, method)(rows, y[:40, None], **known)
    assert [warning.filename for warning in told] == [__file__]

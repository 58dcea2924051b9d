"""The fitted record: replaced as a whole, read by the fitted attributes, and copied with the classifier."""

import pickle
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from bayesvote import BayesianEnsembleClassifier, OzaBoostClassifier
from bayesvote.core import rollback
from bayesvote.core.lock import report_rows_learned
from bayesvote.estimators import _class_weight, _learning, around
from bayesvote.estimators.fitted import Fitted
from bayesvote.io.model_file import dumps

ATTRIBUTES = ("model_", "classes_", "n_features_in_", "calibration_", "class_counts_")


def data(n: int = 300) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    return X, np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")


def small(**options: Any) -> BayesianEnsembleClassifier:
    return BayesianEnsembleClassifier("perceptron", 5, random_state=0, **options)


@pytest.mark.parametrize("make", [small, lambda: OzaBoostClassifier(n_members=5, random_state=0)])
def test_attributes_exist_once_fitted_and_are_read_only(make: Any) -> None:
    model, (X, y) = make(), data()
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    for name in (*ATTRIBUTES, "feature_names_in_", "columns_"):
        assert not hasattr(model, name)
    model.fit(X, y)
    check_is_fitted(model)
    for name in ATTRIBUTES:
        getattr(model, name)
        with pytest.raises(AttributeError):
            setattr(model, name, None)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.n_features_in_ == 4
    assert not hasattr(model, "feature_names_in_")
    assert not hasattr(model, "columns_")
    assert [name for name in vars(model) if name.endswith("_")] == ["fitted_"]
    assert not hasattr(clone(model), "model_")


def test_fit_replaces_the_record_and_partial_fit_keeps_it() -> None:
    model, (X, y) = small(), data()
    first = model.fit(X, y).fitted_
    assert model.partial_fit(X, y).fitted_ is first
    with pytest.raises(ValueError, match="must hold finite numbers"):
        model.fit(np.full((4, 4), np.inf), y[:4])
    assert model.fitted_ is first
    assert model.fit(X, y).fitted_ is not first
    assert model.fitted_.model is not first.model


def test_copies_share_nothing(tmp_path: Path) -> None:
    joblib = pytest.importorskip("joblib")
    (X, y), path = data(), tmp_path / "model.joblib"
    model = small(class_weight="balanced").fit(X, y)
    joblib.dump(model, path)
    before = dumps(model)
    copies = [deepcopy(model), pickle.loads(pickle.dumps(model)), joblib.load(path, mmap_mode="r")]
    for copy in copies:
        assert dumps(copy) == before
        copy.partial_fit(X, y)
        assert dumps(copy) != before
        assert dumps(model) == before
    assert len({dumps(copy) for copy in copies}) == 1


def test_a_classifier_of_a_record() -> None:
    X, y = data()
    model = small().fit(X, y)
    again = BayesianEnsembleClassifier.from_fitted(model.fitted_, **model.get_params(deep=False))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    bare = Fitted.of(model.model_)
    assert bare.classes.tolist() == [0, 1]
    assert np.array_equal(around(model.model_).predict(X), (model.predict(X) == "yes").astype(int))
    again.name_features(list("abcd"))
    assert again.feature_names_in_.tolist() == list("abcd")
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("class_weight", [None, "balanced", {"yes": 3.0}])
def test_class_weights_are_computed_once_for_a_call(class_weight: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data()
    model = small(class_weight=class_weight).fit(X, y)
    calls = []

    def noted(*given: Any) -> Any:
        calls.append(len(given[-1]))
        return _class_weight.weighted(*given)

    monkeypatch.setattr(_learning, "weighted", noted)
    model.partial_fit(X, y)
    assert calls == [len(y)]


def test_class_counts_do_not_depend_on_the_chunks() -> None:
    X, y = data()
    w = np.random.default_rng(1).random(len(y))
    whole, parts = small(class_weight="balanced"), small(class_weight="balanced")
    whole.partial_fit(X, y, ["no", "yes"], w)
    for t in range(0, len(y), 7):
        parts.partial_fit(X[t : t + 7], y[t : t + 7], ["no", "yes"], w[t : t + 7])
    assert np.array_equal(whole.class_counts_, parts.class_counts_)
    assert whole.class_counts_ == pytest.approx([w[y == "no"].sum(), w[y == "yes"].sum()])


def test_progress_is_reported_by_the_outermost_method_only(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data()
    model = small().fit(X, y)
    reports = []
    report = report_rows_learned

    def noted(part: Any, *rest: Any) -> Any:
        reports.append(part)
        return report(part, *rest)

    monkeypatch.setattr(rollback, "report_rows_learned", noted)
    model.partial_fit(X[:1], y[:1])
    assert reports == [model]


def test_plain_arrays_and_lists_are_learned_alike() -> None:
    """Arrays of float64 skip scikit-learn's checks; all other input passes them."""
    X, y = data()
    forms = [(X, y), (X.tolist(), y.tolist()), (np.asfortranarray(X), y.astype(object)), (X, y[:, None].ravel())]
    found = []
    for rows, labels in forms:
        model = small().partial_fit(X[:1], y[:1], ["no", "yes"])
        found.append(dumps(model.partial_fit(rows, labels)))
    assert len(set(found)) == 1
    with pytest.raises(ValueError, match="X has 3 features, but BayesianEnsembleClassifier is expecting 4 features"):
        model.partial_fit(X[:, :3], y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.partial_fit(X, y[1:])
    with pytest.raises(ValueError, match="must hold finite numbers"):
        model.partial_fit(np.full((1, 4), np.inf), y[:1])

"""The river adapters when labels come late: the weights learn from what was predicted."""

import pickle
from collections.abc import Iterator
from copy import deepcopy
from importlib import import_module
from threading import Thread
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bayesvote import estimators
from bayesvote.core.checks import Array
from bayesvote.evaluation import prequential
from bayesvote.integrations import predictions as _predictions
from bayesvote.integrations.predictions import PredictedRows
from bayesvote.integrations.river import BayesianEnsembleClassifier, OSBoostClassifier
from bayesvote.io.model_file import dumps, loads

river: Any = import_module("river.api")


def alike(n: int = 700, n_classes: int = 2) -> tuple[Array, NDArray[np.intp]]:
    """Rows of which neighbours have the same label, whatever their features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    wave = np.sin(np.arange(n)[:, None] / 15 + np.arange(n_classes) * 2)
    return X, (X[:, :n_classes] + 2 * wave + rng.normal(size=(n, n_classes)) / 2).argmax(axis=1)


def named(X: Array) -> list[dict[str, float]]:
    return [{f"f{j}": value for j, value in enumerate(row)} for row in X.tolist()]


def late_predictions(model: Any, X: Array, y: NDArray[np.intp], delay: int) -> list[Any]:
    """PredictedRows by river's own evaluation."""
    steps: Iterator[dict[str, Any]] = river.evaluate.iter_progressive_val_score(
        zip(named(X), y.tolist(), strict=True), model, river.metrics.Accuracy(), delay=delay, yield_predictions=True
    )
    return [step["Prediction"] for step in steps]


def small(**given: Any) -> BayesianEnsembleClassifier:
    return BayesianEnsembleClassifier(**{"n_members": 12, "seed": 3, "classes": (0, 1)} | given)


@pytest.mark.parametrize("delay", [1, 2, 40])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("adapter", "estimator", "given"),
    [
        (BayesianEnsembleClassifier, estimators.BayesianEnsembleClassifier, {"n_members": 12}),
        (
            BayesianEnsembleClassifier,
            estimators.BayesianEnsembleClassifier,
            {"members": "mixed", "n_members": 12, "weighter": "joint_gaussian"},
        ),
        (OSBoostClassifier, estimators.OSBoostClassifier, {"n_members": 9}),
    ],
    ids=["default", "joint_gaussian", "boosting"],
)
def test_same_predictions_as_prequential(
    adapter: Any, estimator: Any, given: dict[str, Any], n_classes: int, delay: int
) -> None:
    """River learns a label before the prediction of the row ``delay`` rows later, ``prequential`` after it."""
    X, y = alike(400, n_classes)
    found = late_predictions(adapter(**given, classes=range(n_classes), seed=0), X, y, delay)
    expected = prequential(
        estimator(**given, random_state=0), X, y, delay=delay - 1, classes=list(range(n_classes))
    ).predictions
    assert found[:delay] == [None] * delay
    assert found[delay:] == expected[delay:].tolist()


def test_delayed_labels_have_a_lower_error_than_without_forecasts(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = alike(2000)

    def error() -> float:
        found = late_predictions(BayesianEnsembleClassifier(classes=(0, 1), seed=0), X, y, 50)
        return float(np.mean(np.array(found[200:]) != y[200:]))

    with_forecasts = error()
    monkeypatch.setattr(PredictedRows, "add", lambda *_: None)
    assert with_forecasts < 0.9 * error()


def test_label_at_once_learns_as_without_prediction() -> None:
    X, y = alike(150)
    asked, unasked = small(), small()
    for x, label in zip(named(X), y.tolist(), strict=True):
        asked.predict_proba_one(x)
        asked.predict_one(deepcopy(x))
        asked.learn_one(x, label)
        unasked.learn_one(x, label)
        assert len(asked._predictions) == 0
    assert dumps(asked) == dumps(unasked)


def test_equal_rows_are_first_in_first_out(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[list[float]] = []
    take = PredictedRows.take

    def noted(self: PredictedRows, key: int) -> Any:
        forecast = take(self, key)
        if forecast is not None:
            taken.append(forecast.losses[0].tolist())
        return forecast

    monkeypatch.setattr(PredictedRows, "take", noted)
    model, expected = small(members="perceptron", weighter="gamma_rate"), list[list[float]]()
    X, y = alike(60)
    for t, (x, label) in enumerate(zip(named(X), y.tolist(), strict=True)):
        model.learn_one(x, label)
        if t in (20, 30, 40):
            model.predict_one({"f0": 1.0})
            model.predict_proba_one({"f0": 1.0})  # of the same row
            assert model.model is not None
            expected.append(model.model.decide([[1.0, 0, 0, 0, 0]])[0].tolist())
    assert len(model._predictions) == 3
    for _ in range(4):
        model.learn_one({"f0": 1.0}, 1)
    assert len({*map(tuple, expected)}) == 3
    assert taken == expected
    assert len(model._predictions) == 0


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_predictions, "_MOST_ROWS", 20)
    model = small()
    X, y = alike(100)
    for x in named(X):
        model.predict_one(x)
    assert len(model._predictions._new) == 20
    for x, other, label in zip(named(X), named(X + 1), y.tolist(), strict=True):
        model.learn_one(other, label)
        model.predict_one(x)
        assert len(model._predictions) <= 20
    assert model._predictions._numbers == sum(
        array.size for of_row in model._predictions._forecasts.values() for one in of_row for array in one
    )
    monkeypatch.setattr(_predictions, "_MOST_NUMBERS", 100)
    for x in named(X):
        model.predict_one(x)
    assert len(model._predictions._new) * 5 <= 105
    model.learn_one(named(X)[0], 1)
    assert model._predictions._numbers <= 100


def test_files_copies_and_pickles_leave_predictions_out() -> None:
    X, y = alike(80)
    asked, unasked = small(), small()
    for x, other, label in zip(named(X), named(X + 1), y.tolist(), strict=True):
        asked.predict_one(other)
        asked.learn_one(x, label)
        unasked.learn_one(x, label)
    asked.predict_one(named(X + 2)[0])
    assert len(asked._predictions) == 80
    assert dumps(asked) == dumps(unasked)
    for copy in (deepcopy(asked), pickle.loads(pickle.dumps(asked)), loads(dumps(asked)), asked.clone()):
        assert len(copy._predictions) == len(copy._predictions._new) == 0
        assert copy.predict_one(named(X)[0]) in (0, 1, None)
        copy.learn_one(named(X)[1], 1)


def test_new_class_since_the_prediction_learns_as_without_it() -> None:
    X, y = alike(80, 3)
    asked, unasked = small(classes=None), small(classes=None)
    order = np.argsort(y == 2, kind="stable")  # the third label comes last, with a new model
    rows, labels = [named(X)[t] for t in order], y[order].tolist()
    new = labels.index(2)
    for model in (asked, unasked):
        for x, label in zip(rows[:new], labels[:new], strict=True):
            model.learn_one(x, label)
    for x in rows[new:]:
        asked.predict_one(x)
    for model in (asked, unasked):
        for x, label in zip(rows[new:], labels[new:], strict=True):
            model.learn_one(x, label)
    assert len(asked._predictions) == 0
    assert dumps(asked) == dumps(unasked)


def test_new_features_since_the_prediction() -> None:
    model = small(classes=("a", "b"))
    X, y = alike(60)
    late = []
    for t, (x, label) in enumerate(zip(named(X), y.tolist(), strict=True)):
        row = {**x, f"word {t // 5}": 1.0}
        assert model.predict_one(row) in ("a", "b", None)
        late.append((row, "ab"[label]))
        if t >= 10:
            model.learn_one(*late.pop(0))
    for row, name in late:
        model.learn_one(row, name)
    assert len(model.feature_names) == 17
    assert len(model._predictions) == 0


def test_river_members_with_late_labels() -> None:
    X, y = alike(120)
    members = [river.naive_bayes.GaussianNB(), river.linear_model.LogisticRegression()]
    found = late_predictions(BayesianEnsembleClassifier(members=members, classes=(0, 1), seed=0), X, y, 9)
    assert found[:9] == [None] * 9
    assert set(found[9:]) == {0, 1}


def test_rows_are_checked_before_the_first_label() -> None:
    model = small()
    with pytest.raises(ValueError, match="finite numbers"):
        model.predict_one({"f0": np.inf})
    model.learn_one({"f0": 1.0}, 1)
    assert model.predict_one({"f0": 1.0}) == 1


def test_predictions_in_several_threads() -> None:
    X, y = alike(300)
    model = small()
    errors: list[BaseException] = []

    def predict(shift: int) -> None:
        try:
            for x in named(X + shift):
                model.predict_one(x)
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=predict, args=(shift,)) for shift in range(4)]
    for thread in threads:
        thread.start()
    for x, label in zip(named(X), y.tolist(), strict=True):
        model.predict_one(x)
        model.learn_one(x, label)
    for thread in threads:
        thread.join()
    assert not errors
    for shift in range(1, 4):
        for x in named(X + shift):
            model.learn_one(x, 1)
    assert len(model._predictions) <= 600  # shift 0 was predicted twice

"""Numbers that float64 cannot hold are rejected with their place, by every method and for every kind of table."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from bayesvote import (
    BayesianEnsembleClassifier,
    Ensemble,
    GammaRate,
    JointGaussian,
    JointLogistic,
    OzaBoostClassifier,
    prequential,
)
from bayesvote.members import PerceptronBank

pd: Any = import_module("pandas")
HUGE = 10**5000  # also too long for repr
TABLES: dict[str, tuple[Any, Any, str]] = {
    "list": ([[1, 2], [-HUGE, 3]], [[1, 2], [2, 3]], "in row 1, column 0"),
    "fraction": ([[1, 2], [1, Fraction(HUGE)]], [[1, 2], [2, 3]], "in row 1, column 1"),
    "objects": (np.array([[1, 2], [HUGE, None]], dtype=object), np.ones((2, 2)), "in row 1, column 0"),
    "text": (np.array([["a", 2], ["b", HUGE]], dtype=object), np.array([["a", 2], ["b", 3]], dtype=object), "in row 1"),
    "pandas": (pd.DataFrame({"a": pd.Series([1, HUGE], dtype=object)}), pd.DataFrame({"a": [1.0, 2.0]}), "row 1"),
    "dictionary": ({"a": [1, HUGE]}, {"a": [1, 2]}, "in row 1"),
}
METHODS: dict[str, Callable[[Any, Any], Any]] = {
    "fit": lambda model, X: model.fit(X, [0, 1]),
    "partial_fit": lambda model, X: model.partial_fit(X, [0, 1]),
    "predict": lambda model, X: model.predict(X),
    "predict_proba": lambda model, X: model.predict_proba(X),
    "predict_proba_then_learn": lambda model, X: model.predict_proba_then_learn(X, [0, 1]),
}


@pytest.mark.parametrize("kind", [BayesianEnsembleClassifier, OzaBoostClassifier])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("table", TABLES)
def test_a_number_too_large_for_float64_is_rejected_with_its_place(kind: Any, method: str, table: str) -> None:
    bad, good, place = TABLES[table]
    model = kind(n_members=10, random_state=0).fit(good, [0, 1])
    before = model.predict_proba(good)
    with pytest.raises(ValueError, match=f"got a number too large for float64 .*{place}. Divide such values"):
        METHODS[method](model, bad)
    np.testing.assert_array_equal(model.predict_proba(good), before)


def test_a_decimal_that_becomes_infinite_is_rejected() -> None:
    with pytest.raises(ValueError, match="finite numbers"):
        BayesianEnsembleClassifier(n_members=10).fit([[Decimal("1e400")], [1]], [0, 1])


def test_weights_too_large_for_float64_are_rejected() -> None:
    X, y = [[1, 2], [2, 3]], [0, 1]
    with pytest.raises(ValueError, match=r"sample_weight must be at most 1e\+09, got a number too large for float64"):
        BayesianEnsembleClassifier(n_members=10).fit(X, y, sample_weight=[HUGE, 1])
    with pytest.raises(ValueError, match="class_weight must be a number above 0"):
        BayesianEnsembleClassifier(n_members=10, class_weight={0: 10**400}).fit(X, y)
    with pytest.raises(ValueError, match="forgetting must be a finite number"):
        BayesianEnsembleClassifier(weighter="gamma_rate", forgetting=10**400).fit(X, y)


def test_models_and_streams_name_the_place_as_well() -> None:
    bad: Any = [[1, 2], [HUGE, 3]]
    for call in (
        lambda: Ensemble(PerceptronBank(3)).start(2).decide(bad),
        lambda: PerceptronBank(3).start(2).scores(bad),
        lambda: prequential(BayesianEnsembleClassifier(n_members=10), bad, [0, 1]),
    ):
        with pytest.raises(ValueError, match="too large for float64 in row 1, column 0"):
            call()


def test_river_names_the_feature() -> None:
    pytest.importorskip("river", reason="river is not installed")
    from bayesvote.integrations.river import BayesianEnsembleClassifier as Online

    model = Online(n_members=10)
    model.learn_one({"a": 1.0}, "x")
    message = "'a' of x must be a finite number below .* got a number too large for float64. Divide"
    for x in ({"a": HUGE}, {"a": HUGE, "b": None}, {"a": HUGE, "b": "text"}):
        with pytest.raises(ValueError, match=message):
            model.learn_one(x, "x")
        with pytest.raises(ValueError, match=message):
            model.predict_one(x)
    frame = pd.DataFrame({"a": pd.Series([HUGE], dtype=object)})
    with pytest.raises(ValueError, match=message):
        model.learn_many(frame, pd.Series(["x"]))
    with pytest.raises(ValueError, match=message):
        model.predict_many(frame)
    assert model.feature_names == ["a"]


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("name", ["precision", "persistence"])
@pytest.mark.parametrize("kind", [JointGaussian, JointLogistic])
def test_parameters_too_large_for_float64_are_rejected(kind: Any, name: str, many: bool) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a finite number above 0, got a number too large for float64"):
        kind(**{name: [HUGE, 1] if many else HUGE})
    with pytest.raises(ValueError, match="theta must be a finite number above 0, got a number too large for float64"):
        GammaRate(theta=HUGE)


def test_counts_too_large_for_a_machine_integer_are_rejected() -> None:
    model, rows = BayesianEnsembleClassifier(n_members=10), ([[1, 2], [2, 3]], [0, 1])
    calls: dict[str, Callable[[], Any]] = {
        "burst": lambda: JointLogistic(burst=HUGE),
        "delay": lambda: prequential(model, *rows, delay=HUGE),
        "window": lambda: prequential(model, *rows, window=HUGE),
        "n_members": lambda: BayesianEnsembleClassifier(n_members=10**400).fit(*rows),
    }
    for name, call in calls.items():
        with pytest.raises(
            ValueError, match=f"{name} must be an integer of at most 9007199254740992, got a larger one"
        ):
            call()

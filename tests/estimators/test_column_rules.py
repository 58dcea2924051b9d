"""Columns are matched by name; wrong types are refused; suspicious columns are told once, at the user's line."""

import warnings
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from bayesvote import BayesianEnsembleClassifier, OzaBoostClassifier
from bayesvote.io.model_file import dumps, loads

pandas: Any = import_module("pandas")
polars: Any = import_module("polars")
pyarrow: Any = import_module("pyarrow")
N = 200
RNG = np.random.default_rng(0)
NUMBERS: dict[str, Any] = {name: RNG.normal(size=N) for name in "abc"}
TEXTS = np.where(RNG.random(N) < 0.5, "u", "v")
MIXED: dict[str, Any] = {"s": TEXTS.tolist(), "x": NUMBERS["a"]}
Y = np.where((NUMBERS["a"] + NUMBERS["b"] > 0) ^ (TEXTS == "u"), "yes", "no")


def fitted(X: Any, **options: Any) -> BayesianEnsembleClassifier:
    return BayesianEnsembleClassifier("logistic", 5, random_state=0, **options).fit(X, Y)


def other_order(X: dict[str, Any]) -> dict[str, Any]:
    return {name: X[name] for name in reversed(X)}


FORMS = [dict, pandas.DataFrame, polars.DataFrame, pyarrow.table]


@pytest.mark.parametrize("learned", FORMS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("table", [NUMBERS, MIXED], ids=["numbers", "mixed"])
def test_columns_are_matched_by_name_whatever_holds_them(table: dict[str, Any], learned: Any, form: Any) -> None:
    model = fitted(learned(table))
    expected = model.predict_proba(learned(table))
    np.testing.assert_array_equal(model.predict_proba(form(table)), expected)
    numeric = table is NUMBERS and learned is not dict
    if numeric and form is pandas.DataFrame:  # check_estimator asks for this error
        with pytest.raises(ValueError, match=r"(?s)feature names should match.*must be in the same order"):
            model.predict(form(other_order(table)))
    else:
        np.testing.assert_array_equal(model.predict_proba(form(other_order(table))), expected)
    with pytest.warns(UserWarning, match=r"not fitted with; they are ignored: \['more'\]") as told:
        found = model.predict_proba(form(table | {"more": ["?"] * N}))
    assert (len(told), told[0].filename) == (1, __file__)
    np.testing.assert_array_equal(found, expected)
    last = list(table)[-1]
    with pytest.raises(ValueError, match=rf"without \['{last}'\]|(?s:now missing:\n- {last})"):
        model.predict(form({name: values for name, values in table.items() if name != last}))
    model.partial_fit(form(table), Y)


def test_a_model_of_an_array_takes_columns_by_their_usual_names() -> None:
    X = np.column_stack(list(NUMBERS.values()))
    model = fitted(X)
    named = {f"x{j}": X[:, j] for j in (2, 0, 1)}
    np.testing.assert_array_equal(model.predict_proba(named), model.predict_proba(X))


@pytest.mark.parametrize("X", [NUMBERS, pandas.DataFrame(NUMBERS), MIXED | {"a": NUMBERS["a"]}])
def test_a_text_where_numbers_were_learned_is_refused(X: Any) -> None:
    model = fitted(X)
    rows = {name: list(X[name][:3]) for name in X}
    rows["a"] = ["1.5", "NA", "far"]
    for method in (model.predict, model.predict_proba, model.decision_certainty, model.contributions, model.explain):
        with pytest.raises(ValueError, match=r"column 'a' must hold a number in every row, .* got 'far' in row 2"):
            method(rows)
    rows["a"] = ["1.5", "NA", ""]
    assert len(model.predict(rows)) == 3


def test_a_text_among_numbers_that_was_learned_is_taken() -> None:
    ages = ["unknown" if k % 9 == 1 else str(k % 70) for k in range(N)]
    model = fitted(MIXED | {"age": ages})
    assert len(model.predict({"s": ["u"], "x": [0.0], "age": ["never"]})) == 1


def test_arrays_of_objects_with_text_are_tables() -> None:
    X = pandas.DataFrame(MIXED).to_numpy()
    assert X.dtype == object
    whole = fitted(X)
    assert [about["name"] for about in whole.columns_.describe()] == ["x0", "x1"]
    assert not hasattr(whole, "feature_names_in_")
    by_name = fitted({"x0": X[:, 0], "x1": X[:, 1]})
    np.testing.assert_array_equal(whole.predict_proba(X), by_name.predict_proba({"x0": X[:, 0], "x1": X[:, 1]}))
    again = loads(dumps(whole))
    np.testing.assert_array_equal(again.predict_proba(X), whole.predict_proba(X))
    again.partial_fit(X, Y)
    online = BayesianEnsembleClassifier("logistic", 5, random_state=0).partial_fit(X, Y, classes=["no", "yes"])
    assert online.predict(X).shape == (N,)
    with pytest.raises(ValueError, match="X has 1 features, but BayesianEnsembleClassifier is expecting 2 features"):
        whole.predict(X[:, :1])
    numbers = fitted(np.column_stack([NUMBERS["a"], NUMBERS["b"]]).astype(object))
    assert not hasattr(numbers, "columns_")
    with pytest.raises(ValueError, match=r"column 'x0' must hold a number in every row, .* got '[uv]' in row 0"):
        numbers.predict(X)


def test_bagging_takes_text_columns() -> None:
    bagging: Any = import_module("sklearn.ensemble").BaggingClassifier
    frame = pandas.DataFrame(MIXED | {"b": NUMBERS["b"]})
    base = BayesianEnsembleClassifier(n_members=20, random_state=0)
    model = bagging(base, n_estimators=3, max_features=3, random_state=0).fit(frame, Y)
    assert model.score(frame, Y) > 0.8
    assert (
        bagging(OzaBoostClassifier("naive_bayes", 5), n_estimators=2, random_state=0).fit(frame, Y).score(frame, Y)
        > 0.5
    )


SUSPICIOUS: dict[str, tuple[Any, str]] = {
    "number": (np.arange(N) * 7 + 10**9, "'odd' looks like an identifier: 200 of 200 values are different.*'drop'"),
    "text": ([f"N{k}" for k in range(N)], "'odd' looks like an identifier.*'drop'"),
    "leak": (np.where(Y == "yes", "paid", "due"), r"'odd' predicts the label alone.*columns=\{'odd': 'drop'\}"),
    "numeric leak": (np.where(Y == "yes", 5.0, 1.0) + RNG.random(N), "'odd' predicts the label alone"),
    "day": (
        [20130101 + k % 28 for k in range(N)],
        r"such as 20130101, which look like dates.*columns=\{'odd': 'date'\}",
    ),
    "order": (["01/02/2013"] * N, r"in which day and month are ambiguous.*'day_first'"),
    "many": ([f"N{k % 99}" for k in range(N)], r"'odd' has more than 64 different texts.*'category'.*'drop'"),
}


@pytest.mark.parametrize("name", SUSPICIOUS)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_suspicious_columns_are_told_once_at_the_users_line(name: str, method: str) -> None:
    values, words = SUSPICIOUS[name]
    model = BayesianEnsembleClassifier("logistic", 5, random_state=0)
    options = {} if method == "fit" else {"classes": ["no", "yes"]}
    with pytest.warns(UserWarning, match=words) as told:
        getattr(model, method)(MIXED | {"odd": values}, Y, **options)
    assert [one.filename for one in told] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(MIXED | {"odd": values}, Y)
        kind = {"day": "date", "order": "month_first"}.get(name, "drop")
        model.set_params(columns={"odd": kind}).fit(MIXED | {"odd": values}, Y)


def test_frames_of_numbers_alone_are_looked_at_too() -> None:
    with pytest.warns(UserWarning, match="column 'id' looks like an identifier"):
        fitted(pandas.DataFrame(NUMBERS | {"id": np.arange(N)}))


def test_usual_columns_are_not_suspicious() -> None:
    usual = {"year": 2000 + np.arange(N) % 30, "price": NUMBERS["b"], "city": [f"c{k % 40}" for k in range(N)]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(MIXED | usual)

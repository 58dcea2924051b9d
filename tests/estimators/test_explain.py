"""What a classifier tells of its decisions, as tables."""

import sys
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from bayesvote import BayesianEnsembleClassifier, FernBank, LinearBank, NaiveBayesBank, TreeBank, Union
from bayesvote.estimators._explain import ColumnMap, by_column
from bayesvote.members.attribution import Explanation

pandas = pytest.importorskip("pandas")


def iris() -> tuple[Any, Any]:
    X, y = import_module("sklearn.datasets").load_iris(return_X_y=True, as_frame=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X.iloc[order].reset_index(drop=True), np.array(["setosa", "versicolor", "virginica"])[y.to_numpy()[order]]


def model(**given: Any) -> BayesianEnsembleClassifier:
    bank = Union([LinearBank(6), NaiveBayesBank(6), FernBank(6), TreeBank(6, recent=[], refined=[1.0])])
    return BayesianEnsembleClassifier(bank, random_state=0, **given)


def test_a_table_by_row_and_column() -> None:
    X, y = iris()
    fitted = model().fit(X, y)
    table = fitted.explain(X[:20])
    assert list(table.columns) == ["row", "label", "over", "lead", "column", "value", "moved", "looked"]
    assert len(table) == 20 * 6
    by_row = table.groupby("row")
    np.testing.assert_allclose(by_row["moved"].sum(), by_row["lead"].first(), rtol=1e-6, atol=1e-6)
    assert by_row["label"].first().tolist() == fitted.predict(X[:20]).tolist()
    assert (table["label"] != table["over"]).all()
    np.testing.assert_allclose(by_row["lead"].first(), fitted.contributions(X[:20]).sum(axis=1), rtol=1e-9)
    own = table[table["column"].isin(X.columns)]
    assert all(X.loc[one.row, one.column] == one.value for one in own.itertuples())
    assert own["looked"].between(0, 1 + 1e-9).all()
    for _, rows in own.groupby("row"):
        assert rows["moved"].abs().is_monotonic_decreasing
    assert (table.loc[table["column"] == "(not told)", "moved"] == 0).all()


def test_top_adds_up_the_others() -> None:
    X, y = iris()
    fitted = model().fit(X, y)
    whole, top = fitted.explain(X[:5]), fitted.explain(X[:5], top=1)
    assert top["column"].tolist()[1:4] == ["(other columns)", "(start)", "(not told)"]
    np.testing.assert_allclose(top.groupby("row")["moved"].sum(), whole.groupby("row")["moved"].sum(), rtol=1e-12)
    assert top["column"].tolist()[::4] == whole["column"].tolist()[::6]
    with pytest.raises(ValueError, match="top"):
        fitted.explain(X[:5], top=0)


def test_without_pandas_and_names_it_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = iris()
    fitted = model().fit(X.to_numpy(), y)
    table = fitted.explain(X.to_numpy()[:3])
    assert set(table["column"]) == {"x0", "x1", "x2", "x3", "(start)", "(not told)"}
    monkeypatch.delitem(sys.modules, "pandas")
    monkeypatch.setattr(sys, "path", [])  # from where it could be imported again
    plain = fitted.explain(X.to_numpy()[:3])
    assert list(plain.dtype.names) == list(table.columns)
    for name in ("row", "label", "over", "lead", "column", "moved"):
        assert plain[name].tolist() == table[name].tolist()


def test_large_tables_go_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = iris()
    fitted = model().fit(X, y)
    whole, importances = fitted.explain(X), fitted.importances(X)["importance"]
    monkeypatch.setattr("bayesvote.estimators._explain._PIECE", 40)
    pandas.testing.assert_frame_equal(fitted.explain(X), whole)
    np.testing.assert_allclose(fitted.importances(X)["importance"], importances, rtol=1e-12)


def test_rows_about_which_nobody_votes() -> None:
    X, y = iris()
    fitted = BayesianEnsembleClassifier("perceptron", 9, scale=False, random_state=0).fit(X, y)
    missing = X[:2].copy()
    missing.iloc[0] = np.nan
    table = fitted.explain(missing)
    first = table[table["row"] == 0]
    assert (first["moved"] == 0).all()
    assert (first["lead"] == 0).all()
    assert (table[table["row"] == 1]["moved"] != 0).any()


def test_foreign_members_do_not_tell() -> None:
    X, y = iris()
    fitted = BayesianEnsembleClassifier([LogisticRegression(max_iter=500).fit(X.to_numpy(), y)]).fit(X.to_numpy(), y)
    table = fitted.explain(X.to_numpy()[:3])
    rest = table[table["column"] == "(not told)"]
    np.testing.assert_allclose(rest["moved"], rest["lead"], rtol=1e-12)
    assert (table.loc[table["column"] != "(not told)", "moved"] == 0).all()
    assert not hasattr(fitted, "feature_importances_")
    assert not fitted.importances(X.to_numpy())["importance"].any()


@pytest.mark.parametrize("members", ["mixed", "fern", "tree"])
def test_importances_are_shares(members: str) -> None:
    X, y = iris()
    bank: Any = TreeBank(8, recent=[], refined=[]) if members == "tree" else members
    fitted = BayesianEnsembleClassifier(bank, 12, shuffle=False, random_state=0).fit(X, y)
    found = fitted.feature_importances_
    assert found.shape == (4,)
    assert found.sum() == pytest.approx(1)
    assert found[2:].sum() > 0.6  # the petals tell the kinds apart
    table = fitted.importances(X)
    assert table["column"].tolist() == X.columns[np.argsort(-found)].tolist()
    np.testing.assert_allclose(np.sort(found)[::-1], table["importance"], atol=1e-5)
    pandas.testing.assert_frame_equal(fitted.importances(), table, rtol=1e-3)
    parts = BayesianEnsembleClassifier(bank, 12, random_state=0)
    for first in range(0, len(y), 7):
        parts.partial_fit(X[first : first + 7], y[first : first + 7], classes=np.unique(y))
    np.testing.assert_array_equal(parts.feature_importances_, found)


def test_members_that_keep_no_rows_have_no_importances_of_their_own() -> None:
    X, y = iris()
    fitted = BayesianEnsembleClassifier("naive_bayes", 5).fit(X, y)
    assert not hasattr(fitted, "feature_importances_")
    with pytest.raises(AttributeError, match=r"importances\(X\)"):
        _ = fitted.feature_importances_
    assert fitted.importances(X)["importance"].sum() == pytest.approx(1)


def test_encoded_features_are_added_up_to_columns() -> None:
    rng = np.random.default_rng(0)
    parts, looked = rng.normal(size=(3, 5)), rng.random((3, 5))
    ones = np.ones(3)
    found = Explanation(ones.astype(np.intp), ones.astype(np.intp), ones, parts, ones, looked)
    columns = ColumnMap(np.array(["a", "b", "c", "d"]), np.array([2, 0, 2, 0, 1]))  # nothing was made of d
    summed = by_column(found, columns)
    for column in range(4):
        own = np.flatnonzero(columns.of_feature == column)
        np.testing.assert_allclose(summed.parts[:, column], parts[:, own].sum(axis=1))
        np.testing.assert_allclose(summed.looked[:, column], looked[:, own].max(axis=1, initial=0.0))


@pytest.mark.parametrize("library", ["pandas", "polars", "dict"])
def test_raw_tables_are_told_of_by_their_own_columns(library: str) -> None:
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "number": rng.normal(4000, 500, 300),
            "id": np.arange(300).astype(str),
            "island": rng.choice(["Dream", "Biscoe", "Torgersen"], 300),
            "sex": rng.choice(np.array(["m", "f", None], dtype=object), 300),
            "when": pandas.date_range("2024-01-01", periods=300, freq="h"),
            "ok": rng.random(300) > 0.5,
        }
    )
    y = np.where((frame["island"] == "Dream") ^ (frame["number"] > 4000), "A", "B")
    given: Any = frame
    if library == "polars":
        given = pytest.importorskip("polars").from_pandas(frame)
    if library == "dict":
        given = {name: frame[name].tolist() for name in frame}
    fitted = BayesianEnsembleClassifier(n_members=30, columns={"id": "drop"}, random_state=0).fit(given, y)
    table = fitted.explain(given)
    by_row = table.groupby("row")
    np.testing.assert_allclose(by_row["moved"].sum(), by_row["lead"].first(), rtol=1e-6, atol=1e-6)
    assert by_row["label"].first().tolist() == fitted.predict(given).tolist()
    assert set(table["column"]) == {*fitted.feature_names_in_, "(start)", "(not told)"}
    for name in ("number", "island"):
        own = table[table["column"] == name].sort_values("row")
        assert own["value"].tolist() == frame[name].tolist()
    assert set(fitted.importances()["column"][:2]) == {"island", "number"}
    assert len(fitted.feature_importances_) == len(fitted.feature_names_in_)


def test_features_not_in_use_are_no_column_of_the_users() -> None:
    table = {"left": ["q", "r"] * 100, "sort": ["a", "b"] * 100, "size": list(range(200))}
    model = BayesianEnsembleClassifier(columns={"left": "drop", "sort": "category", "size": "number"}, random_state=0)
    model.fit(table, ["x", "y"] * 100)
    told = model.explain({"sort": ["a"], "size": [3]})
    of = {column: k for k, column in enumerate(told["column"])}
    assert told["moved"][of["left"]] == told["looked"][of["left"]] == 0
    assert told["value"][of["left"]] is None
    assert abs(sum(told["moved"]) - told["lead"][0]) < 1e-6
    assert dict(zip(*(model.importances()[name] for name in ("column", "importance")), strict=True))["left"] == 0
    with pytest.raises(ValueError, match="X must have at least one row, got none"):
        model.explain({"sort": [], "size": []})

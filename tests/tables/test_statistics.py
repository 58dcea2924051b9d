"""Counts of classes by the values of stated categories, compared with plain dictionaries."""

import warnings
from itertools import pairwise
from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesvote import BayesianEnsembleClassifier
from bayesvote.core.state import Learned
from bayesvote.io.model_file import dumps, loads
from bayesvote.tables import Columns, difference, merged, statistics

TEXTS = st.one_of(st.none(), st.integers(0, 30).map(lambda k: f"t{k}"))


def plain(texts: list[Any], y: list[int], learn: list[bool], n_classes: int) -> list[list[float]]:
    """Features of the rows by the rows before them."""
    totals, counts, out = [0] * n_classes, dict[str, list[int]](), []
    for text, label, flag in zip(texts, y, learn, strict=True):
        shares = [(k + 1) / (sum(totals) + n_classes) for k in totals]
        own = counts.get(text, [0] * n_classes)
        smooth = [k + 10 * share for k, share in zip(own, shares, strict=True)]
        if text is None or not sum(own):
            found = [0.0] * n_classes
        else:
            found = [log(a / (sum(own) + 10) / share) for a, share in zip(smooth, shares, strict=True)]
        out.append([found[1] - found[0]] if n_classes == 2 else found)
        if flag:
            totals[label] += 1
            if text is not None:
                counts.setdefault(text, [0] * n_classes)[label] += 1
    return out


def encoded(
    texts: list[Any], y: list[int], learn: list[bool], n_classes: int, cuts: list[int]
) -> tuple[Columns, list[Any]]:
    """Columns that have learned the rows in chunks, and the encoded rows."""
    columns = Columns({"t": "category"}).start({"t": texts})
    columns.expect(n_classes)
    found: list[Any] = []
    for a, b in pairwise([0, *cuts, len(texts)]):
        for piece in columns.advance({"t": texts[a:b]}, np.array(learn[a:b]), np.array(y[a:b], dtype=np.intp)):
            found += list(piece.rows.todense())
    return columns, found


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(TEXTS, st.integers(0, 2), st.booleans()), min_size=1, max_size=150), st.data())
def test_features_are_what_the_rows_before_tell_in_chunks_of_any_size(rows: list[Any], data: Any) -> None:
    n_classes = data.draw(st.sampled_from([2, 3]))
    texts, y, learn = ([row[k] for row in rows] for k in range(3))
    y = [label % n_classes for label in y]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(rows)), max_size=4)))
    columns, found = encoded(texts, y, learn, n_classes, [cut for cut in cuts if cut < len(rows)])
    whole, other = encoded(texts, y, learn, n_classes, [])
    assert repr(columns.learned()) == repr(whole.learned())
    for a, b in zip(found, other, strict=True):
        size = min(len(a), len(b))
        np.testing.assert_array_equal(a[:size], b[:size])
    names = columns.feature_names()
    places = [
        names.index(f"t speaks for class {k}") for k in range(1 if n_classes == 2 else n_classes) if len(names) > 16
    ]
    many = [len({t for t, flag in zip(texts[:i], learn[:i], strict=True) if flag and t}) > 16 for i in range(len(rows))]
    for x, expected, flag in zip(found, plain(texts, y, learn, n_classes), many, strict=True):
        if places and flag:
            assert x[places] == pytest.approx(expected, abs=1e-12)


def many(n: int = 3000, values: int = 200) -> tuple[dict[str, Any], Any]:
    rng = np.random.default_rng(0)
    effects, codes = rng.normal(0, 2, (3, values)), rng.integers(values, size=(n, 3))
    y = effects[np.arange(3), codes].sum(axis=1) > 0
    return {f"c{j}": [f"v{k}" for k in codes[:, j]] for j in range(3)}, np.where(y, "yes", "no")


STATED = {f"c{j}": "category" for j in range(3)}


def classifier(**options: Any) -> BayesianEnsembleClassifier:
    return BayesianEnsembleClassifier("logistic", 5, random_state=0, columns=STATED, **options)


def part(X: dict[str, Any], a: int, b: int) -> dict[str, Any]:
    return {name: values[a:b] for name, values in X.items()}


def test_stated_categories_tell_all_their_values_apart() -> None:
    X, y = many()
    stated = classifier().fit(part(X, 0, 2000), y[:2000])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        other = classifier().set_params(columns=None).fit(part(X, 0, 2000), y[:2000])
    assert stated.score(part(X, 2000, 3000), y[2000:]) > other.score(part(X, 2000, 3000), y[2000:]) + 0.05
    assert stated.columns_.width < other.columns_.width


def test_chunks_and_files_change_nothing() -> None:
    X, y = many()
    whole, parts = classifier(), classifier()
    expected = whole.predict_proba_then_learn(X, y, classes=["no", "yes"])
    got = []
    for a, b in pairwise([0, 1, 40, 1111, 3000]):
        got.append(parts.predict_proba_then_learn(part(X, a, b), y[a:b], classes=["no", "yes"]))
        parts = loads(dumps(parts))
    np.testing.assert_array_equal(np.concatenate(got), expected)
    assert dumps(parts) == dumps(whole)
    before = dumps(whole)
    whole.partial_fit(part(X, 0, 9), y[:9], sample_weight=np.zeros(9))
    assert dumps(whole) == before


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "MOST_VALUES", 20)
    texts = [f"t{k}" for k in range(500)]
    columns, found = encoded(texts, [k % 2 for k in range(500)], [True] * 500, 2, [7, 300])
    state = columns.learned()
    assert state is not None
    assert state.arrays["value_counts"].shape == (20, 2)
    assert columns.feature_names()[0] == "t is new"
    assert found[-1][0] == 1


def test_labels_must_be_given_to_count_them() -> None:
    columns = Columns({"t": "category"}).start({"t": ["a"]})
    columns.expect(2)
    with pytest.raises(ValueError, match="y must be given, because the classes of rows are counted"):
        list(columns.advance({"t": ["a"]}))


def test_columns_that_count_are_told_apart_and_not_merged() -> None:
    texts = ["a", "b", "a"]
    first, _ = encoded(texts, [0, 1, 0], [True] * 3, 2, [])
    other, _ = encoded(texts, [0, 1, 1], [True] * 3, 2, [])
    assert difference(first, first) is None
    wrong = difference(first, other)
    assert wrong is not None
    assert "must be encoded in the same way" in wrong.must
    with pytest.raises(ValueError, match="columns must not count classes"):
        merged([first, other])


@pytest.mark.parametrize(
    ("name", "at", "value", "words"),
    [
        ("value_counts", (0, 0), -1.0, "value_counts must be counts"),
        ("value_counts", (0, 0), 0.5, "value_counts must be counts"),
        ("value_counts", (0, 0), np.nan, "value_counts must be counts"),
        ("value_counts", (0, slice(None)), 0.0, "value_counts must be of rows"),
        ("value_counts", (0, 0), 1e6, "value_counts must be among the totals"),
        ("value_column", 0, 1, "value_column must be of categories"),
        ("value_key", slice(None), 7, "value_key must differ"),
        ("totals", 0, np.inf, "totals must be counts"),
        ("order", 0, 3, "order must be one of those known"),
    ],
)
def test_forged_counts_are_refused(name: str, at: Any, value: Any, words: str) -> None:
    columns, _ = encoded([f"t{k % 20}" for k in range(60)], [k % 2 for k in range(60)], [True] * 60, 2, [])
    found = columns.learned()
    assert found is not None
    Columns({"t": "category"}).restore(found, 2**20)
    arrays = {key: array.copy() for key, array in found.arrays.items()}
    arrays[name][at] = value
    with pytest.raises(ValueError, match=words):
        Columns({"t": "category"}).restore(Learned(found.facts, arrays), 2**20)


def test_features_without_counts_are_refused() -> None:
    columns, _ = encoded([f"t{k % 20}" for k in range(60)], [k % 2 for k in range(60)], [True] * 60, 2, [])
    found = columns.learned()
    assert found is not None
    arrays = dict(found.arrays)
    arrays |= {name: arrays[name][:0] for name in ("value_column", "value_key", "value_counts")}
    with pytest.raises(ValueError, match="statistics must be of many values"):
        Columns({"t": "category"}).restore(Learned(found.facts, arrays), 2**20)


def test_columns_of_version_1_load_and_go_on_as_they_did() -> None:
    columns = Columns({"t": "category"}, max_texts=2).start({"t": ["a"]})
    list(columns.advance({"t": list("abcabd")}))
    found = columns.learned()
    assert found is not None
    old = {
        name: found.arrays[name] for name in ("kinds", "numbers", "total", "base", "source", "role", "place", "width")
    }
    again = Columns({"t": "category"}, max_texts=2)
    again.restore(Learned(found.facts | {"version": 1}, old), 2**20)
    for one in (columns, again):
        list(one.advance({"t": list("xyzab")}))
    assert repr(again.learned()) == repr(columns.learned())
    assert again.describe()[0]["hashed"]

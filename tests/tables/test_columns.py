"""Encoded tables, beside an encoder that goes row by row through plain dictionaries."""

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesvote.tables import Columns, columns_of
from oracles.columns import PlainColumns

NUMBERS = st.sampled_from([0.0, 1.0, 2.5, -7.0, None, "3", "1e3", "NA", "many"])
TEXTS = st.sampled_from(["a", "b", "c", "d", "e", "f", "g", "", "?", None, 5.0, "9"])
DATES = st.sampled_from(["2024-01-05", "2024-02-05T13:30", "2024-02-06T23:59", "1969-12-31", None, "soon"])
ROWS = st.lists(st.fixed_dictionaries({"size": NUMBERS, "sort": TEXTS, "day": DATES}), min_size=1, max_size=40)


def dictionaries(columns: Columns, encoded: Any) -> list[dict[str, float]]:
    names = columns.feature_names()
    return [{names[i]: x[i] for i in np.flatnonzero(x)} for x in encoded]


def learned(columns: Columns, table: dict[str, list[Any]], cuts: list[int], learn: Any = None) -> list[Any]:
    """Encoded rows, in chunks, each as wide as all of them in the end."""
    n = len(next(iter(table.values())))
    flags = np.ones(n) if learn is None else learn
    found: list[Any] = []
    for a, b in pairwise([0, *cuts, n]):
        for piece in columns.advance({name: values[a:b] for name, values in table.items()}, flags[a:b]):
            found += list(piece.rows.todense())
    return found


@settings(max_examples=150, deadline=None)
@given(ROWS, st.data())
def test_rows_are_what_plain_dictionaries_say_in_chunks_of_any_size(rows: list[dict[str, Any]], data: Any) -> None:
    learn = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(rows) - 1)), max_size=4)) & set(range(1, len(rows))))
    stated = {"sort": "category"}
    table = columns_of(rows)
    plain = PlainColumns({"size": None, "sort": "category", "day": None}, 3, 2)
    plain.begin(rows[0])
    expected = []
    for row, flag in zip(rows, learn, strict=True):
        expected.append(plain.encode(row))
        if flag:
            plain.learn(row)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        columns = Columns(stated, max_texts=3, n_buckets=2).start(table)
        before = learned(columns, table, cuts, learn)
    for got, wanted in zip(dictionaries(columns, before), expected, strict=True):
        assert got == pytest.approx(wanted, rel=1e-12)
    assert set(columns.feature_names()) == plain.features
    again = [plain.encode(row) for row in rows]
    for got, wanted in zip(dictionaries(columns, columns.encode(table).todense()), again, strict=True):
        assert got == pytest.approx(wanted, rel=1e-12)


def test_features_and_widths_do_not_depend_on_the_chunks() -> None:
    rng = np.random.default_rng(0)
    table: dict[str, list[Any]] = {f"c{j}": [f"t{k}" for k in rng.integers(0, 5 * j + 2, 300)] for j in range(6)}
    table["x"] = [None if k == 0 else float(k) for k in rng.integers(0, 9, 300)]
    expected, whole = None, None
    for cuts in ([], [1], [7, 8, 150], list(range(1, 300))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            columns = Columns(max_texts=20).start(table)
            rows = learned(columns, table, cuts)
        state = columns.learned()
        assert state is not None
        if expected is None:
            expected, whole = state, rows
            assert len({len(row) for row in rows}) > 2  # it was widened on the way
        assert whole is not None
        assert state.facts == expected.facts
        for name, array in state.arrays.items():
            np.testing.assert_array_equal(array, expected.arrays[name])
        for a, b in zip(rows, whole, strict=True):
            np.testing.assert_array_equal(a, b)


def test_sources_are_the_columns_of_the_features() -> None:
    table = {"dropped": ["x", "y"], "sort": ["a", "b"], "size": [1.0, None]}
    columns = Columns({"dropped": "drop"}).start(table)
    list(columns.advance(table))
    names = [columns.names[j] for j in columns.source_columns()]
    assert names == ["sort", "size", "sort", "sort", "size"]
    assert columns.feature_names() == ["sort is new", "size", "sort = a", "sort = b", "size is missing"]
    assert [about["kind"] for about in columns.describe()] == ["drop", "category", "number"]
    assert columns.width >= 5


def test_memory_does_not_grow_and_too_many_texts_are_told_once() -> None:
    columns = Columns(max_texts=4, n_buckets=3).start({"id": ["a"]})
    with pytest.warns(UserWarning, match="'id' has more than 4 different texts"):
        list(columns.advance({"id": [f"id {i}" for i in range(50)]}))
    for k in range(50, 500, 50):
        list(columns.advance({"id": [f"id {k + i}" for i in range(50)]}))
    assert len(columns.feature_names()) == 1 + 4 + 3
    assert columns.describe()[0]["hashed"]


def test_stated_columns_are_not_warned_about() -> None:
    columns = Columns({"id": "category"}, max_texts=2).start({"id": ["a"]})
    list(columns.advance({"id": list("abcdefgh")}))
    assert columns.describe()[0]["hashed"]


def test_long_texts_are_kept_short_and_apart() -> None:
    texts = ["x" * 100 + end for end in "ab"]
    columns = Columns().start({"t": texts})
    list(columns.advance({"t": texts}))
    assert len(columns.describe()[0]["texts"]) == 2
    assert all(len(name) < 80 for name in columns.feature_names())


@pytest.mark.parametrize(
    ("columns", "table", "words"),
    [
        (
            {"size": "number"},
            {"size": ["1", "big"]},
            r"column 'size' must hold a number in every row, got 'big' in row 1",
        ),
        ({"day": "date"}, {"day": ["2024-01-01", "then"]}, "column 'day' must hold a date .* 'then' in row 1"),
        (None, {"size": [1.0, np.inf]}, "column 'size' must hold finite numbers .* inf in row 1"),
        (None, {"size": [1.0, [2]]}, r"column 'size' must hold numbers, texts, booleans or dates, got \[2\] in row 1"),
        (None, {"size": [1.0], "sort": ["a", "b"]}, "must have columns of one length"),
        (None, {"size": 1.0}, "column 'size' must be a sequence"),
        (None, {}, "at least one column"),
        ({"size": "float"}, {"size": [1.0]}, "columns\\['size'\\] must be one of"),
        ({"sise": "number"}, {"size": [1.0]}, "must name columns of the table"),
        ({"size": "drop"}, {"size": [1.0]}, "must leave some columns"),
        (None, {"size": []}, "at least one row"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_column(columns: Any, table: Any, words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        list(Columns(columns).start(table).advance(table))


def test_other_columns_are_refused_by_name_and_change_nothing() -> None:
    columns = Columns({"d": "drop"}).start({"a": [1.0], "b": ["x"], "d": [0.0]})
    list(columns.advance({"b": ["x", "y"], "a": [1.0, 2.0]}))  # any order; what is dropped may be left out
    before = columns.learned()
    with pytest.raises(
        ValueError, match=r"must have the columns \['a', 'b'\], got a table without \['b'\] and with \['c'\]"
    ):
        list(columns.advance({"a": [1.0], "c": [2.0]}))
    with pytest.raises(ValueError, match="'a' must hold finite"):
        list(columns.advance({"a": [1.0, np.inf], "b": ["z", "z"]}))
    after = columns.learned()
    assert before is not None
    assert after is not None
    assert after.facts == before.facts
    for name, array in after.arrays.items():
        np.testing.assert_array_equal(array, before.arrays[name])

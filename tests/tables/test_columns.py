"""Encoded tables, beside an encoder that goes row by row through plain dictionaries."""

import warnings
from datetime import date
from decimal import Decimal
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesvote import BayesianEnsembleClassifier
from bayesvote.core.state import Learned
from bayesvote.datasets import stream
from bayesvote.tables import Columns, columns_of, read_table
from bayesvote.tables.kinds import Kind, Role
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
    assert columns.learned() is not None  # which finds nothing that no stream leads to
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


def test_rows_that_are_no_dictionaries_and_masked_columns_are_refused() -> None:
    wrong: Any = [{"a": 1}, 3]
    with pytest.raises(TypeError, match="columns_of: row 1 must be a dictionary of names and values, got 3"):
        columns_of(wrong)
    with pytest.raises(ValueError, match="column 'a' must have no masked values, got 1 of them"):
        read_table("test", {"a": np.ma.array([1.0, 2.0], mask=[False, True])})


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
            r"column 'size' must hold a number in every row, got 'big'\.",
        ),
        ({"day": "date"}, {"day": ["2024-01-01", "then"]}, "column 'day' must hold a date as 2020-12-31 .* 'then'"),
        (None, {"size": [1.0, np.inf]}, "column 'size' must hold finite numbers .* inf in row 1"),
        (
            None,
            {"size": [1.0, [2]]},
            r"column 'size' must hold numbers, strings, booleans or dates, got \[2\] in row 1",
        ),
        (None, {"size": [1.0], "sort": ["a", "b"]}, "must have columns of the same length"),
        (None, {"size": 1.0}, "column 'size' must be a sequence"),
        (None, {}, "at least one column"),
        ({"size": "float"}, {"size": [1.0]}, "columns\\['size'\\] must be one of"),
        ({"sise": "number"}, {"size": [1.0]}, "must name columns of the table"),
        ({"size": "drop"}, {"size": [1.0]}, "must not drop all columns"),
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
        ValueError, match=r"must have the columns \['a', 'b'\], got a table without \['b'\]\. Add the missing"
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


def kinds_and_texts(columns: Columns) -> list[tuple[str, list[str]]]:
    return [(about["kind"], about["texts"]) for about in columns.describe()]


MIXED = st.sampled_from([1, True, "x", None, 2.5, "7", "yes", False, np.float32(3), b"x", np.str_("NA")])


@settings(max_examples=100, deadline=None)
@given(st.lists(MIXED, min_size=1, max_size=30), st.sets(st.integers(1, 29), max_size=5), st.booleans())
def test_cells_of_all_sorts_in_one_column_are_read_one_by_one(values: list[Any], at: set[int], stated: bool) -> None:
    cuts = sorted(at & set(range(1, len(values))))
    given_kinds = {"m": "category"} if stated else None
    one, many = (Columns(given_kinds).start({"m": values}) for _ in range(2))
    for whole, part in zip(learned(one, {"m": values}, []), learned(many, {"m": values}, cuts), strict=True):
        size = min(len(whole), len(part))
        np.testing.assert_array_equal(whole[:size], part[:size])
        assert not np.any(whole[size:])
        assert not np.any(part[size:])
    assert repr(one.learned()) == repr(many.learned())
    both = read_table("", {"m": values[:3]}).followed_by(read_table("", {"m": values[3:]}))
    assert Columns(given_kinds).start(both).encode(both).todense().shape[0] == len(values)


def test_a_category_has_one_text_for_a_value_whatever_library_has_it() -> None:
    pandas: Any = import_module("pandas")
    days = pandas.to_datetime(["2024-01-01", "2024-02-01T10:00"], format="ISO8601")
    for typed, plain, texts in (
        (pandas.Categorical([True, False]), [True, False], ["True", "False"]),
        (pandas.Categorical([3, 1]), [3.0, "1"], ["3", "1"]),
        (pandas.Categorical(days), ["2024-01-01", "2024-02-01T10:00:00"], ["2024-01-01", "2024-02-01T10:00:00"]),
        (pandas.Categorical([b"a", b""]), ["a", None], ["a"]),
        (pandas.cut([0.5, 1.5], [0, 1, 2]), ["(0, 1]", "(1, 2]"], ["(0, 1]", "(1, 2]"]),
    ):
        frame = pandas.DataFrame({"m": pandas.Series(typed)})
        columns = Columns().start(frame)
        encoded = [piece.rows.todense() for piece in columns.advance(frame)]
        assert len(encoded) > 0
        assert kinds_and_texts(columns) == [("category", texts)]
        np.testing.assert_array_equal(columns.encode({"m": plain}).todense(), columns.encode(frame).todense())


def test_numbers_and_dates_do_not_mix_in_chunks_of_any_size_unless_stated() -> None:
    day = date(2024, 1, 1)
    for first, second in (([day], [5.0]), ([5.0], [day]), (["2024-01-01"], [5.0])):
        columns = Columns().start({"m": first})
        with pytest.raises(ValueError, match=r"column 'm' must not hold both dates and numbers, got .* in row 0"):
            columns.encode({"m": second})
        with pytest.raises(ValueError, match=r"column 'm' must not hold both dates and numbers, got .* in row 1"):
            columns.encode({"m": [*first, *second]})
    unknown = Columns().start({"m": [None]})
    with pytest.raises(ValueError, match="column 'm' must not hold both dates and numbers, got 5 in row 2"):
        unknown.encode({"m": [None, day, 5]})
    stated = Columns({"m": "date"}).start({"m": [day, 0.0]})
    assert stated.encode({"m": [day, 0.0]}).todense()[:, 0].tolist() == [19723.0, 0.0]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            np.array(["-500000-01-01"], dtype="datetime64[D]"),
            "times within 100,000,000 days of 1970, got -500000-01-01",
        ),
        (np.array([10**9], dtype="timedelta64[D]"), "times within 100,000,000 days of 1970"),
        ([10**5000], "numbers of at most 4,300 digits, got a number too large for float64 in row 0"),
        ([10**400], "numbers below 1e100 in size, got a number of 401 digits in row 0"),
        ([Decimal("sNaN")], r"numbers, got Decimal\('sNaN'\) in row 0: cannot convert signaling NaN to float"),
    ],
)
def test_numbers_and_times_without_bound_are_refused(values: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Columns().start({"m": values})


def test_what_python_alone_would_take_for_a_number_is_a_name() -> None:
    columns = Columns().start({"m": ["1_000"]})
    assert kinds_and_texts(columns) == [("category", [])]


def test_frames_without_rows_of_their_own_and_empty_dictionaries_are_refused() -> None:
    lazy = import_module("polars").LazyFrame({"m": ["a"]})
    with pytest.raises(TypeError, match=r"X must be a table in memory, got LazyFrame. Pass X.collect\(\)."):
        Columns().start(lazy)
    with pytest.raises(ValueError, match="X must have at least one column"):
        BayesianEnsembleClassifier().fit({}, ["a", "b"])


def test_a_file_of_csv_and_a_table_in_memory_are_the_same(tmp_path: Path) -> None:
    texts = ["a", "", "NA", "n/a", "None", "none", "NULL", "NaN", "nan", "NaT", "?", " b ", "b"] * 10
    sizes = ["1", "2.5", "", "na", "NULL", "?", "none", "NaN", "7", "8", "1e3", "-4", "0"] * 10
    labels = ["x", "y"] * 65
    path = tmp_path / "table.csv"
    lines = [f"{text},{size},{label}" for text, size, label in zip(texts, sizes, labels, strict=True)]
    path.write_text("\n".join(["text,size,label", *lines]))
    chunk = next(stream(path))
    model = BayesianEnsembleClassifier("naive_bayes", 5, weighter="gamma_rate", shuffle=False, random_state=0)
    from_file = model.fit(chunk.X, chunk.y).predict_proba(chunk.X)
    table = {"text": texts, "size": sizes}
    np.testing.assert_array_equal(model.fit(table, labels).predict_proba(table), from_file)
    assert model.columns_.describe()[0]["texts"] == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "at", "value", "words"),
    [
        ("kinds", 0, Kind.DATE, "base must be of dates"),
        ("kinds", 0, Kind.CATEGORY, "columns of numbers must have one number each"),
        ("kinds", 0, Kind.DROP, "columns of numbers must have one number each"),
        ("kinds", 1, Kind.NUMBER, "columns of numbers must have one number each"),
        ("kinds", 1, Kind.UNKNOWN, "columns of no kind must have no features"),
        ("kinds", 2, Kind.NUMBER, "base must be of dates"),
        ("kinds", 2, Kind.BOOLEAN, "base must be of dates"),
        ("base", 0, 3, "base must be of dates"),
        ("base", 2, -1, "base must be of dates"),
        ("numbers", 0, 0.0, "total must be within reach"),
        ("numbers", 1, 2.0, "numbers must be 0 in columns of none"),
        ("total", 0, 1e102, "total must be within reach"),
        ("source", slice(None), 0, "columns of numbers must have one number each"),
        ("role", 0, Role.MISSING, "columns of numbers must have one number each"),
        ("role", 0, Role.SIN, "columns of numbers must have one number each"),
        ("role", -1, Role.SIN, "circles must be of dates"),
        ("role", 1, Role.MISSING, "categories must tell new texts"),
    ],
)
def test_a_file_whose_columns_are_not_of_their_kind_is_refused(name: str, at: Any, value: Any, words: str) -> None:
    table = {"size": [1.0, 2.5, None], "sort": ["a", "a", "a"], "day": ["2024-01-05", "2024-02-06T13:30", "2024-02-07"]}
    columns = Columns().start(table)
    list(columns.advance(table))
    found = columns.learned()
    assert found is not None
    Columns().restore(found, 2**20)
    arrays = {key: array.copy() for key, array in found.arrays.items()}
    arrays[name][at] = value
    with pytest.raises(ValueError, match=words):
        Columns().restore(Learned(found.facts, arrays), 2**20)


def test_a_missing_number_among_the_largest_ones_is_taken() -> None:
    """The mean of ten numbers of 1e100 is a last bit above."""
    table = {"size": [1e100] * 10 + [None], "sort": ["a"] * 11}
    columns = Columns().start(table)
    assert list(columns.advance(table))[-1].rows.todense()[-1, 0] == 1e100

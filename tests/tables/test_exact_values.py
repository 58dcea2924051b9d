"""A category identifies its values exactly, from whatever they are read."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayesvote import BayesianEnsembleClassifier
from bayesvote.apps.distributed.inputs import ArrayShard
from bayesvote.datasets import stream
from bayesvote.io.model_file import dumps, loads
from bayesvote.tables import Columns, columns_of, merged, read_table

Read = Callable[[list[int | None], Path], Any]

LARGE = 2**60
SIGNED = [LARGE, LARGE + 1, None, 2**53, 2**53 + 1, -(2**53) - 1, -(2**63), 2**63 - 1, 0, 7, -7, LARGE]
UNSIGNED = [2**64 - 1, 2**64 - 2, None, 2**63, 2**63 + 1, 0, 7, 2**53 + 1]
ANY = [10**400, 10**400 + 1, None, -(2**64), 2**64 + 1, 10**19 + 1, 7, 2**53 + 1]


def _pandas(dtype: str) -> Read:
    return lambda values, _: import_module("pandas").DataFrame({"id": values}, dtype=dtype)


def _categorical(values: list[int | None], _: Path) -> Any:
    pandas = import_module("pandas")
    return pandas.DataFrame({"id": pandas.Series(values, dtype="Int64").astype("category")})


def _arrow_of_pandas(values: list[int | None], _: Path) -> Any:
    pandas, pyarrow = import_module("pandas"), import_module("pyarrow")
    return pandas.DataFrame({"id": pandas.Series(values, dtype=pandas.ArrowDtype(pyarrow.int64()))})


def _polars(dtype: str) -> Read:
    def made(values: list[int | None], _: Path) -> Any:
        polars = import_module("polars")
        return polars.DataFrame({"id": values}, schema={"id": getattr(polars, dtype)})

    return made


def _polars_decimal(values: list[int | None], _: Path) -> Any:
    polars = import_module("polars")
    decimals = [None if value is None else Decimal(value) for value in values]
    return polars.DataFrame({"id": decimals}, schema={"id": polars.Decimal(38, 0)})


def _pyarrow(kind: str, *given: int) -> Read:
    def made(values: list[int | None], _: Path) -> Any:
        pyarrow = import_module("pyarrow")
        dtype = getattr(pyarrow, kind)(*given)
        cells = [Decimal(value) if given and value is not None else value for value in values]
        return pyarrow.table({"id": pyarrow.array(cells, dtype)})

    return made


def _dictionary(values: list[int | None], _: Path) -> Any:
    pyarrow = import_module("pyarrow")
    return pyarrow.table({"id": pyarrow.array(values, pyarrow.int64()).dictionary_encode()})


def _csv(values: list[int | None], folder: Path) -> Any:
    (folder / "x.csv").write_text("id,y\n" + "".join(f"{'' if v is None else v},a\n" for v in values))
    (chunk,) = stream(folder / "x.csv", columns={"id": "category"})
    return chunk.X


def _parquet(kind: str) -> Read:
    def made(values: list[int | None], folder: Path) -> Any:
        pyarrow = import_module("pyarrow")
        table = pyarrow.table({"id": pyarrow.array(values, getattr(pyarrow, kind)()), "y": ["a"] * len(values)})
        import_module("pyarrow.parquet").write_table(table, folder / "x.parquet")
        (chunk,) = stream(folder / "x.parquet", columns={"id": "category"})
        return chunk.X

    return made


def _array(dtype: Any) -> Read:
    return lambda values, _: {"id": np.array([0 if v is None else v for v in values], dtype=dtype)}


KINDS: dict[str, tuple[list[int | None], Read]] = {
    "list": (ANY, lambda values, _: {"id": values}),
    "objects": (ANY, lambda values, _: {"id": np.array(values, dtype=object)}),
    "texts": (ANY, lambda values, _: {"id": [None if v is None else str(v) for v in values]}),
    "dictionaries": (ANY, lambda values, _: columns_of([{"id": v} for v in values])),
    "decimals": (ANY, lambda values, _: {"id": [None if v is None else Decimal(v) for v in values]}),
    "fractions": (ANY, lambda values, _: {"id": [None if v is None else Fraction(v) for v in values]}),
    "CSV": (ANY, _csv),
    "pandas object": (ANY, _pandas("object")),
    "NumPy scalars": (SIGNED, lambda values, _: {"id": [None if v is None else np.int64(v) for v in values]}),
    "NumPy int64": ([v for v in SIGNED if v is not None], _array(np.int64)),
    "NumPy uint64": ([v for v in UNSIGNED if v is not None], _array(np.uint64)),
    "NumPy big-endian": ([v for v in SIGNED if v is not None], _array(">i8")),
    "pandas int64": ([v for v in SIGNED if v is not None], _pandas("int64")),
    "pandas Int64": (SIGNED, _pandas("Int64")),
    "pandas UInt64": (UNSIGNED, _pandas("UInt64")),
    "pandas category": (SIGNED, _categorical),
    "pandas Arrow": (SIGNED, _arrow_of_pandas),
    "polars Int64": (SIGNED, _polars("Int64")),
    "polars UInt64": (UNSIGNED, _polars("UInt64")),
    "polars Int128": ([*SIGNED, 2**64 + 1, 2**64], _polars("Int128")),
    "polars Decimal": ([*SIGNED, 10**30 + 1, 10**30], _polars_decimal),
    "pyarrow int64": (SIGNED, _pyarrow("int64")),
    "pyarrow uint64": (UNSIGNED, _pyarrow("uint64")),
    "pyarrow decimal": ([*SIGNED, 10**30 + 1, 10**30], _pyarrow("decimal128", 38, 0)),
    "pyarrow dictionary": (SIGNED, _dictionary),
    "Parquet int64": (SIGNED, _parquet("int64")),
    "Parquet uint64": (UNSIGNED, _parquet("uint64")),
}


def _encoded(columns: Columns, table: Any) -> Any:
    return columns.encode(table).todense()


@pytest.mark.parametrize("name", KINDS)
def test_integers_are_one_category_if_they_are_equal_and_never_otherwise(name: str, tmp_path: Path) -> None:
    """Columns taught from texts read every other input as their own, and are taught the same by it."""
    values, read = KINDS[name]
    for library in ("pandas", "polars", "pyarrow"):
        if library in name.lower() or (name.startswith("Parquet") and library == "pyarrow"):
            pytest.importorskip(library)
    table = read(values, tmp_path)
    texts = {"id": [None if value is None else str(value) for value in values]}
    found, expected = (Columns({"id": "category"}).start(t) for t in (table, texts))
    for cut in (slice(0, 3), slice(3, None)):
        list(expected.advance({"id": texts["id"][cut]}))
    list(found.advance(table))
    assert found.feature_names() == expected.feature_names()
    assert len(found.describe()[0]["texts"]) == len({value for value in values if value is not None})
    assert np.array_equal(_encoded(found, table), _encoded(expected, texts))
    assert np.array_equal(_encoded(expected, table), _encoded(found, texts))


SAME: list[list[Any]] = [
    [5, 5.0, np.int8(5), np.uint64(5), np.float16(5), Decimal(5), Decimal("5.00"), Fraction(5), "5", " 5 "],
    [0, 0.0, -0.0, Decimal("-0"), np.float32(-0.0), "0"],
    [True, np.True_, "True"],
    [2.5, Decimal("2.5"), Fraction(5, 2), np.float32(2.5), "2.5"],
    [2**53 + 1, np.int64(2**53 + 1), Decimal(2**53 + 1), np.longdouble(2**53) + 1, "9007199254740993"],
    [2**53, float(2**53), np.float32(2**53), np.uint64(2**53), "9007199254740992"],
    [1e22, 10**22, Decimal("1E+22"), "10000000000000000000000"],
    [10**400, Decimal(10**400), str(10**400)],
    [Decimal("0.1"), 0.1, "0.1"],
    [Decimal("0.10000000000000000000001"), "0.10000000000000000000001"],
    [Decimal("9007199254740992.5"), "9007199254740992.5"],
    [-(2**53) - 1, "-9007199254740993"],
    ["05"],
    ["5.0"],
    ["5e0"],
    [10**70, Decimal("1E+70"), "1" + 70 * "0"],
    [1e70, int(1e70)],
]


def test_values_of_all_types_are_told_apart_exactly() -> None:
    flat = [value for values in SAME for value in values]
    codes = read_table("test", {"id": flat}).columns["id"].as_texts().codes.tolist()
    expected = [k for k, values in enumerate(SAME) for _ in values]
    assert [codes.index(code) for code in codes] == [expected.index(k) for k in expected]


def test_cells_stay_exact_when_they_are_cut_put_in_order_and_joined() -> None:
    parts: list[Any] = [
        np.array([LARGE, LARGE + 1]),
        np.array([2**64 - 1, 2**64 - 2], dtype=np.uint64),
        [LARGE + 1, 2**64 - 1, "a", None, 10**400],
        np.array([1.5, float(LARGE)]),
        np.array([LARGE + 1]),
    ]
    tables = [read_table("test", {"id": part}) for part in parts]
    joined = tables[0]
    for table in tables[1:]:
        joined = joined.followed_by(table)
    expected = read_table("test", {"id": [value for part in parts for value in part]})
    order = np.random.default_rng(0).permutation(joined.n)
    for found, wanted in (
        (joined, expected),
        (joined.take(order), expected.take(order)),
        (joined.part(3, 9), expected),
    ):
        part = wanted.part(3, 9) if found.n < wanted.n else wanted
        texts = [
            [None if c < 0 else cells.texts[c] for c in cells.codes]
            for cells in (one.columns["id"].as_texts() for one in (found, part))
        ]
        assert texts[0] == texts[1]


def test_a_model_taught_with_integers_agrees_with_one_taught_from_csv_after_saving(tmp_path: Path) -> None:
    ids = [LARGE + k for k in np.random.default_rng(0).integers(2, size=200).tolist()]
    y = [value - LARGE for value in ids]
    (tmp_path / "x.csv").write_text("id,y\n" + "".join(f"{a},{b}\n" for a, b in zip(ids, y, strict=True)))
    (chunk,) = stream(tmp_path / "x.csv", columns={"id": "category"})
    models = [
        BayesianEnsembleClassifier(columns={"id": "category"}, n_members=10, random_state=0).fit(X, y)
        for X in ({"id": ids}, {"id": np.array(ids)}, chunk.X)
    ]
    assert models[0].score({"id": ids}, y) == 1.0
    again = loads(dumps(models[1]))
    for model in (*models, again):
        assert np.array_equal(model.predict_proba(chunk.X), models[0].predict_proba({"id": ids}))


def test_columns_of_parts_that_were_taught_from_different_inputs_merge() -> None:
    parts = [Columns({"id": "category"}).start({"id": given}) for given in ([LARGE], [str(LARGE)])]
    for part, given in zip(parts, (np.array([LARGE, LARGE + 1]), [str(LARGE + 1), str(LARGE + 2)]), strict=True):
        list(part.advance({"id": given}))
    assert merged(parts).describe()[0]["texts"] == [str(LARGE + k) for k in range(3)]


def test_numbers_that_are_too_large_are_refused_unless_they_are_categories() -> None:
    for columns in (Columns(), Columns({"id": "number"})):
        with pytest.raises(ValueError, match="finite numbers below 1e100 in size, got a number of 401 digits in row 0"):
            columns.start({"id": [10**400]})
        started = columns.start({"id": [1]})
        with pytest.raises(ValueError, match="got a number of 201 digits in row 1"):
            started.encode({"id": [1, -(10**200)]})
    unknown = Columns().start({"id": [None]})
    with pytest.raises(ValueError, match="got a number of 401 digits in row 1"):
        list(unknown.advance({"id": [None, 10**400]}))
    for value in (float("inf"), 1e200, Decimal("Infinity"), 10**5000, Decimal("1E+99999")):
        with pytest.raises(ValueError, match="column 'id' must hold"):
            Columns({"id": "category"}).start({"id": [value]})
    kept = Columns({"id": "drop", "a": "number"}).start({"id": [10**400], "a": [1.0]})
    assert kept.encode({"a": [2.0]}).todense().tolist() == [[2.0]]


def test_large_integers_in_a_column_of_numbers_are_the_nearest_floats() -> None:
    columns = Columns({"id": "number"}).start({"id": [1.0]})
    for values in ([LARGE + 1], np.array([LARGE + 1]), [str(LARGE + 1)], [Decimal(LARGE + 1)]):
        assert _encoded(columns, {"id": values})[0, 0] == float(LARGE + 1)


def test_shards_of_large_integers_have_versions_of_their_own() -> None:
    shards = [
        ArrayShard({"id": made([LARGE + k])}, np.array([0]), "shard 0") for made in (np.array, list) for k in range(2)
    ]
    assert len({shard.version for shard in shards}) == 4

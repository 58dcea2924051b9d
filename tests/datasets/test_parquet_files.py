"""Parquet as it comes: names with points, times, stated kinds, and files that were damaged."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayesvote.core.checks import InputError
from bayesvote.datasets import stream, stream_unlabelled, survey
from bayesvote.tables import read_table

pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")


def save(folder: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), folder / "x.parquet", **options)
    return folder / "x.parquet"


def damage(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))


@pytest.mark.parametrize("of_label", [False, True])
def test_a_name_with_a_point_beside_a_struct(tmp_path: Path, of_label: bool) -> None:
    # Arrow gives both for "geo.lat", so that every column after them stands one further on.
    labels = pa.array(["good", "bad"])
    columns = {
        "geo.lat": [0.5, 1.5],
        "geo": [{"lat": 7}, {"lat": 8}],
        "geo.long": [{"x": 1}, {"x": 2}],
        "mass": [3, 4],
        "y": labels.dictionary_encode() if of_label else labels,
    }
    path = save(tmp_path, columns)
    dropped = {"geo": "drop", "geo.long": "drop"}
    (chunk,) = stream(path, target="y", columns=dropped)
    assert chunk.X.tolist() == [[0.5, 3], [1.5, 4]]
    assert chunk.y.tolist() == ["good", "bad"]
    assert survey(path, target="y", columns=dropped).labels.tolist() == ["bad", "good"]
    (chunk,) = stream_unlabelled(path, n_features=2, feature_names=["mass", "geo.lat"])
    assert chunk.X.tolist() == [[3, 0.5], [4, 1.5]]


def test_labels_in_a_column_with_a_point(tmp_path: Path) -> None:
    labels = pa.array(["u", "v"]).dictionary_encode()
    path = save(tmp_path, {"a": [1, 2], "geo": [{"y": "p"}, {"y": "q"}], "geo.y": labels})
    options: dict[str, Any] = {"target": "geo.y", "columns": {"geo": "drop"}}
    assert survey(path, **options).labels.tolist() == ["u", "v"]
    (chunk,) = stream(path, **options)
    assert chunk.y.tolist() == ["u", "v"]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_day_and_durations_are_those_of_tables_in_python(tmp_path: Path, unit: str) -> None:
    of_day = (pa.time32 if unit in ("s", "ms") else pa.time64)(unit)
    columns = {
        "took": pa.array([1, 2_500_123, None, -7_654_321], pa.duration(unit)),
        "at": pa.array([3_600, 86_399, None, 0], of_day),
        "y": pa.array(["u", "v", "u", "v"]),
    }
    path = save(tmp_path, columns)
    (chunk,) = stream(path)
    ours, theirs = read_table("", chunk.X).columns, read_table("", pq.read_table(path)).columns
    for name in ("took", "at"):
        np.testing.assert_array_equal(ours[name].numbers, theirs[name].numbers)
        assert ours[name].texts == theirs[name].texts
        np.testing.assert_array_equal(ours[name].codes, theirs[name].codes)
    assert ours["took"].numbers[1] == pytest.approx(
        2_500_123 / {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}[unit], rel=1e-3
    )
    assert unit != "s" or chunk.X["at"] == ["01:00:00", "23:59:59", None, "00:00:00"]
    # A table of durations alone is one, as in Python, where a missing one is the mean so far.
    (chunk,) = stream(path, columns={"at": "drop"})
    assert isinstance(chunk.X, dict)


def test_durations_beyond_all_dates_are_numbers(tmp_path: Path) -> None:
    path = save(tmp_path, {"took": pa.array([2**62, -(2**62)], pa.duration("s")), "y": [0, 1]})
    (chunk,) = stream(path)
    assert chunk.X["took"].tolist() == [2.0**62, -(2.0**62)]


KINDS = [
    ("date", pa.array(["2020-01-01", None, "soon", "2020-01-02T03:04"]), "2020-12-31T23:59 in every row, got 'soon'"),
    ("boolean", pa.array(["yes", "", "perhaps", "False"]), "must hold a boolean in every row, got 'perhaps'"),
    ("number", pa.array(["1.5", "NA", "1,5", "2"]), "must hold a number in every row, got '1,5'"),
    ("date", pa.array([1, 2, 3, 4], pa.time32("s")), "got '00:00:01'"),
]


@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize(("kind", "column", "words"), KINDS[:3])
def test_a_text_that_a_stated_column_cannot_hold_is_a_bad_row(
    tmp_path: Path, kind: str, column: Any, words: str, coded: bool
) -> None:
    path = save(tmp_path, {"d": column.dictionary_encode() if coded else column, "y": [0, 1, 0, 1]})
    with pytest.raises(InputError, match=rf"row 3: column 'd' .*{words}.*\{{'d': 'category'\}}.*Fix the row"):
        list(stream(path, columns={"d": kind}))
    rows = stream(path, columns={"d": kind}, bad_lines="skip", chunk_size=2)
    assert [number for chunk in rows for number in chunk.lines.tolist()] == [1, 2, 4]
    assert (rows.skipped, rows.reports[0].partition(":")[0]) == (1, "row 3")
    asked = stream_unlabelled(path, n_features=1, feature_names=["d"], columns={"d": kind})
    if kind == "number":
        assert sum(chunk.n for chunk in asked) == 4  # a model that only found numbers takes a text for a category's
    else:
        with pytest.raises(InputError, match=r"row 3: column 'd' .*got '.*'\. Fix the row"):
            list(asked)
    assert sum(chunk.n for chunk in stream(path, columns={"d": "category"})) == 4


def test_times_of_day_are_no_dates(tmp_path: Path) -> None:
    path = save(tmp_path, {"d": KINDS[3][1], "y": [0, 1, 0, 1]})
    with pytest.raises(InputError, match=r"row 1: column 'd' must hold a date .*got '00:00:01'"):
        list(stream(path, columns={"d": "date"}))


def test_typed_columns_hold_what_is_stated_of_them(tmp_path: Path) -> None:
    path = save(tmp_path, {"d": [datetime.date(2020, 1, 1)] * 2, "b": [True, None], "n": [1, 2], "y": [0, 1]})
    for kind in ("date", "number", "boolean"):
        rows = stream(path, columns=dict.fromkeys("dbn", kind))
        assert [chunk.n for chunk in rows] == [2]


def test_names_that_are_no_text_are_told_as_damage(tmp_path: Path) -> None:
    path = save(tmp_path, {"height": [1.0, 2.0], "y": [0, 1]}, store_schema=False)
    damage(path, b"height", b"heig\xff\xff")
    for read in (stream, survey):
        with pytest.raises(
            InputError, match=r"x.parquet must be a complete file, got a damaged or truncated one: 'utf-8'"
        ):
            read(path)


@pytest.mark.parametrize("note", [b'{"index_columns": [', b'{"index_columns": ["\xff"]}', b"[" * 100_000])
def test_a_note_of_pandas_that_cannot_be_read_is_told_as_damage(tmp_path: Path, note: bytes) -> None:
    table = pa.table({"a": [1.0, 2.0], "y": [0, 1]}).replace_schema_metadata({b"pandas": note})
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(InputError, match="must be a complete file"):
        stream(tmp_path / "x.parquet")


def test_damaged_pages_of_labels_are_told_as_damage(tmp_path: Path) -> None:
    labels = pa.array(["u", "v"] * 50).dictionary_encode()
    path = save(tmp_path, {"a": [0.0] * 100, "y": labels}, compression="none")
    group = pq.ParquetFile(path).metadata.row_group(0).column(1)
    content = bytearray(path.read_bytes())
    content[group.data_page_offset : group.data_page_offset + 8] = b"\xff" * 8
    path.write_bytes(content)
    with pytest.raises(InputError, match="must be a complete file"):
        survey(path)


def test_rows_that_the_file_announces_and_does_not_have_are_told(tmp_path: Path) -> None:
    path = save(tmp_path, {"a": [0.0] * 100, "y": [0, 1] * 50})
    content = path.read_bytes()
    # The file's number of rows is the field after its schema: a 64-bit whole number, zigzagged, 100 as 200.
    at = content.index(b"\x16\xc8\x01\x19", len(content) - 8 - int.from_bytes(content[-8:-4], "little"))
    path.write_bytes(content[: at + 1] + b"\xca" + content[at + 2 :])
    assert pq.ParquetFile(path).metadata.num_rows == 101
    with pytest.raises(InputError, match="its metadata declares 101 rows, but it has 100"):
        list(stream(path))

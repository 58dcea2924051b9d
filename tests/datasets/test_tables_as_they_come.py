"""Tables as they are in the world: without a header, with commas for points, truth values, an index, or in a pipe."""

import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayesvote import BayesianEnsembleClassifier, prequential
from bayesvote.datasets import stream, stream_unlabelled, survey
from bayesvote.io.lines import LineReader


def save(folder: Path, text: str) -> Path:
    path = folder / "x.csv"
    path.write_text(text)
    return path


def rows(path: Path, **options: Any) -> list[list[Any]]:
    chunks = list(stream(path, **options))
    return [[*x, y] for chunk in chunks for x, y in zip(np.asarray(chunk.X).tolist(), chunk.y.tolist(), strict=True)]


@pytest.mark.parametrize("first", ["1,2,3", "5.1,3.5,setosa", "39,State-gov,77516", "a,2.5,b", "0,1,2", "-1,x,y"])
def test_a_missing_header_is_noticed(tmp_path: Path, first: str) -> None:
    path = save(tmp_path, f"{first}\n{first}\n")
    with pytest.raises(ValueError, match=r"first line of .* must name the columns, got .*header=False"):
        stream(path)
    with pytest.raises(ValueError, match="must name the columns"):
        survey(path)


@pytest.mark.parametrize("first", ["a,b,y", "country,2019,2020", "0,1,2,y", ",a,y", "x1,x2,3"])
def test_a_header_is_taken_for_one(tmp_path: Path, first: str) -> None:
    names = first.split(",")
    found = stream(save(tmp_path, f"{first}\n" + ",".join("1" for _ in names) + "\n"))
    found.close()
    assert [*(found.feature_names or []), found.label_name] == names


def test_what_the_user_says_of_the_header_holds(tmp_path: Path) -> None:
    path = save(tmp_path, "1,2,3\n4,5,6\n")
    assert rows(path, header=True) == [[4, 5, 6]]
    found = stream(path, header=False)
    found.close()
    assert found.feature_names == ["column 0", "column 1"]
    assert rows(path, header=False) == [[1, 2, 3], [4, 5, 6]]
    assert rows(path, header=False, target=0) == [[2, 3, 1], [5, 6, 4]]
    assert survey(path, header=False).n_rows == 2
    with pytest.raises(ValueError, match="line 2"):
        rows(save(tmp_path, "1,2,3\n4,x,6\n"), header=False)


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_decimal_commas(tmp_path: Path, delimiter: str) -> None:
    text = "a;b;y\n1,5;2;u\n-,25;1.234,5;v\n3;1,5e2;u\n;7;v\n".replace(";", delimiter)
    np.testing.assert_array_equal(
        np.array([row[:2] for row in rows(save(tmp_path, text))]), [[1.5, 2], [-0.25, 1234.5], [3, 150], [np.nan, 7]]
    )


def test_points_and_decimal_commas_do_not_mix(tmp_path: Path) -> None:
    # 1.234 among decimal commas may be a thousand and 234, or one and a quarter: nobody knows.
    path = save(tmp_path, "a;b;y\n1,5;2;u\n1.234;1;v\n")
    with pytest.raises(ValueError, match=r"line 3: column 'a' must be a number with a decimal comma, .*got '1.234'"):
        rows(path)
    assert rows(path, bad_lines="skip") == [[1.5, 2, "u"]]
    for chunk_size in (1, 10):
        path = save(tmp_path, "a;b;y\n1.5;2;u\n1,234;1;v\n")
        assert rows(path, bad_lines="skip", chunk_size=chunk_size) == [[1.5, 2, "u"]]


def test_the_decimal_mark_can_be_said(tmp_path: Path) -> None:
    path = save(tmp_path, 'a,b,y\n"1,5",2,u\n')
    with pytest.raises(ValueError, match=r"must be a finite number, got '1,5'"):
        rows(path)
    assert rows(path, decimal=",") == [[1.5, 2, "u"]]
    with pytest.raises(ValueError, match="line 2"):
        rows(save(tmp_path, "a;b;y\n1,5;2;u\n"), decimal=".")
    with pytest.raises(ValueError, match=r"decimal must be"):
        stream(path, decimal="'")


def test_truth_values(tmp_path: Path) -> None:
    path = save(tmp_path, "a,b,y\ntrue,1,u\nFALSE,2,v\n True ,,u\n")
    assert [row[0] for row in rows(path)] == [1, 0, 1]


def test_the_index_that_pandas_keeps_in_parquet_is_no_column(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    table = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "y": ["u", "v", "u"]}, index=[7, 3, 5])
    for name in (None, "customer"):
        table.rename_axis(name).to_parquet(tmp_path / "x.parquet")
        found = stream(tmp_path / "x.parquet")
        found.close()
        assert (found.feature_names, found.label_name) == (["a"], "y")
        assert survey(tmp_path / "x.parquet").labels.tolist() == ["u", "v"]
        (chunk,) = stream_unlabelled(tmp_path / "x.parquet", n_features=1)
        assert np.asarray(chunk.X).ravel().tolist() == [1, 2, 3]
    # Whoever asks for it by its name gets it.
    (chunk,) = stream_unlabelled(tmp_path / "x.parquet", n_features=1, feature_names=["customer"])
    assert np.asarray(chunk.X).ravel().tolist() == [7, 3, 5]


@pytest.mark.parametrize(("text", "options"), [("a,y\n1,0\n2,1\n", {}), ("1 1:1\n0 1:2\n", {"n_features": 1})])
def test_rows_of_a_pipe_come_as_they_were_written(tmp_path: Path, text: str, options: dict[str, Any]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    last = text.splitlines(keepends=True)[-1]
    go = threading.Event()

    def write() -> None:
        with open(pipe, "w") as out:
            out.write(text)
            out.flush()
            assert go.wait(60)
            out.write(last)

    writer = threading.Thread(target=write)
    writer.start()
    found = stream(pipe, flush_after=0.0, **options)
    assert found.live
    assert len(next(found).y) == 2  # while the pipe is open
    go.set()
    assert [len(chunk.y) for chunk in found] == [1]
    writer.join()


def test_a_file_or_a_pipe_without_a_limit_of_time_gives_full_chunks(tmp_path: Path) -> None:
    path = save(tmp_path, "a,y\n" + "1,0\n2,1\n" * 5)
    assert [len(chunk.y) for chunk in stream(path, chunk_size=4, flush_after=0.0)] == [4, 4, 2]
    read, write = os.pipe()
    with open(read, "rb") as file, open(write, "wb") as out:
        lines = LineReader(file, read)
        out.write(b"1\n2\n")
        out.flush()

        def later() -> None:
            out.write(b"3\n4\n")
            out.flush()

        threading.Timer(0.2, later).start()
        assert lines.batch(4) == [b"1", b"2", b"3", b"4"]
        lines.flush_after = 0.1
        out.write(b"5\n")
        out.flush()
        started = time.monotonic()
        assert lines.batch(4) == [b"5"]
        assert time.monotonic() - started < 30


def test_a_quote_that_is_not_closed_does_not_keep_a_pipe_waiting(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    go = threading.Event()

    def write() -> None:
        with open(pipe, "w") as out:
            out.write('a,y\n1,0\n"2,1\n')
            out.flush()
            assert go.wait(60)
            out.write('3,0\n4,"1\n"\n')

    writer = threading.Thread(target=write)
    writer.start()
    found = stream(pipe, flush_after=0.0, bad_lines="skip")
    assert next(found).y.tolist() == [0]
    go.set()
    assert [label for chunk in found for label in chunk.y.tolist()] in ([0, 1], [0])
    assert found.skipped >= 1
    writer.join()


PENGUINS = """island,bill,sex,when,species
Torgersen,39.1,male,2007-11-11,Adelie
Torgersen,,NA,2007-11-12,Adelie
 Biscoe ,46.1,female,2008-01-05,Gentoo
Dream,x1,male,2008-01-06,Chinstrap
Dream,46.5,,2008-01-06,Chinstrap
"""


@pytest.mark.parametrize("chunk_size", [1, 2, 100])
def test_texts_come_as_they_are_beside_numbers(tmp_path: Path, chunk_size: int) -> None:
    path = save(tmp_path, PENGUINS)
    with pytest.raises(ValueError, match=r"line 5: column 'bill' must be a finite number, got 'x1'"):
        list(stream(path))
    found = stream(path, bad_lines="skip", chunk_size=chunk_size)
    chunks = list(found)
    assert all(isinstance(chunk.X["bill"], np.ndarray) for chunk in chunks)
    joined = {name: [value for chunk in chunks for value in chunk.X[name]] for name in chunks[0].X}
    assert list(joined) == found.feature_names == ["island", "bill", "sex", "when"]
    assert joined["island"] == ["Torgersen", "Torgersen", "Biscoe", "Dream"]
    assert joined["sex"] == ["male", "", "female", ""]
    np.testing.assert_array_equal(joined["bill"], [39.1, np.nan, 46.1, 46.5])
    assert found.skipped == 1
    assert survey(path, bad_lines="skip").labels.tolist() == ["Adelie", "Chinstrap", "Gentoo"]


def test_what_is_said_of_columns_holds(tmp_path: Path) -> None:
    path = save(tmp_path, "id,zip,age,y\n1,01234,3,u\n2,00501,4,v\n")
    (chunk,) = stream(path, columns={"zip": "category", "id": "drop"})
    assert chunk.X["zip"] == ["01234", "00501"]
    assert list(chunk.X) == ["zip", "age"]
    (chunk,) = stream(path, features=["age", "y"], target="zip")
    assert chunk.y.tolist() == ["01234", "00501"]
    assert list(chunk.X) == ["age", "y"]
    (chunk,) = stream(path, features=["age"])
    assert chunk.X.tolist() == [[3], [4]]
    (chunk,) = stream(path, columns={"y": "drop"})
    assert chunk.y.tolist() == [3, 4]
    with pytest.raises(ValueError, match=r"columns must name columns of .*, id, zip, age, y, got 'Zip'. Did you mean"):
        stream(path, columns={"Zip": "category"})
    with pytest.raises(ValueError, match=r"features must name columns of"):
        stream(path, features=["years"])
    with pytest.raises(ValueError, match=r"columns\['zip'\] must be one of"):
        stream(path, columns={"zip": "text"})
    with pytest.raises(ValueError, match=r"unique names, got 'a' twice"):
        stream(save(tmp_path, "a,a,y\nx,1,u\n"))


@pytest.mark.parametrize("chunk_size", [1, 3, 4096])
@pytest.mark.parametrize(
    ("kind", "good", "bad"), [("date", "2020-01-02", "soon"), ("boolean", " Yes", "perhaps"), ("number", "1.5", "many")]
)
def test_a_text_that_a_stated_column_cannot_hold_is_a_bad_line(
    tmp_path: Path, kind: str, good: str, bad: str, chunk_size: int
) -> None:
    lines = ["a,when,y", *(f"{i},{'' if i == 3 else good},{i % 2}" for i in range(500))]
    lines[70] = f"1,{bad},0"
    path = save(tmp_path, "\n".join(lines))
    options: dict[str, Any] = {"columns": {"when": kind}, "chunk_size": chunk_size}
    words = rf"line 71: column 'when' must .*, got '{bad}'\. .*with columns=\{{'when': 'category'\}}\. Fix the line"
    for read in (stream, survey):
        with pytest.raises(ValueError, match=words):
            list(read(path, **options))
    found = stream(path, bad_lines="skip", **options)
    assert [line for chunk in found for line in chunk.lines.tolist()] == [n for n in range(2, 502) if n != 71]
    assert (found.skipped, found.reports[0].partition(":")[0]) == (1, "line 71")
    assert survey(path, bad_lines="skip", **options).n_rows == 499
    with pytest.raises(ValueError, match=rf"line 71: column 'when' must .*, got '{bad}'\. Fix the line"):
        list(stream_unlabelled(path, n_features=2, feature_names=["a", "when"], **options))
    assert sum(chunk.n for chunk in stream(path, columns={"when": "category"})) == 500


def test_a_stray_quote_in_a_column_of_dates_costs_its_own_line(tmp_path: Path) -> None:
    lines = ["a,when,y", *(f"{i},2020-01-02,{i % 2}" for i in range(50))]
    lines[20], lines[30] = '1,"2020-01-02,0', '1,2020-01-02",0'  # together one field of eleven lines
    found = stream(save(tmp_path, "\n".join(lines)), bad_lines="skip", columns={"when": "date"})
    assert sum(chunk.n for chunk in found) == 48
    assert found.skipped == 2


def test_a_row_without_its_date_does_not_decide_the_decimal_mark(tmp_path: Path) -> None:
    lines = ["a;when;y", "1.5;soon;0", *(f"{i},5;2020-01-02;{i % 2}" for i in range(30))]
    for chunk_size in (1, 4096):
        found = stream(
            save(tmp_path, "\n".join(lines)), bad_lines="skip", columns={"when": "date"}, chunk_size=chunk_size
        )
        assert np.concatenate([chunk.X["a"] for chunk in found]).tolist() == [i + 0.5 for i in range(30)]
        assert found.skipped == 1


def test_texts_of_parquet(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    table = pandas.DataFrame({"a": ["x", None, "z"], "b": [1, 2, 3], "c": pandas.Categorical(["u", "v", "u"])})
    table["when"] = pandas.to_datetime(["2020-01-01", "2020-01-02", None])
    table["y"] = [0, 1, 0]
    table.to_parquet(tmp_path / "x.parquet")
    (chunk,) = stream(tmp_path / "x.parquet")
    assert chunk.X["a"] == ["x", None, "z"]
    assert chunk.X["c"] == ["u", "v", "u"]
    assert chunk.X["when"][2] is None
    assert survey(tmp_path / "x.parquet").n_rows == 3


def test_a_stream_of_texts_is_learned_by_a_model(tmp_path: Path) -> None:
    lines = [f"{'Dream' if i % 3 else 'Biscoe'},{i % 7},{'u' if i % 3 else 'v'}" for i in range(300)]
    path = save(tmp_path, "island,mass,species\n" + "\n".join(lines) + "\n")
    for delay in (0, 5):
        model = BayesianEnsembleClassifier(n_members=10, random_state=0)
        run = prequential(model, stream(path, chunk_size=50), classes=["u", "v"], delay=delay)
        assert run.error < 0.1
        again = BayesianEnsembleClassifier(n_members=10, random_state=0)
        assert prequential(again, stream(path), classes=["u", "v"], delay=delay).error == run.error
        assert again.feature_names_in_.tolist() == ["island", "mass"]

"""Labels of files: 01 and 1 are two, and integers are themselves."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayesvote.datasets import stream, survey


def csv_of(path: Path, labels: list[str]) -> Path:
    path.write_text("a,y\n" + "".join(f"{k},{label}\n" for k, label in enumerate(labels)))
    return path


def read(path: Path, **given: Any) -> list[Any]:
    return [label for chunk in stream(path, **given) for label in chunk.y.tolist()]


@pytest.mark.parametrize("chunk_size", [1, 7, 4096])
@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["1", "01", "1"], ["1", "01", "1"]),
        (["01", "1", "001"], ["01", "1", "001"]),
        (["1", "2", "1.0", "+2"], [1, 2, 1, 2]),
        (["9007199254740993", "9007199254740992", "5"], [2**53 + 1, 2**53, 5]),
        (["5", f"{2**63 - 1}", f"{-(2**63)}"], [5, 2**63 - 1, -(2**63)]),
        (["5", f"{2**63}", f"{2**63 + 1}"], ["5", f"{2**63}", f"{2**63 + 1}"]),
        (["0.5", "1"], [0.5, 1.0]),
        (["0", "-0", "0.0"], [0, 0, 0]),
        (["0.5", "00.5"], ["0.5", "00.5"]),
        (["a", "01", "1"], ["a", "01", "1"]),
    ],
)
def test_labels_are_told_apart_in_chunks_of_any_size(
    tmp_path: Path, labels: list[str], expected: list[Any], chunk_size: int
) -> None:
    path = csv_of(tmp_path / "x.csv", labels)
    found = read(path, chunk_size=chunk_size)
    assert found == expected
    assert {type(label) for label in found} == {type(label) for label in expected}
    assert survey(path, chunk_size=chunk_size).labels.tolist() == sorted(set(expected))
    assert read(path, labels="text") == labels


def test_a_code_after_many_numbers_is_no_number(tmp_path: Path) -> None:
    """A stream cannot change the labels that it has given; a survey reads all of them first."""
    path = csv_of(tmp_path / "x.csv", ["1", "2"] * 100 + ["01"])
    said = "line 202: the label must be a whole number, as the first label is, got '01'. Read all labels as text "
    with pytest.raises(ValueError, match=said + "with labels='text'"):
        read(path)
    assert read(path, bad_lines="skip") == [1, 2] * 100
    assert survey(path).labels.tolist() == survey(path, bad_lines="skip").labels.tolist() == ["01", "1", "2"]
    assert set(read(path, labels="text")) == {"01", "1", "2"}
    csv_of(path, ["1", "2"] * 100 + ["one"])
    with pytest.raises(ValueError, match=r"line 202: the label must be a whole number, .* got 'one'. Fix the line"):
        survey(path)


def test_a_row_that_is_refused_decides_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(f"a,y\n1,1\n2,{'9' * 5000}\n3,inf\n4,2\n5\n")
    assert read(tmp_path / "x.csv", bad_lines="skip") == [1, 2]


def test_labels_of_parquet_are_exact(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def write(labels: list[Any], kind: Any) -> Path:
        y = pyarrow.array(labels, kind)
        path = tmp_path / f"{kind}.parquet"
        parquet.write_table(pyarrow.table({"a": np.arange(len(labels)), "y": y}), path)
        return path

    assert read(write([2**53 + 1, 2**53], pyarrow.int64())) == [2**53 + 1, 2**53]
    codes = write(["1", "01"], pyarrow.string())
    with pytest.raises(ValueError, match="row 2: the label must be a whole number"):
        read(codes)
    assert survey(codes).labels.tolist() == ["01", "1"]
    assert read(codes, labels="text") == ["1", "01"]
    categories = write(["1", "01", "1"], pyarrow.dictionary(pyarrow.int8(), pyarrow.string()))
    assert survey(categories).labels.tolist() == ["01", "1"]


def test_labels_of_libsvm_text(tmp_path: Path) -> None:
    (tmp_path / "x.svm").write_text("+1 1:1\n-1 1:2\n9007199254740993 1:3\n")
    assert read(tmp_path / "x.svm") == [1, -1, 2**53 + 1]
    (tmp_path / "x.svm").write_text("1 1:1\n01 1:2\n")
    assert survey(tmp_path / "x.svm").labels.tolist() == ["01", "1"]


def test_an_unknown_way_to_read_labels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"labels must be one of auto, text, got 'texts'\. Did you mean 'text'"):
        stream(csv_of(tmp_path / "x.csv", ["1"]), labels="texts")

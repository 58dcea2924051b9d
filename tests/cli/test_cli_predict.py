"""``predict`` on more rows than are read at a time."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest

from bayesvote import load
from cli.helpers import Cli, rows, write_csv

N = 8200  # three chunks, as rows are read by 4,096


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_csv(tmp_path_factory.mktemp("rows") / "rows.csv", N, labelled=False)


@pytest.fixture
def model(cli: Cli, csv_file: Path, tmp_path: Path) -> Path:
    path = tmp_path / "model"
    assert cli("run", csv_file, "--members", "naive_bayes", "--n-members", 3, "-o", path).code == 0
    return path


def test_rows_are_numbered_through_all_chunks(cli: Cli, model: Path, file: Path) -> None:
    fitted = load(model)
    fitted.fitted_ = fitted.fitted_.replace(names=None)
    expected = fitted.predict_proba(rows(N)[0])
    for more in ((), ("--proba",)):
        found = cli("predict", model, file, *more)
        assert found.code == 0, found.err
        table = list(csv.DictReader(io.StringIO(found.out)))
        assert [int(row["row"]) for row in table] == list(range(1, N + 1))
        assert [row["predicted"] for row in table] == fitted.classes_[expected.argmax(axis=1)].tolist()
    assert list(table[0]) == ["row", "predicted", "probability_no", "probability_yes"]
    found_chances = [[float(row["probability_no"]), float(row["probability_yes"])] for row in table]
    np.testing.assert_array_equal(found_chances, expected)


def test_a_fault_in_a_later_chunk_leaves_the_old_file(cli: Cli, model: Path, file: Path, tmp_path: Path) -> None:
    bad, out = tmp_path / "bad.csv", tmp_path / "out" / "predictions.csv"
    out.parent.mkdir()
    out.write_text("of last week")
    bad.write_text(file.read_text() + "1,2,x,4\n")
    refused = cli("predict", model, bad, "-o", out)
    assert refused.code == 1
    assert f"line {N + 2}: column 'depth'" in refused.err
    assert list(out.parent.iterdir()) == [out]
    assert out.read_text() == "of last week"


def test_numbers_with_decimal_commas(cli: Cli, model: Path, csv_file: Path) -> None:
    expected = cli("predict", model, csv_file).out
    csv_file.write_text(csv_file.read_text().replace(",", ";").replace(".", ","))
    found = cli("predict", model, csv_file, "--decimal", ",")
    assert (found.code, found.out) == (0, expected)
    refused = cli("predict", model, csv_file, "--decimal", ".")  # otherwise the mark is found in the file
    assert refused.code == 1
    assert "If the file has decimal commas" in refused.err

"""Exact labels and categories on the command line."""

from pathlib import Path

import numpy as np
import pytest

from bayesvote import BayesianEnsembleClassifier, load
from cli.helpers import Cli

SMALL = ("--n-members", 5)
LARGE = 2**60


def write(path: Path, labels: list[str], n: int = 300) -> Path:
    """Rows whose only column tells the label."""
    rng = np.random.default_rng(0)
    codes = rng.integers(len(labels), size=n)
    rows = [f"{code + rng.normal(scale=0.1):.3f},{labels[code]}" for code in codes]
    path.write_text("\n".join(["a,y", *rows]) + "\n")
    return path


@pytest.mark.parametrize("pair", [["1", "01"], ["01", "1"], ["9007199254740993", "9007199254740992"]])
def test_labels_stay_apart_from_file_to_prediction(cli: Cli, tmp_path: Path, pair: list[str]) -> None:
    path, model = write(tmp_path / "x.csv", pair), tmp_path / "m"
    done = cli("run", path, *SMALL, "-o", model, "--checkpoint", tmp_path / "s")
    assert done.code == 0, done.err
    assert [str(label) for label in load(model).classes_.tolist()] == sorted(pair)
    assert cli("predict", model, "-", stdin=b"a\n0.0\n1.0\n").out == f"row,predicted\n1,{pair[0]}\n2,{pair[1]}\n"
    named = cli("run", "-", *SMALL, "--classes", ",".join(pair), "-o", tmp_path / "n", stdin=path.read_bytes())
    assert named.code == 0, named.err
    assert (tmp_path / "n").read_bytes() == model.read_bytes()
    shown = cli("run", path, *SMALL, "--predictions", tmp_path / "p.csv")
    assert shown.code == 0, shown.err
    found = {line.split(",")[1] for line in (tmp_path / "p.csv").read_text().splitlines()[1:]}
    assert found == set(pair)


def test_a_code_after_many_numbers_makes_texts_of_all_labels_and_a_resumed_run_knows(cli: Cli, tmp_path: Path) -> None:
    path, state = write(tmp_path / "x.csv", ["1", "2"]), tmp_path / "s"
    whole = path.read_text() + "2.0,01\n" * 20
    path.write_text(whole)
    assert cli("run", path, *SMALL, "-o", tmp_path / "m").code == 0
    assert load(tmp_path / "m").classes_.tolist() == ["01", "1", "2"]
    options = ("--classes", "1,2,01", *SMALL, "--checkpoint", state, "-o", tmp_path / "r")
    path.write_text("".join(whole.splitlines(keepends=True)[:200]))
    assert cli("run", path, *options).code == 0
    path.write_text(whole)
    done = cli("run", path, *options, "--resume")
    assert done.code == 0, done.err
    assert (tmp_path / "r").read_bytes() == (tmp_path / "m").read_bytes()
    path.write_text("".join(whole.splitlines(keepends=True)[:200]))
    state.unlink()
    assert cli("run", path, *SMALL, "--classes", "1,2", "--checkpoint", state).code == 0
    path.write_text(whole)
    done = cli("run", path, *SMALL, "--classes", "1,2", "--checkpoint", state, "--resume")
    assert done.code == 1
    assert "line 302: the label must be a whole number, as the first label is, got '01'" in done.err
    assert "Read all labels as text with --classes, which names all of them." in done.err


def test_shards_of_which_some_have_codes_are_read_alike(cli: Cli, tmp_path: Path) -> None:
    for place, labels in enumerate((["1", "2"], ["2", "1"], ["01", "1"], ["01", "2"])):
        write(tmp_path / f"x{place}.csv", labels)
    for named in ((), ("--classes", "1,2,01")):
        done = cli("run", tmp_path / "x*.csv", "--engine", "loop", *SMALL, *named, "-o", tmp_path / "m")
        assert done.code == 0, done.err
        assert load(tmp_path / "m").classes_.tolist() == ["01", "1", "2"]


def test_a_model_taught_in_python_with_integers_reads_them_in_csv_and_parquet(cli: Cli, tmp_path: Path) -> None:
    from bayesvote import save

    ids = [LARGE, LARGE + 1] * 50
    model = BayesianEnsembleClassifier(columns={"id": "category"}, n_members=5, random_state=0)
    save(model.fit({"id": ids}, [value - LARGE for value in ids]), tmp_path / "m")
    expected = "row,predicted\n1,1\n2,0\n"
    done = cli("predict", tmp_path / "m", "-", stdin=f"id\n{LARGE + 1}\n{LARGE}\n".encode())
    assert done.out == expected, done.err
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    parquet.write_table(pyarrow.table({"id": [LARGE + 1, LARGE]}), tmp_path / "x.parquet")
    assert cli("predict", tmp_path / "m", tmp_path / "x.parquet").out == expected

"""``run`` does its work once: readings of the file, checks of the rows, look-ups of labels, models made."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bayesvote import Ensemble
from bayesvote.core import checks as _checks
from bayesvote.core import rows as _input
from bayesvote.io import open_stream as streams
from cli.helpers import NAMES, Cli, rows, write_csv, write_libsvm

N = 400
SMALL = ("--n-members", 5, "--chunk-size", 64)
MODELS = 2  # one that is never started, to check the options before anything is read


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts of what was done: files opened, values checked, labels looked up, models made."""
    counts: Counter[str] = Counter()
    open_bytes, has_nan, encoded, made = streams.open_bytes, _input._has_nan, _checks.encoded, Ensemble.__post_init__

    def counted_open(name: str) -> Any:
        counts["opened"] += 1
        return open_bytes(name)

    def counted_values(who: str, values: Any) -> bool:
        counts["values"] += len(values)
        return has_nan(who, values)

    def counted_labels(who: str, y: Any, classes: Any) -> Any:
        counts["labels"] += len(y)
        return encoded(who, y, classes)

    def counted_models(self: Ensemble) -> None:
        counts["models"] += 1
        made(self)

    monkeypatch.setattr(streams, "open_bytes", counted_open)
    monkeypatch.setattr(_input, "_has_nan", counted_values)
    monkeypatch.setattr(_checks, "encoded", counted_labels)
    monkeypatch.setattr(Ensemble, "__post_init__", counted_models)
    return counts


def write_parquet(path: Path, *, categorical: bool) -> Path:
    pandas = pytest.importorskip("pandas")
    X, y = rows(N)
    table = pandas.DataFrame(X, columns=NAMES)
    table["answer"] = pandas.Categorical(y) if categorical else y
    table.to_parquet(path, row_group_size=100)
    return path


@pytest.mark.parametrize("delay", [0, 7])
def test_rows_are_checked_and_looked_up_once(cli: Cli, work: Counter[str], csv_file: Path, delay: int) -> None:
    assert cli("run", csv_file, *SMALL, "--delay", delay, "--classes", "no,yes").code == 0
    assert work == {"opened": 1, "values": N * len(NAMES), "labels": N, "models": MODELS}


def test_a_second_reading_is_told_with_what_avoids_it(cli: Cli, work: Counter[str], tmp_path: Path) -> None:
    table, text = write_csv(tmp_path / "rows.csv"), write_libsvm(tmp_path / "rows.svm")
    for arguments, opened, avoided_by in (
        ((table,), 2, "--classes"),
        ((table, "--classes", "no,yes"), 1, None),
        ((text,), 2, "--classes"),
        ((text, "--n-features", 4), 2, "--classes"),
        ((text, "--classes", "0,1"), 2, "--n-features"),
        ((text, "--classes", "0,1", "--n-features", 4), 1, None),
    ):
        work.clear()
        done = cli("run", *arguments, *SMALL)
        assert done.code == 0, done.err
        assert work == {"opened": opened, "values": N * len(NAMES), "labels": N, "models": MODELS}
        assert done.err.count("\n") == (opened - 1)
        assert avoided_by is None or f"{avoided_by} to avoid this." in done.err


def test_categories_of_parquet_are_not_searched_for(cli: Cli, work: Counter[str], tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    told = {}
    for categorical in (True, False):
        path = write_parquet(tmp_path / f"{categorical}.parquet", categorical=categorical)
        done = cli("run", path, *SMALL, "--members", "naive_bayes")
        assert done.code == 0, done.err
        told[categorical] = done.err
    assert told[True] == ""
    assert "--classes to avoid this." in told[False]
    assert work["models"] == 2 * MODELS


def test_standard_input_is_read_once(cli: Cli, work: Counter[str], csv_file: Path) -> None:
    done = cli("run", "-", *SMALL, stdin=csv_file.read_bytes())
    assert (done.code, done.err) == (0, "")
    assert work == {"opened": 1, "values": N * len(NAMES), "labels": N, "models": MODELS}

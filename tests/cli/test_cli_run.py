"""``run``: what it learns and writes, beside plain Python."""

import csv
import json
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayesvote import BayesianEnsembleClassifier, OSBoostClassifier, load
from bayesvote.core.rows import as_rows
from cli.helpers import NAMES, Cli, rows, write_csv, write_libsvm

SMALL = ("--members", "perceptron", "--n-members", "7", "--weighter", "gamma_rate")


def plain(model: Any, n: int = 400, delay: int = 0) -> tuple[list[tuple[str, float]], Any]:
    """Predict and learn row by row."""
    X, y = rows(n)
    # The labels must be known before the first prediction; a row of weight 0 teaches nothing.
    model.partial_fit(X[:1], y[:1], classes=["no", "yes"], sample_weight=[0.0])
    waiting: deque[tuple[int, Any]] = deque()
    said = []
    for t in range(n):
        chances = model.predict_proba(X[t : t + 1])[0]
        said.append((model.classes_[chances.argmax()], chances.max()))
        waiting.append((t, model.forecast(as_rows("test", X[t : t + 1]))[0]))
        if len(waiting) > delay:
            s, forecast = waiting.popleft()
            label = (y[s : s + 1] == "yes").astype(np.intp)
            model.advance(as_rows("test", X[s : s + 1]), label, np.ones(1), forecast if delay else None)
    return said, model


@pytest.mark.parametrize(("delay", "chunk_size"), [(0, 4096), (0, 7), (13, 64), (500, 50)])
def test_run_predicts_and_learns_as_a_plain_loop(
    cli: Cli, csv_file: Path, tmp_path: Path, delay: int, chunk_size: int
) -> None:
    out, table = tmp_path / "m", tmp_path / "p.csv"
    options = ("--delay", delay, "--chunk-size", chunk_size, "--seed", 5)
    done = cli("run", csv_file, *SMALL, *options, "-o", out, "--predictions", table, "--json")
    assert done.code == 0, done.err
    model = BayesianEnsembleClassifier("perceptron", 7, weighter="gamma_rate", random_state=5)
    said, model = plain(model, delay=delay)
    X, y = rows()
    with table.open(newline="") as file:
        found = list(csv.DictReader(file))
    assert [int(row["row"]) for row in found] == list(range(1, 401))
    assert [row["label"] for row in found] == y.tolist()
    assert [row["predicted"] for row in found] == [label for label, _ in said]
    np.testing.assert_allclose([float(row["probability"]) for row in found], [p for _, p in said], rtol=1e-12)
    result = json.loads(done.out)
    assert result["rows"] == 400
    assert result["error"] == pytest.approx(np.mean([label != true for (label, _), true in zip(said, y, strict=True)]))
    assert result["classes"] == ["no", "yes"]
    saved = load(out)
    assert saved.feature_names_in_.tolist() == NAMES
    saved.fitted_ = saved.fitted_.replace(names=None)
    np.testing.assert_allclose(saved.predict_proba(X), model.predict_proba(X), rtol=1e-12)


def test_boosters(cli: Cli, tmp_path: Path) -> None:
    file, out = write_libsvm(tmp_path / "rows.libsvm"), tmp_path / "m"
    assert cli("run", file, "--model", "osboost", "--n-members", 9, "-o", out).code == 0
    X, y = rows()
    model = OSBoostClassifier(n_members=9, random_state=0).partial_fit(X, y == "yes", classes=[False, True])
    np.testing.assert_array_equal(load(out).predict_proba(X), model.predict_proba(X))


def test_standard_input_of_both_formats(cli: Cli, csv_file: Path, tmp_path: Path) -> None:
    from_file = json.loads(cli("run", csv_file, *SMALL, "--json").out)
    from_input = json.loads(cli("run", "-", *SMALL, "--json", stdin=csv_file.read_bytes()).out)
    assert from_file["error"] == from_input["error"]
    text = write_libsvm(tmp_path / "rows.libsvm").read_bytes()
    found = json.loads(cli("run", "-", *SMALL, "--n-features", 4, "--json", stdin=text).out)
    assert found["error"] == from_file["error"]
    assert found["classes"] == [0, 1]
    refused = cli("run", "-", *SMALL, stdin=text)
    assert refused.code == 1
    assert "--n-features must be given" in refused.err


def test_labels_must_be_known(cli: Cli, csv_file: Path) -> None:
    late = csv_file.read_bytes() + b"1,2,3,4,maybe\n"
    refused = cli("run", "-", *SMALL, "--chunk-size", 100, stdin=late)
    assert refused.code == 1
    assert refused.err.count("\n") == 1
    assert "line 402: the label must be one of no, yes, got 'maybe'. Name all labels with --classes." in refused.err
    named = cli("run", "-", *SMALL, "--chunk-size", 100, "--classes", "no,yes,maybe", "--json", stdin=late)
    assert json.loads(named.out)["classes"] == ["maybe", "no", "yes"]


def test_labels_with_commas_are_named_in_quotes(cli: Cli, csv_file: Path) -> None:
    csv_file.write_text(csv_file.read_text().replace(",no\n", ',"no, never"\n'))
    done = cli("run", csv_file, *SMALL, "--classes", '"no, never", yes', "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["classes"] == ["no, never", "yes"]
    weighed = cli("run", csv_file, *SMALL, "--class-weight", '"no, never"=2, yes=1', "--json")
    assert weighed.code == 0, weighed.err


def test_memory_that_is_not_enough(cli: Cli, csv_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ways = "Use fewer members with --n-members or read fewer rows at a time with --chunk-size."
    said = f"Out of memory. {ways}"
    endless = cli("run", csv_file, "--members", "perceptron", "--n-members", 10**12, "--classes", "no,yes")
    assert endless.code == 2
    assert endless.err.startswith(f"bayesvote: {said}")
    advance, asked = BayesianEnsembleClassifier.advance, [0]

    def fails(self: Any, *rows: Any) -> Any:
        asked[0] += 1
        if asked[0] == 3:
            raise MemoryError
        return advance(self, *rows)

    monkeypatch.setattr(BayesianEnsembleClassifier, "advance", fails)
    state = tmp_path / "state"
    keeping = ("--chunk-size", 50, "--checkpoint", state, "--checkpoint-every", 50)
    failed = cli("run", csv_file, *SMALL, *keeping, "--classes", "no,yes")
    assert failed.code == 1
    told = f"The state after 100 rows is saved in {state}: run the same command with --resume to continue."
    assert failed.err == f"{told}\nbayesvote: {said}\n"


def test_memory_of_the_model_does_not_depend_on_the_chunks(cli: Cli, csv_file: Path) -> None:
    found = [
        json.loads(cli("run", csv_file, "--n-members", 20, "--chunk-size", size, "--json").out)["memory"]
        for size in (4096, 250, 30)
    ]
    assert max(found) < 1.01 * min(found)


def test_a_column_of_measurements_is_no_label(cli: Cli, csv_file: Path, tmp_path: Path) -> None:
    refused = cli("run", write_csv(tmp_path / "numbers.csv", labelled=False))
    assert refused.code == 1
    assert "Is --target the right column?" in refused.err
    assert "Without --target, the label is the last column. Labels were read from column 'age'." in refused.err
    assert "The columns are height, width, depth, age." in refused.err
    refused = cli("run", csv_file, "--number", "answer", "--target", "age", "--bad-lines", "skip")
    assert refused.code == 1
    assert "two labels or more, got no rows" in refused.err


def test_one_label_or_none(cli: Cli, csv_file: Path) -> None:
    lines = csv_file.read_text().splitlines()
    one = "\n".join([lines[0], *(line for line in lines if line.endswith("yes"))]).encode()
    assert "two labels or more, got only 'yes'" in cli("run", "-", stdin=one).err
    assert "must have rows, got none" in cli("run", "-", stdin=lines[0].encode()).err


def test_bad_lines(cli: Cli, csv_file: Path) -> None:
    good = json.loads(cli("run", csv_file, *SMALL, "--json").out)
    lines = csv_file.read_text().splitlines()
    lines[5:5] = ["1,2,tall,4,yes", "1,2"]
    csv_file.write_text("\n".join(lines))
    refused = cli("run", csv_file, *SMALL)
    assert refused.code == 1
    assert (
        "line 6: column 'depth' must be a finite number, got 'tall'. Read a column of text with --column depth=category"
        in refused.err
    )
    assert "Fix the line, or skip lines like it with --bad-lines skip." in refused.err
    skipped = cli("run", csv_file, *SMALL, "--bad-lines", "skip", "--json")
    found = json.loads(skipped.out)
    assert (found["rows"], found["error"], found["skipped_lines"]) == (400, good["error"], 2)
    assert "Skipped 2 bad lines. The first: line 6" in cli("run", csv_file, *SMALL, "--bad-lines", "skip").err


def test_target_by_name_and_place(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    X, y = rows()
    text = "".join(f"{a},{label},{b},{c},{d}\n" for (a, b, c, d), label in zip(X.tolist(), y, strict=True))
    file.write_text("height,answer,width,depth,age\n" + text)
    by_name, by_place = (cli("run", file, *SMALL, "--target", target, "--json") for target in ("answer", "1"))
    assert json.loads(by_name.out)["error"] == json.loads(by_place.out)["error"]
    refused = cli("run", file, "--target", "anser")
    assert refused.code == 2
    assert "Did you mean 'answer'?" in refused.err


def test_report(cli: Cli, csv_file: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert cli("run", csv_file, *SMALL, "--report", page).code == 0
    assert "rows.csv" in page.read_text()


def test_scaling_is_advised_to_perceptrons_that_do_not_scale(cli: Cli, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "rows.csv")
    lines = file.read_text().splitlines()
    scaled = [lines[0]] + ["9000" + line.removeprefix("-") for line in lines[1:]]
    file.write_text("\n".join(scaled))
    booster = ("--model", "ozaboost", "--n-members", 5)
    assert "leave out --no-scale" in cli("run", file, *booster, "--no-scale").err
    assert "scale" not in cli("run", file, *booster).err
    assert "scale" not in cli("run", file, *SMALL).err
    assert "scale" not in cli("run", file, *booster, "--no-scale", "--members", "naive_bayes").err
    plain, scaled = (json.loads(cli("run", file, *booster, "--json", *more).out) for more in (["--no-scale"], []))
    assert plain["error"] > scaled["error"]


def test_labels_are_weighed_as_asked(cli: Cli, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for labels in (("common", "rare"), ("0", "1")):
        y = (rng.random(600) < 0.1).astype(int)
        lines = [f"{x},{labels[k]}" for x, k in zip(rng.normal(2 * y, 1.0), y, strict=True)]
        file = tmp_path / f"{labels[0]}.csv"
        file.write_text("\n".join(["x,y", *lines]))
        recalls = {}
        for given in (None, "balanced", f"{labels[1]}=9", f"{labels[0]}=1, {labels[1]}=9"):
            more = [] if given is None else ["--class-weight", given]
            done = cli("run", file, *more, "--members", "naive_bayes", "--json", "-o", tmp_path / "m")
            recalls[given] = json.loads(done.out)["balanced_accuracy"]
        rare = load(tmp_path / "m").classes_[1]
        assert load(tmp_path / "m").class_weight == {load(tmp_path / "m").classes_[0]: 1.0, rare: 9.0}
        said = json.loads(cli("inspect", tmp_path / "m", "--json").out)
        assert "rows_learned" not in said
        assert said["weight_learned"] == np.where(y, 9, 1).sum()
        assert recalls[f"{labels[1]}=9"] == recalls[f"{labels[0]}=1, {labels[1]}=9"]
        assert min(recalls["balanced"], recalls[f"{labels[1]}=9"]) > recalls[None] + 0.05


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("rare", "--class-weight: it must be balanced or label=weight,label=weight, got 'rare'"),
        ("=5", "--class-weight: it must be balanced or label=weight"),
        ("yes=many", "--class-weight: it must be balanced or label=weight"),
        ("yes=0", "--class-weight must be a number above 0 for 'yes', got 0.0"),
        ("maybe=2", "--class-weight must have labels in ['no', 'yes'] only, got 'maybe'"),
    ],
)
def test_wrong_weights_of_labels_are_refused(cli: Cli, csv_file: Path, given: str, words: str) -> None:
    refused = cli("run", csv_file, *SMALL, "--class-weight", given)
    assert refused.code == 2
    assert words in " ".join(refused.err.split())


def test_human_result_fits_a_narrow_terminal(cli: Cli, csv_file: Path, tmp_path: Path) -> None:
    done = cli("run", csv_file, *SMALL, "--classes", "yes,no", "-o", tmp_path / "m")
    assert done.err == ""  # no progress where there is no terminal
    assert max(map(len, done.out.splitlines())) <= 80
    assert "balanced accuracy" in done.out

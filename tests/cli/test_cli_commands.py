"""The other commands, the errors and the exit codes."""

import csv
import gzip
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import bayesvote
from bayesvote import (
    SAG,
    BayesianEnsembleClassifier,
    Ensemble,
    FernBank,
    Frozen,
    GammaRate,
    OzaBoost,
    PerceptronBank,
    decided,
    load,
    pretrain,
    save,
)
from bayesvote.apps.cli import app as commands
from bayesvote.datasets import DATASETS
from cli.helpers import NAMES, Cli, rows, write_csv, write_libsvm

COMMANDS = ("run", "predict", "inspect", "merge", "datasets", "reproduce", "bench")


@pytest.fixture
def model(cli: Cli, csv_file: Path, tmp_path: Path) -> Path:
    path = tmp_path / "model"
    assert (
        cli("run", csv_file, "--members", "mixed", "--n-members", 30, "--weighter", "gamma_rate", "-o", path).code == 0
    )
    return path


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_names_with_parameters(cli: Cli, csv_file: Path, tmp_path: Path) -> None:
    options = ("--members", "fern(depth=3)", "--weighter", "sag(horizon=5000)", "--n-members", 5)
    assert cli("run", csv_file, *options, "-o", tmp_path / "m").code == 0
    model = load(tmp_path / "m").model_
    assert model.bank == FernBank(5, depth=3)
    assert model.weighter == SAG(horizon=5000)
    wrong = cli("run", csv_file, "--weighter", "sag(horizont=1)")
    assert "Did you mean 'horizon'?" in wrong.err
    assert cli("run", csv_file, "--members", "fern(depth=open('x'))").code == 2
    assert cli("run", csv_file, "--weighter", "sags").code == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command: str) -> None:
    found = CliRunner().invoke(commands.app, [command, "--help"])
    assert found.exit_code == 0
    assert f"bayesvote {command}" in found.output or command in found.output


def test_version_and_help(cli: Cli) -> None:
    assert cli("--version").out == f"bayesvote {bayesvote.__version__}\n"
    said_nothing = cli()
    assert said_nothing.code == 0
    assert all(command in said_nothing.out for command in COMMANDS)


def test_help_loads_no_library() -> None:
    code = "import sys; from bayesvote.apps.cli import main; main(['run', '--help']); print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"numba", "pandas", "sklearn", "matplotlib", "jinja2"} & set(out.splitlines()[-1].split())


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["predct", "a", "b"], "predict"),
        (["run", "-", "--memebrs", "fern"], "--members"),
        (["run", "-", "--members", "perceptrn"], "perceptron"),
        (["run", "-", "--weighter", "gama_rate"], "gamma_rate"),
        (["run", "-", "--loss", "logistik"], "logistic"),
        (["run", "-", "--model", "osbost"], "osboost"),
        (["run", "-", "--format", "libsmv"], "libsvm"),
        (["datasets", "mushroom"], "mushrooms"),
        (["reproduce", "--dataset", "hart"], "heart"),
        (["reproduce", "tabel1"], "table1"),
    ],
)
def test_wrong_names_are_usage_errors_with_a_suggestion(cli: Cli, arguments: list[str], meant: str) -> None:
    found = cli(*arguments)
    assert found.code == 2
    assert found.out == ""
    assert found.err.count("\n") == 1
    assert re.search(rf"Did you mean '?{meant}\b.*\?", found.err), found.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "nowhere.csv"], "file 'nowhere.csv' does not exist"),
        (["run"], "FILE"),
        (["run", "-", "--n-members", "0"], "--n-members"),
        (["run", "-", "--max-features", "many"], "--max-features"),
        (["run", "-", "--model", "ozaboost", "--weighter", "voting"], "Leave it out with --model ozaboost"),
        (["run", "-", "--forgetting", "2"], "--forgetting must be in (0, 1], got 2.0. See bayesvote run --help."),
        (["run", "-", "--weighter", "gamma_shape", "--loss", "ramp"], "Use --loss logistic."),
        (["run", "-", "--model", "osboost", "--members", "fern"], "--members must be one of"),
        (
            ["run", "-", "--weighter", "sag"],
            "--weighter sag needs the number of rows to come. Pass it as in",
        ),
        (["run", "-", "--chunk-size", "0"], "greater than or equal to 1, got '0'."),
        (["run", "-", "--seed", "x"], "got 'x'."),
        (["run", "."], "it must be a file, got the folder '.'"),
        (["run", "-", "-o", "."], "it must be a file, got the folder '.'. Name a file in it, such as 'NAME'."),
        (["run", "-", "--checkpoint", "/dev/null"], "it must be a file, got the device '/dev/null'"),
        (["run", "-", "--classes", "1,x", "--target", "age"], "--classes"),
        (["inspect", "nowhere"], "nowhere"),
        (["run", "-", "-o", "nowhere/model"], "--model-out"),
        (["run", "-", "--report", "."], "--report"),
        (["merge", __file__, "-o", "x"], "two or more"),
    ],
)
def test_usage_errors(cli: Cli, csv_file: Path, arguments: list[str], said: str) -> None:
    numbers = b"height,age\n" + b"1.5,0\n2.5,1\n" * 3
    found = cli(*arguments, stdin=numbers if "age" in arguments else csv_file.read_bytes())
    assert found.code == 2, found.err
    assert said in found.err
    assert found.err.count("\n") == 1


def test_failures_and_debug(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = tmp_path / "model"
    damaged.write_bytes(b"no model at all")
    found = cli("inspect", damaged)
    assert found.code == 1
    assert found.err.startswith(f"bayesvote: {damaged}: the file must be a safetensors file")
    assert "Traceback" not in found.err
    assert "Traceback" in cli("inspect", damaged, "--debug").err
    monkeypatch.setenv("BAYESVOTE_DEBUG", "1")
    assert "Traceback" in cli("inspect", damaged).err


def test_without_typer_it_says_what_to_install(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayesvote.apps.cli.find_spec", lambda name: None if name == "typer" else True)
    found = cli("--help")
    assert (found.code, found.err.count("\n")) == (1, 1)
    assert "pip install 'bayesvote[cli]'" in found.err


def test_a_closed_pipe_is_quiet(model: Path, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "long.csv", 5_000)
    command = [sys.executable, "-m", "bayesvote", "predict", str(model), str(file), "--proba"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        assert run.stdout.readline().startswith(b"row,predicted")
        run.stdout.close()
        assert run.stderr.read() == b""
        run.wait(timeout=60)


def test_predict_finds_columns_by_name(cli: Cli, model: Path, tmp_path: Path) -> None:
    X, _ = rows()
    fitted = load(model)
    fitted.fitted_ = fitted.fitted_.replace(names=None)
    expected = fitted.predict(X).tolist()
    shuffled = tmp_path / "shuffled.csv"
    lines = [f"{d},row {i},{b},{a},{c},?" for i, (a, b, c, d) in enumerate(X.tolist())]
    shuffled.write_text("\n".join(["age,note,width,height,depth,answer", *lines]))
    assert [row["predicted"] for row in table(cli("predict", model, shuffled).out)] == expected
    found = cli("predict", model, write_csv(tmp_path / "bare.csv", labelled=False), "--proba", "-o", tmp_path / "out")
    assert (found.code, found.out) == (0, "")
    written = table((tmp_path / "out").read_text())
    assert [row["predicted"] for row in written] == expected
    chances = [[float(row["probability_no"]), float(row["probability_yes"])] for row in written]
    np.testing.assert_array_equal(chances, fitted.predict_proba(X))
    shuffled.write_text("age,depth,width,heigth\n1,2,3,4\n")
    refused = cli("predict", model, shuffled)
    assert refused.code == 1
    assert (
        "must have the column 'height' of the model, got age, depth, width, heigth. Did you mean 'heigth'?"
        in refused.err
    )


def test_predict_by_place_in_every_format(cli: Cli, tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    path, X = tmp_path / "model", rows()[0]
    libsvm = write_libsvm(tmp_path / "rows.libsvm")
    assert cli("run", libsvm, "--n-members", 6, "-o", path).code == 0
    expected = [str(label) for label in load(path).predict(X).tolist()]
    bare = tmp_path / "bare.libsvm"
    bare.write_text("# comment\n\n" + "".join(line.partition(" ")[2] for line in libsvm.read_text().splitlines(True)))
    parquet = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pyarrow.table({name: X[:, j] for j, name in enumerate(NAMES)}), parquet)
    packed = tmp_path / "rows.csv.gz"
    packed.write_bytes(gzip.compress(write_csv(tmp_path / "rows.csv").read_bytes()))
    for file in (libsvm, bare, parquet, packed, write_csv(tmp_path / "bare.csv", labelled=False)):
        found = cli("predict", path, file)
        assert [row["predicted"] for row in table(found.out)] == expected, file
    piped = cli("predict", path, "-", stdin=bare.read_bytes())
    assert [row["predicted"] for row in table(piped.out)] == expected
    narrow = tmp_path / "narrow.csv"
    narrow.write_text("a,b\n1,2\n")
    assert "must have the model's 4 features" in cli("predict", path, narrow).err


def test_predict_and_bad_lines(cli: Cli, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("height,width,depth,age\n1,2,3,4\n1,2,x,4\n1,2\n\n,2,3,4\n")
    refused = cli("predict", model, file)
    assert refused.code == 1
    assert "line 3: column 'depth' must be a finite number, got 'x'. Fix the line, or skip" in refused.err
    assert "lines like it with --bad-lines skip." in refused.err
    found = cli("predict", model, file, "--bad-lines", "skip")
    assert len(table(found.out)) == 2
    assert "Skipped 2 bad lines. The first: line 3" in found.err


def test_inspect(cli: Cli, model: Path, tmp_path: Path) -> None:
    found = cli("inspect", model)
    assert found.code == 0, found.err
    assert "and 10 more members: --all shows them." in found.out
    assert max(map(len, found.out.splitlines())) <= 80
    assert "more members" not in cli("inspect", model, "--all").out
    said = json.loads(cli("inspect", model, "--json").out)
    expected = load(model).weights_
    assert said["classes"] == ["no", "yes"]
    assert (said["rows_learned"], said["features"], said["feature_names"]) == (400, 4, NAMES)
    assert [row["mean"] for row in said["weights"]] == expected["mean"].tolist()
    assert sum(row["probability_best"] for row in said["weights"]) == pytest.approx(1)
    page = tmp_path / "page.html"
    assert cli("inspect", model, "--report", page).code == 0
    text = page.read_text()
    assert "Weights" in text
    assert "Error along the stream" not in text


@pytest.mark.parametrize("weighter", ["gamma_rate", "gamma_shape", "gamma_shape_rate"])
def test_inspect_shows_the_best_members_first(cli: Cli, csv_file: Path, tmp_path: Path, weighter: str) -> None:
    path = tmp_path / "m"
    options = ("--members", "naive_bayes", "--loss", "logistic", "--n-members", 40)
    assert cli("run", csv_file, "--weighter", weighter, *options, "-o", path).code == 0
    lines = cli("inspect", path).out.splitlines()
    first = next(line for k, line in enumerate(lines) if lines[k - 1].startswith("member  "))
    best = load(path).weights_["probability_best"]
    assert best[int(first.split()[0])] >= 0.8 * best.max()


@pytest.mark.parametrize("weighter", ["voting", "gamma_shape_rate"])
def test_inspect_of_weights_of_other_shapes(cli: Cli, csv_file: Path, tmp_path: Path, weighter: str) -> None:
    path = tmp_path / "m"
    assert cli("run", csv_file, "--weighter", weighter, "--loss", "logistic", "--n-members", 5, "-o", path).code == 0
    found = cli("inspect", path)
    assert found.code == 0, found.err
    assert max(map(len, found.out.splitlines())) <= 80


def test_models_without_a_classifier_around_them(cli: Cli, tmp_path: Path) -> None:
    X, y = rows()
    file = write_csv(tmp_path / "rows.csv", labelled=False)
    labels = (y == "yes").astype(int)
    made: Ensemble | OzaBoost
    for name, made in (
        ("ensemble", Ensemble(PerceptronBank(5), GammaRate()).start(4, rng=0)),
        ("booster", OzaBoost(n_members=5).start(4, rng=0)),
    ):
        made.decide_then_learn(X, labels)
        save(made, tmp_path / name)
        said = json.loads(cli("inspect", tmp_path / name, "--json").out)
        assert (said["classes"], said["features"], said["rows_learned"]) == ([0, 1], 4, 400)
        assert cli("inspect", tmp_path / name).code == 0
        predicted = [int(row["predicted"]) for row in table(cli("predict", tmp_path / name, file).out)]
        assert predicted == decided(made.decide(X)).tolist()
    save(Ensemble(PerceptronBank(5)), tmp_path / "new")
    assert "has not been fitted" in cli("inspect", tmp_path / "new").err


def test_merge(cli: Cli, model: Path, tmp_path: Path) -> None:
    X, y = rows()
    bank = pretrain(PerceptronBank(5).start(4, rng=0), X[:50], (y[:50] == "yes").astype(int))
    for name, part in {"a": slice(0, 200), "b": slice(200, 400), "all": slice(0, 400)}.items():
        save(BayesianEnsembleClassifier(bank, weighter="gamma_rate").fit(X[part], y[part]), tmp_path / name)
    paths = [tmp_path / name for name in ("a", "b")]
    assert cli("merge", *paths, "-o", tmp_path / "both").code == 0
    merged, whole = load(tmp_path / "both"), load(tmp_path / "all")
    np.testing.assert_allclose(merged.weights_["mean"], whole.weights_["mean"], rtol=1e-12)
    refused = cli("merge", model, model, "-o", tmp_path / "x")
    assert refused.code == 1
    assert "the members must be frozen" in refused.err
    save(OzaBoost().start(4), tmp_path / "booster")
    assert "must be an ensemble with frozen members" in cli("merge", tmp_path / "booster", model, "-o", "x").err
    save(Ensemble(Frozen(PerceptronBank(5))).start(4), tmp_path / "ensemble")
    assert "must be a BayesianEnsembleClassifier like" in cli("merge", model, tmp_path / "ensemble", "-o", "x").err
    assert not (tmp_path / "x").exists()


def test_a_model_that_is_not_all_in_its_file(cli: Cli, csv_file: Path, tmp_path: Path) -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    path, (X, y) = tmp_path / "m", rows()
    members = [linear.LogisticRegression().fit(X[:50], y[:50]) for _ in range(2)]
    save(BayesianEnsembleClassifier(members).fit(X[50:], y[50:]), path)
    said = (
        f"bayesvote: {path} must contain the whole model to be used on the command line, got one without its members."
    )
    for arguments in (("predict", path, csv_file), ("inspect", path), ("merge", path, path, "-o", tmp_path / "x")):
        refused = cli(*arguments)
        assert refused.code == 1
        assert refused.err == f"{said} Use it in Python, with load(path, objects={{'members': ...}}).\n"


@pytest.mark.parametrize("place", ["find_spec", "saved.inspect", "app._Commands.parse_args"])
def test_ctrl_c_is_told_wherever_it_comes(cli: Cli, model: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"bayesvote.apps.cli.{place}", interrupted)
    try:
        found = cli("inspect", model)
    except KeyboardInterrupt:
        pytest.fail("it was not caught")
    assert found == (130, "", "bayesvote: stopped.\n")


def test_datasets(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BAYESVOTE_DATA", raising=False)
    said = json.loads(cli("datasets", "--json").out)
    assert [entry["name"] for entry in said] == list(DATASETS)
    assert said[0].pop("path").endswith("heart.libsvm.xz")
    assert said[0] == {"name": "heart", "rows": 270, "features": 13, "source": "embedded", "partial": False}
    shown = cli("datasets").out
    assert max(map(len, shown.splitlines())) <= 80
    assert "581,012" in shown
    assert "UCI Machine Learning Repository" in cli("datasets", "heart").out
    assert json.loads(cli("datasets", "heart", "--json").out)["positives"] == 120


def test_reproduce_shows_what_it_found(cli: Cli, tmp_path: Path) -> None:
    ask = ["reproduce", "table1", "table3", "--folder", tmp_path, "--trials", 2, "--dataset", "heart", "--jobs", 1]
    shown = cli(*ask, "--report", tmp_path / "page.html")
    assert shown.code == 0, shown.err
    assert max(map(len, shown.out.splitlines())) <= 80
    assert "0.239" in shown.out  # the paper's figure
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Table 3. Online Perceptrons" in page
    said = json.loads(cli(*ask, "--json").out)
    assert len(said["comparisons"]) == 4
    for compared in said["comparisons"]:
        assert compared["title"] in shown.out
        assert compared["title"].replace("'", "&#39;") in page
        assert all(len(row) == len(compared["header"]) for row in compared["rows"])
    assert said["written"] == [str(tmp_path / "results.jsonl")]
    assert [(part["table"], part["members"]) for part in said["tables"]] == [
        ("table1", "perceptron"),
        ("table1", "averaged_perceptron"),
        ("table3", "perceptron"),
        ("table3", "averaged_perceptron"),
    ]
    assert 0 < said["tables"][0]["errors"]["heart"]["GammaRate"] < 0.5


def test_bench(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from bayesvote.apps.cli import bench

    whole = bench._synthetic
    monkeypatch.setattr(bench, "_synthetic", lambda _: whole(500))
    said = json.loads(cli("bench", "--json").out)
    assert [model["model"] for model in said["models"]][:2] == ["the default classifier", 'members="fast"']
    assert len(said["models"]) == 12
    assert all(model["us_per_row"] > 0 and model["products"] > 0 for model in said["models"])


def test_nothing_is_written_over_what_is_read(cli: Cli, csv_file: Path, model: Path, tmp_path: Path) -> None:
    data, saved = csv_file.read_bytes(), model.read_bytes()
    same = tmp_path / "same"
    for command in (
        ("run", csv_file, "-o", csv_file),
        ("run", csv_file, "--predictions", csv_file),
        ("run", csv_file, "-o", same, "--report", same),
        ("predict", model, csv_file, "-o", csv_file),
        ("predict", model, csv_file, "-o", model),
    ):
        refused = cli(*command)
        assert refused.code == 2
        assert "must be another file than" in refused.err
    assert (csv_file.read_bytes(), model.read_bytes()) == (data, saved)
    assert not same.exists()


def test_a_number_of_members_in_the_name_counts(cli: Cli, csv_file: Path, tmp_path: Path) -> None:
    assert cli("run", csv_file, "--members", "fern(n_members=7)", "-o", tmp_path / "m").code == 0
    assert load(tmp_path / "m").model_.bank == FernBank(7)

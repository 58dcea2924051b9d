"""Raw tables on the command line: kinds of columns, headers, indices, and options that are checked first."""

import json
import warnings
from pathlib import Path

import pytest

from bayesvote import load
from bayesvote.io import open_stream as streams
from cli.helpers import Cli, write_csv
from cli.test_cli_live import TEXTS

SMALL = ("--n-members", 5)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "penguins.csv"
    path.write_text(TEXTS)
    return path


def test_a_raw_table_just_works(cli: Cli, table: Path, tmp_path: Path) -> None:
    model, state, said = tmp_path / "m", tmp_path / "s", tmp_path / "p.csv"
    done = cli("run", table, "--target", "species", *SMALL, "-o", model, "--checkpoint", state, "--predictions", said)
    assert done.code == 0, done.err
    assert load(model).feature_names_in_.tolist() == ["island", "mass"]
    shown = json.loads(cli("inspect", model, "--json").out)
    assert {name: about["kind"] for name, about in shown["columns"].items()} == {"island": "category", "mass": "number"}
    assert "island (category), mass (number)" in cli("inspect", model).out
    predicted = cli("predict", model, "-", stdin=b"species,mass,island\n?,3,Dream\n?,,Nowhere\n")
    assert predicted.code == 0, predicted.err
    assert predicted.out.count("\n") == 3
    again = cli("run", table, "--target", "species", *SMALL, "--checkpoint", state, "--predictions", said, "--resume")
    assert "has no rows after the 400 of the checkpoint: nothing was learned" in again.err


def test_trees_by_name(cli: Cli, csv_file: Path, tmp_path: Path) -> None:
    saved = tmp_path / "m"
    done = cli("run", csv_file, "--members", "tree(max_nodes=64)", "--n-members", 8, "-o", saved)
    assert done.code == 0, done.err
    assert type(load(saved).model_.bank).__name__ == "TreeBank"
    assert "Tree" in cli("inspect", saved).out


def test_chunks_and_interruptions_change_nothing(cli: Cli, table: Path, tmp_path: Path) -> None:
    options = ("--classes", "A,B", *SMALL, "--delay", 5)
    for size in (7, 4096):
        assert cli("run", table, *options, "--chunk-size", size, "-o", tmp_path / f"m{size}").code == 0
    assert (tmp_path / "m7").read_bytes() == (tmp_path / "m4096").read_bytes()
    whole = table.read_text()
    table.write_text("".join(whole.splitlines(keepends=True)[:150]))
    outputs = ("-o", tmp_path / "m", "--checkpoint", tmp_path / "s")
    assert cli("run", table, *options, *outputs).code == 0
    table.write_text(whole)
    assert cli("run", table, *options, *outputs, "--resume").code == 0
    assert (tmp_path / "m").read_bytes() == (tmp_path / "m7").read_bytes()


def test_kinds_are_stated(cli: Cli, table: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    done = cli("run", table, *SMALL, "--category", "mass", "--drop", "island", "-o", model)
    assert done.code == 0, done.err
    assert json.loads(cli("inspect", model, "--json").out)["columns"]["mass"]["kind"] == "category"
    assert load(model).feature_names_in_.tolist() == ["mass"]
    assert cli("run", table, *SMALL, "--features", "mass", "-o", model).code == 0
    assert load(model).feature_names_in_.tolist() == ["mass"]
    for arguments, words in (
        (("--drop", "iland"), "must name columns of"),
        (("--features", "weight"), "must name columns of"),
        (("--category", "mass", "--number", "mass"), "must be of one kind"),
        (("--decimal", "x"), "must be . or ,"),
        (("--number", "island"), "column 'island' must be a finite number, got 'Dream'"),
    ):
        refused = cli("run", table, *SMALL, *arguments)
        assert refused.code in (1, 2)
        assert words in refused.err


def test_the_order_of_day_and_month_is_stated(cli: Cli, tmp_path: Path) -> None:
    """Dates in either order teach what ISO dates teach."""
    days = [(day, month) for month in (1, 4, 7, 12) for day in range(1, 12)] * 3
    forms = {"--date": "2020-{1:02d}-{0:02d}", "--day-first": "{0}/{1}/2020", "--month-first": "{1}/{0}/2020"}
    said = {}
    for option, form in forms.items():
        path, written = tmp_path / f"rows{option}.csv", tmp_path / f"said{option}.csv"
        lines = [f"{form.format(day, month)},{'yes' if day < month else 'no'}" for day, month in days]
        path.write_text("\n".join(["when,y", *lines]))
        done = cli("run", path, *SMALL, option, "when", "--predictions", written)
        assert done.code == 0, done.err
        said[option] = written.read_text()
    assert said["--day-first"] == said["--month-first"] == said["--date"]


def test_a_date_in_the_other_order_is_a_bad_line(cli: Cli, tmp_path: Path) -> None:
    path, model = tmp_path / "rows.csv", tmp_path / "m"
    dates = [f"{1 + i % 28}/4/2020" for i in range(60)]
    dates[39] = "1/25/2020"
    path.write_text("when,y\n" + "".join(f"{date},{'uv'[i % 2]}\n" for i, date in enumerate(dates)))
    command = ("run", path, *SMALL, "--day-first", "when")
    words = "line 41: column 'when' must hold a date as 2020-12-31 or 31/12/2020 in every row, got '1/25/2020'"
    refused = cli(*command)
    assert refused.code == 1
    assert words in refused.err
    done = cli(*command, "--bad-lines", "skip", "-o", model)
    assert done.code == 0, done.err
    refused = cli("predict", model, path)
    assert refused.code == 1
    assert words in refused.err
    assert cli("predict", model, path, "--bad-lines", "skip").out.count("\n") == 60


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_bad_date_is_a_bad_line(cli: Cli, tmp_path: Path, form: str) -> None:
    dates = [f"2008-11-{1 + i % 28:02d}" for i in range(120)]
    dates[49] = "soon"
    path, model, unit, number = tmp_path / f"eggs.{form}", tmp_path / "m", "line", 51
    if form == "csv":
        path.write_text("Date Egg,y\n" + "".join(f"{date},{'uv'[i % 2]}\n" for i, date in enumerate(dates)))
    else:
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table({"Date Egg": dates, "y": ["u", "v"] * 60}), path)
        unit, number = "row", 50
    command = ("run", path, *SMALL, "--date", "Date Egg")
    refused = cli(*command)
    assert refused.code == 1
    assert f"eggs.{form}, {unit} {number}: column 'Date Egg' must hold a date as 2020-12-31 or" in refused.err
    assert f"Fix the {unit}, or skip {unit}s like it with --bad-lines skip." in refused.err
    done = cli(*command, "--bad-lines", "skip", "-o", model)
    assert done.code == 0, done.err
    assert f"{unit} {number}: column 'Date Egg' must hold a date" in done.out + done.err
    refused = cli("predict", model, path)
    assert refused.code == 1
    assert f"{unit} {number}: column 'Date Egg' must hold a date" in refused.err
    assert "--category" not in refused.err  # which predict does not have
    assert cli("predict", model, path, "--bad-lines", "skip").out.count("\n") == 120


def test_errors_speak_of_options_and_not_of_parameters(cli: Cli, table: Path, tmp_path: Path) -> None:
    every = "--column must name columns of"
    for arguments, words in (
        (
            ("--date", "island"),
            "column 'island' must hold a date as 2020-12-31 or 2020-12-31T23:59 in every row, got 'Dream'. ",
        ),
        (("--date", "island"), "State another kind, for example with --column island=category."),
        (("--boolean", "island"), "for example with --column island=category."),
        (("--number", "iland"), every),
        (("--members", "perceptron", "--max-features", 999), "--max-features must be at most n_features = 6"),
    ):
        refused = cli("run", table, *SMALL, *arguments)
        assert refused.code in (1, 2)
        assert words in refused.err
        assert "columns=" not in refused.err
        assert "None" not in refused.err
    assert cli("run", table, *SMALL, "-o", tmp_path / "m").code == 0
    sparse = tmp_path / "x.libsvm"
    sparse.write_text("1:2\n2:3\n")
    refused = cli("predict", tmp_path / "m", sparse)
    assert refused.code == 1
    assert "x.libsvm must have the columns of the model, " in refused.err
    assert "DataFrame" not in refused.err


def test_a_missing_header_is_told(cli: Cli, csv_file: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.csv"
    bare.write_text("".join(csv_file.read_text().splitlines(keepends=True)[1:]))
    refused = cli("run", bare, *SMALL)
    assert refused.code == 1
    assert "must name the columns" in refused.err
    assert "say that there is none with --no-header." in refused.err
    assert cli("run", bare, *SMALL, "--no-header", "-o", tmp_path / "m").code == 0
    assert load(tmp_path / "m").feature_names_in_[0] == "column 0"
    assert cli("predict", tmp_path / "m", bare, "--no-header").out.count("\n") == 401


def test_an_index_is_warned_about(cli: Cli, csv_file: Path) -> None:
    header, *lines = csv_file.read_text().splitlines(keepends=True)
    for name in ("", "id"):
        csv_file.write_text(f"{name},{header}" + "".join(f"{i + 3},{line}" for i, line in enumerate(lines)))
        assert f"Column '{name}'" in cli("run", csv_file, *SMALL).err
        assert "Column" not in cli("run", csv_file, *SMALL, "--drop", name or '""').err


def test_options_are_checked_before_the_file_is_read(cli: Cli, csv_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(name: str) -> None:
        raise AssertionError(f"{name} was opened")

    monkeypatch.setattr(streams, "open_bytes", opened)
    for arguments in (
        ("--weighter", "sag(horizon=-1)"),
        ("--weighter", "gamma_shape", "--loss", "ramp"),
        ("--members", "fern(depth=0)"),
        ("--forgetting", "2"),
        ("--members", "fern", "--max-features", "3"),
    ):
        refused = cli("run", csv_file, *arguments)
        assert refused.code == 2
        assert "was opened" not in refused.err


def test_resume_refuses_other_columns_and_altered_predictions(cli: Cli, csv_file: Path, tmp_path: Path) -> None:
    state, said = tmp_path / "s", tmp_path / "p.csv"
    options = (*SMALL, "--checkpoint", state, "--predictions", said)
    assert cli("run", csv_file, *options).code == 0
    assert state.exists()  # at the end of every run
    text = csv_file.read_text()
    csv_file.write_text(text.replace("height,width", "width,height", 1))
    refused = cli("run", csv_file, *options, "--resume")
    assert refused.code == 1
    assert "must have the columns of the checkpoint" in refused.err
    csv_file.write_text(text)
    kept = said.read_bytes()
    said.write_bytes(kept.replace(b",no,", b",on,", 1))
    refused = cli("run", csv_file, *options, "--resume")
    assert refused.code == 1
    assert "got a file that was changed since" in refused.err
    said.write_bytes(kept)
    assert cli("run", csv_file, *options, "--resume").code == 0


def test_a_long_pipe_of_numbers_is_not_a_table(cli: Cli, tmp_path: Path) -> None:
    done = cli("run", write_csv(tmp_path / "rows.csv"), *SMALL, "-o", tmp_path / "m")
    assert done.code == 0
    assert not hasattr(load(tmp_path / "m"), "columns_")


def test_a_column_of_many_texts_is_told_in_the_words_of_the_command_line(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "names.csv"
    file.write_text("name,mass,y\n" + "".join(f"n{i},{i % 7},{'uv'[i % 7 > 3]}\n" for i in range(200)))
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        done = cli("run", file, *SMALL)
    assert done.code == 0
    assert "--column name=drop" in done.err
    assert "columns=" not in done.err
    assert "UserWarning" not in done.err


def test_a_label_that_is_missing_names_its_column(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("kind,size,sex\na,1,f\nb,2,\n")
    refused = cli("run", path, *SMALL).err
    assert "line 3: the label is missing in column 'sex'. The last column is the label unless another is" in refused
    assert "named with --target NAME." in refused
    refused = cli("run", path, *SMALL, "--target", "sex").err
    assert "line 3: the label is missing in column 'sex'. Fix the line" in refused
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"size": [1, 2], "sex": ["f", None]}), tmp_path / "x.parquet")
    assert "the label is missing in column 'sex'. The last column" in cli("run", tmp_path / "x.parquet", *SMALL).err


def test_texts_among_numbers_are_told_with_the_option_that_reads_them(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('size,y\n1,a\n"1,5",b\n')
    assert "If the file has decimal commas, read it with --decimal ,." in cli("run", path, *SMALL).err
    path.write_text("size,y\n1,a\n2,b\nlarge,b\n")
    assert "Read a column of text with --column size=category." in cli("run", path, *SMALL).err


@pytest.mark.parametrize(
    ("given", "words"),
    [("A,B,", "labels must not be empty"), ("A,A", "every label must be named once"), ("A", "two labels or more")],
)
def test_labels_that_are_named_badly(cli: Cli, table: Path, given: str, words: str) -> None:
    refused = cli("run", table, *SMALL, "--classes", given)
    assert refused.code == 2
    assert "--classes" in refused.err
    assert words in refused.err
    assert repr(given) in refused.err


def test_resume_speaks_of_kinds_by_their_options(cli: Cli, table: Path, tmp_path: Path) -> None:
    command = ("run", table, *SMALL, "--checkpoint", tmp_path / "s")
    assert cli(*command, "--category", "mass").code == 0
    refused = cli(*command, "--number", "mass", "--resume").err
    assert "the kinds of columns were --column mass=category and are --column mass=number" in refused
    assert "--columns" not in refused


def test_target_is_not_advised_where_it_was_given(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    for text, got in (("size,y\n", "no rows"), ("size,y\n1,a\n2,a\n", "only 'a'")):
        path.write_text(text)
        refused = cli("run", path, *SMALL, "--target", "y").err
        assert f"must have two labels or more, got {got}" in refused
        assert "--target" not in refused
        assert "--target" in cli("run", path, *SMALL).err


def test_further_columns_are_ignored_and_named(cli: Cli, table: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    assert cli("run", table, "--target", "species", *SMALL, "-o", model).code == 0
    found = cli("predict", model, "-", stdin=b"note,mass,island,wing\nx,3,Dream,1\n")
    assert (found.code, found.out.count("\n")) == (0, 2)
    assert found.err.count("not fitted with; they are ignored: note, wing.") == 1
    labelled = b"species,mass,island\nA,3,Dream\n"
    for options in ((), ("--target", "species")):  # one more column may be the label
        assert cli("predict", model, "-", *options, stdin=labelled).err == ""
    missing = cli("predict", model, "-", stdin=b"island,note\nDream,1\n")
    assert missing.code == 1
    assert "must have the column 'mass' of the model" in missing.err

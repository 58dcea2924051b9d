"""Files, arrays in memory and Dask's collections as shards, and what is wrong with some."""

import bz2
import os
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayesvote import BayesianEnsembleClassifier, OzaBoostClassifier
from bayesvote.apps.distributed import Job, fit, predict, predict_proba, weigh
from bayesvote.io.model_file import dumps
from distributing.rows import Shards, classifier, shards, write_csv

pandas: Any = import_module("pandas")
da: Any = import_module("dask.array")
dd: Any = import_module("dask.dataframe")


def write_parquet(folder: Path, parts: Shards) -> str:
    for k, (X, y) in enumerate(parts):
        pandas.DataFrame(X, columns=[*"abcd"]).assign(pet=y).to_parquet(folder / f"{k:02d}.parquet", row_group_size=50)
    return f"{folder}/*.parquet"


def write_libsvm(folder: Path, parts: Shards) -> str:
    for k, (X, y) in enumerate(parts):
        lines = [
            " ".join([label, *(f"{j + 1}:{value!r}" for j, value in enumerate(x.tolist()) if value)])
            for x, label in zip(X, y, strict=True)
        ]
        (folder / f"{k:02d}.libsvm.bz2").write_bytes(bz2.compress("\n".join(lines).encode()))
    return f"{folder}/*.libsvm.bz2"


def bits(model: Any) -> Any:
    """What was learned, without the names of columns."""
    return dumps(model.model_)


def test_all_inputs_give_the_same_model(tmp_path: Path) -> None:
    parts = [(np.round(np.nan_to_num(X), 3) + 0.0, y) for X, y in shards(4)]
    expected = bits(fit(parts, classifier()))
    files = write_csv(tmp_path, parts)
    assert bits(fit(files, classifier(), target="pet")) == expected
    from_parquet = fit(write_parquet(tmp_path, parts), classifier())
    assert bits(from_parquet) == expected
    assert from_parquet.feature_names_in_.tolist() == [*"abcd"]
    assert bits(fit(write_libsvm(tmp_path, parts), classifier())) == expected
    X, y = (np.concatenate(some) for some in zip(*parts, strict=True))
    assert bits(fit((da.from_array(X, chunks=(240, 3)), da.from_array(y, chunks=240)), classifier())) == expected
    frame = dd.from_pandas(pandas.DataFrame(X, columns=[*"abcd"]).assign(pet=y), npartitions=4)
    assert bits(fit(frame, classifier(), target="pet")) == expected
    assert bits(fit(dd.read_parquet(f"{tmp_path}/*.parquet"), classifier(), target="pet")) == expected


def test_predictions_over_collections_are_lazy_and_those_of_the_model(tmp_path: Path) -> None:
    parts = shards(4)
    model = fit(write_parquet(tmp_path, parts), classifier())
    frame = dd.read_parquet(f"{tmp_path}/*.parquet")
    whole = frame.compute()
    lazy, chances = predict(model, frame), predict_proba(model, frame)
    assert lazy.numblocks == (4,)
    np.testing.assert_array_equal(lazy.compute(scheduler="synchronous"), model.predict(whole[[*"abcd"]]))
    np.testing.assert_array_equal(chances.compute(scheduler="synchronous"), model.predict_proba(whole[[*"abcd"]]))
    assert chances.shape[1] == 2
    plain = fit(parts, classifier())
    X = da.from_array(parts[0][0], chunks=(100, 2))
    np.testing.assert_array_equal(predict(plain, X).compute(scheduler="synchronous"), plain.predict(parts[0][0]))
    assert predict(plain, X).dtype == plain.classes_.dtype
    with pytest.raises(TypeError, match=r"Call model\.predict"):
        predict(plain, parts[0][0])


def test_columns_are_found_by_name_and_others_are_bad(tmp_path: Path) -> None:
    parts = shards(4)
    files = write_csv(tmp_path, parts)
    expected = bits(fit(files, classifier()))
    X, y = parts[2]
    frame = pandas.DataFrame(X, columns=[*"abcd"]).assign(pet=y)
    frame[["d", "b", "a", "pet", "c"]].to_csv(files[2], index=False)
    assert bits(fit(files, classifier(), target="pet")) == expected
    frame[["d", "b", "a", "pet"]].assign(e=1).to_csv(files[2], index=False)
    with pytest.raises(ValueError, match=r"02\.csv must pass .* none named 'c' and others, 'e'.*bad_shards='skip'"):
        fit(files, classifier(), target="pet")
    frame.drop(columns="pet").to_csv(files[2], index=False)
    with pytest.raises(ValueError, match=r"02\.csv .*'pet'"):
        fit(files, classifier(), target="pet")


def test_the_shard_that_differs_from_most_is_bad_also_if_it_is_the_first(tmp_path: Path) -> None:
    parts = shards(5)
    files = write_csv(tmp_path, parts)
    Path(files[0]).write_text(Path(files[0]).read_text().replace("a,b,c,d", "a,b,c,e", 1))
    with pytest.raises(ValueError, match=r"00\.csv must pass .*as in most shards, got none named 'd' and others, 'e'"):
        fit(files, classifier())
    job = Job(bad_shards="skip")
    assert job.fit(files, classifier()).feature_names_in_.tolist() == [*"abcd"]
    assert [os.path.basename(name) for name in job.skipped] == ["00.csv"]
    job.fit([(parts[0][0][:, :3], parts[0][1]), *parts[1:]], classifier())
    assert [*job.skipped] == ["shard 0"]


def test_columns_without_names_are_known_by_their_places() -> None:
    parts = shards(4)
    X, y = (np.concatenate(some) for some in zip(*parts, strict=True))
    frame = pandas.DataFrame(X).assign(pet=y).rename(columns={"pet": 4})
    for data in (dd.from_pandas(frame, npartitions=4), [(pandas.DataFrame(X), y) for X, y in parts]):
        model = fit(data, classifier())
        assert bits(model) == bits(fit(parts, classifier()))
        assert not hasattr(model, "feature_names_in_")


def test_blocks_of_unknown_size_are_shards() -> None:
    parts = shards(4)
    X, y = (np.concatenate(some) for some in zip(*parts, strict=True))
    frame = dd.from_pandas(pandas.DataFrame(X, columns=[*"abcd"]).assign(pet=(y == "yes").astype(int)), npartitions=4)
    rows, labels = frame[[*"abcd"]].to_dask_array(), frame["pet"].to_dask_array()
    expected = bits(fit([(X, (y == "yes").astype(int)) for X, y in parts], classifier()))
    for block in (labels, da.from_array((y == "yes").astype(int), chunks=240)):
        assert bits(fit((rows, block), classifier())) == expected
    lazy = predict(fit((rows, labels), classifier()), rows)
    assert lazy.dtype == np.int64
    assert len(lazy.compute(scheduler="synchronous")) == 960
    known = da.from_array(X, chunks=(240, 4))
    with pytest.raises(ValueError, match=r"block 0 must pass .*must have one label for each of its \d+ rows, got 240"):
        fit((known[known[:, 0] > 0], labels), classifier())
    with pytest.raises(ValueError, match=r"same blocks of rows, got 4 blocks of nan.* and 3 of .*compute_chunk_sizes"):
        fit((rows, da.from_array(y, chunks=320)), classifier())


@pytest.mark.parametrize("wrong", [OzaBoostClassifier(), "adaptive", BayesianEnsembleClassifier])
def test_other_classifiers_are_refused(wrong: Any) -> None:
    for call in (fit, weigh):
        with pytest.raises(TypeError, match="classifier must be a BayesianEnsembleClassifier"):
            call(shards(3), wrong)


def test_bad_shards_are_named_or_skipped_and_counted(tmp_path: Path) -> None:
    parts = shards(6)
    files = write_csv(tmp_path, parts)
    Path(files[1]).write_text("a,b,c,d,pet\n1,2,3,4,no\n1,2,three,4,yes\n")
    Path(files[4]).write_bytes(b"")
    with pytest.raises(ValueError, match=r"01\.csv must pass the reading of labels, got InputError: .*'three'"):
        fit(files, classifier())
    with pytest.warns(UserWarning, match=r"2 shards were skipped, the first .*01\.csv: InputError"):
        model = fit(files, classifier(), bad_shards="skip")
    good = [parts[k] for k in (0, 2, 3, 5)]
    assert model.effective_samples_[0] == pytest.approx(4 * 240)
    job = Job(bad_shards="skip")
    job.fit(files, classifier())
    assert [os.path.basename(name) for name in job.skipped] == ["01.csv", "04.csv"]
    assert job.n_rows == sum(len(y) for _, y in good)
    for file in files:
        Path(file).write_bytes(b"")
    with pytest.raises(ValueError, match="must have at least one readable shard"):
        fit(files, classifier(), bad_shards="skip")


def test_a_shard_that_fails_while_it_is_weighed_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    from bayesvote.apps.distributed.stages import Weigh

    whole = Weigh.__call__

    def failing(self: Any, task: Any, shared: Any) -> bytes:
        if task.place == 2:
            raise MemoryError
        return whole(self, task, shared)

    parts = shards(5)
    monkeypatch.setattr(Weigh, "__call__", failing)
    with pytest.raises(ValueError, match="shard 2 must pass the weighting of members, got MemoryError"):
        fit(parts, classifier())
    job = Job(bad_shards="skip")
    model = job.fit(parts, classifier())
    assert job.n_rows == 4 * 240
    assert model.model_.total_members == 30  # its own members were trained already
    assert model.effective_samples_[0] == pytest.approx(4 * 240)


def test_a_shard_that_comes_twice_is_counted_once(tmp_path: Path) -> None:
    files = write_csv(tmp_path, shards(4))
    expected = bits(fit(files, classifier()))
    link = tmp_path / "again.csv"
    link.symlink_to(files[0])
    with pytest.warns(UserWarning, match="3 shards were given twice, and counted once"):
        model = fit([*files, files[1], str(link), f"{tmp_path}/03.csv"], classifier())
    assert bits(model) == expected


def test_empty_shards_and_shards_of_one_class_take_part() -> None:
    parts = shards(6)
    X, y = parts[1]
    parts[1] = (X[y == "no"], y[y == "no"])
    parts[3] = (X[:0], y[:0])
    job = Job()
    model = job.fit(parts, classifier())
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.model_.total_members == 5 * 6
    assert job.n_rows == 4 * 240 + len(parts[1][1])
    with pytest.raises(ValueError, match="at least two labels in total, got only 'no'"):
        fit([(X[y == "no"], y[y == "no"])] * 3, classifier())
    with pytest.raises(ValueError, match="at least three shards with rows"):
        fit([parts[0], parts[2], parts[3]], classifier())


def test_labels_and_widths_must_agree() -> None:
    parts = shards(4)
    X, y = parts[0]
    cases: list[tuple[Any, str]] = [
        ((X[:, :3], y), "must have 4 features, as in most shards, got 3"),
        ((X, np.arange(240) % 2), "its labels must be text, as in other shards, got 0"),
        ((X, y[:100]), "must have one label for each of its 240 rows, got 100"),
        ((X, np.array([None, *y[1:]], dtype=object)), "missing"),
        ((np.where(X > 3, np.inf, X), y), "must hold finite numbers"),
    ]
    for wrong, match in cases:
        with pytest.raises(ValueError, match=match):
            fit([*parts, wrong], classifier())
    with pytest.raises(ValueError, match=r"its labels must be among the classes \['no', 'perhaps'\], got 'yes'"):
        fit(parts, classifier(), classes=["no", "perhaps"])
    model = fit(parts, classifier(), classes=["no", "perhaps", "yes"])
    assert model.classes_.tolist() == ["no", "perhaps", "yes"]
    before = dumps(model)
    with pytest.raises(ValueError, match="must have 4 features, as in the fitted model, got 3"):
        weigh([(X[:, :3], y)], model)
    assert dumps(model) == before


def test_a_column_of_many_values_is_not_taken_for_labels(tmp_path: Path) -> None:
    files = write_csv(tmp_path, [(np.nan_to_num(X), y) for X, y in shards(4, 60)])
    with pytest.raises(ValueError, match=r"at most 100 labels if classes are not named, got 2\d\d.* Check that target"):
        fit(files, classifier(), target="a", features=["b", "c", "d"])
    many = [(np.arange(120.0)[:, None], np.arange(120))] * 3
    small = classifier(members="naive_bayes", n_members=6, weighter="gamma_rate")
    assert len(fit(many, small, classes=range(120)).classes_) == 120


@pytest.mark.parametrize(
    ("data", "match"),
    [
        ([], "must be paths"),
        (5, "must be paths"),
        ([(np.ones((3, 2)), [0, 1, 1]), "x.csv"], "shard 1 must be a path or a pair"),
        ("nowhere/*.csv", "'nowhere/\\*.csv' must match files, got nothing there"),
        ("nowhere.csv", "must be a file, got nothing there"),
        (os.path.dirname(__file__), "got a folder. Pass its files"),
        ((da.ones((4, 2)), da.ones((4, 2))), "must be a pair"),
        ((da.ones((4, 2), chunks=2), da.ones(4, chunks=3)), "same blocks of rows"),
        (da.ones((4, 2)), "must be a dask.dataframe with the labels in a column"),
    ],
)
def test_other_data_are_refused(data: Any, match: str) -> None:
    with pytest.raises((TypeError, ValueError), match=match):
        fit(data, classifier())


def test_a_column_of_text_in_a_collection_and_a_target_that_is_not_there_are_refused() -> None:
    frame = pandas.DataFrame({"a": [1.0, 2.0] * 4, "word": ["x", "y"] * 4, "pet": [0, 1] * 4})
    with pytest.raises(ValueError, match="target must be one of the columns"):
        fit(dd.from_pandas(frame, npartitions=3), classifier(), target="dog")

"""Raw tables as shards: how their columns are encoded is gathered in a first pass, and put together."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesvote import BayesianEnsembleClassifier, Frozen, PerceptronBank, load, save
from bayesvote.apps.distributed import fit, predict, weigh
from bayesvote.io.model_file import dumps
from bayesvote.tables import Columns, merged
from distributing.rows import classifier

pandas: Any = import_module("pandas")
dd: Any = import_module("dask.dataframe")


def tables(n_shards: int = 4, n_rows: int = 150, seed: int = 0) -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(seed)
    found = []
    for k in range(n_shards):
        island = rng.choice(["Dream", "Torgersen", f"Isle {k}"], n_rows)
        mass = np.round(rng.normal(4000, 500, n_rows), 1)
        y = np.where((island == "Dream") ^ (mass > 4000), "Adelie", "Gentoo")
        when = pandas.Timestamp("2024-01-01") + pandas.to_timedelta(rng.integers(0, 300, n_rows), unit="D")
        table = {
            "island": [None if lost else name for lost, name in zip(rng.random(n_rows) < 0.05, island, strict=True)],
            "mass": np.where(rng.random(n_rows) < 0.05, np.nan, mass),
            "when": [str(day.date()) for day in when],
            "tagged": rng.choice(["true", "false"], n_rows),
        }
        found.append((pandas.DataFrame(table), y))
    return found


def test_all_inputs_give_the_same_model(tmp_path: Path) -> None:
    parts = tables()
    model = fit(parts, classifier())
    expected = dumps(model.model_)
    X, y = pandas.concat([X for X, _ in parts]), np.concatenate([y for _, y in parts])
    assert np.mean(model.predict(X) == y) > 0.9
    assert [about["kind"] for about in model.columns_.describe()] == ["category", "number", "date", "boolean"]
    assert {"Isle 0", "Isle 3"} < set(model.columns_.describe()[0]["texts"])
    for k, (X, y) in enumerate(parts):
        X.assign(species=y).to_csv(tmp_path / f"{k}.csv", index=False)
        X.assign(species=y).to_parquet(tmp_path / f"{k}.parquet")
    assert dumps(fit(f"{tmp_path}/*.csv", classifier()).model_) == expected
    assert dumps(fit(f"{tmp_path}/*.parquet", classifier()).model_) == expected
    frame = dd.read_parquet(f"{tmp_path}/*.parquet")
    again = fit(frame, classifier(), target="species")
    assert dumps(again.model_) == expected
    np.testing.assert_array_equal(
        predict(again, frame).compute(scheduler="synchronous"), model.predict(pandas.concat([X for X, _ in parts]))
    )


def test_the_model_saves_and_goes_on_learning_as_on_shards(tmp_path: Path) -> None:
    model, more = fit(tables(), classifier()), tables(2, seed=5)
    save(model, tmp_path / "m")
    again, weighed = load(tmp_path / "m"), load(tmp_path / "m")
    X, y = more[0][0].assign(island="Biscoe"), more[0][1]
    for one in (model, again):
        one.partial_fit(X, y)
        weigh(more, one)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    # Frozen members know nothing of "Biscoe": it stays a text that is new, whichever way the rows come.
    assert "Biscoe" not in model.columns_.describe()[0]["texts"]
    weigh([(X, y), *more], weighed)
    np.testing.assert_allclose(weighed.weights_["mean"], model.weights_["mean"], rtol=1e-12)
    assert model.model_.about()["rows_learned"] == 4 * 150 + 150 + 300


def test_frozen_members_on_tables_merge_and_unlearn_exactly(tmp_path: Path) -> None:
    whole, more = fit(tables(), classifier(weighter="gamma_rate")), tables(2, seed=5)
    (X, y), (Z, z) = (more[0][0].assign(island="Biscoe", mass=np.nan), more[0][1]), more[1]
    save(whole, tmp_path / "m")
    one, two = load(tmp_path / "m"), load(tmp_path / "m")
    start = whole.weights_["mean"]
    twice = load(tmp_path / "m").merge(load(tmp_path / "m")).partial_fit(X, y).partial_fit(Z, z)
    one.partial_fit(X, y)
    two.partial_fit(Z, z)
    np.testing.assert_allclose(one.merge(two).weights_["mean"], twice.weights_["mean"], rtol=1e-12)
    back = whole.partial_fit(X, y).partial_fit(Z, z).unlearn(X, y).unlearn(Z, z)
    np.testing.assert_allclose(back.weights_["mean"], start, rtol=1e-9)


def test_models_that_read_tables_in_other_ways_are_not_merged(tmp_path: Path) -> None:
    model = fit(tables(), classifier())
    save(model, tmp_path / "m")

    def spoilt(edit: Any) -> Any:
        other = load(tmp_path / "m")
        learned = other.columns_.learned()
        edit(learned)
        other.columns_.restore(learned, 2**31)
        return other

    def texts(learned: Any) -> None:
        other = {"Dream": "Torgersen", "Torgersen": "Dream"}
        learned.facts["texts"] = [other.get(text, text) for text in learned.facts["texts"]]

    def mean(learned: Any) -> None:
        learned.arrays["total"] = learned.arrays["total"] * [1, 2, 1, 1]

    def weekday(learned: Any) -> None:
        learned.arrays["base"] = np.minimum(learned.arrays["base"], 0)

    for edit, column in ((texts, "island"), (mean, "mass"), (weekday, "when")):
        other, before = spoilt(edit), dumps(model)
        with pytest.raises(ValueError, match=rf"merge: column '{column}' must be encoded in the same way by both, got"):
            model.merge(other)
        assert dumps(model) == before
    numbers = load(tmp_path / "m")
    numbers.fitted_ = numbers.fitted_.replace(columns=None)
    with pytest.raises(ValueError, match=r"both must have learned tables, or both rows of numbers, got one of each"):
        model.merge(numbers)
    renamed = load(tmp_path / "m")
    renamed.name_features(renamed.feature_names_in_[::-1])
    with pytest.raises(ValueError, match="must have the same feature_names_in_"):
        model.merge(renamed)


def test_frozen_members_do_not_learn_how_to_read_new_tables() -> None:
    X, y = tables(1)[0]
    frozen = Frozen(PerceptronBank(n_members=3))
    with pytest.raises(TypeError, match=r"X must hold numbers only for frozen members.*'island', 'when'"):
        BayesianEnsembleClassifier(frozen, weighter="joint_gaussian").fit(X, y)
    BayesianEnsembleClassifier(frozen, weighter="joint_gaussian").fit({"mass": X["mass"]}, y)


def test_columns_can_be_stated_and_must_be_of_one_kind(tmp_path: Path) -> None:
    parts = tables()
    X, y = parts[2]
    parts[2] = (X.assign(mass="heavy"), y)
    with pytest.raises(ValueError, match=r"shard 2 must pass .*'mass' must be of the kind 'number'.*'category'"):
        fit(parts, classifier())
    with pytest.warns(UserWarning, match="1 shards were skipped"):
        assert fit(parts, classifier(), bad_shards="skip").effective_samples_[0] == pytest.approx(450)
    model = fit(parts, classifier(columns={"mass": "category", "when": "drop"}))
    kinds = {about["name"]: about["kind"] for about in model.columns_.describe()}
    for k, (X, y) in enumerate(parts):
        X.assign(species=y).to_csv(tmp_path / f"{k}.csv", index=False)
    other = fit(f"{tmp_path}/*.csv", classifier(columns={"mass": "category", "when": "drop"}))
    found = {about["name"]: about["kind"] for about in other.columns_.describe()}
    assert found | {"tagged": "boolean"} == kinds  # files are read with truth values as numbers
    assert kinds == {"island": "category", "mass": "category", "when": "drop", "tagged": "boolean"}
    assert len(other.predict(parts[0][0])) == 150


def test_the_kind_of_a_column_is_that_of_most_shards_that_know_it() -> None:
    parts = tables(5)
    parts[0] = (parts[0][0].assign(mass=None), parts[0][1])  # fits all others, which do not fit each other
    parts[1] = (parts[1][0].assign(mass="heavy"), parts[1][1])
    with pytest.raises(ValueError, match=r"shard 1 must pass .*'mass' must be of the kind 'number', as in most shards"):
        fit(parts, classifier())
    with pytest.warns(UserWarning, match="1 shards were skipped, the first shard 1"):
        model = fit(parts, classifier(), bad_shards="skip")
    assert model.columns_.describe()[1]["kind"] == "number"


def test_shards_of_numbers_only_fit_those_with_texts() -> None:
    parts = tables()
    numbers = [(X[["mass"]].assign(code=k % 3), y) for k, (X, y) in enumerate(parts)]
    plain = fit(numbers, classifier())
    assert not hasattr(plain, "columns_")
    parts[1] = (parts[1][0].assign(island=None), parts[1][1])  # nothing is known of the island here
    parts[3] = (parts[3][0][:0], parts[3][1][:0])
    assert fit(parts, classifier()).columns_.describe()[0]["kind"] == "category"


cell = st.sampled_from(["a", "b", "c", "d", None, 1.5, 2.0, "2024-05-01", "2024-06-02T10:00"])


@given(st.lists(st.lists(st.tuples(cell, st.sampled_from(["u", "v", "w", "x"])), min_size=1, max_size=8), min_size=1))
def test_merged_columns_know_what_one_stream_would_have_told(parts: list[list[tuple[Any, str]]]) -> None:
    stated, few = {"x": "category", "when": "date"}, {"max_texts": 2, "n_buckets": 3}
    days = {"u": "2024-05-01", "v": "2024-05-01T10:00", "w": "2024-07-03", "x": None}

    def table(rows: list[tuple[Any, str]]) -> dict[str, list[Any]]:
        return {"x": [str(x) if x is not None else None for x, _ in rows], "when": [days[d] for _, d in rows]}

    each = []
    for rows in parts:
        each.append(Columns(stated, **few).start(table(rows)))
        list(each[-1].advance(table(rows)))
    together = [row for rows in parts for row in rows]
    stream = Columns(stated, **few).start(table(together))
    list(stream.advance(table(together)))
    found = merged(each)
    a, b = (
        dict(zip(one.feature_names(), one.encode(table(together)).todense().T, strict=False))  # some are for later
        for one in (found, stream)
    )
    # A part may have hashed a text that another had met before.
    assert set(b) <= set(a) <= set(b) | {f"x has hash {k}" for k in range(3)}
    for name, values in b.items():
        np.testing.assert_allclose(a[name], values, rtol=1e-12, err_msg=name)

"""Classifiers that are given tables as they come."""

import pickle
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone

from bayesvote import (
    BayesianEnsembleClassifier,
    Ensemble,
    OSBoostClassifier,
    OzaBoostClassifier,
    PerceptronBank,
    prequential,
)
from bayesvote.io.model_file import ModelFileError, dumps, loads
from bayesvote.tables import columns_of, read_table
from model_files.samples import described

pandas: Any = import_module("pandas")
polars: Any = import_module("polars")
pyarrow: Any = import_module("pyarrow")
N = 400
Columns = dict[str, list[Any]]


def table(n: int = N, seed: int = 0) -> tuple[Columns, NDArray[Any]]:
    rng = np.random.default_rng(seed)
    island = rng.choice(["Dream", "Torgersen", "Biscoe"], n, p=[0.5, 0.3, 0.2])
    mass = rng.normal(4000, 500, n)
    y = np.where((island == "Dream") == (mass > 4000), "male", "female")
    day = np.datetime64("2024-01-01T06:00", "us") + rng.integers(0, 5000, n).astype("timedelta64[h]")
    return {
        "island": [None if k % 17 == 3 else str(text) for k, text in enumerate(island)],
        "mass": [None if k % 13 == 4 else float(x) for k, x in enumerate(mass)],
        "tagged": [None if k % 29 == 5 else bool(x) for k, x in enumerate(rng.integers(2, size=n))],
        "day": day.tolist(),
        "bird": [f"N{k}" for k in range(n)],
    }, y


STATED = {"bird": "drop"}


def classifier(**options: Any) -> BayesianEnsembleClassifier:
    return BayesianEnsembleClassifier(n_members=30, columns=STATED, random_state=0, **options)


def part(X: Columns, a: int, b: int) -> Columns:
    return {name: values[a:b] for name, values in X.items()}


def test_tables_of_all_libraries_are_the_same_to_the_last_bit() -> None:
    X, y = table()
    expected = classifier().fit(X, y).predict_proba(X)
    frame = pandas.DataFrame(X)
    forms = {
        "pandas": frame,
        "nullable": frame.convert_dtypes(),
        "categorical": frame.astype({"island": "category"}),
        "arrow types": frame.convert_dtypes(dtype_backend="pyarrow"),
        "polars": polars.DataFrame(X),
        "polars categorical": polars.DataFrame(X).with_columns(polars.col("island").cast(polars.Categorical)),
        "pyarrow": pyarrow.table(X),
        "pyarrow dictionary": pyarrow.table(
            X | {"island": pyarrow.array(X["island"]).dictionary_encode(), "mass": pyarrow.array(X["mass"])}
        ),
        "texts": {name: ["" if v is None else str(v) for v in values] for name, values in X.items()},
        "arrays": {name: np.array(values) for name, values in X.items()},
        "rows": columns_of([dict(zip(X, row, strict=True)) for row in zip(*X.values(), strict=True)]),
        "read": read_table("test", X),
    }
    for name, form in forms.items():
        model = classifier().fit(form, y)
        np.testing.assert_array_equal(model.predict_proba(form), expected, err_msg=name)
        kinds = [about["kind"] for about in model.columns_.describe()]
        assert kinds == ["category", "number", "boolean", "date", "drop"], name
    assert list(model.feature_names_in_) == ["island", "mass", "tagged", "day", "bird"]
    assert model.n_features_in_ == 5


def test_it_learns_what_numbers_alone_would_not_tell() -> None:
    X, y = table()
    found = classifier().predict_proba_then_learn(X, y, classes=["female", "male"])
    assert np.mean(found.argmax(axis=1) == (y == "male")) > 0.75


@pytest.mark.parametrize(
    "make", [classifier, lambda: OSBoostClassifier("naive_bayes", 5, columns=STATED, random_state=0)]
)
@pytest.mark.parametrize("cuts", [[1], [5, 6, 200], list(range(1, 60))], ids=["first", "some", "rows"])
def test_chunks_of_any_size_give_the_same_bits(make: Any, cuts: list[int]) -> None:
    X, y = table()
    whole, parts = make(), make()
    expected = whole.predict_proba_then_learn(X, y, classes=np.unique(y))
    got = [
        parts.predict_proba_then_learn(part(X, a, b), y[a:b], classes=np.unique(y)) for a, b in pairwise([0, *cuts, N])
    ]
    np.testing.assert_array_equal(np.concatenate(got), expected)
    assert dumps(parts) == dumps(whole)


def test_labels_that_come_late_give_what_late_rows_give() -> None:
    X, y = table()
    prompt, late = (classifier().fit(part(X, 0, 100), y[:100]) for _ in range(2))
    said = late.predict_proba(part(X, 100, 130))
    assert dumps(late) == dumps(prompt)  # predicting leaves no trace
    weights = np.zeros(30)
    np.testing.assert_array_equal(prompt.predict_proba_then_learn(part(X, 100, 130), y[100:130], None, weights), said)
    assert dumps(late) == dumps(prompt)  # nor does a row of weight 0
    for model in (prompt, late):
        model.partial_fit(part(X, 100, 130), y[100:130])
    assert dumps(late) == dumps(prompt)


def test_saved_copied_and_pickled_models_go_on_bit_for_bit() -> None:
    X, y = table()
    model = classifier().fit(part(X, 0, 50), y[:50])
    for again in (loads(dumps(model)), pickle.loads(pickle.dumps(model))):
        assert again.columns == STATED
        for one in (again, twin := loads(dumps(model))):
            one.partial_fit(part(X, 50, 400), y[50:])
        assert dumps(again) == dumps(twin)
        np.testing.assert_array_equal(again.predict_proba(X), twin.predict_proba(X))
    assert not hasattr(clone(model), "columns_")


def test_a_fit_with_numbers_alone_forgets_the_columns() -> None:
    X, y = table()
    numbers = np.random.default_rng(0).normal(size=(N, 3))
    model = classifier().fit(X, y)
    before = dumps(model)
    said = r"must be a table if columns= says how to read it, got ndarray"
    with pytest.raises(TypeError, match=said):
        model.fit(numbers, y)
    assert dumps(model) == before
    with pytest.raises(TypeError, match=said):
        classifier().partial_fit(numbers, y, classes=np.unique(y))
    model.set_params(columns=None).fit(numbers, y)
    assert not hasattr(model, "columns_")
    assert not hasattr(model, "feature_names_in_")
    plain = BayesianEnsembleClassifier(n_members=30, random_state=0).fit(pandas.DataFrame(numbers), y)
    assert not hasattr(plain, "columns_")
    np.testing.assert_array_equal(plain.predict_proba(numbers), model.predict_proba(numbers))


def test_what_does_not_fit_is_refused_and_changes_nothing() -> None:
    X, y = table()
    model = classifier().fit(X, y)
    before = dumps(model)
    with pytest.raises(TypeError, match=r"must be a table with the columns \['island', .* got ndarray"):
        model.predict(np.zeros((2, 5)))
    with pytest.raises(ValueError, match=r"without \['mass'\]"):
        model.partial_fit({name: values for name, values in X.items() if name != "mass"}, y)
    with pytest.raises(ValueError, match="one label per row, 400, got 399"):
        model.partial_fit(X, y[1:])
    with pytest.raises(ValueError, match="classes"):
        model.partial_fit(X, np.where(np.arange(N) == N - 1, "both", y))
    with pytest.raises(ValueError, match="column 'mass' must hold finite"):
        model.fit(X | {"mass": [np.inf] * N}, y)
    assert dumps(model) == before
    numbers = BayesianEnsembleClassifier(n_members=9, random_state=0).fit(pandas.DataFrame({"a": [0.0, 1.0]}), [0, 1])
    with pytest.raises(ValueError, match=r"column 'a' must hold a number in every row, .* got 'x' in row 0"):
        numbers.predict(pandas.DataFrame({"a": ["x", "y"]}))


def change(name: str, value: Any) -> Any:
    def edit(model: Any) -> None:
        model["learned"]["parts"]["columns_"]["learned"]["facts"][name] = value

    return edit


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (change("names", ["a", "a", "b", "c", "d"]), "names must be different"),
        (change("names", ["a", "b"]), "instead of"),
        (change("texts", [""] * 7), "instead of|must fit"),
        (change("version", 9), "version of the columns must be 1"),
        (lambda model: model["learned"]["parts"].pop("columns_"), "."),
    ],
)
def test_spoilt_files_are_refused(edit: Any, words: str) -> None:
    X, y = table(60)
    data = dumps(classifier().fit(X, y))
    with pytest.raises(ModelFileError, match=words):
        loads(described(data, edit))


def test_prequential_takes_tables_in_chunks_and_with_late_labels() -> None:
    X, y = table()
    frame = pandas.DataFrame(X)
    river: Any = import_module("river.tree")
    models = {"ours": classifier(), "river": river.HoeffdingTreeClassifier(grace_period=20)}
    found = prequential(models, frame, y, chunk_size=70)
    said = classifier().predict_proba_then_learn(X, y, classes=np.unique(y))
    np.testing.assert_array_equal(found["ours"].predictions, np.unique(y)[said.argmax(axis=1)])
    assert 0 < found["river"].error < 0.5
    late, by_hand = classifier(), classifier()
    answers = prequential(
        late, [(part(X, a, b), y[a:b]) for a, b in pairwise([0, 150, N])], classes=np.unique(y), delay=20
    )
    by_hand.partial_fit(part(X, 0, 1), y[:1], classes=np.unique(y), sample_weight=[0.0])
    expected, kept = [], []
    codes = (y == "male").astype(np.intp)
    for t in range(N):
        row = by_hand.checked_rows(read_table("test", part(X, t, t + 1)))
        kept.append((row, by_hand.forecast(row)[0]))
        expected.append(by_hand.predict(part(X, t, t + 1))[0])
        if t >= 20:
            row, forecast = kept[t - 20]
            by_hand.advance(by_hand.checked_rows(row), codes[t - 20 : t - 19], np.ones(1), forecast)
    np.testing.assert_array_equal(answers.predictions, expected)
    assert dumps(late) == dumps(by_hand)


def test_prequential_refuses_tables_for_models_of_numbers() -> None:
    X, y = table(30)
    linear: Any = import_module("sklearn.linear_model")
    for model in (linear.SGDClassifier(), Ensemble(PerceptronBank(3)).start(5)):
        with pytest.raises(TypeError, match=r"must hold numbers only for .*'island'"):
            prequential(model, pandas.DataFrame(X), y)
    fitted = BayesianEnsembleClassifier(n_members=9, random_state=0).fit(np.zeros((2, 5)), ["female", "male"])
    with pytest.raises(TypeError, match="must be rows of numbers"):
        prequential(fitted, pandas.DataFrame(X), y)


def test_missing_labels_and_numbers_beyond_bounds_are_told() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="a missing one in row 1"):
        BayesianEnsembleClassifier(n_members=3).fit(np.zeros((3, 1)), pandas.Series(["a", None, "b"]))
    model = BayesianEnsembleClassifier(n_members=3).partial_fit({"x": [1.0, 2.0]}, [0, 1], classes=[0, 1])
    with pytest.raises(ValueError, match="column 'x' must hold finite numbers below 1e100"):
        model.partial_fit({"x": [10**400, 2]}, [0, 1])


def test_columns_named_by_numbers_are_stated_by_them() -> None:
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.integers(0, 4, size=(60, 2)).astype(float))
    y = (frame[0] % 2).to_numpy()
    for X in (frame, {0: frame[0].tolist(), 1: frame[1].tolist()}):
        model = BayesianEnsembleClassifier(n_members=10, columns={0: "category"}, random_state=0).fit(X, y)
        assert [about["kind"] for about in model.columns_.describe()] == ["category", "number"]
        again = loads(dumps(model))
        assert again.columns == clone(model).columns == {0: "category"}
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match=r"must name each column once, got \{0: 'category', '0': 'number'\}"):
        BayesianEnsembleClassifier(columns={0: "category", "0": "number"}).fit(frame, y)
    with pytest.raises(ValueError, match=r"must name columns of the table, \['0', '1'\], got \['5'\]"):
        BayesianEnsembleClassifier(columns={5: "category"}).fit(frame, y)


@pytest.mark.parametrize("kind", [BayesianEnsembleClassifier, OzaBoostClassifier])
def test_stated_columns_count_in_a_stream_of_numbers(kind: Any) -> None:
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"a": rng.integers(0, 4, size=300).astype(float), "b": rng.normal(size=300)})
    y = (frame["a"] % 2).to_numpy(dtype=int)
    stated, plain = (kind(n_members=10, columns=columns, random_state=0) for columns in ({"a": "category"}, None))
    by_hand = clone(stated).predict_proba_then_learn(frame, y, classes=[0, 1]).argmax(axis=1)
    alone = prequential(clone(plain), frame, y)
    naive = import_module("sklearn.naive_bayes").GaussianNB
    together = prequential({"stated": stated, "plain": plain, "other": naive()}, frame, y)
    assert together["stated"].error == np.mean(by_hand != y)
    assert together["plain"].error == alone.error != together["stated"].error
    assert together["other"].error == prequential(naive(), frame, y).error
    assert prequential(stated, frame, y).error < 0.1  # fitted by now
    with pytest.raises(TypeError, match="X must be a table if columns= says how to read it, got rows of numbers"):
        prequential(clone(stated), frame.to_numpy(), y)

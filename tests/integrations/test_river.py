"""The river adapters: river's own checks, named features, labels that come late, river's models as members."""

import pickle
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from bayesvote import (
    Ensemble,
    FernBank,
    GammaRate,
    JointGaussian,
    NaiveBayesBank,
    OGBoost,
    OSBoost,
    OzaBoost,
    PerceptronBank,
    Union,
    adaptive,
    estimators,
    pretrain,
)
from bayesvote.core.checks import Array
from bayesvote.integrations import river_base as _river_base
from bayesvote.integrations.river import (
    BayesianEnsembleClassifier,
    OGBoostClassifier,
    OSBoostClassifier,
    OzaBoostClassifier,
)
from bayesvote.io.model_file import ModelFileError, dumps, loads
from bayesvote.members import scaled
from bayesvote.model import Model
from bayesvote.weighting import drifting
from model_files.samples import described

# Not typed throughout, or not at all.
river: Any = import_module("river.api")
checks: Any = import_module("river.checks")
pandas: Any = import_module("pandas")

BOOSTERS = (OzaBoostClassifier, OGBoostClassifier, OSBoostClassifier)


def stream(n: int, d: int = 4, n_classes: int = 2, seed: int = 0) -> tuple[Array, list[int]]:
    X = np.random.default_rng(seed).normal(size=(n, d))
    return X, X[:, :n_classes].argmax(axis=1).tolist()


def named(X: Array) -> list[dict[str, float]]:
    return [{f"f{j}": value for j, value in enumerate(row)} for row in X.tolist()]


def chances(model: Ensemble, X: Array) -> list[float]:
    """Probabilities that the scikit-learn classifier gives for the one row of X."""
    found: list[float] = estimators.around(model).predict_proba(X)[0].tolist()
    return found


def small(**given: Any) -> BayesianEnsembleClassifier:
    parameters: dict[str, Any] = {"members": "perceptron", "n_members": 9, "calibrated": False, "seed": 3}
    return BayesianEnsembleClassifier(**parameters | given)


@pytest.mark.parametrize(
    "model",
    [
        BayesianEnsembleClassifier(n_members=30),
        BayesianEnsembleClassifier("naive_bayes", n_members=20, weighter="gamma_rate", loss="logistic"),
        OzaBoostClassifier(n_members=20),
        OGBoostClassifier("naive_bayes", n_members=20),
        OSBoostClassifier(n_members=20),
    ],
    ids=lambda model: type(model).__name__,
)
def test_river_checks(model: Any) -> None:
    checks.check_estimator(model)


def test_one_row_at_a_time_is_the_model_itself() -> None:
    X, y = stream(300)
    model = Ensemble(scaled(adaptive(12)), drifting(), "wide_ramp").start(4, 2, rng=5)
    one = BayesianEnsembleClassifier(n_members=12, calibrated=False, seed=5)
    for t, x in enumerate(named(X)):
        if t:
            expected = chances(model, X[t : t + 1])
            assert list(one.predict_proba_one(x).values()) == expected
            assert one.predict_one(x) == bool(expected[1] >= expected[0])
        model.decide_then_learn(X[t : t + 1], y[t : t + 1], [1 + t % 3])
        one.learn_one(x, bool(y[t]), w=1 + t % 3)
    assert one.labels == [False, True]
    assert one.feature_names == ["f0", "f1", "f2", "f3"]


@pytest.mark.parametrize("model", [BayesianEnsembleClassifier(seed=1), *(make(seed=1) for make in BOOSTERS)])
def test_pipeline_and_progressive_validation(model: Any) -> None:
    two = river.evaluate.progressive_val_score(
        river.datasets.Phishing(), river.preprocessing.StandardScaler() | model.clone(), river.metrics.Accuracy()
    )
    assert two.get() > 0.83
    seven = river.evaluate.progressive_val_score(
        river.datasets.ImageSegments().take(700),
        river.preprocessing.StandardScaler() | model.clone(),
        river.metrics.Accuracy(),
    )
    assert seven.get() > 0.75


def test_river_models_as_members() -> None:
    members = [
        river.naive_bayes.GaussianNB(),
        river.tree.HoeffdingTreeClassifier(),
        river.linear_model.LogisticRegression(),
    ]
    X, y = stream(400)
    model = BayesianEnsembleClassifier(members=members, seed=0)
    right = 0
    for x, label in zip(named(X), y, strict=True):
        right += model.predict_one(x) == ("b" if label else "a")
        model.learn_one(x, "b" if label else "a")
    assert right > 340
    assert members[0].predict_proba_one({"f0": 1.0}) == {}  # copies learned, not these

    state = pickle.dumps(model)
    with pytest.raises(ValueError, match="Wrap it in river's OneVsRestClassifier"):
        model.learn_one(named(X)[0], "c")
    assert pickle.dumps(model) == state

    members[2] = river.multiclass.OneVsRestClassifier(river.linear_model.LogisticRegression())
    model = BayesianEnsembleClassifier(members=members, seed=0)
    X, y = stream(400, n_classes=3)
    for x, label in zip(named(X), y, strict=True):
        model.learn_one(x, label)
    assert np.mean([model.predict_one(x) == label for x, label in zip(named(X), y, strict=True)]) > 0.85


def test_absent_is_zero_and_nan_is_missing() -> None:
    X, y = stream(200)
    X[1::3, 1] = 0.0
    full, sparse = small(), small()
    for x, label in zip(named(X), y, strict=True):
        full.learn_one(x, label)
        sparse.learn_one({name: value for name, value in reversed(x.items()) if value or name == "f0"}, label)
    row = {"f3": 0.5, "f0": -1.0}
    assert full.predict_proba_one(row) == full.predict_proba_one({"f0": -1.0, "f1": 0.0, "f2": 0.0, "f3": 0.5})
    assert full.predict_proba_one(row) == full.predict_proba_one({**row, "unknown": 9.0})
    for x in named(X[:20]):
        assert full.predict_proba_one(x) == sparse.predict_proba_one(x)

    assert isinstance(full.model, Ensemble)
    gap = {**row, "f1": None, "f2": 1.0}
    X_gap = np.array([[-1.0, np.nan, 1.0, 0.5]])
    scores = full.model.bank.scores(X_gap)
    assert not np.array_equal(scores, full.model.bank.scores(np.nan_to_num(X_gap)))
    assert list(full.predict_proba_one(gap).values()) == chances(full.model, X_gap)
    assert full.predict_proba_one(gap) == full.predict_proba_one({**gap, "f1": float("nan")})


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("averaged", [False, True])
def test_widened_as_if_always_there(averaged: bool, n_classes: int) -> None:
    X, y = stream(300, d=20, n_classes=n_classes)
    X[:100, 7:] = 0.0

    def model(d: int) -> Ensemble:
        return Ensemble(PerceptronBank(5, max_features=None, averaged=averaged)).start(d, n_classes)

    narrow, wide = model(7), model(20)
    narrow.decide_then_learn(X[:100, :7], y[:100])
    narrow.widen(20, 0)
    wide.decide_then_learn(X[:100], y[:100])
    assert np.allclose(narrow.decide(X), wide.decide(X), rtol=1e-12)
    learned = narrow.decide_then_learn(X[100:], y[100:]), wide.decide_then_learn(X[100:], y[100:])
    assert np.allclose(*learned, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_naive_bayes_widened_as_if_always_there(n_classes: int) -> None:
    X, y = stream(300, d=20, n_classes=n_classes)
    X[:, 8] = X[:, 8] > 0
    X[:100, 7:] = 0.0
    banks = [NaiveBayesBank(5, max_features=None).start(d, n_classes) for d in (7, 20)]
    banks[0].scores_then_learn(X[:100, :7], y[:100])
    banks[1].scores_then_learn(X[:100], y[:100])
    banks[0].widen(20, 0)
    assert np.allclose(banks[0].scores(X), banks[1].scores(X), rtol=1e-12)
    learned = [bank.scores_then_learn(X[100:], y[100:]) for bank in banks]
    assert np.allclose(learned[0], learned[1], rtol=1e-12)

    boosters = [OzaBoost("naive_bayes", 5).start(d, n_classes) for d in (7, 20)]
    boosters[0].decide_then_learn(X[:100, :7], y[:100])
    boosters[1].decide_then_learn(X[:100], y[:100])
    boosters[0].widen(20, 0)
    assert boosters[0].state is not None
    assert boosters[1].state is not None
    for name in ("overall", "pair", "order", "n_continuous", "seen"):  # what does not hang on the members' weights
        assert np.array_equal(getattr(boosters[0].state, name), getattr(boosters[1].state, name), equal_nan=True)
    assert boosters[0].state.stats.shape == boosters[1].state.stats.shape


def test_widening_before_the_first_row() -> None:
    X, y = stream(100)
    makes: tuple[Callable[[], Model[Any]], ...] = (
        lambda: Ensemble(NaiveBayesBank(3, max_features=None)),
        lambda: OSBoost("naive_bayes", 3),
    )
    for make in makes:
        narrow, wide = make().start(2, rng=0), make().start(4, rng=0)
        narrow.widen(4, 0)
        assert np.array_equal(narrow.decide_then_learn(X, y), wide.decide_then_learn(X, y))


@pytest.mark.parametrize(
    "model",
    [
        Ensemble(PerceptronBank(9, max_features=0.5)),
        Ensemble(PerceptronBank(9, max_features=2, averaged=True)),
        Ensemble(FernBank(9)),
        Ensemble(Union([PerceptronBank(3), FernBank(3)]), JointGaussian()),
        OzaBoost(n_members=9),
        OGBoost(n_members=9, pool=2),
        OSBoost(n_members=9),
    ],
    ids=repr,
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_widening_forgets_nothing(model: Model[Any], n_classes: int) -> None:
    X, y = stream(200, n_classes=n_classes)
    model.start(4, n_classes, rng=1).decide_then_learn(X, y)
    before = model.decide(X)
    model.widen(9, 0)
    after = np.concatenate([X, np.zeros((200, 5))], axis=1)
    assert np.allclose(model.decide(after), before, rtol=1e-12, atol=1e-14)
    model.decide_then_learn(np.random.default_rng(2).normal(size=(200, 9)), y)


def test_widening_frozen_and_unknown_members() -> None:
    X, y = stream(50)
    frozen = Ensemble(pretrain(PerceptronBank(3).start(4, rng=0), X, y)).start(4)
    before = frozen.decide(X)
    frozen.widen(6, 0)
    assert np.array_equal(frozen.decide(np.pad(X, ((0, 0), (0, 2)))), before)

    with pytest.raises(ValueError, match="must be started"):
        Ensemble(PerceptronBank(3)).widen(6, 0)


@pytest.mark.parametrize(
    "model",
    [
        small(max_features=None),
        small(members="naive_bayes"),
        small(members="mixed", n_members=30),
        small(members=[river.naive_bayes.GaussianNB()]),
        *(make(n_members=9, seed=1) for make in BOOSTERS),
        OSBoostClassifier("naive_bayes", n_members=9, seed=1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_features_that_come_late_are_learned(model: Any) -> None:
    X, y = stream(1200)
    for t, x in enumerate(named(X)):
        if t < 400:
            del x["f0"], x["f1"]  # which the label depends on
        model.learn_one(x, y[t])
    fresh, truth = stream(500, seed=1)
    assert np.mean([model.predict_one(x) == label for x, label in zip(named(fresh), truth, strict=True)]) > 0.85
    assert model.feature_names == ["f2", "f3", "f0", "f1"]


def test_bags_of_words_grow() -> None:
    rng = np.random.default_rng(0)
    model = small(max_features=None, n_members=3)
    right: int = 0
    for t in range(1500):
        good = bool(rng.integers(2))
        words = [f"{'g' if good else 'b'}{rng.integers(10 + t // 20)}", *(f"n{rng.integers(200)}" for _ in range(3))]
        x = dict.fromkeys(words, 1)
        right += t >= 1000 and model.predict_one(x) == good
        model.learn_one(x, good)
    assert len(model.feature_names) > 300
    assert right > 400


def test_labels_that_come_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_river_base, "_REPLAY", 40)
    X, y = stream(200, n_classes=4)
    order = np.argsort(np.array(y) == 3, kind="stable")  # the last label comes last
    X, labels = X[order], [f"class {y[t]}" for t in order]
    late = labels.index("class 3")
    one, whole = small(), small()
    for t, (x, label) in enumerate(zip(named(X), labels, strict=True)):
        if t == late:
            before = one.model
        one.learn_one(x, label)
        assert set(one.predict_proba_one(x)) == set(labels[: t + 1])
    assert one.model is not before
    whole.learn_many(pandas.DataFrame(named(X)), pandas.Series(labels))
    assert one.labels == whole.labels
    frame = pandas.DataFrame(named(X))
    assert whole.predict_proba_many(frame).to_numpy().tolist() == [
        list(one.predict_proba_one(x).values()) for x in named(X)
    ]
    # What is left is a model of four classes that has learned the last 40 rows, then the rest.
    again = small(classes=one.labels)
    for x, label in zip(named(X)[late - 40 :], labels[late - 40 :], strict=True):
        again.learn_one(x, label)
    assert again.predict_proba_one(named(X)[0]) == one.predict_proba_one(named(X)[0])


def test_named_classes_are_never_started_anew() -> None:
    X, y = stream(60, n_classes=3)
    model = small(classes=("a", "b", "c"))
    assert model.predict_one(named(X)[0]) is None
    for t, x in enumerate(named(X)):
        model.learn_one(x, "abc"[y[t]])
        if t == 0:
            first = model.model
    assert model.model is first
    assert sum(model.predict_proba_one(named(X)[0]).values()) == pytest.approx(1.0)


def test_frames() -> None:
    X, y = stream(120)
    frame, labels = pandas.DataFrame(named(X)), pandas.Series(y)
    model = small()
    assert model.predict_many(frame).tolist() == [None] * 120
    assert model.predict_proba_many(frame).empty
    model.learn_many(frame.iloc[:0], labels.iloc[:0])
    assert model.model is None
    model.learn_many(frame[["f2", "f0", "f3", "f1"]], labels, w=2)
    one = small()
    for x, label in zip(named(X), y, strict=True):
        one.learn_one(x, label, w=2)
    table = model.predict_proba_many(frame.set_index(frame.index + 7))
    assert table.index[0] == 7
    assert table.to_numpy().tolist() == [list(one.predict_proba_one(x).values()) for x in named(X)]
    assert model.predict_many(frame).tolist() == [one.predict_one(x) for x in named(X)]


@pytest.mark.parametrize(
    ("x", "y", "error", "message"),
    [
        ({"f0": ["red"]}, 0, TypeError, "must hold real numbers and strings only"),
        ({"f0": np.inf}, 0, ValueError, "finite numbers"),
        ({"new": np.inf}, 0, ValueError, "finite numbers"),
        ({"new": 1.0}, None, ValueError, "must be a label"),
        ({"f0": 1.0}, float("nan"), ValueError, "must be a label"),
        ({"new": 1.0}, "other", ValueError, "must be one of classes"),
    ],
)
def test_bad_input_changes_nothing(x: dict[str, Any], y: Any, error: type[Exception], message: str) -> None:
    X, labels = stream(20)
    model = small(classes=(0, 1))
    for row, label in zip(named(X), labels, strict=True):
        model.learn_one(row, label)
    state, answer = pickle.dumps((model.model, model.labels, model.feature_names)), model.predict_proba_one(named(X)[0])
    with pytest.raises(error, match=message):
        model.learn_one(x, y)
    assert pickle.dumps((model.model, model.labels, model.feature_names)) == state
    assert model.predict_proba_one(named(X)[0]) == answer
    with pytest.raises(TypeError, match="must hold real numbers"):
        model.learn_many(pandas.DataFrame([{"f0": ["red"]}]), pandas.Series([0]))
    with pytest.raises(ValueError, match="one label per row"):
        model.learn_many(pandas.DataFrame([{"new": 1.0}]), pandas.Series([0, 1]))


def test_forgetting_is_refused_where_it_has_no_meaning() -> None:
    model = small(weighter="voting", forgetting=0.9)
    with pytest.raises(ValueError, match="forgetting must be 1 unless"):
        model.learn_one({"a": 1.0}, 0)
    faded = small(weighter="gamma_rate", forgetting=0.9)
    faded.learn_one({"a": 1.0}, 0)
    assert isinstance(faded.model, Ensemble)
    assert faded.model.weighter == GammaRate(forgetting=0.9)


def test_without_river_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['river'] = None; import bayesvote.integrations.river"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'bayesvote[river]'" in done.stderr.splitlines()[-1]


def test_calibrated_probabilities_are_those_of_the_estimator() -> None:
    X, y = stream(120)
    one = small(calibrated=True, classes=(0, 1))
    other = estimators.BayesianEnsembleClassifier("perceptron", 9, calibrated=True, horizon=0, random_state=3)
    other.partial_fit(X, y, classes=[0, 1])
    for x, label in zip(named(X), y, strict=True):
        one.learn_one(x, label)
    found = [list(one.predict_proba_one(x).values()) for x in named(X)]
    assert found == other.predict_proba(X).tolist()
    plain = small(classes=(0, 1))
    plain.learn_many(pandas.DataFrame(named(X)), pandas.Series(y))
    assert found != [list(plain.predict_proba_one(x).values()) for x in named(X)]


@pytest.mark.parametrize(("x", "y"), [({"late": 1.0}, 0), ({"f0": 1.0}, 2)], ids=["feature", "label"])
def test_loaded_models_take_a_new_feature_or_label_as_the_saved_ones(x: dict[str, float], y: int) -> None:
    X, labels = stream(30)
    one = small()
    one.learn_many(pandas.DataFrame(named(X)), pandas.Series(labels))
    again = loads(dumps(one))
    for model in (one, again):
        model.learn_one(x, y)  # members draw which new features they see; a new label comes after the rows kept
    assert dumps(again) == dumps(one)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("names", ["f0", "f0", "f1", "f2"], "duplicate names or labels"),
        ("names", list("abcdefghi"), "too many"),
        ("labels", [0, 0], "duplicate names or labels"),
        ("labels", [0, 1, 2], "3 labels for 2 classes"),
        ("labels", [], "0 labels for 2 classes"),
    ],
)
def test_names_and_labels_of_a_file_that_do_not_fit_are_refused(name: str, value: list[Any], words: str) -> None:
    X, y = stream(10)
    model = small()
    model.learn_many(pandas.DataFrame(named(X)), pandas.Series(y))
    with pytest.raises(ModelFileError, match=words):
        loads(described(dumps(model), lambda node: node["learned"]["facts"].update({name: value})))


def test_a_model_that_was_widened_and_met_a_new_label_is_saved() -> None:
    model = small()
    X, y = stream(30)
    for x, label in zip(named(X), y, strict=True):
        model.learn_one(x, label)
    model.learn_one({"late": 1.0}, 0)
    model.learn_one({"late": 1.0}, 2)
    again = loads(dumps(model))
    for one in (model, again):
        one.learn_one({"f0": 1.0, "later": 2.0}, 3)
    assert again.predict_proba_one({"f1": 1.0}) == model.predict_proba_one({"f1": 1.0})


def penguins(n: int = 300) -> tuple[list[dict[str, Any]], list[str]]:
    rng = np.random.default_rng(0)
    rows = [
        {"island": rng.choice(["Dream", "Biscoe", "Torgersen"]).item(), "mass": rng.normal(4000, 500)} for _ in range(n)
    ]
    return rows, ["Adelie" if (row["island"] == "Dream") == (row["mass"] > 4000) else "Gentoo" for row in rows]


def test_texts_are_names_of_the_value_one() -> None:
    rows, labels = penguins()
    texts, numbers = small(), small()
    right = 0
    for x, label in zip(rows, labels, strict=True):
        own = {f"island={x['island']}": 1.0, "mass": x["mass"]}
        if texts.labels:
            assert texts.predict_proba_one(x) == numbers.predict_proba_one(own)
            right += texts.predict_one(x) == label
        texts.learn_one(x, label)
        numbers.learn_one(own, label)
    assert right > 150
    table = pandas.DataFrame(rows)
    assert texts.predict_many(table).tolist() == [texts.predict_one(x) for x in rows]
    np.testing.assert_array_equal(
        texts.predict_proba_many(table).to_numpy(), [list(texts.predict_proba_one(x).values()) for x in rows]
    )
    many = small()
    many.learn_many(table, pandas.Series(labels))
    assert dumps(many) == dumps(texts)
    assert loads(dumps(texts)).predict_proba_one(rows[0]) == texts.predict_proba_one(rows[0])


def test_texts_are_kept_in_constant_memory_and_missing_ones_are_known() -> None:
    model = small(classes=(0, 1))
    for t in range(200):
        model.learn_one({"id": f"no. {t}", "size": float(t)}, t % 2)
    model.learn_one({"id": None, "size": 1.0}, 0)
    names = model.feature_names
    assert sum(str(name).startswith("id=") for name in names) == 65  # and one for what is missing
    assert sum(str(name).startswith("id#") for name in names) == 16
    assert "id=" in names


@pytest.mark.parametrize("name", ["BayesianEnsembleClassifier", "OzaBoostClassifier"])
def test_parameters_that_have_no_meaning_here_are_refused_with_what_to_do(name: str) -> None:
    kind = getattr(import_module("bayesvote.integrations.river"), name)
    with pytest.raises(TypeError, match=rf"{name}: got an unexpected .* 'random_state'\. Use seed= instead"):
        kind(random_state=0)
    with pytest.raises(TypeError, match=r"'shuffle'\. It has no effect on single rows"):
        kind(shuffle=False)
    for seed in (-1, "x"):
        with pytest.raises(ValueError, match=f"{name}: seed must be an integer of at least 0 or None, got {seed!r}"):
            kind(seed=seed)
    with pytest.raises(ValueError, match=f"{name}: columns must be None, as single rows"):
        kind(columns={"a": "category"})

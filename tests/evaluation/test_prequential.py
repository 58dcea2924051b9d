"""Prequential evaluation against plain loops, for models of every kind."""

import json
import pickle
from collections.abc import Callable
from copy import deepcopy
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import clone

from bayesvote import (
    BayesianEnsembleClassifier,
    Ensemble,
    FernBank,
    GammaRate,
    JointGaussian,
    NaiveBayesBank,
    OGBoost,
    OGBoostClassifier,
    OSBoost,
    OzaBoost,
    PerceptronBank,
    decided,
    losses,
    mixed,
    prequential,
)
from bayesvote.core.checks import Array, Labels
from bayesvote.core.rows import as_rows
from bayesvote.datasets import load_dataset, stream
from bayesvote.evaluation import Tally, memory, steps
from bayesvote.model import Model

N = 120
NAMES = np.array(["cat", "cow", "dog"])


def rows(n: int = N, n_classes: int = 2) -> tuple[Array, Labels]:
    X = np.random.default_rng(0).standard_normal((n, 4))
    return X, (X[:, 0] > X[:, 1]).astype(np.intp) + (n_classes == 3) * (X[:, 2] > 1)


def as_dict(x: Array) -> dict[int, float]:
    return dict(enumerate(x.tolist()))


def plain(predict: Callable[[int], Any], learn: Callable[[int], object], n: int = N, delay: int = 0) -> list[Any]:
    """Predict row t, then learn row t - delay, one by one."""
    out = []
    for t in range(n):
        out.append(predict(t))
        if t >= delay:
            learn(t - delay)
    return out


class Late:
    """A model taught by labels that come late, by its parts: weights learn the losses of the moment of prediction."""

    def __init__(self, model: Any, X: Any, y: Labels) -> None:
        self.model, self.X, self.y = model, X, y
        self.is_booster = not isinstance(model, Ensemble)
        self.state = model.state
        self.kept: dict[int, Array] = {}

    def decide(self, X: Any) -> Array:
        if self.is_booster:
            return np.asarray(self.model.decide(X))
        return np.asarray(self.model.weighter.losses(self.state, self.losses(X)))

    def losses(self, X: Any) -> Array:
        return losses.of_labels(self.model.loss, self.model.bank.scores(X))

    def predict(self, t: int) -> int:
        if not self.is_booster:
            self.kept[t] = self.losses(self.X[t : t + 1])
        return int(decided(self.decide(self.X[t : t + 1]))[0])

    def learn(self, t: int) -> None:
        row = slice(t, t + 1)
        if self.is_booster:
            self.model.decide_then_learn(self.X[row], self.y[row])
            return
        G = self.kept.pop(t)
        self.state = self.model.weighter.losses_then_update(self.state, G, self.y[row])[1]
        self.model.bank.scores_then_learn(self.X[row], self.y[row])


MODELS: dict[str, Callable[[int], Model[Any]]] = {
    "perceptrons": lambda k: Ensemble(PerceptronBank(5), GammaRate()).start(4, k, rng=1),
    "averaged, fading": lambda k: Ensemble(PerceptronBank(5, averaged=True), GammaRate(forgetting=0.9)).start(4, k, 1),
    "naive Bayes": lambda k: Ensemble(NaiveBayesBank(5), JointGaussian(forgetting=0.99)).start(4, k, rng=1),
    "ferns": lambda k: Ensemble(FernBank(5), GammaRate()).start(4, k, rng=1),
    "mixed": lambda k: Ensemble(mixed(9), JointGaussian()).start(4, k, rng=1),
    "OzaBoost": lambda k: OzaBoost(n_members=5).start(4, k, rng=1),
    "OGBoost": lambda k: OGBoost("naive_bayes", n_members=5).start(4, k, rng=1),
    "OSBoost": lambda k: OSBoost(n_members=5).start(4, k, rng=1),
}


@given(
    name=st.sampled_from(list(MODELS)),
    n_classes=st.integers(2, 3),
    sparse=st.booleans(),
    chunk_size=st.sampled_from([1, 7, 50, 1000]),
    delay=st.sampled_from([0, 1, 6, 50, 119, 120, 500]),
)
def test_ensembles_and_boosters(name: str, n_classes: int, sparse: bool, chunk_size: int, delay: int) -> None:
    dense, y = rows(n_classes=n_classes)
    dense[np.abs(dense) < 0.3] = 0
    X = csr_array(dense) if sparse else dense
    model = MODELS[name](n_classes)
    twin = Late(MODELS[name](n_classes), X, y)
    expected = plain(twin.predict, twin.learn, delay=delay)
    result = prequential(model, X, y, chunk_size, delay=delay, window=30)
    assert result.predictions.tolist() == expected
    assert result.mistakes.tolist() == (np.array(expected) != y).tolist()
    np.testing.assert_array_equal(model.decide(X), twin.decide(X))
    assert np.isnan(result.brier)


def foreign(name: str) -> Any:
    """Make a classifier of another library."""
    if name == "SGD":
        return import_module("sklearn.linear_model").SGDClassifier(loss="log_loss", random_state=0)
    if name == "GaussianNB":
        return import_module("sklearn.naive_bayes").GaussianNB()
    if name == "Perceptron":
        return import_module("sklearn.linear_model").Perceptron(random_state=0)
    pytest.importorskip("river")
    forest, linear, ensemble, scaling, bayes = (
        import_module(f"river.{part}")
        for part in ("forest", "linear_model", "ensemble", "preprocessing", "naive_bayes")
    )
    if name == "river's forest":
        return forest.ARFClassifier(n_models=3, seed=0)
    if name == "river's logistic":
        return scaling.StandardScaler() | linear.LogisticRegression()
    return ensemble.VotingClassifier([bayes.GaussianNB(), forest.AMFClassifier(n_estimators=2, seed=0)])


def figures(result: Any) -> list[float]:
    tally = result.tally
    return [tally.rows, result.error, result.kappa, result.balanced_accuracy, result.brier, tally.windowed_error]


def expected_figures(y: NDArray[Any], said: list[Any], chances: dict[int, Array], labels: list[Any]) -> list[float]:
    """The same by scikit-learn, from all the predictions; ``chances`` are those of rows that have them."""
    metrics: Any = import_module("sklearn.metrics")
    truth, answers = y.astype(str), np.array(said).astype(str)
    wrong = truth != answers
    recalls = [np.mean(answers[truth == label] == label) for label in np.unique(truth)]
    brier = metrics.brier_score_loss(y[[*chances]], [*chances.values()], labels=labels) if chances else np.nan
    kappa = metrics.cohen_kappa_score(truth, answers)
    return [len(y), wrong.mean(), kappa, float(np.mean(recalls)), brier, wrong[-25:].mean()]


@pytest.mark.parametrize("delay", [0, 9])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ["SGD", "GaussianNB", "Perceptron"])
def test_scikit_learn(name: str, n_classes: int, delay: int) -> None:
    X, indices = rows(n_classes=n_classes)
    y, labels = NAMES[indices], NAMES[:n_classes].tolist()
    model, twin = foreign(name), foreign(name)
    chances: dict[int, Array] = {}

    def predict(t: int) -> Any:
        if t <= delay:
            return None
        if hasattr(twin, "predict_proba"):
            found = twin.predict_proba(X[t : t + 1])[0]
            if np.isfinite(found).all():  # those of GaussianNB are not as long as a class has no rows
                chances[t] = found
        return twin.predict(X[t : t + 1])[0]

    with np.errstate(all="ignore"):
        expected = plain(predict, lambda t: twin.partial_fit(X[t : t + 1], y[t : t + 1], labels), delay=delay)
    result = prequential(model, X, y, chunk_size=32, delay=delay, window=25)
    assert result.predictions.tolist() == expected
    np.testing.assert_allclose(figures(result), expected_figures(y, expected, chances, labels), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), twin.predict(X))


@pytest.mark.parametrize("delay", [0, 9])
@pytest.mark.parametrize("name", ["river's forest", "river's logistic", "river's voting"])
def test_river(name: str, delay: int) -> None:
    n_classes = 2 if "logistic" in name else 3
    X, y = rows(n_classes=n_classes)
    model, twin = foreign(name), foreign(name)
    chances: list[list[float]] = []

    def predict(t: int) -> Any:
        try:
            found = twin.predict_proba_one(as_dict(X[t]))
        except NotImplementedError:
            found = {}
        if found:
            chances.append([found.get(k, 0.0) for k in range(n_classes)])
        return twin.predict_one(as_dict(X[t]))

    expected = plain(predict, lambda t: twin.learn_one(as_dict(X[t]), int(y[t])), delay=delay)
    result = prequential(model, X, y, chunk_size=32, delay=delay, window=25)
    assert result.predictions.tolist() == expected
    said = [None if label is None else int(label) for label in expected]
    mine = expected_figures(y, said, {}, [])
    np.testing.assert_allclose(np.delete(figures(result), 4), np.delete(mine, 4), rtol=1e-12)
    truth = np.eye(n_classes)[y[len(y) - len(chances) :]]
    scale = 0.5 if n_classes == 2 else 1.0
    brier = scale * np.mean(((np.array(chances) - truth) ** 2).sum(axis=1)) if chances else np.nan
    np.testing.assert_allclose(result.brier, brier, rtol=1e-12)
    assert (None in expected) == (result.tally.labels[-1] is None)


def test_river_gets_what_is_stored_and_not_missing() -> None:
    class Recorder:
        def __init__(self) -> None:
            self.learned: list[Any] = []

        def predict_one(self, x: dict[Any, Any]) -> Any:
            return None if len(x) < 2 else "a"

        def predict_proba_one(self, x: dict[Any, Any]) -> Any:
            raise NotImplementedError

        def learn_one(self, x: dict[Any, Any], y: Any) -> None:
            self.learned.append((x, y))

    X = np.array([[1.0, np.nan, 0.0], [0.0, 0.0, 2.0]])
    dense, sparse = Recorder(), Recorder()
    assert prequential(dense, X, ["a", "b"]).predictions.tolist() == ["a", "a"]
    assert dense.learned == [({0: 1.0, 2: 0.0}, "a"), ({0: 0.0, 1: 0.0, 2: 2.0}, "b")]
    result = prequential(sparse, csr_array(X), ["a", "b"])
    assert sparse.learned == [({0: 1.0}, "a"), ({2: 2.0}, "b")]
    assert result.predictions.tolist() == [None, None]
    assert result.error == 1
    assert result.tally.labels == ["a", "b", None]


@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("delay", [0, 9])
def test_classifiers_of_this_library(delay: int, calibrated: bool) -> None:
    X, indices = rows(n_classes=3)
    y = NAMES[indices]
    metrics: Any = import_module("sklearn.metrics")
    for configured in (
        BayesianEnsembleClassifier(n_members=10, calibrated=calibrated, random_state=0),
        BayesianEnsembleClassifier(
            "mixed", 10, weighter="joint_gaussian", forgetting=0.99, calibrated=calibrated, random_state=0
        ),
        OGBoostClassifier(n_members=5, calibrated=calibrated, random_state=0),
    ):
        # Row by row of a classifier that is ready but has learned nothing: a first row of weight 0 makes it so.
        twin = clone(configured).partial_fit(X[:1], y[:1], NAMES, [0.0])
        chances: list[Array] = []

        kept: dict[int, Any] = {}

        def predict(t: int, twin: Any = twin, chances: list[Array] = chances, kept: dict[int, Any] = kept) -> Any:
            chances.append(twin.predict_proba(X[t : t + 1])[0])
            kept[t] = twin.forecast(as_rows("test", X[t : t + 1]))[0]
            return twin.predict(X[t : t + 1])[0]

        def learn(t: int, twin: Any = twin, kept: dict[int, Any] = kept) -> None:
            late = kept.pop(t) if delay else None
            twin.advance(as_rows("test", X[t : t + 1]), indices[t : t + 1], np.ones(1), late)

        expected = plain(predict, learn, delay=delay)
        for chunk_size in (1, 50, 1000):
            model = clone(configured)
            result = prequential(model, X, y, chunk_size, delay=delay)
            assert result.predictions.tolist() == expected
            np.testing.assert_allclose(result.brier, metrics.brier_score_loss(y, np.array(chances)), rtol=1e-12)
            np.testing.assert_array_equal(model.predict_proba(X), twin.predict_proba(X))


@given(sizes=st.lists(st.integers(0, 40), min_size=1, max_size=8), delay=st.integers(0, 30), sparse=st.booleans())
def test_figures_do_not_depend_on_chunks(sizes: list[int], delay: int, sparse: bool) -> None:
    n = sum(sizes)
    X, y = rows(n, n_classes=3)
    edges = np.cumsum([0, *sizes])
    parts: list[Any] = [(csr_array(X[a:b]) if sparse else X[a:b], y[a:b]) for a, b in pairwise(edges)]

    def make() -> dict[str, Any]:
        forest = BayesianEnsembleClassifier(n_members=6, random_state=0)
        return {"ensemble": MODELS["naive Bayes"](3), "classifier": forest}

    whole = prequential(make(), csr_array(X) if sparse else X, y, classes=[0, 1, 2], delay=delay, window=11)
    stream = prequential(make(), parts, chunk_size=13, classes=[0, 1, 2], delay=delay, window=11)
    for name, mine in whole.items():
        other = stream[name]
        np.testing.assert_array_equal(mine.predictions, other.predictions)
        saved, again = mine.tally.to_json(), other.tally.to_json()
        assert saved | {"seconds": 0} == again | {"seconds": 0}


def test_several_models_do_not_disturb_each_other() -> None:
    X, y = rows()
    alone = {name: prequential(make(2), X, y) for name, make in MODELS.items()}
    together = prequential({name: make(2) for name, make in MODELS.items()}, X, y, chunk_size=11)
    assert list(together) == list(MODELS)
    for name, mine in alone.items():
        assert mine.predictions.tolist() == together[name].predictions.tolist()
        assert together[name].seconds > 0


def test_curves_and_windows() -> None:
    X, y = rows()
    result = prequential(MODELS["perceptrons"](2), X, y, window=30)
    wrong = result.mistakes
    assert result.curve == pytest.approx([np.mean(wrong[: t + 1]) for t in range(N)])
    for window in (1, 30, 500):
        expected = [np.mean(wrong[max(0, t + 1 - window) : t + 1]) for t in range(N)]
        assert result.windowed(window) == pytest.approx(expected)
    assert result.windowed().tolist() == result.windowed(30).tolist()
    assert result.tally.curve.error.tolist() == pytest.approx(result.curve.tolist())
    assert result.tally.curve.windowed.tolist() == pytest.approx(result.windowed().tolist())
    with pytest.raises(ValueError, match="window must be an integer of at least 1, got 0"):
        result.windowed(0)


def test_a_file_is_a_stream(tmp_path: Any) -> None:
    data = load_dataset("heart")
    table = np.column_stack([np.asarray(data.X), data.y])
    path = tmp_path / "heart.csv"
    np.savetxt(path, table, delimiter=",", fmt="%.17g", header=",".join(f"x{j}" for j in range(14)), comments="")
    found = prequential(OSBoost(n_members=5).start(13, rng=0), stream(path, chunk_size=50), delay=3)
    assert found.error == prequential(OSBoost(n_members=5).start(13, rng=0), data.X, data.y, delay=3).error
    chunks = stream(path)
    with pytest.raises(ValueError, match="classes must be given for BayesianEnsembleClassifier"):
        prequential(BayesianEnsembleClassifier(), chunks)
    chunks.close()
    assert prequential(BayesianEnsembleClassifier(random_state=0), stream(path), classes=[0, 1]).error < 0.25


def test_an_empty_stream() -> None:
    X, y = rows()
    model = MODELS["perceptrons"](2)
    for empty in (prequential(model, X[:0], y[:0], window=30), prequential(model, [], window=30)):
        assert empty.tally.window == 30
        assert empty.error == 0
        assert len(empty.curve) == len(empty.windowed()) == len(empty.predictions) == 0
        assert np.isnan([empty.kappa, empty.balanced_accuracy, empty.brier]).all()


@pytest.mark.parametrize("delay", [0, 7, 90])
@pytest.mark.parametrize("cut", [1, 40, 80])
def test_going_on_after_an_interruption(delay: int, cut: int) -> None:
    X, y = rows()
    whole = prequential({"a": MODELS["naive Bayes"](2), "b": MODELS["OSBoost"](2)}, X, y, delay=delay)
    models = {"a": MODELS["naive Bayes"](2), "b": MODELS["OSBoost"](2)}
    *_, before = steps(models, X[:cut], y[:cut], chunk_size=9, delay=delay)
    saved = json.loads(json.dumps({name: tally.to_json() for name, tally in before.tallies.items()}))
    tallies = {name: Tally.from_json(each) for name, each in saved.items()}
    first = max(0, cut - delay)
    *_, after = steps(
        models, X[first:], y[first:], chunk_size=5, delay=delay, tallies=tallies, forecasts=before.forecasts
    )
    for name, result in whole.items():
        assert after.tallies[name].to_json() | {"seconds": 0} == result.tally.to_json() | {"seconds": 0}
    with pytest.raises(ValueError, match=r"tallies must be those of \['a'\] after the same row, got {'b': 120}"):
        steps({"a": models["a"]}, X, y, tallies={"b": tallies["b"]})
    with pytest.raises(ValueError, match=r"after the same row, got {'a': 120, 'b': 0}"):
        steps({name: models[name] for name in "ab"}, X, y, tallies={"a": tallies["a"], "b": Tally()})


@pytest.mark.parametrize("chunk_size", [1, 40, 1000])
def test_going_on_without_forecasts(chunk_size: int) -> None:
    """Rows that wait without a forecast are learned as if they had been predicted when their labels come."""
    X, y = rows()
    model = MODELS["naive Bayes"](2)
    *_, before = steps({"a": model}, X[:50], y[:50], delay=20)
    twin = deepcopy(model)
    *_, after = steps({"a": model}, X[30:], y[30:], chunk_size=chunk_size, delay=20, tallies=before.tallies)
    late = Late(twin, X, y)
    for t in range(50, 120):
        late.predict(t)
        if t - 20 < 50:
            late.kept[t - 20] = late.losses(X[t - 20 : t - 19])
        late.learn(t - 20)
    np.testing.assert_allclose(model.decide(X), late.decide(X), rtol=1e-12)
    assert after.tallies["a"].rows == 120


def test_forecasts_that_do_not_fit_are_refused() -> None:
    X, y = rows()
    model = BayesianEnsembleClassifier(n_members=10, random_state=0)
    *_, before = steps({"a": model}, X[:50], y[:50], classes=[0, 1], delay=20)
    forecast = before.forecasts["a"]
    assert forecast is not None
    wrong = [
        forecast.part(0, 10),
        forecast._replace(losses=np.full_like(forecast.losses, np.nan)),
        forecast._replace(scores=forecast.scores[:, :1]),
        forecast._replace(log_likelihoods=np.abs(forecast.log_likelihoods) + 1),
    ]
    for bad in wrong:
        with pytest.raises(ValueError, match="forecasts must be those of the last step"):
            steps({"a": model}, X[30:], y[30:], delay=20, tallies=before.tallies, forecasts={"a": bad})


def test_a_step() -> None:
    X, y = rows()
    models = {"a": MODELS["perceptrons"](2), "b": MODELS["OSBoost"](2)}
    seen = 0
    for step in steps(models, X, y, chunk_size=50, delay=5):
        assert step.labels.tolist() == y[seen : seen + 50].tolist()
        seen += len(step.labels)
        for name in models:
            assert step.mistakes[name].tolist() == (step.predictions[name] != step.labels).tolist()
            assert step.tallies[name].rows == seen
    assert seen == N


def bad_label(y: NDArray[Any]) -> NDArray[Any]:
    out = y.copy()
    out[-1] = 7
    return out


@pytest.mark.parametrize(
    ("X", "y", "options", "message"),
    [
        (lambda X: X, lambda y: y[1:], {}, r"y must have one label per row, shape \(120,\), got \(119,\)"),
        (lambda X: X, lambda y: y[:, None], {}, r"y must have one label per row, shape \(120,\), got \(120, 1\)"),
        (lambda X: X, bad_label, {}, "y must hold (class indices 0 to 1|the classes .* only), got 7"),
        (lambda X: X, lambda y: NAMES[y], {}, "y must hold (class indices 0 to 1|the classes .* only), got"),
        (lambda X: X, lambda y: np.where(np.arange(N) < 100, y, np.nan), {}, "a label for every row, got nan"),
        (lambda X: X, lambda y: np.array([*y[1:], None]), {}, "a label for every row, got None"),
        (lambda X: X, lambda _: None, {}, "y must be given with the rows of an array or a table, got None"),
        (lambda X: X[:, 1:], lambda y: y, {}, "X must have 4 features, as .*, got 3"),
        (lambda X: np.where(np.arange(N)[:, None] < 100, X, np.inf), lambda y: y, {}, "X must hold finite numbers"),
        (lambda X: X, lambda y: y, {"chunk_size": 0}, "chunk_size must be an integer of at least 1, got 0"),
        (lambda X: X, lambda y: y, {"delay": -1}, "delay must be an integer of at least 0, got -1"),
        (lambda X: X, lambda y: y, {"window": 0}, "window must be an integer of at least 1, got 0"),
    ],
)
def test_refusals_come_before_anything_is_learned(X: Any, y: Any, options: dict[str, Any], message: str) -> None:
    rows_, labels = rows()
    model = MODELS["perceptrons"](2)
    classifier = BayesianEnsembleClassifier(n_members=4, random_state=0).fit(rows_, labels)
    before = [model.decide(rows_), classifier.predict_proba(rows_)]
    pair: list[dict[str, Any]] = [
        {"classifier": classifier, "model": model},
        {"model": model, "classifier": classifier},
    ]
    for models in pair:
        with pytest.raises(ValueError, match=message):
            prequential(models, X(rows_), y(labels), **{"chunk_size": 10} | options)
    for mine, old in zip([model.decide(rows_), classifier.predict_proba(rows_)], before, strict=True):
        np.testing.assert_array_equal(mine, old)


def test_rows_that_one_model_cannot_take_are_learned_by_none() -> None:
    X, y = rows()
    model, wide = MODELS["perceptrons"](2), Ensemble(PerceptronBank(5), GammaRate()).start(5, rng=1)
    before = model.decide(X)
    with pytest.raises(ValueError, match=r"X must have 5 features.*, got 4"):
        prequential({"model": model, "wide": wide}, X, y)
    np.testing.assert_array_equal(model.decide(X), before)


def test_refusals_of_models_and_streams() -> None:
    X, y = rows()
    model = MODELS["perceptrons"](2)
    with pytest.raises(TypeError, match="must learn row by row, got LogisticRegression without partial_fit"):
        prequential(import_module("sklearn.linear_model").LogisticRegression(), X, y)
    with pytest.raises(ValueError, match="must be started before use"):
        prequential(Ensemble(PerceptronBank(3)), X, y)
    with pytest.raises(ValueError, match=r"models must be at least one, and different objects, got \['a', 'b'\]"):
        prequential({"a": model, "b": model}, X, y)
    with pytest.raises(ValueError, match="models must be at least one"):
        prequential({}, X, y)
    with pytest.raises(ValueError, match=r"y must hold the classes \['cat', 'cow'\] only, got 'dog'"):
        prequential(foreign("SGD"), X, NAMES[rows(n_classes=3)[1]], classes=["cat", "cow"])
    stray: Any = [(X, y), (X[:, 1:], y)]
    with pytest.raises(ValueError, match="X must have 4 features, as in the first chunk, got 3"):
        prequential(foreign("SGD"), stray, classes=[0, 1])
    strange: Any = [X, y]
    with pytest.raises(TypeError, match=r"a stream must give pairs \(X, y\), or chunks .*, got ndarray"):
        prequential(model, strange)


def test_memory() -> None:
    small, large = (Ensemble(PerceptronBank(m, max_features=None)).start(100, rng=0) for m in (10, 1010))
    assert memory(large) - memory(small) >= 8 * 100 * 1000
    view = np.zeros(10_000)[:5]
    assert memory(view) >= 80_000
    assert memory([view, view]) < 2 * memory(view)
    words = np.array(["a" * 1000, "b" * 1000], dtype=object)
    assert memory(words) > 2000
    X, y = rows()
    assert prequential(large, np.tile(X, 25), y).memory == memory(large)


def test_memory_does_not_depend_on_the_chunks() -> None:
    X, y = rows()
    found = []
    for chunk_size in (65_536, 50, 1):
        model = Ensemble(PerceptronBank(500, max_features=None)).start(X.shape[1], rng=0)
        found.append(prequential(model, X, y, chunk_size).memory)
        assert found[-1] == pytest.approx(memory(deepcopy(model)), rel=0.01)
    assert max(found) < 1.01 * min(found)


@pytest.mark.parametrize("delay", [0, 7])
def test_steps_tell_the_probability_of_the_likeliest_label(delay: int) -> None:
    X, y = np.random.default_rng(3).standard_normal((60, 3)), np.arange(60) % 2
    models = {
        "ours": BayesianEnsembleClassifier(members="naive_bayes", n_members=5, random_state=0),
        "scikit": import_module("sklearn.naive_bayes").GaussianNB(),
        "river": import_module("river.naive_bayes").GaussianNB(),
        "bare": OSBoost(n_members=3).start(3, rng=0),
    }
    found = list(steps(models, X, y, chunk_size=25, delay=delay))
    said = {name: np.concatenate([step.probabilities[name] for step in found]) for name in models}
    plain = BayesianEnsembleClassifier(members="naive_bayes", n_members=5, random_state=0)
    kept: dict[int, Any] = {}
    plain.start(3, np.array([0, 1]))
    foreign, dicts = import_module("sklearn.naive_bayes").GaussianNB(), import_module("river.naive_bayes").GaussianNB()
    with np.errstate(all="ignore"):  # scikit-learn's first rows have no variance
        for t in range(60):
            kept[t] = plain.forecast(as_rows("test", X[t : t + 1]))[0]
            if t > delay:
                x = X[t : t + 1]
                assert said["ours"][t] == plain.predict_proba(x).max()
                assert np.array_equal(said["scikit"][t], foreign.predict_proba(x).max(), equal_nan=True)
                assert said["river"][t] == max(dicts.predict_proba_one(dict(enumerate(X[t].tolist()))).values())
            if t >= delay:
                row = slice(t - delay, t - delay + 1)
                plain.advance(as_rows("test", X[row]), y[row], np.ones(1), kept[t - delay] if delay else None)
                foreign.partial_fit(X[row], y[row], classes=[0, 1])
                dicts.learn_one(dict(enumerate(X[t - delay].tolist())), int(y[t - delay]))
    assert np.isnan(said["scikit"][: delay + 1]).all()
    assert np.isnan(said["bare"]).all()


def test_results_are_shown_in_one_line() -> None:
    X, y = rows()
    result = prequential(OzaBoost(n_members=3).start(4, rng=0), X, y)
    shown = repr(result)
    assert shown.startswith(f"Prequential(rows=120, error={result.error:.4g}, majority_error=")
    assert "nan" not in shown  # no probabilities, no Brier score
    assert "array" not in shown
    assert repr(result.tally) == shown.replace("Prequential", "Tally")
    assert repr(Tally()) == "Tally(rows=0, error=0)"
    again = pickle.loads(pickle.dumps(result))
    assert repr(again) == shown
    np.testing.assert_array_equal(again.predictions, result.predictions)
    (step,) = steps({"ours": OzaBoost(n_members=3).start(4, rng=0)}, X, y)
    assert repr(step) == f"Step(rows=120, tallies={{'ours': {result.tally!r}}})"

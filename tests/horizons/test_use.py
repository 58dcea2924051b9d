"""The ways in which classifiers are used: fit then predict, labels that come late, chunks, and wrong labels."""

from collections.abc import Iterator
from copy import deepcopy
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from bayesvote import BayesianEnsembleClassifier, OzaBoostClassifier, prequential
from bayesvote.core.checks import Array, Labels
from bayesvote.core.horizon import AUTO, Period
from bayesvote.core.rows import as_rows
from bayesvote.estimators._calibration import Calibration, trust_in
from bayesvote.io.model_file import ModelFileError, dumps, loads, pack, unpack
from bayesvote.model import decided
from horizons.alike import alike
from model_files.samples import places


def default(**options: Any) -> BayesianEnsembleClassifier:
    return BayesianEnsembleClassifier(random_state=0, **options)


def one_label_at_the_end(n: int = 3000) -> tuple[Array, Labels]:
    """Rows of which the last hundred have one label, as unshuffled stratified folds leave them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 6))
    y = (X[:, 0] + 0.5 * X[:, 1] + rng.standard_normal(n) > 1.2).astype(np.intp)
    order = np.concatenate((np.flatnonzero(y[:-150] >= 0), n - 150 + np.argsort(y[-150:], kind="stable")))
    return X[order], y[order]


def test_folds_that_are_not_shuffled() -> None:
    X, y = one_label_at_the_end()
    cross_val_score: Any = import_module("sklearn.model_selection").cross_val_score
    for folds in (3, 5):
        ours, other = (cross_val_score(model, X, y, cv=folds) for model in (default(), LogisticRegression()))
        assert np.min(ours - other) > -0.03


def test_fit_on_the_past_and_predict_the_future() -> None:
    X, y = alike(8000, seed=3)
    cuts = range(3000, 8000, 1000)
    errors = [np.mean(default().fit(X[:n], y[:n]).predict(X[n : n + 1000]) != y[n : n + 1000]) for n in cuts]
    constant = [np.mean(y[n : n + 1000]) for n in cuts]  # label 0 is the commonest
    in_order = [
        np.mean(default(shuffle=False, horizon=0).fit(X[:n], y[:n]).predict(X[n : n + 1000]) != y[n : n + 1000])
        for n in cuts
    ]
    assert np.mean(errors) <= np.mean(constant) + 0.01
    assert np.mean(errors) < np.mean(in_order)


@pytest.mark.parametrize("delay", [50, 500])
def test_labels_that_come_late(delay: int) -> None:
    X, y = alike(8000)
    found = prequential(default(), X, y, classes=[0, 1], delay=delay).mistakes[delay:]
    assert found.mean() <= y[delay:].mean() + 0.01
    # As in version 0.1: by the scores of the moment at which the label comes.
    order = np.stack((np.arange(8000), np.arange(8000) - delay), axis=1).reshape(-1)
    asked, order = np.tile([True, False], 8000)[order >= 0], order[order >= 0]
    model = default().start(5, np.array([0, 1]))
    losses, _ = model.advance(as_rows("test", X[order]), y[order], np.where(asked, 0.0, 1.0))
    before = (decided(losses[asked]) != y)[delay:]
    assert found.mean() < before.mean() - 0.01


def test_chunks_that_are_predicted_before_they_are_learned() -> None:
    X, y = alike(12_000, seed=1)

    def error(model: BayesianEnsembleClassifier, size: int = 500) -> float:
        model.partial_fit(X[:size], y[:size], classes=[0, 1])
        wrong = 0
        for first in range(size, len(y), size):
            wrong += int(np.sum(model.predict(X[first : first + size]) != y[first : first + size]))
            model.partial_fit(X[first : first + size], y[first : first + size])
        return wrong / (len(y) - size)

    assert error(default()) < error(default(horizon=0)) - 0.01


def test_a_burst_of_wrong_labels() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((23_000, 10))
    signal = X[:, 0] + 0.7 * X[:, 1] * X[:, 2] + 0.5 * np.sin(2 * X[:, 3])
    y = (signal + 0.35 * rng.standard_normal(len(X)) > 0).astype(np.intp)
    rows, clean = slice(20_000), slice(20_000, 22_000)
    errors = {}
    for burst in (0, 20):
        model = default(horizon=0, weighter=f"drifting(burst={burst})").partial_fit(X[rows], y[rows], classes=[0, 1])
        before = np.mean(model.predict(X[clean]) != y[clean])
        model.partial_fit(X[22_000:22_010], 1 - y[22_000:22_010])
        errors[burst] = np.mean(model.predict(X[clean]) != y[clean]) - before
    assert errors[20] <= 0.01
    assert errors[0] > 0.03  # as in version 0.1


def cut(X: Array, sizes: list[int]) -> Iterator[slice]:
    edges = [0, *np.cumsum(sizes).tolist(), len(X)]
    yield from (slice(first, last) for first, last in pairwise(edges))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_chunks_and_files_change_nothing(n_classes: int) -> None:
    X, y = alike(1300)
    y = y + (n_classes == 3) * (X[:, 2] > 1)
    w = np.where(np.arange(1300) % 7 == 3, 0.0, 1.0)
    classes = list(range(n_classes))
    whole = default(calibrated=True).partial_fit(X, y, classes, w)
    for sizes in ([1, 7, 1, 3, 88, 400, 301, 1], [409, 60, 1, 2], [1299]):
        model = default(calibrated=True)
        for part in cut(X, sizes):
            model = loads(dumps(model.partial_fit(X[part], y[part], classes, w[part])))
        np.testing.assert_array_equal(model.predict_proba(X), whole.predict_proba(X))
        assert dumps(model) == dumps(loads(dumps(whole)))


def test_a_copy_made_in_a_gap_continues_alike() -> None:
    X, y = alike(1000)
    model = default().partial_fit(X[:850], y[:850], classes=[0, 1])
    assert model.model_._gap is not None
    assert model.model_._gap.waiting is not None
    assert model.model_.about()["rows_learned"] == 850
    copy = deepcopy(model)
    for one in (model, copy):
        one.partial_fit(X[850:], y[850:])
    np.testing.assert_array_equal(model.predict_proba(X), copy.predict_proba(X))


def test_wider_rows_in_a_gap() -> None:
    table: dict[str, Any] = {"text": [f"t{k % 9}" for k in range(400)], "number": np.arange(400) % 17}
    y = np.arange(400) % 2
    whole, parts = default().partial_fit(table, y, classes=[0, 1]), default()
    for first, last in ((0, 9), (9, 130), (130, 131), (131, 400)):
        chunk: dict[str, Any] = {name: values[first:last] for name, values in table.items()}
        parts.partial_fit(chunk, y[first:last], classes=[0, 1])
    np.testing.assert_array_equal(parts.predict_proba(table), whole.predict_proba(table))


def test_rows_that_wait_are_learned_before_others_at_once() -> None:
    X, y = alike(1000)
    model = default().partial_fit(X[:850], y[:850], classes=[0, 1])
    model.predict_proba_then_learn(X[850:851], y[850:851])
    assert model.model_._gap is None
    assert model.model_.about()["rows_learned"] == 851


def test_horizons_of_other_weighters() -> None:
    assert default().partial_fit(*alike(30), classes=[0, 1]).horizon_ == AUTO
    gamma = BayesianEnsembleClassifier("perceptron", 5, weighter="gamma_rate", random_state=0)
    assert gamma.partial_fit(*alike(30), classes=[0, 1]).horizon_ == 0
    X, y = alike(2000)
    held = BayesianEnsembleClassifier("perceptron", 5, weighter="gamma_rate", horizon=50, random_state=0)
    held.partial_fit(X, y, classes=[0, 1])
    before, judged = 0, 0
    while (period := Period.after(before, 50)).n_rows <= 2000 - before:
        before, judged = before + period.n_rows, judged + period.n_held - period.n_held // 2
    assert held.effective_samples_[0] == judged > 100  # weights learn from the second half of the gaps


def test_periods() -> None:
    """Shorter at the start; a fifth of the rows waits."""
    rows = 0
    for _ in range(60):
        period = Period.after(rows, 100)
        assert 2 <= period.n_held <= max(2, period.n_rows // 5)
        assert period.n_rows <= max(10, rows // 4)
        rows += period.n_rows
    assert Period.after(rows, 100) == (500, 100)


@pytest.mark.parametrize("horizon", [-1, 0.5, "soon", True, None, 2**62])
def test_a_bad_horizon(horizon: Any) -> None:
    X, y = alike(30)
    with pytest.raises(ValueError, match="horizon must be 'auto' or an integer from 0 to"):
        default(horizon=horizon).partial_fit(X, y, classes=[0, 1])
    model = default().partial_fit(X, y, classes=[0, 1])
    before = dumps(model)
    with pytest.raises(ValueError, match="horizon must be 'auto' or an integer from 0 to"):
        model.set_params(horizon=horizon).partial_fit(X, y)
    assert dumps(model.set_params(horizon="auto")) == before


def test_calibration_after_rows_without_weight() -> None:
    X, y = alike(4000)
    model = default(calibrated=True).partial_fit(X[:10], y[:10], classes=[0, 1], sample_weight=np.zeros(10))
    plain = default(calibrated=True)
    for each in (model, plain):
        each.predict_proba_then_learn(X, y, classes=[0, 1])
    for one, other in zip(model.calibration_, plain.calibration_, strict=True):
        np.testing.assert_array_equal(one, other)


def test_calibration_learns_from_the_rows_of_the_gaps_only() -> None:
    """Their predictions are as far from the last label as those that the probabilities are about."""
    X, y = alike(300)
    held = list[bool]()
    while len(held) < len(y):
        period = Period.after(len(held), 20)
        held += [False] * period.n_learned + [True] * period.n_held
    model = BayesianEnsembleClassifier("naive_bayes", 5, calibrated=True, horizon=20, random_state=0)
    model.start(X.shape[1], np.array([0, 1]))
    expected = Calibration.start()
    for t in range(len(y)):
        row, label = X[t : t + 1], y[t : t + 1]
        if held[t]:
            losses = model.model_.losses(as_rows("test", row))
            trust = trust_in(model.model_.loss_scale)
            expected.learn(model.model_.shares(losses), losses, label, np.ones(1), 1.0, trust)
        model.partial_fit(row, label)
    for one, other in zip(model.calibration_, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert expected.mean[0] != 1


def test_explanations_and_certainty_are_about_the_answer() -> None:
    X, y = alike(6000)
    model = default()
    prequential(model, X, y, classes=[0, 1], delay=500)
    answers = model.predict(X)
    assert np.any(answers != decided(model.model_.forecast(as_rows("test", X))[0].losses))  # the threshold counts
    changed = np.flatnonzero(answers != decided(model.model_.forecast(as_rows("test", X))[0].losses))[:5]
    table = model.explain(X[changed], top=1)
    assert set(table["label"]) == set(answers[changed])
    assert model.decision_certainty(X[changed]).max() < 0.6


def test_shuffling_is_settled_by_the_seed() -> None:
    X, y = alike(500)
    models = [default().fit(X, y) for _ in range(2)]
    np.testing.assert_array_equal(models[0].predict_proba(X), models[1].predict_proba(X))
    other = BayesianEnsembleClassifier(random_state=1).fit(X, y)
    assert not np.array_equal(models[0].predict_proba(X), other.predict_proba(X))
    weights = np.arange(500) % 3
    boosted = OzaBoostClassifier(n_members=5, random_state=0, shuffle=False).fit(X, y, weights)
    in_order = OzaBoostClassifier(n_members=5, random_state=0).partial_fit(X, y, [0, 1], weights)
    np.testing.assert_array_equal(boosted.predict_proba(X), in_order.predict_proba(X))


def forged(model: Any, **changed: NDArray[Any]) -> bytes:
    _, about, arrays = unpack(dumps(model))
    names = {name.rpartition(".")[2]: name for name in arrays}
    return pack(about, {**arrays, **{names[name]: array for name, array in changed.items()}})


def test_forged_rows_that_wait_are_refused() -> None:
    X, y = alike(1000)
    model = default().partial_fit(X[:850], y[:850], classes=[0, 1])
    n = len(model.model_._gap.waiting.y)  # type: ignore[union-attr]
    arrays = {name.rpartition(".")[2]: array for name, array in unpack(dumps(model))[2].items()}
    loads(forged(model))
    wrong: list[dict[str, NDArray[Any]]] = [
        {"waiting_y": np.full(n, 2, dtype=np.int64)},
        {"waiting_w": np.full(n, -1.0)},
        {"waiting_columns": arrays["waiting_columns"] + np.int32(5)},
        {"waiting_starts": arrays["waiting_starts"][::-1].copy()},
        {"waiting_scores": np.full_like(arrays["waiting_scores"], np.inf)},
        {"waiting_losses": np.full_like(arrays["waiting_losses"], np.nan)},
        {"waiting_decisions": np.full_like(arrays["waiting_decisions"], 7.0)},
        {"waiting_log_likelihoods": arrays["waiting_log_likelihoods"][:, 1:].copy()},
        {"waiting_log_likelihoods": np.full_like(arrays["waiting_log_likelihoods"], 1e308)},
        {"threshold_mistakes": np.full_like(arrays["threshold_mistakes"], -1.0)},
        {"horizon": np.array([-1])},
        {"past": arrays["past"] + 1e6},
    ]
    for changed in wrong:
        with pytest.raises(ModelFileError):
            loads(forged(model, **changed))


def test_a_gap_that_is_already_over_is_refused() -> None:
    """Rows that wait are learned with the last row of the period, so that a file never has all of them."""
    X, y = alike(1000)
    model, n = default().partial_fit(X[:800], y[:800], classes=[0, 1]), 800
    while (gap := model.model_._gap) is None or gap.seen < gap.period.n_rows - 1:
        model.partial_fit(X[n : n + 1], y[n : n + 1])
        n += 1
    _, about, arrays = unpack(dumps(model))
    loads(pack(about, arrays))
    for name in [name for name in arrays if ".waiting_" in name]:
        last = arrays[name][-X.shape[1] :] if name.endswith(("values", "columns")) else arrays[name][-1:]
        arrays[name] = np.concatenate((arrays[name], last + X.shape[1] * name.endswith("starts")))
    (facts,) = (node for node, key in places(about) if key == "gap")
    facts["gap"] = [gap.horizon, gap.before, gap.period.n_rows]
    with pytest.raises(ModelFileError, match="seen must be less than the rows of the period"):
        loads(pack(about, arrays))

"""Probabilities from losses, and their calibration."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from bayesvote.core.checks import Array, Labels
from bayesvote.core.rows import as_rows
from bayesvote.datasets import load_dataset
from bayesvote.datasets.loading import scale
from bayesvote.ensemble import Ensemble
from bayesvote.estimators import BayesianEnsembleClassifier, OGBoostClassifier
from bayesvote.estimators._calibration import Calibration, Trust, trust_in
from bayesvote.losses import LossScale
from bayesvote.members import PerceptronBank, Scaled, pretrain
from bayesvote.model import (
    agreeing,
    decided,
    from_log_losses,
    from_log_odds,
    from_log_probabilities,
    from_losses,
    from_margins,
)
from bayesvote.weighting import JointGaussian

HALF, REST = slice(50, 150), slice(150, None)  # of the rows of heart


@given(
    seed=st.integers(0, 2**32 - 1),
    n_classes=st.integers(2, 5),
    scale_by=st.sampled_from([1e-12, 1.0, 1e6]),
    whole=st.booleans(),
)
def test_probabilities_agree_with_the_decision(seed: int, n_classes: int, scale_by: float, whole: bool) -> None:
    rng = np.random.default_rng(seed)
    drawn = rng.integers(-2, 3, (50, n_classes)) if whole else rng.normal(size=(50, n_classes))
    losses = scale_by * drawn.astype(np.float64)
    calibration = Calibration(rng.random(2) * 3, np.zeros((2, 2)))
    plains = [way(losses) for way in (from_losses, from_log_probabilities, from_log_odds, from_margins)]
    for plain in (*plains, from_log_losses(losses, 10)):
        for chances in (plain.copy(), calibration.calibrated(plain, losses)):
            found = agreeing(chances, losses)
            assert found.min() > 0
            np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-14)
            np.testing.assert_array_equal(found.argmax(axis=1), decided(losses))


def test_log_losses_give_the_geometric_mean_of_the_members() -> None:
    chances = np.random.default_rng(0).dirichlet(np.ones(3), size=(20, 7))  # by row, member and label
    means = np.exp(np.log(chances).mean(axis=1))
    found = from_log_losses(-np.log(chances).sum(axis=1), n_members=7)
    np.testing.assert_allclose(found, means / means.sum(axis=1, keepdims=True), rtol=1e-6)


def sure_of_itself(n: int, n_classes: int, rng: np.random.Generator) -> tuple[Array, Array, Labels]:
    """Give probabilities, losses and labels of a model whose log-odds are twice too large."""
    truth = rng.dirichlet(np.full(n_classes, 2.0), size=n)
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    given_out = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    return given_out, -truth, y


@pytest.mark.parametrize("n_classes", [2, 4])
def test_calibration_finds_the_true_slope_and_the_likeliest_one(n_classes: int) -> None:
    given_out, losses, y = sure_of_itself(20_000, n_classes, np.random.default_rng(0))
    calibration = Calibration.start()
    calibration.learn(given_out, losses, y, np.ones(len(y)), 1.0)

    def misfit(mean: Array) -> float:
        found = Calibration(mean, calibration.information).calibrated(given_out, losses)
        return float(-np.log(found[np.arange(len(y)), y]).sum() + 0.5 * ((mean - [1, 0]) ** 2).sum())

    best = minimize(misfit, [1.0, 0.0], bounds=[(0, None), (0, None)])
    np.testing.assert_allclose(calibration.mean, best.x, atol=0.05)
    assert calibration.mean[0] == pytest.approx(0.5, abs=0.05)


def test_calibration_of_weighted_and_of_parted_rows() -> None:
    given_out, losses, y = sure_of_itself(500, 3, np.random.default_rng(0))
    w = np.random.default_rng(1).integers(0, 2, 500).astype(np.float64)
    whole, parts, kept = Calibration.start(), Calibration.start(), Calibration.start()
    whole.learn(given_out, losses, y, w, 0.99)
    for part in (slice(0, 1), slice(1, 300), slice(300, 500)):
        parts.learn(given_out[part], losses[part], y[part], w[part], 0.99)
    kept.learn(given_out[w > 0], losses[w > 0], y[w > 0], np.ones(int(w.sum())), 0.99)
    for other in (parts, kept):
        np.testing.assert_array_equal(whole.mean, other.mean)
        np.testing.assert_array_equal(whole.information, other.information)


@pytest.mark.parametrize(("scale_of", "trust"), [("MARGIN", Trust(1.0, 0.02)), ("LOG_PROBABILITY", Trust(100.0, 1e-6))])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_calibration_is_a_newton_step_per_row(n_classes: int, scale_of: str, trust: Trust) -> None:
    given_out, losses, y = sure_of_itself(300, n_classes, np.random.default_rng(0))
    w, forgetting = np.random.default_rng(1).gamma(1.0, 2.0, 300), 0.98
    calibration = Calibration.start()
    before = calibration.learn(given_out, losses, y, w, forgetting, trust_in(LossScale[scale_of]))

    mean, information = np.array([1.0, 0.0]), np.zeros((2, 2))
    for t in range(300):
        np.testing.assert_allclose(before[t], mean, rtol=1e-9, atol=1e-12)
        decision = np.arange(n_classes) == losses[t].argmin()
        # What a and b multiply, a row per label; softmax(features @ (a, b)) are the probabilities.
        features = np.stack((np.log(np.maximum(given_out[t], trust.floor / n_classes)), decision), axis=1)
        p = np.exp(features @ mean) / np.exp(features @ mean).sum()
        off = features - p @ features
        information = forgetting * information + w[t] * (off.T * p) @ off
        mean = np.maximum(mean + np.linalg.solve(information + trust.precision * np.eye(2), w[t] * off[y[t]]), 0.0)
    np.testing.assert_allclose(calibration.mean, mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.triu(calibration.information), np.triu(information), rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_tied_rows_teach_the_calibration_nothing_and_stay_as_they_are(n_classes: int) -> None:
    """A tie has no decision that could be more or less probable than it seems."""
    given_out, losses, y = sure_of_itself(300, n_classes, np.random.default_rng(0))
    tie = np.arange(300) % 4 == 1
    given_out[tie] = np.where(np.arange(n_classes) < 2, 0.4, 0.2)[None]
    given_out /= given_out.sum(axis=1, keepdims=True)
    losses = -given_out
    whole, others = Calibration.start(), Calibration.start()
    whole.learn(given_out, losses, y, np.ones(300), 0.99)
    others.learn(given_out[~tie], losses[~tie], y[~tie], np.ones(int(np.sum(~tie))), 0.99)
    for one, other in zip(whole, others, strict=True):
        np.testing.assert_array_equal(one, other)
    a, b = 0.7, 1.5
    found = Calibration(np.array([a, b]), np.zeros((2, 2))).calibrated(given_out, losses)
    decision = np.eye(n_classes)[losses.argmin(axis=1)] * ~tie[:, None]
    expected = np.maximum(given_out, 0.02 / n_classes) ** a * np.exp(b * decision)
    np.testing.assert_allclose(found, expected / expected.sum(axis=1, keepdims=True), rtol=1e-12)


def test_fitting_again_forgets_the_calibration() -> None:
    data = load_dataset("heart")
    X = np.asarray(scale(data.X))
    model = BayesianEnsembleClassifier("perceptron", 9, calibrated=True, random_state=3).fit(X, data.y)
    once = model.calibration_.mean.copy()
    assert not np.array_equal(once, Calibration.start().mean)
    np.testing.assert_array_equal(model.fit(X, data.y).calibration_.mean, once)


def test_merged_classifiers_merge_their_calibrations() -> None:
    data = load_dataset("heart")
    X, y = np.asarray(scale(data.X)), data.y
    bank = pretrain(PerceptronBank(9).start(13, rng=0), X[:50], y[:50])
    first, second = (
        BayesianEnsembleClassifier(bank, weighter="joint_gaussian", calibrated=True).fit(X[at], y[at])
        for at in (HALF, REST)
    )
    expected = first.calibration_.merged(second.calibration_)
    assert not np.array_equal(expected.mean, first.calibration_.mean)
    np.testing.assert_array_equal(first.merge(second).calibration_.mean, expected.mean)


def test_calibration_forgets() -> None:
    given_out, losses, y = sure_of_itself(4000, 2, np.random.default_rng(0))
    calibration = Calibration.start()
    calibration.learn(given_out[:2000], losses[:2000], y[:2000], np.ones(2000), 0.99)
    assert calibration.information[1, 1] <= 0.25 / (1 - 0.99)
    after = np.sqrt(given_out[2000:])  # from here on the log-odds are right
    calibration.learn(after / after.sum(axis=1, keepdims=True), losses[2000:], y[2000:], np.ones(2000), 0.99)
    assert calibration.mean[0] == pytest.approx(1, abs=0.4)


def test_the_classifier_calibrates_by_what_it_said_before_the_label_was_known() -> None:
    data = load_dataset("heart")
    X = np.asarray(scale(data.X))
    model = BayesianEnsembleClassifier(
        "perceptron", 9, weighter="joint_gaussian", forgetting=0.99, calibrated=True, shuffle=False, random_state=3
    )
    model.fit(X, data.y)
    plain = Ensemble(Scaled(PerceptronBank(9)), JointGaussian(forgetting=0.99)).start(13, rng=3)
    said = plain.decide_then_learn(X, data.y)
    expected = Calibration.start()
    expected.learn(from_losses(said), said, data.y, np.ones(len(data.y)), 0.99)
    np.testing.assert_array_equal(model.calibration_.mean, expected.mean)


def test_the_default_is_calibrated_with_a_prior_that_trusts_its_probabilities() -> None:
    data = load_dataset("heart")
    X, y = np.asarray(scale(data.X)), np.unique(data.y, return_inverse=True)[1]
    models = [BayesianEnsembleClassifier(calibrated=calibrated, random_state=0) for calibrated in (True, False, "auto")]
    found, plain, auto = (model.predict_proba_then_learn(X, y, classes=[0, 1]) for model in models)
    expected, losses = Calibration.start(), -np.log(plain)
    told = abs(plain[:, 1] - 0.5) > 1e-9  # rows without a decision teach nothing
    before = expected.learn(plain, losses, y, told.astype(float), 1.0, Trust(100.0, 1e-6))
    np.testing.assert_allclose(models[0].calibration_.mean, expected.mean, rtol=1e-6)
    log_odds = before[:, 0] * np.log(plain[:, 1] / plain[:, 0]) + before[:, 1] * np.where(plain[:, 1] >= 0.5, 1, -1)
    np.testing.assert_allclose(found[told, 1], 1 / (1 + np.exp(-log_odds[told])), rtol=1e-6)
    np.testing.assert_array_equal(found, auto)  # the default of version 0.1


def test_late_labels_teach_the_calibration_what_was_said_when_the_rows_were_predicted() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3))
    y = (X[:, 0] + rng.standard_normal(120) > 0).astype(np.intp)
    model = BayesianEnsembleClassifier("naive_bayes", 5, calibrated=True, random_state=0).start(3, np.array([0, 1]))
    early, late = as_rows("test", X[:60]), as_rows("test", X[60:])
    model.advance(early, y[:60], np.ones(60))
    forecast, said = model.forecast(late)[0], model.model_.shares(model.forecast(late)[0].losses)
    model.advance(early, 1 - y[:60], np.ones(60))  # by now it would say something else
    expected = Calibration(*(array.copy() for array in model.calibration_))
    expected.learn(said, forecast.losses, y[60:], np.ones(60), 1.0, Trust(100.0, 1e-6))
    model.advance(late, y[60:], np.ones(60), forecast)
    for one, other in zip(model.calibration_, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_merged_calibrations_are_near_one_of_all_rows() -> None:
    given_out, losses, y = sure_of_itself(4000, 2, np.random.default_rng(0))
    whole, first, second = Calibration.start(), Calibration.start(), Calibration.start()
    for calibration, part in ((whole, slice(0, 4000)), (first, slice(0, 1000)), (second, slice(1000, 4000))):
        calibration.learn(given_out[part], losses[part], y[part], np.ones(len(y[part])), 1.0)
    merged = first.merged(second)
    np.testing.assert_allclose(merged.mean, whole.mean, atol=0.02)
    np.testing.assert_allclose(merged.information, whole.information, rtol=0.1)
    np.testing.assert_allclose(Calibration.start().merged(first).mean, first.mean, rtol=1e-12)


def brier(model: BayesianEnsembleClassifier | OGBoostClassifier, name: str) -> float:
    """Brier score of the probabilities of every row, given before it was learned, in chunks of 20."""
    data = load_dataset(name)
    X, y = scale(data.X), data.y
    total = 0.0
    for start in range(0, len(y), 20):
        rows = slice(start, start + 20)
        if start:
            total += float(((model.predict_proba(X[rows])[:, 1] - y[rows]) ** 2).sum())
        model.partial_fit(X[rows], y[rows], classes=[0, 1])
    return total / (len(y) - 20)


# Constant forecasts of the classes' shares score 0.247 on heart, 0.227 on breast-cancer and 0.227 on diabetes. Shares
# of the ensemble loss are near calibrated already; a booster's votes are not.
@pytest.mark.parametrize(("name", "bound"), [("heart", 0.135), ("breast-cancer", 0.032), ("diabetes", 0.175)])
def test_brier_scores(name: str, bound: float) -> None:
    assert brier(BayesianEnsembleClassifier(random_state=0), name) < bound
    assert brier(BayesianEnsembleClassifier(calibrated=False, random_state=0), name) < bound
    assert brier(OGBoostClassifier(random_state=0), name) < brier(
        OGBoostClassifier(calibrated=False, random_state=0), name
    )


@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("kind", [BayesianEnsembleClassifier, OGBoostClassifier])
def test_probabilities_before_each_row_is_learned(
    kind: type[BayesianEnsembleClassifier | OGBoostClassifier], calibrated: bool
) -> None:
    data = load_dataset("heart")
    X, y = np.asarray(scale(data.X)), np.array(["ill", "well"])[data.y]
    options: dict[str, Any] = {"horizon": 0} if kind is BayesianEnsembleClassifier else {}
    whole, parts, plain = (kind(n_members=9, calibrated=calibrated, random_state=3, **options) for _ in range(3))
    found = whole.predict_proba_then_learn(X, y, classes=["ill", "well"])
    again = [
        parts.predict_proba_then_learn(X[:1], y[:1], ["well", "ill"]),
        parts.predict_proba_then_learn(X[1:], y[1:]),
    ]
    expected = []
    for t in range(len(y)):
        if t:
            expected.append(plain.predict_proba(X[t : t + 1])[0])
        plain.partial_fit(X[t : t + 1], y[t : t + 1], classes=["ill", "well"])
    np.testing.assert_array_equal(found[1:], expected)
    np.testing.assert_array_equal(np.concatenate(again), found)
    for other in (whole, parts):
        np.testing.assert_array_equal(other.predict_proba(X), plain.predict_proba(X))
        np.testing.assert_array_equal(other.calibration_.mean, plain.calibration_.mean)


def test_rows_of_weight_zero_are_predicted_and_leave_no_trace() -> None:
    data = load_dataset("heart")
    X = np.asarray(scale(data.X))
    w = np.random.default_rng(0).integers(0, 2, len(data.y)).astype(np.float64)
    model, plain = (BayesianEnsembleClassifier(n_members=9, calibrated=True, random_state=3) for _ in range(2))
    found = model.predict_proba_then_learn(X, data.y, [0, 1], w)
    kept = plain.predict_proba_then_learn(X[w > 0], data.y[w > 0], [0, 1])
    np.testing.assert_array_equal(found[w > 0], kept)
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))


def test_refused_rows_change_nothing() -> None:
    data = load_dataset("heart")
    model = BayesianEnsembleClassifier(n_members=9, calibrated=True, random_state=3)
    with pytest.raises(ValueError, match="classes must be passed on the first call to predict_proba_then_learn"):
        model.predict_proba_then_learn(data.X, data.y)
    model.fit(data.X, data.y)
    before = model.predict_proba(data.X)
    with pytest.raises(ValueError, match=r"y must hold the classes \[0, 1\] only, got"):
        model.predict_proba_then_learn(data.X, data.y + 1)
    with pytest.raises(ValueError, match="classes must be those of the first call"):
        model.predict_proba_then_learn(data.X, data.y, [0, 1, 2])
    np.testing.assert_array_equal(model.predict_proba(data.X), before)

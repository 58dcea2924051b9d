"""A state that no stream leads to is refused, in words, by its kind; each line below spoils one thing."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bayesvote import (
    SAG,
    SGD,
    AveragedSGD,
    FernBank,
    GammaRate,
    GammaShape,
    GammaShapeRate,
    JointGaussian,
    JointLogistic,
    NaiveBayesBank,
    NeighbourBank,
    OGBoost,
    OSBoost,
    OzaBoost,
    PerceptronBank,
    SeparableSGD,
    Voting,
)
from bayesvote.core.checks import Array, Labels
from bayesvote.core.scales import no_scales
from bayesvote.core.state import Stateful, Versioned
from bayesvote.estimators._calibration import Calibration
from bayesvote.weighting import Weighter

D, N = 20, 40


def rows(n_classes: int) -> tuple[Array, Labels]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    X[:, 0] = rng.integers(2, size=N)
    return X, rng.integers(n_classes, size=N)


def taught(part: Stateful[Any], n_classes: int = 2) -> tuple[Versioned[Any], Any]:
    part.start(D, n_classes, rng=0)
    X, y = rows(n_classes)
    learn: Any = getattr(part, "decide_then_learn", None) or getattr(part, "scores_then_learn", None)
    learn(X, y)
    return part, part.state


def updated(weighter: Weighter[Any]) -> tuple[Versioned[Any], Any]:
    g = np.random.default_rng(0).uniform(0.01, 1.0, (N, 3))
    return weighter, weighter.update(weighter.init(3), g)


MADE: dict[str, Callable[[], tuple[Versioned[Any], Any]]] = {
    "perceptron": lambda: taught(PerceptronBank(4, averaged=True)),
    "three classes": lambda: taught(PerceptronBank(4), 3),
    "naive Bayes": lambda: taught(NaiveBayesBank(4)),
    "neighbours": lambda: taught(NeighbourBank((9, 30))),
    "fern": lambda: taught(FernBank(1, depth=2, warmup=64)),
    "booster": lambda: taught(OzaBoost("naive_bayes", 3)),
    "boosted": lambda: taught(OzaBoost("perceptron", 3)),
    "convex": lambda: taught(OSBoost("perceptron", 3, variant="convex")),
    "gradient": lambda: taught(OGBoost("naive_bayes", 3)),
    "rate": lambda: updated(GammaRate()),
    "shape": lambda: updated(GammaShape()),
    "shape and rate": lambda: updated(GammaShapeRate()),
    "joint": lambda: updated(JointGaussian()),
    "fading": lambda: updated(JointGaussian(forgetting=0.995)),
    "drifting": lambda: updated(JointGaussian(2.0, persistence=0.9)),
    "logistic": lambda: updated(JointLogistic(2.0)),
    "voting": lambda: updated(Voting()),
    "SGD": lambda: updated(SGD()),
    "averaged": lambda: updated(AveragedSGD()),
    "SAG": lambda: updated(SAG(horizon=N)),
    "own loss": lambda: updated(SeparableSGD(lambda weight, g: 0.1 * weight * g - np.log(weight))),
}


@pytest.mark.parametrize("kind", MADE)
def test_a_sound_state_is_taken_and_one_that_is_not_finite_refused(kind: str) -> None:
    part, state = MADE[kind]()
    part.validate(state)
    for name, array in state._asdict().items():
        if array.dtype.kind == "f" and array.size:
            spoilt = array.copy()
            spoilt.reshape(-1)[0] = np.inf
            with pytest.raises(ValueError, match="weights must be 1" if kind == "voting" else f"{name} must be finite"):
                part.validate(state._replace(**{name: spoilt}))


@pytest.mark.parametrize(
    ("kind", "name", "at", "value", "words"),
    [
        ("perceptron", "features", (0, 0), 19, "features and mask must agree"),
        ("three classes", "mask", np.s_[:, 1], 0, "features and mask must agree"),
        ("perceptron", "weights", np.s_[:], 1.0, "^weights must be 0"),
        ("perceptron", "past_weights", np.s_[:], 1.0, "past_weights must be 0"),
        ("perceptron", "age", 0, -1.0, "age must be from 0 to"),
        ("perceptron", "age", np.s_[:], 1e150, "age must be from 0 to"),
        ("perceptron", "age", 0, 5e-324, "must be within reach of the age"),
        ("perceptron", "bias", 0, 1.1 * N, "^bias must be within reach"),
        ("perceptron", "past_bias", 0, 1.1 * N**2, "past_bias must be within reach"),
        ("perceptron", "weights", "largest", 1.1e100 * N, "^weights must be within reach"),
        ("perceptron", "past_weights", "largest", 1.1e100 * N**2, "past_weights must be within reach"),
        ("naive Bayes", "features", (0, 0), 19, "features and mask must agree"),
        ("naive Bayes", "total", 0, -1.0, "total must be at least 0"),
        ("naive Bayes", "statistics", (0, 0, 1), -1.0, "weights and squares in statistics must be at least 0"),
        ("naive Bayes", "statistics", (2, 0, 1), -1.0, "weights and squares in statistics must be at least 0"),
        ("naive Bayes", "statistics", (0, 0, 1), 1e3, "a feature must not weigh more"),
        ("naive Bayes", "statistics", (3, 0, 1), 1e3, "a value must not weigh more"),
        ("naive Bayes", "statistics", (0, 0, 1), 0.0, "squares must be 0|more than its feature"),
        ("naive Bayes", "values_seen", (2, 0), 0.5, "values_seen must count 0 to 3"),
        ("naive Bayes", "values_seen", (3, 0), 0.5, "declared features by 0 or 1"),
        ("naive Bayes", "values_seen", (2, 0), 1.0, "as many values as it counts"),
        ("naive Bayes", "values_seen", (0, 0), np.nan, "as many values as it counts"),
        ("neighbours", "features", 0, 19, "features and mask must agree"),
        ("neighbours", "columns", (0, 3), 3e15, "columns must be of values"),
        ("neighbours", "columns", (0, 45), 1.0, "columns must be 0 where no row is"),
        ("neighbours", "seen", 0, -1, "seen must be from 0 to"),
        ("neighbours", "seen", 0, 2**63 - 5, "seen must be from 0 to"),
        ("neighbours", "seen", 0, N + 1, "for the one label of each row"),
        ("neighbours", "weights", (0, 3), -1.0, "weights must be from 0 to"),
        ("neighbours", "weights", (0, 3), 1e200, "weights must be from 0 to"),
        ("neighbours", "weights", np.s_[:, 3], 1.0, "for the one label of each row"),
        ("fern", "seen", 0, 65, "seen must be from 0 to 64"),
        ("fern", "seen", 0, -1, "seen must be from 0 to 64"),
        ("fern", "columns", 0, 18, "columns must ascend"),
        ("fern", "columns", 0, -1, "columns must be from 0"),
        ("fern", "columns", -1, D, "columns must be from 0"),
        ("fern", "candidates", (0, 0, 0), 50, "candidates must be from 0"),
        ("fern", "candidates", (0, 0, 0), -1, "candidates must be from 0"),
        ("fern", "places", (0, 0, 0), 1.0, "places must be at least 0 and below 1"),
        ("fern", "labels", 0, 2, "labels must be from 0 to 1"),
        ("fern", "weights", 0, -1.0, "weights must be from 0 to"),
        ("fern", "weights", 0, 9.9e229, "weights must be from 0 to"),
        ("fern", "counts", (0, 0, 0), -1.0, "counts must be from 0 to"),
        ("fern", "counts", (0, 0, 0), 9.9e229, "counts must be from 0 to"),
        ("fern", "slot_of", np.s_[:], 7, "slots must be those of slot_of"),
        ("booster", "order", (0, 0), 0, "order must be a permutation"),
        ("booster", "n_continuous", 0, D + 1, "n_continuous must be from 0"),
        ("booster", "n_continuous", 0, -1, "n_continuous must be from 0"),
        ("booster", "record", (0, 0, 0), -1.0, "record must be at least 0"),
        ("booster", "seen", 0, -1.0, "seen must be at least 0"),
        ("booster", "totals", (0, 0, 0), -1.0, "totals must be at least 0"),
        ("booster", "stats", (0, 0, 1, 0, 0), -1.0, "squared deviations in stats"),
        ("booster", "overall", (0, 1, 0, 0), -1.0, "squared deviations in overall"),
        ("booster", "clock", (0, 1), 2**64 - 3, "clock must count at most"),
        ("booster", "clock", (0, 1), 2**53 + 1, "clock must count at most"),
        ("boosted", "n_continuous", 0, 1, "n_continuous must be from 0"),
        ("booster", "clock", (0, 1), 0, "a possible weight of the rows"),
        ("booster", "seen", 0, 0.0, "a possible weight of the rows"),
        ("booster", "seen", 0, 1.1e9 * N, "a possible weight of the rows"),
        ("booster", "record", (0, 0, 0), 1.1 * N**2, "record must be within reach"),
        ("gradient", "record", (0, 0, 0), 1.1 * N, "record must be within reach"),
        ("booster", "totals", (0, 0, 0), 1e5, "totals must be within reach"),
        ("gradient", "totals", (0, 0, 0), 1.1 * N, "totals must be within reach"),
        ("booster", "pair", (0, 0, 0), 1e101, "pair must be at most"),
        ("booster", "pair", (0, 0, 0), np.nan, "pair must have a first value"),
        ("booster", "overall", (0, 0, D - 1), N + 1, "counts in overall"),
        ("booster", "overall", (0, 0, D - 1), -1.0, "counts in overall"),
        ("booster", "overall", (0, 0, 0), 1e101, "means in overall"),
        ("booster", "overall", (0, 1, 0), 1e205, "squared deviations in overall must be within"),
        ("booster", "stats", (0, 0, 0, D - 1, 0), 1e3, "counts in stats"),
        ("booster", "stats", (0, 0, 0, 0, 0), -1e101, "means in stats"),
        ("booster", "stats", (0, 0, 1, 0, 0), 1e205, "squared deviations in stats must be within"),
        ("boosted", "weights", (0, 0, 0), 1.1e100 * N * (N + 1), "weights must be within reach"),
        ("convex", "record", (0, 0, 0), 1.0, "record must sum to 1"),
        ("rate", "total", (0, 0), -1.0, "counts must be at least 0"),
        ("rate", "total", (1, 0), -1.0, "sums of losses must be at least 0"),
        ("rate", "carry", (1, 0), 1.0, "carry must be small compared with total"),
        ("shape and rate", "total", (1, 0), -1.0, "sums of losses must be at least 0"),
        ("shape", "total", (1, 0), 746.0 * N, "sums of logarithms must fit counts"),
        ("shape", "total", (1, 0), -746.0 * N, "sums of logarithms must fit counts"),
        ("shape", "total", (0, 0), 0.0, "sums of logarithms must fit counts"),
        ("shape and rate", "total", (2, 0), 0.0, "sums of logarithms must fit the sums"),
        ("shape and rate", "total", (1, 0), 0.0, "sums of logarithms must fit the sums"),
        ("joint", "rows", (), 512, "rows must be from 0 to 511"),
        ("joint", "behind", 0, N + 1, "behind must be from 0 to rows"),
        ("joint", "behind", np.s_[:], N, "one posterior must not be behind"),
        ("joint", "sums", (2, 1), 2.0 * N, "sums of margins must not exceed the count"),
        ("joint", "sums", (2, 4), 2.0 * N, "products must be of margins"),
        ("joint", "sums", (2, 4), -1.0, "products must be of margins"),
        ("joint", "sums", np.s_[:], 1e200, "sums must be at most"),
        ("joint", "sums", (0, 0), 1.1e14, "sums must be at most 1e\\+14"),
        ("joint", "sums", (np.s_[:], 0), 0.9e14, "the count must be at most 1e\\+14"),
        ("drifting", "samples", np.s_[:], 2.1e13, "samples must be at most 2e\\+13"),
        ("joint", "covariances", (0, 0, 0), -1.0, "covariances must be positive definite"),
        ("joint", "covariances", (0, 0, 0), 9.0, "covariances must follow from the sums"),
        ("joint", "means", (0, 0), 9.0, "means must follow from the sums"),
        ("joint", "means", (0, 2), 9.0, "means must follow from the sums"),
        ("joint", "evidence", 0, 9.0, "evidence must follow from the sums"),
        ("fading", "means", (0, 0), 9.0, "means must follow from the sums"),
        ("drifting", "covariances", np.s_[:], 1e-150 * np.eye(3), "covariances must not be narrower"),
        ("drifting", "samples", np.s_[:], 1e200, "samples must be from 0 to"),
        ("logistic", "covariances", np.s_[:], 0.09 / (2 + 3 * N) * np.eye(3), "covariances must not be narrower"),
        ("voting", "fields", (0, 0), 2.0, "weights must be 1"),
        ("SGD", "fields", (0, 0), 0.0, "weights must be above 0"),
        ("SGD", "fields", (1, 0), -1.0, "counts must be whole"),
        ("SGD", "fields", (1, 0), 0.5, "counts must be whole"),
        ("averaged", "fields", (2, 0), 0.0, "weights must be above 0"),
        ("SAG", "fields", (3, np.s_[:]), N + 1, "rows must be within the horizon"),
        ("SAG", "fields", (3, 0), 1.0, "rows must be within the horizon"),
        ("own loss", "weights", (0, 0), 0.0, "weights must be above 0"),
        ("own loss", "counts", 0, 0.5, "counts must be whole"),
    ],
)
def test_what_no_stream_leads_to_is_refused(kind: str, name: str, at: Any, value: Any, words: str) -> None:
    part, state = MADE[kind]()
    spoilt = getattr(state, name).copy()
    spoilt[np.unravel_index(np.abs(spoilt).argmax(), spoilt.shape) if at == "largest" else at] = value
    with pytest.raises(ValueError, match=words):
        part.validate(state._replace(**{name: spoilt}))


def test_features_in_use_are_numbered_without_a_gap_and_among_the_columns() -> None:
    part, state = MADE["fern"]()
    last = state.slots.max()
    slots, slot_of = (np.where(array == last, last + 1, array) for array in (state.slots, state.slot_of))
    with pytest.raises(ValueError, match="slots must be numbered from 0"):
        part.validate(state._replace(slots=slots.astype(np.int32), slot_of=slot_of.astype(np.int32)))
    moved = state.slot_of.copy()
    moved[moved == last] = -1
    moved[np.setdiff1d(np.arange(D), state.columns)[0]] = last
    with pytest.raises(ValueError, match="slot_of must be of the columns"):
        part.validate(state._replace(slot_of=moved))


def test_a_posterior_at_rest_need_not_follow_from_the_sums_but_may_not_count() -> None:
    """The narrow prior keeps the weights where the losses say they are not."""
    weighter = JointGaussian((1.0, 1e8))
    g = np.array([0.05, 0.9, 0.9]) + np.random.default_rng(0).uniform(-0.05, 0.05, (300, 3))
    state: Any = weighter.update(weighter.init(3), g)
    assert state.behind[0] == 0
    assert state.behind[1] > 0
    state.means[1] += 1e-5
    weighter.validate(state)
    for name, at, value, words in (
        ("means", (0, 1), 9.0, "means must follow from the sums"),
        ("means", (1, 1), 9.0, "means at rest must be within reach"),
        ("covariances", (1, 0, 0), 1.0, "covariances at rest must not be wider"),
        ("evidence", 1, state.evidence[0] - 20, "evidence at rest must be a bound that does not count"),
        ("evidence", 1, -1e6, "evidence at rest must be a bound"),
    ):
        spoilt = getattr(state, name).copy()
        spoilt[at] = value
        with pytest.raises(ValueError, match=words):
            weighter.validate(state._replace(**{name: spoilt}))
    fading: Any = JointGaussian(forgetting=0.995)
    faded = fading.update(fading.init(3), g[:1])
    with pytest.raises(ValueError, match="no posterior may be behind where samples fade"):
        fading.validate(faded._replace(behind=np.array([1, 0, 0, 0])))


def test_scales_count_no_more_rows_than_a_float_can() -> None:
    """One more would be lost in rounding, and the numbers of a feature overtake the rows."""
    scales = no_scales(1)._replace(nonzero=np.array([2.0**53 - 4]), missing=np.array([3.0]))
    scales._replace(rows=np.array([2.0**53 - 1])).check()
    with pytest.raises(ValueError, match="rows must be below 9007199254740992"):
        scales._replace(rows=np.array([2.0**53])).check()


def test_a_calibration_that_no_stream_leads_to_is_refused() -> None:
    sound = Calibration.start()
    sound.check()
    with pytest.raises(ValueError, match="mean must be at least 0"):
        sound._replace(mean=np.array([1.0, -1.0])).check()
    with pytest.raises(ValueError, match="information must be definite"):
        sound._replace(information=np.array([[1.0, 2.0], [0.0, 1.0]])).check()
    for size in (1e9, 2.0**53, 1e20):  # what the prior adds is lost beside it
        with pytest.raises(ValueError, match="information must be definite"):
            sound._replace(information=size * np.array([[1.0, 1.0 + 1e-9], [0.0, 1.0]])).check()
    with pytest.raises(ValueError, match="information must be definite"):
        sound._replace(information=np.full((2, 2), 2.0**53)).check()
    with pytest.raises(ValueError, match="information must be at most"):
        sound._replace(information=np.diag([1e30, 1.0])).check()
    with pytest.raises(ValueError, match="mean must be finite"):
        sound._replace(mean=np.array([1.0, np.inf])).check()


@pytest.mark.parametrize("n_classes", [2, 3, 50])
@pytest.mark.parametrize("spread", [0.0, 1e-6, 1.0])
@pytest.mark.parametrize("weights", [(1.0,), (1e9,), (0.0, 1e-9, 1.0, 1e9), (5e-324, 1e9)])
def test_a_calibration_of_rows_of_any_weight_is_sound(
    n_classes: int, spread: float, weights: tuple[float, ...]
) -> None:
    """Also where all rows tell of the same odds: the information is then about one direction."""
    rng, n = np.random.default_rng(0), 3000
    p = np.exp(np.linspace(1.0, 2.0, n_classes) + spread * rng.normal(size=(n, n_classes)))
    p /= p.sum(axis=1, keepdims=True)
    y = rng.integers(n_classes, size=n)
    for forgetting in (1.0, 0.99):
        found = Calibration.start()
        for at in np.array_split(np.arange(n), 30):
            found.learn(p[at], -p[at], y[at], rng.choice(weights, len(at)), forgetting)
            found.check()

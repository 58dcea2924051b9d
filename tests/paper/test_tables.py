"""The tables once more, by plain loops that take nothing from them but which features a member sees.

Errors alone are a weak test, as few decisions change with the weights: those after the stream are compared, too.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import gammaln

from bayesvote.boosting import OGBoost, OSBoost, OzaBoost
from bayesvote.core.checks import Array
from bayesvote.datasets import load_dataset
from bayesvote_paper import frozen_members, online_members, streams, three_losses
from bayesvote_paper.experiment import Job
from bayesvote_paper.registry import EXPERIMENTS
from bayesvote_paper.streams import Stream
from oracles.members import NaiveBayes

REALLY_MEASURE = streams.measure
STEPS = (0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0)
Losses = Callable[[Array], Array]


class Scored(NamedTuple):
    """Scores (n, m) of trained Perceptrons on the stream, and the stream's labels, -1 and 1."""

    scores: Array
    signs: NDArray[np.int64]


class Done(NamedTuple):
    """A table's errors, and its models after the stream."""

    errors: dict[str, float]
    models: dict[str, Any]


@cache
def rows(dataset: str, trial: int) -> tuple[Array, NDArray[np.int64]]:
    """A set in the order of a trial, its features in [-1, 1]; and its labels, -1 and 1."""
    data = load_dataset(dataset)
    raw = np.asarray(data.X)
    low, high = raw.min(axis=0), raw.max(axis=0)
    varies = high > low  # a constant feature is 0
    order = np.random.default_rng(trial).permutation(len(raw))
    scaled = np.where(varies, 2 * (raw - low) / np.where(varies, high - low, 1) - 1, 0)
    return scaled[order], 2 * data.y[order] - 1


def taught(own: NDArray[np.bool_], X: Array, signs: NDArray[np.int64], passes: int = 1) -> tuple[Array, Array, Array]:
    """Perceptrons, each by its own features: scores before each row of the last pass, weights and biases."""
    W, b, scores = np.zeros(own.shape), np.zeros(len(own)), np.empty((len(X), len(own)))
    for _ in range(passes):
        for t, (x, sign) in enumerate(zip(X, signs, strict=True)):
            scores[t] = W @ x + b
            wrong = sign * scores[t] <= 0
            W[wrong] += sign * x * own[wrong]
            b[wrong] += sign
    return scores, W, b


def frozen(own: NDArray[np.bool_], dataset: str, trial: int) -> Scored:
    """Perceptrons that went twenty times over the first tenth of the rows, on the others."""
    X, signs = rows(dataset, trial)
    n = len(X) // 10
    _, W, b = taught(own, X[:n], signs[:n], 20)
    return Scored(X[n:] @ W.T + b, signs[n:])


def online(own: NDArray[np.bool_], dataset: str, trial: int) -> Scored:
    """Perceptrons that learn, on all rows."""
    X, signs = rows(dataset, trial)
    return Scored(taught(own, X, signs)[0], signs)


@cache
def done(table: str, members: str, dataset: str, trial: int) -> Done:
    """A table, with its models caught on their way to the stream."""
    models: dict[str, Any] = {}

    def measure(given: dict[str, Any], data: Stream) -> dict[str, Any]:
        models.update(given)
        return dict(REALLY_MEASURE(given, data))

    with pytest.MonkeyPatch.context() as patch:
        for module in (frozen_members, online_members, three_losses):
            patch.setattr(module, "measure", measure)
        errors = dict(EXPERIMENTS[table].run(Job(table, members, dataset, trial))["errors"])
    return Done(errors, models)


def seen(model: Any) -> NDArray[np.bool_]:
    """Which features (m, d) each member of an ensemble sees."""
    return np.asarray(model.bank.state.mask.T.astype(bool))


def ramp(margin: Array) -> Array:
    return np.clip((1 - margin) / 2, 0, 1)


def logistic(margin: Array) -> Array:
    return np.asarray(np.log(1 + np.exp(-margin)))


class Sgd:
    """(14) with the step gamma / t, by rule (12)."""

    def __init__(self, gamma: float, theta: float = 0.1) -> None:
        self.gamma, self.theta = gamma, theta
        self.weights, self.t = np.ones(100), 0

    def loss(self, g: Array, mean: Array) -> float:
        return float(mean @ g)

    def mean(self) -> Array:
        return self.weights

    def learn(self, g: Array) -> None:
        self.t += 1
        self.move(self.theta * g - 1 / self.weights)

    def move(self, gradient: Array) -> None:
        self.weights = np.maximum(self.weights - self.gamma / self.t * gradient, 1e-6)


class AveragedSgd(Sgd):
    """Steps of gamma t**(-3/4), and a vote by the mean of all weights so far."""

    def __init__(self, gamma: float) -> None:
        super().__init__(gamma)
        self.sum = np.zeros(100)

    def loss(self, g: Array, mean: Array) -> float:
        return float(mean @ g)

    def mean(self) -> Array:
        return np.asarray(self.sum / self.t if self.t else np.ones(100))

    def move(self, gradient: Array) -> None:
        self.weights = np.maximum(self.weights - self.gamma * self.t**-0.75 * gradient, 1e-6)
        self.sum += self.weights


class Sag(Sgd):
    """Steps along the mean over the stream of the gradients so far, those to come being 0."""

    def __init__(self, gamma: float, horizon: int) -> None:
        super().__init__(gamma)
        self.horizon, self.sum = horizon, np.zeros(100)

    def move(self, gradient: Array) -> None:
        self.sum += gradient
        self.weights = np.maximum(self.weights - self.gamma * self.sum / self.horizon, 1e-6)


class Rate:
    """(8): the mean (11) of the rates with theta 0.1 and the prior Gamma(1, 1), by rule (12)."""

    def __init__(self) -> None:
        self.t, self.sum = 0, np.zeros(100)

    def loss(self, g: Array, mean: Array) -> float:
        return float(mean @ g)

    def mean(self) -> Array:
        return np.asarray((1 + self.t) / (1 + 0.1 * self.sum))

    def learn(self, g: Array) -> None:
        self.t += 1
        self.sum += g


def mean_shape(log_density: Callable[[Array], Array]) -> Array:
    """Mean of the shape, by a sum over a fine grid of its logarithm."""
    shape = np.exp(np.linspace(-9, 9, 1500))[:, None]
    logs = log_density(shape) + np.log(shape)
    density = np.exp(logs - logs.max(axis=0))
    return np.asarray((density * shape).sum(axis=0) / density.sum(axis=0))


class Shape:
    """(19): the mean of (21) with theta 0.1 and a = b = c = 1; b and c no larger than the cap."""

    def __init__(self, cap: float) -> None:
        self.cap, self.t, self.sum_log = cap, 0, np.zeros(100)

    def mean(self) -> Array:
        count = min(1.0 + self.t, self.cap)
        power = self.sum_log + count * np.log(0.1)
        return mean_shape(lambda shape: shape * power - count * gammaln(shape))

    def loss(self, g: Array, mean: Array) -> float:
        return float((1 - mean) @ np.log(g) + 0.1 * g.sum())

    def learn(self, g: Array) -> None:
        self.t += 1
        self.sum_log += np.log(g)


class ShapeRate:
    """(22): the means of (24) with p = q = s = 1 and r = 1.5; s no larger than the cap, r than half above it."""

    def __init__(self, cap: float) -> None:
        self.cap, self.t, self.sum, self.sum_log = cap, 0, np.zeros(100), np.zeros(100)

    def mean(self) -> Array:
        s, Q = min(1.0 + self.t, self.cap), 1 + self.sum
        shape = mean_shape(
            lambda shape: (
                (shape - 1) * self.sum_log
                - (s + 0.5) * gammaln(shape)
                + gammaln(shape * s + 1)
                - (shape * s + 1) * np.log(Q)
            )
        )
        return np.stack((shape, (shape * s + 1) / Q), axis=1)

    def loss(self, g: Array, mean: Array) -> float:
        return float((1 - mean[:, 0]) @ np.log(g) + mean[:, 1] @ g)

    def learn(self, g: Array) -> None:
        self.t += 1
        self.sum += g
        self.sum_log += np.log(g)


def error(method: Any, stream: Scored, g: Losses) -> float:
    """Share of the rows whose label does not have the least loss; a tie goes to the label 1, as in (12)."""
    mistakes = 0
    for score, sign in zip(*stream, strict=True):
        mean = method.mean()
        decision = 1 if method.loss(g(score), mean) <= method.loss(g(-score), mean) else -1
        mistakes += decision != sign
        method.learn(g(sign * score))
    return mistakes / len(stream.signs)


METHODS: dict[str, Callable[[], Any]] = {
    "SGD": lambda: Sgd(1.0),
    "AveragedSGD": lambda: AveragedSgd(1.0),
    "SAG": lambda: Sag(1.0, 243),
    "GammaRate": Rate,
    **{f"SGD, step {step:g}": partial(Sgd, step) for step in STEPS},
    **{f"SAG, step {step:g}": partial(Sag, step, 243) for step in STEPS},
}


def mistakes(stream: Scored) -> float:
    """Share of the rows on which a single classifier is wrong."""
    return float(np.mean(np.where(stream.scores[:, 0] >= 0, 1, -1) != stream.signs))


def uniform(stream: Scored) -> float:
    """Share of the rows on which a uniform vote is wrong."""
    decisions = np.where(ramp(stream.scores).sum(axis=1) <= ramp(-stream.scores).sum(axis=1), 1, -1)
    return float(np.mean(decisions != stream.signs))


ALL = np.ones((1, 13), dtype=bool)  # the features of heart


@pytest.mark.parametrize("method", METHODS)
def test_table1_is_what_a_plain_loop_finds(method: str) -> None:
    errors, models = done("table1", "perceptron", "heart", 3)
    own = seen(models[method])
    assert own.shape == (100, 13)
    assert set(own.sum(axis=1)) == {6}
    by_hand = METHODS[method]()
    assert errors[method] == pytest.approx(error(by_hand, frozen(own, "heart", 3), ramp))
    np.testing.assert_allclose(models[method].weights(), by_hand.mean(), rtol=1e-9)


def test_table1s_vote_is_uniform_and_its_single_classifier_sees_all_features() -> None:
    errors, models = done("table1", "perceptron", "heart", 3)
    assert errors["Voting"] == pytest.approx(uniform(frozen(seen(models["Voting"]), "heart", 3)))
    assert errors["single"] == pytest.approx(mistakes(frozen(ALL, "heart", 3)))
    assert set(errors) == set(models) == {*METHODS, "Voting", "single", "JointGaussian"}


def test_table3_is_what_a_plain_loop_finds() -> None:
    errors, models = done("table3", "perceptron", "heart", 1)
    assert errors["single"] == pytest.approx(mistakes(online(ALL, "heart", 1)))
    assert errors["Voting"] == pytest.approx(uniform(online(seen(models["Voting"]), "heart", 1)))
    by_hand = Rate()
    assert errors["GammaRate"] == pytest.approx(error(by_hand, online(seen(models["GammaRate"]), "heart", 1), ramp))
    np.testing.assert_allclose(models["GammaRate"].weights(), by_hand.mean(), rtol=1e-9)


@pytest.mark.parametrize(
    ("table", "members", "kind"),
    [("table3", "perceptron", "perceptron"), ("table4", "gaussian_naive_bayes", "naive_bayes")],
)
@pytest.mark.parametrize("booster", [OzaBoost, OGBoost, OSBoost])
def test_the_boosters_have_a_hundred_members_of_the_tables_kind(
    table: str, members: str, kind: str, booster: Any
) -> None:
    X, signs = rows("heart", 1)
    losses = booster(kind, 100).start(13, 2, 1).decide_then_learn(X, (signs + 1) // 2)
    decisions = np.where(losses[:, 1] <= losses[:, 0], 1, -1)
    errors, _ = done(table, members, "heart", 1)
    assert errors[booster.__name__] == pytest.approx(np.mean(decisions != signs))


@pytest.mark.parametrize(("members", "kinds"), [("gaussian_naive_bayes", "gaussian"), ("naive_bayes", "auto")])
def test_table4s_single_classifier_is_naive_bayes_of_its_kind_over_all_features(members: str, kinds: str) -> None:
    X, signs = rows("heart", 0)
    by_hand = NaiveBayes(range(13), 2, [kinds] * 13, 5.0, 1e-3)
    scores = []
    for x, sign in zip(X.tolist(), signs.tolist(), strict=True):
        scores.append(by_hand.score(x))
        by_hand.learn(x, (sign + 1) // 2, 1.0)
    errors, _ = done("table4", members, "heart", 0)
    assert errors["single"] == pytest.approx(mistakes(Scored(np.array(scores), signs)))


LOSSES: dict[str, Callable[[], Any]] = {
    "GammaRate": Rate,
    "GammaShape": lambda: Shape(np.inf),
    "GammaShapeRate": lambda: ShapeRate(np.inf),
    "GammaShape, capped": lambda: Shape(1000),
    "GammaShapeRate, capped": lambda: ShapeRate(200),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_table5_is_what_a_plain_loop_finds(loss: str) -> None:
    errors, models = done("table5", "perceptron", "heart", 0)
    by_hand = LOSSES[loss]()
    assert errors[loss] == pytest.approx(error(by_hand, frozen(seen(models[loss]), "heart", 0), logistic))
    np.testing.assert_allclose(models[loss].weights(), by_hand.mean(), rtol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_table5s_bounds_are_the_papers_where_a_stream_reaches_them(loss: str) -> None:
    _, models = done("table5", "perceptron", "svmguide3", 0)
    stream = frozen(seen(models[loss]), "svmguide3", 0)
    assert len(stream.signs) > 1000
    by_hand = LOSSES[loss]()
    for score, sign in zip(*stream, strict=True):
        by_hand.learn(logistic(sign * score))
    np.testing.assert_allclose(models[loss].weights(), by_hand.mean(), rtol=1e-6)

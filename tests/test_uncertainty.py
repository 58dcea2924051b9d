"""Uncertainty is honest: intervals cover the true weights, decisions survive as often as their certainty says.

Streams are simulated as each weighter's likelihood has it, with weights drawn from its prior, so that a posterior
that is right covers them in 95% of all cases and keeps its promises on average, after any number of rows; and with
fixed weights, those of least expected loss, after long streams, when the prior no longer matters.

- :class:`GammaRate` and its kin: losses of the true label are exponential or Gamma.
- :class:`JointGaussian`: members have scores c in [-1, 1], and the label is +1 with probability (1 + weights.c)/2. So
  the weights are those of least squared loss, and the noise has a variance just below the 1 that theta = 1 supposes.

Means over independent streams are compared with what is promised. With other seeds a right posterior would fail a test
of coverage with a probability below 1% (93% and 97% are 2.6 standard errors from 95%, or more), and one of certainty
with a probability below 2e-5 (its three means may be 4.4 standard errors too low).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from bayesvote import losses
from bayesvote.core.checks import Array, Labels
from bayesvote.core.rows import Rows
from bayesvote.ensemble import Ensemble
from bayesvote.members import Bank
from bayesvote.model import decided
from bayesvote.weighting import GammaRate, GammaShape, GammaShapeRate, JointGaussian, Posterior

ERRORS = 4.4  # standard errors; further down is a normal variate with probability 5.4e-6

Stream = tuple[Array, Labels]


@dataclass
class Given(Bank[Any]):
    """Members whose scores are the features."""

    n_members: int = 5

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> Any:  # noqa: ARG002
        return ()

    def score(self, rows: Rows) -> Array:
        return rows.todense()

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:  # noqa: ARG002
        return rows.todense()

    def least_bytes(self, n_features: int, n_classes: int) -> int:  # noqa: ARG002
        return 0

    def validate(self, state: Any) -> None:
        pass


def exponential_stream(weights: Array, n: int, rng: np.random.Generator) -> Stream:
    """Give scores whose hinge losses of the true label are exponential, as likelihood (9) has them."""
    g = rng.exponential(1 / (0.1 * weights), (n, len(weights)))
    y = rng.integers(0, 2, n)
    return (2 * y - 1)[:, None] * (1 - g), y


def linear_stream(weights: Array, n: int, rng: np.random.Generator) -> Stream:
    """Give scores of which the expected label is a linear function."""
    widest = 1 / np.sqrt(len(weights))  # a weighted sum of them is in [-1, 1] but for a stream in hundreds
    scores = rng.uniform(-widest, widest, (n, len(weights)))
    return scores, (rng.random(n) < (1 + scores @ weights) / 2).astype(np.intp)


def covered(weighter: Posterior[Any], state: Any, truth: Array) -> Array:
    lower, upper = weighter.interval(state, 0.95)
    return ((lower <= truth) & (truth <= upper)).astype(np.float64)


def drawn_gamma(weights: Array) -> tuple[Array, Array]:
    """Shape and rate of the losses, of GammaShape's or GammaShapeRate's weights."""
    return (weights, np.full_like(weights, 0.1)) if weights.ndim == 1 else (weights[:, 0], weights[:, 1])


@pytest.mark.parametrize(("weighter", "n_rows"), [(GammaRate(), 10), (GammaShape(), 10), (GammaShapeRate(), 50)])
def test_intervals_of_separable_posteriors_cover(weighter: Posterior[Any], n_rows: int) -> None:
    """Every member is a stream of its own."""
    rng, start = np.random.default_rng(n_rows), weighter.init(1000)
    truth = weighter.sample(start, 1, rng)[0]
    shape, rate = (1.0, 0.1 * truth) if isinstance(weighter, GammaRate) else drawn_gamma(truth)
    g = np.maximum(rng.gamma(shape, 1 / rate, (n_rows, 1000)), losses.SMALLEST)
    inside = covered(weighter, weighter.update(start, g), truth)
    assert np.all((inside.mean(axis=0) > 0.93) & (inside.mean(axis=0) < 0.97))


def test_intervals_of_gamma_rate_cover_the_optimal_weights_after_long_streams() -> None:
    rng, weighter = np.random.default_rng(0), GammaRate()
    mean_loss = rng.uniform(0.3, 1.5, 3000)
    state = weighter.update(weighter.init(3000), rng.exponential(mean_loss, (5000, 3000)))
    optimal = 1 / (weighter.theta * mean_loss)  # of least expected loss (8)
    assert 0.93 < covered(weighter, state, optimal).mean() < 0.97


@pytest.mark.parametrize(("n_streams", "n_rows", "weights"), [(600, 300, None), (300, 4000, [0.5, 0.4, 0.2, -0.1])])
def test_intervals_of_the_joint_posterior_cover(n_streams: int, n_rows: int, weights: list[float] | None) -> None:
    """Members share a stream, so only the streams are independent."""
    rng = np.random.default_rng(n_rows)
    inside = np.array([joint_coverage(JointGaussian(), weights, n_rows, rng) for _ in range(n_streams)])
    assert inside.std() / np.sqrt(n_streams) < 0.02 / 2.6
    assert 0.93 < inside.mean() < 0.97


def joint_coverage(
    weighter: JointGaussian, weights: list[float] | None, n_rows: int, rng: np.random.Generator
) -> float:
    """Share of the intervals that cover, of one stream; the weights are drawn from the prior if none are given."""
    start = weighter.init(4)
    truth = weighter.sample(start, 1, rng)[0] if weights is None else np.array(weights)
    X, y = linear_stream(truth, n_rows, rng)
    state = weighter.update(start, weighter.of_truth(losses.of_labels("ramp", X), y))
    return float(covered(weighter, state, truth).mean())


def surplus(weighter: Posterior[Any], loss: str, stream: Callable[..., Stream], n_rows: int, weight: float) -> Array:
    """By how many standard errors decisions of low, middling and high certainty agree with the optimal ones too often.

    400 streams of n_rows, each row of this sample weight; 50 new rows are decided after each.
    """
    rng = np.random.default_rng(n_rows)
    edges, by_stream = [0.0, 0.7, 0.9, np.inf], np.zeros((400, 3))
    for s in range(400):
        model = Ensemble(Given(5), weighter, loss).start(5)
        optimal = weighter.sample(model.state, 1, rng)[0]
        X, y = stream(optimal, n_rows, rng)
        model.decide_then_learn(X, y, np.full(n_rows, weight))
        new, _ = stream(optimal, 50, rng)
        best = decided(weighter.losses_at(optimal, losses.of_labels(loss, new)))
        certainty = model.certainty(new, 200, rng)
        more = (best == decided(model.decide(new))) - certainty
        by_stream[s] = np.histogram(certainty, edges, weights=more)[0]
    return np.asarray(by_stream.sum(axis=0) / np.sqrt((by_stream**2).sum(axis=0)))


SETTINGS = [
    (GammaRate(alpha=20.0), "hinge", exponential_stream, 30),
    (JointGaussian(), "ramp", linear_stream, 100),
    (JointGaussian(), "ramp", linear_stream, 600),
]


@pytest.mark.parametrize(("weighter", "loss", "stream", "n_rows"), SETTINGS)
def test_decisions_agree_with_the_optimal_weights_as_often_as_they_are_certain(
    weighter: Posterior[Any], loss: str, stream: Callable[..., Stream], n_rows: int
) -> None:
    assert surplus(weighter, loss, stream, n_rows, 1.0).min() > -ERRORS


@pytest.mark.parametrize(("weighter", "loss", "stream", "n_rows"), SETTINGS[:2])
def test_too_much_certainty_is_found_out(
    weighter: Posterior[Any], loss: str, stream: Callable[..., Stream], n_rows: int
) -> None:
    """Rows that count ten times make posteriors too narrow."""
    assert surplus(weighter, loss, stream, n_rows, 10.0).min() < -ERRORS
